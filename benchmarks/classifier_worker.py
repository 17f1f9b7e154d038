"""One worker of the benchmark of classifiers: `python -m benchmarks.classifier_worker FOLDER`.

FOLDER holds the arrays of the classifier and `batch.arrow`. Libraries are imported first, so that what is added afterwards is the
classifier's. It prints a line: the bytes that it holds alone before, with a classifier that has read nothing, and after.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.classifier import bytes_of
from benchmarks.memory_worker import private_bytes
from dptext_spark.encoder.classifier import ARRAYS, Classifier
from dptext_spark.encoder.name_words import capitalised, name_words


def main(folder: Path) -> None:
    """Read the batch, and print what that takes."""
    import onnx  # noqa: F401 (imported before the first measurement)
    import onnxruntime
    import tokenizers  # noqa: F401

    onnxruntime.get_available_providers()
    data, rows = bytes_of(folder / "batch.arrow")
    name_words(data, rows)
    capitalised(data, rows)
    before = private_bytes()["private"]
    arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
    model = Classifier.restore(arrays)
    every = np.ones(len(rows) - 1, np.bool_)
    model.found_in(data, rows, ~every)
    idle = private_bytes()["private"]
    model.found_in(data, rows, every)
    print(json.dumps({"before": before, "idle": idle, "after": private_bytes()["private"]}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
