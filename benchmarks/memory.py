"""Private memory that a worker adds for the model: memory-mapped files against a copy, which is what a broadcast costs.

All workers hold the model at once while each is measured, since a page that only one process maps counts as its own.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import Figure, Goal, Section, Spread, quotient
from benchmarks.memory_worker import ROLLUP
from benchmarks.sizes import Sizes
from benchmarks.sources import CHECKOUT, lexicons, texts
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import CusText
from dptext_spark.model.artifact import open_model, save_model
from dptext_spark.model.privatizer import Privatizer

GOALS = (Goal(2.0, 2.0, "value"),)
MEGABYTE = 1e6
TOY_WORDS = 64


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure the model of every lexicon that is here."""
    section = Section("memory", f"Private memory that each of {sizes.workers} workers adds for the model")
    if not ROLLUP.exists():
        section.skipped = [f"memory: this system has no {ROLLUP}"]
        return section
    found, section.skipped = lexicons(sizes.lexicon_words)
    for name, lexicon in found:
        say(f"memory: {name} lexicon, {sizes.workers} workers")
        with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
            folder = Path(work)
            size = lay_out(folder, lexicon, sizes)
            mapped = _measured("mapped", folder, sizes.workers)
            copied = _measured("copied", folder, sizes.workers)
        value, peer = _added(mapped, "private"), _added(copied, "private")
        figure = Figure(
            f"{name} {len(lexicon):,}, artifact of {size / MEGABYTE:.1f} MB", "MB", value, "a copy, as broadcast",
            peer, quotient(value, peer), "x its memory", GOALS,
        )  # fmt: skip
        section.figures.append(figure)
        workers = {"workers": sizes.workers, "mapped": mapped, "copied": copied}
        section.facts[name] = {"artifact_bytes": size, **workers}
    return section


def lay_out(folder: Path, lexicon: Lexicon, sizes: Sizes) -> int:
    """Put a lexicon's model, a toy's and a batch of texts into a folder; return the bytes of the model's artifact."""
    toy = _toy_lexicon()
    _store(folder, "toy", Privatizer(toy, CusText(k=2).compile(toy)))
    _store(folder, "model", Privatizer(lexicon, CusText().compile(lexicon)))
    table = pa.table({"text": texts(lexicon, sizes.rows, sizes.words_a_row)})
    with pa.ipc.new_file(str(folder / "batch.arrow"), table.schema) as writer:
        writer.write_table(table)
    return sum(file.stat().st_size for file in (folder / "model").iterdir())


def _toy_lexicon() -> Lexicon:
    """Return a lexicon so small that its model takes no memory to speak of."""
    words = [f"toy{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(TOY_WORDS)]
    vectors = np.random.default_rng(0).normal(size=(TOY_WORDS, 4)).astype(np.float32)
    return Lexicon(Vocabulary.of(words), vectors, name="toy")


def _store(folder: Path, name: str, privatizer: Privatizer) -> None:
    """Store a model as an artifact, and as the pickle that a broadcast of it would be."""
    save_model(privatizer, folder / name)
    with open(folder / f"{name}.pickle", "wb") as file:
        pickle.dump(open_model(folder / name), file, protocol=pickle.HIGHEST_PROTOCOL)


def _measured(how: str, folder: Path, workers: int) -> list[dict[str, Any]]:
    """Return the memory of each worker before and after it opened the model."""
    command = [sys.executable, "-m", "benchmarks.memory_worker", how, str(folder)]
    started = [
        subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(workers)
    ]
    try:
        for step in ("ready", "opened"):
            for worker in started:
                if _line(worker) != step:
                    raise RuntimeError(f"a worker that had to answer {step!r} did not")
            _tell(started, "open" if step == "ready" else "measure")
        found = [json.loads(_line(worker)) for worker in started]
        _tell(started, "exit")
        return found
    finally:
        for worker in started:
            if worker.stdin is not None and worker.stdout is not None:
                worker.stdin.close()
                worker.stdout.close()
            worker.wait(timeout=60)


def _line(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    return worker.stdout.readline().strip()


def _tell(workers: list[subprocess.Popen[str]], line: str) -> None:
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(f"{line}\n")
        worker.stdin.flush()


def _added(measured: list[dict[str, Any]], kind: str) -> Spread:
    """Return the megabytes that opening the model added to each worker."""
    return Spread(tuple((one["after"][kind] - one["before"][kind]) / MEGABYTE for one in measured))
