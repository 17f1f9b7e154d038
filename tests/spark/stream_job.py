"""A stream in a process of its own that is killed: `python stream_job.py BASE MOMENT`.

MOMENT is `committed` (the micro-batch is in the table, and neither accounted for nor noted in the checkpoint), `writing` (some of
its files are written, no commit), or `never`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from dptext_spark.config.load import parse_config
from dptext_spark.randomness import RunKey
from dptext_spark.spark import runner
from dptext_spark.spark.job import job
from dptext_spark.spark.session import spark_session

CHECKOUT = str(Path(__file__).resolve().parents[2])
FILES = 6  # of the source in a micro-batch


def settings(base: Path, out: str, **more: Any) -> dict[str, Any]:
    """Return the settings of the stream that is killed; the test's own process uses them, too."""
    return {
        "mode": "incremental",
        "input": {"path": str(base / "in")},
        "columns": ["body"],
        "row_key": "id",
        "lexicon": {"source": str(base / "lexicon")},
        "key": {"file": str(base / "key")},
        "output": {"path": str(base / out), "other_columns": "keep"},
        "run": {"id": "killed"},
        "stream": {"max_files": FILES, "starting_version": 0},
        **more,
    }


def main(base: Path, moment: str) -> None:
    """Run the stream, and end this process and its JVM without a word at the moment that is named."""
    spark = spark_session(
        master="local[2]",
        settings={
            "spark.executorEnv.PYTHONPATH": CHECKOUT,
            "spark.local.dir": str(base / "local"),
            "spark.sql.shuffle.partitions": 1,
            "spark.sql.files.openCostInBytes": 0,
            "spark.sql.files.minPartitionNum": FILES,
            "spark.eventLog.enabled": True,
            "spark.eventLog.compress": False,
            "spark.eventLog.dir": (base / "events").as_uri(),
        },
    )
    jvm = spark.sparkContext._gateway.proc.pid

    def end(*_: object, **__: object) -> None:
        os.kill(jvm, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    if moment == "committed":
        job.reconcile = end
    if moment == "writing":
        before = set((base / "out").glob("*.parquet"))

        def watch() -> None:
            # More files than tasks at once: some are whole, and not all are there.
            while len(set((base / "out").glob("*.parquet")) - before) < 3:
                time.sleep(0.001)
            end()

        threading.Thread(target=watch, daemon=True).start()
    config = parse_config(settings(base, "out"))
    runner.run(config, spark, key=RunKey.from_file(base / "key"), progress=print)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
