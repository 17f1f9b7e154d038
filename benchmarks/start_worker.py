"""A worker up to its first batch: `python -m benchmarks.start_worker code|plain FOLDER` prints seconds and counts of loops."""

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

import pyarrow as pa  # noqa: E402

from dptext_spark.model.artifact import open_model  # noqa: E402
from dptext_spark.model.machine_code import attach_code  # noqa: E402
from dptext_spark.randomness import RunKey  # noqa: E402
from dptext_spark.runtime.display import silent  # noqa: E402
from dptext_spark.runtime.jit import compilations, taken  # noqa: E402


def main(how: str, folder: Path) -> None:
    """Import, open the model and draw a batch."""
    if how == "code" and not attach_code(folder, None, silent):
        raise SystemExit("the machine code was not taken")
    ids = pa.array(range(1_000))
    texts = pa.array(
        [f"the time of day {number}, call +44 20 7946 0958 or a.b@example.com" for number in range(1_000)]
    )
    open_model(folder).privatize(texts, column="body", row_ids=ids, record_ids=ids, key=RunKey.insecure(1))
    seconds = time.perf_counter() - BEGAN
    sys.stdout.write(json.dumps({"seconds": seconds, "compiled": compilations(), "taken": taken()}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
