"""A process that starts Spark and does one run: `python -m benchmarks.run_worker job|plain FOLDER NAME` prints its seconds."""

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from benchmarks.plain_script import plain_script  # noqa: E402
from benchmarks.spark import CORES, KEY  # noqa: E402
from dptext_spark.config.load import parse_config  # noqa: E402
from dptext_spark.spark.runner import run  # noqa: E402
from dptext_spark.spark.session.session import spark_session  # noqa: E402


def main(how: str, folder: Path, name: str) -> None:
    """Start a session, and run the job or the plain script."""
    session = spark_session("dptext-bench", master=f"local[{CORES}]", warehouse=folder / "warehouse")
    if how == "plain":
        plain_script(session, folder / "input", folder / name, folder / f"{name}_notes")
    else:
        settings = {
            "input": {"path": str(folder / "input")}, "columns": ["body"], "row_key": "id",
            "output": {"path": str(folder / name)},
        }  # fmt: skip
        run(parse_config(settings), session, key=KEY)
    seconds = time.perf_counter() - BEGAN
    session.stop()
    sys.stdout.write(json.dumps({"seconds": seconds}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
