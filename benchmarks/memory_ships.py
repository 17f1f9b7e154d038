"""Private memory that each of Spark's own Python workers adds for the model, by each way of shipping it.

All workers hold the model at once while each is measured: the tasks wait for each other between the steps.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.measure import Figure, Goal, Section, Spread
from benchmarks.memory import MEGABYTE, lay_out
from benchmarks.memory_worker import ROLLUP, private_bytes, used
from benchmarks.sizes import Sizes
from benchmarks.sources import CHECKOUT, packaged
from dptext_spark.spark.session.session import spark_session
from dptext_spark.spark.udf.ship import SHIP, Shipped, open_shipped, ship

MAPPED = (Goal(2.0, 2.0, "value"),)
WAIT_SECONDS = 120.0


@dataclass(frozen=True)
class Holder:
    """Opens the model in a worker, uses it, and tells what that added."""

    toy: Shipped
    model: Shipped
    folder: str
    workers: int

    def __call__(self, frames: Iterator[Any]) -> Iterator[Any]:
        """Map the one row of a task to what its worker holds."""
        import pandas as pd
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        place = context.partitionId()
        with pa.memory_map(f"{self.folder}/batch.arrow") as source:
            batch = pa.ipc.open_file(source).read_all()["text"].combine_chunks()
            used(open_shipped(self.toy), batch)
            before = private_bytes()["private"]
            self._meet("ready", place)
            used(open_shipped(self.model), batch)
            self._meet("opened", place)
            after = private_bytes()["private"]
            self._meet("measured", place)
        for _ in frames:
            yield pd.DataFrame({"pid": [os.getpid()], "before": [before], "after": [after]})

    def _meet(self, step: str, place: int) -> None:
        gate = Path(self.folder) / step
        gate.mkdir(exist_ok=True)
        (gate / str(place)).touch()
        limit = time.monotonic() + WAIT_SECONDS
        while len(list(gate.iterdir())) < self.workers:
            if time.monotonic() > limit:
                raise TimeoutError("the workers did not meet; are there as many slots as workers?")
            time.sleep(0.02)


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure the packaged lexicon's model, or a cut of it, in a local session."""
    section = Section(
        "ships", f"Private memory that each of {sizes.workers} workers of Spark adds, by `run.ship`"
    )
    if not ROLLUP.exists():
        section.skipped = [f"ships: this system has no {ROLLUP}"]
        return section
    lexicon = packaged(sizes.lexicon_words)
    spark = spark_session(
        "dptext memory",
        master=f"local[{sizes.workers}]",
        settings={"spark.executorEnv.PYTHONPATH": str(CHECKOUT)},
    )
    try:
        for how in SHIP:
            say(f"ships: {how}, {sizes.workers} workers")
            with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
                folder = Path(work)
                size = lay_out(folder, lexicon, sizes)
                shipped = [ship(spark, folder / part, how) for part in ("toy", "model")]
                holder = Holder(shipped[0], shipped[1], work, sizes.workers)
                rows = spark.range(sizes.workers, numPartitions=sizes.workers)
                held = rows.mapInPandas(holder, "pid long, before long, after long").collect()
            added = Spread(tuple((row["after"] - row["before"]) / MEGABYTE for row in held))
            shown = f"packaged {len(lexicon):,}, artifact of {size / MEGABYTE:.1f} MB: {how}"
            section.figures.append(Figure(shown, "MB", added, goals=() if how == "broadcast" else MAPPED))
            section.facts[how] = {
                "artifact_bytes": size,
                "workers": len({row["pid"] for row in held}),
                "held": [row.asDict() for row in held],
            }
    finally:
        spark.stop()
    return section
