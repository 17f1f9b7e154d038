"""A worker up to its first batch, on a fresh node with the model's machine code, against one that finds its loops cached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Figure, Goal, Section, Spread, quotient
from benchmarks.sizes import Sizes
from benchmarks.sources import packaged
from dptext_spark.mechanisms import CusText
from dptext_spark.model.artifact import save_model
from dptext_spark.model.machine_code import FILE, FOLDER, MOST_BYTES, make_code
from dptext_spark.model.privatizer import Privatizer


class Start(NamedTuple):
    """What a worker says of its start.

    Attributes:
        seconds: from its first line to its first batch.
        compiled: how many loops it compiled.
        taken: how many it took from the model's machine code.
    """

    seconds: float
    compiled: int
    taken: int


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Start workers with nothing cached, with machine code and without, and with a warm cache."""
    section = Section("start", "A worker up to its first batch")
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
        folder = Path(work)
        lexicon = packaged(sizes.lexicon_words)
        model = Privatizer(lexicon, CusText(k=min(20, len(lexicon))).compile(lexicon))
        save_model(model, folder / "model")
        make_code(folder / "model", lambda step, _: say(f"start: {step}"))
        size = (folder / "model" / FOLDER / FILE).stat().st_size
        say("start: a fresh node without machine code")
        without = _started("plain", folder, "warm")
        pairs = []
        for number in range(sizes.long_rounds):
            say(f"start: round {number + 1} of {sizes.long_rounds}")
            pairs.append((_started("code", folder, f"empty{number}"), _started("plain", folder, "warm")))
    cold, warm = (Spread(tuple(one.seconds for one in side)) for side in zip(*pairs, strict=True))
    section.figures.append(
        Figure(
            "fresh node, machine code in the model", "s", cold, "its loops cached", warm, quotient(cold, warm), "x its time",
            goals=(Goal(3.0, 4.0, "value"), Goal(1.5, 2.0, "ratio")),
        )
    )  # fmt: skip
    plain = Spread((without.seconds,))
    section.figures.append(
        Figure(
            "fresh node, no machine code", "s", plain, "with it", Spread((cold.median,)),
            Spread((without.seconds / cold.median,)), "x its time",
            note=f"{without.compiled} loops are compiled",
        )
    )  # fmt: skip
    compiled = Spread(tuple(float(one.compiled) for one, _ in pairs))
    section.figures.append(
        Figure("loops that are compiled with it", "loops", compiled, goals=(Goal(0.0, 0.0, "value"),))
    )
    most = MOST_BYTES / 1e6
    section.figures.append(
        Figure("machine code", "MB", Spread((size / 1e6,)), goals=(Goal(most, most, "value"),), note="packed")
    )
    return section


def _started(how: str, folder: Path, cache: str) -> Start:
    """Start a worker whose loops lie in a cache of that name."""
    place = folder / cache
    place.mkdir(mode=0o700, exist_ok=True)
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.start_worker", how, str(folder / "model")],
        env=os.environ | {"NUMBA_CACHE_DIR": str(place)}, cwd=Path(__file__).resolve().parents[1],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return Start(**json.loads(ran.stdout))
