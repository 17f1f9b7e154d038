"""What the check of `row_key` takes: a shuffle of the key, which a run without `row_key` does not need."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Figure, Section, Spread, quotient
from benchmarks.sizes import Sizes
from benchmarks.tables import local

CORES = 2
FILES = 8
KEYS_A_ROW = 125  # keys that are checked, for each row of the smallest table of section `scale`


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Check a column of integers, against counting it, and sum what Spark writes for its shuffle."""
    from pyspark.sql import functions as F

    from dptext_spark.spark.job.checks import check_key

    section = Section("keys", f"The check of `row_key`, local[{CORES}]")
    keys = KEYS_A_ROW * sizes.scale_rows
    checked, counted = [], []
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
        folder = Path(work)
        (folder / "events").mkdir()
        settings = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (folder / "events").as_uri(),
        }
        with local(CORES, folder, settings) as session:
            session.range(0, keys, 1, FILES).write.parquet(str(folder / "keys"))
            df = session.read.parquet(str(folder / "keys"))
            for number in range(sizes.long_rounds + 1):
                say(f"keys: round {number} of {sizes.long_rounds}")
                began = time.perf_counter()
                check_key(df, "id", "row_key", unique=True)
                between = time.perf_counter()
                df.agg(F.count("id"), F.max("id")).collect()
                if number:  # the round before reads the file into the page cache
                    checked.append(between - began)
                    counted.append(time.perf_counter() - between)
        moved = _shuffled(folder / "events") / (sizes.long_rounds + 1)
    ours, peer = Spread(tuple(checked)), Spread(tuple(counted))
    section.figures.append(
        Figure(
            f"the check of {keys:,} keys", "s", ours, "counting them", peer, quotient(ours, peer), "x its time",
            note=f"{ours.median * CORES * 1e9 / keys:,.0f} core-ns a key",
        )
    )  # fmt: skip
    section.figures.append(
        Figure(
            "what the check shuffles",
            "bytes a key",
            Spread((moved / keys,)),
            note="keys that ascend compress well",
        )
    )
    return section


def _shuffled(events: Path) -> float:
    """Return the bytes that all tasks wrote for shuffles, by the event log."""
    total = 0
    for file in events.rglob("*"):
        if file.is_file() and file.suffix != ".crc":
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                    total += json.loads(line)["Task Metrics"]["Shuffle Write Metrics"][
                        "Shuffle Bytes Written"
                    ]
    return float(total)
