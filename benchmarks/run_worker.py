"""A process that starts Spark and does one run: `python -m benchmarks.run_worker job|plain FOLDER NAME` prints its seconds."""

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from benchmarks.plain_script import plain_script  # noqa: E402
from dptext_spark.config.load import parse_config  # noqa: E402
from dptext_spark.runtime.progress import silent  # noqa: E402
from dptext_spark.spark.runner import run_by_command  # noqa: E402
from dptext_spark.spark.session.session import spark_session  # noqa: E402


def main(how: str, folder: Path, name: str) -> None:
    """Run the job as `dptext run` does, or start a session and run the plain script."""
    if how == "plain":
        session = spark_session("dptext-bench", warehouse=folder / "warehouse")
        plain_script(session, folder / "input", folder / name, folder / f"{name}_notes")
    else:
        settings = {
            "input": {"path": str(folder / "input")}, "columns": ["body"], "row_key": "id",
            "output": {"path": str(folder / name), "other_columns": "keep"},
        }  # fmt: skip
        run_by_command(parse_config(settings), silent)
    seconds = time.perf_counter() - BEGAN
    spark_session().stop()  # the active one
    sys.stdout.write(json.dumps({"seconds": seconds}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
