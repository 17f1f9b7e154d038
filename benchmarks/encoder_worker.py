"""One worker of the encoder benchmark: `python -m benchmarks.encoder_worker mapped|copied FOLDER`.

FOLDER holds `encoder`, as it is saved, and `batch.arrow`. Libraries are imported first, so that what is added afterwards is the
encoder's. Then it follows the lines on its standard input: `open`, `measure`, `exit`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.encoder import spans_of
from benchmarks.memory_worker import private_bytes
from dptext_spark.encoder.encoder import Encoder
from dptext_spark.encoder.model import EncoderModel


def main(how: str, folder: Path) -> None:
    """Answer each line of standard input by one line."""
    import onnxruntime
    import tokenizers  # noqa: F401 (imported before the first measurement)

    onnxruntime.get_available_providers()
    with pa.memory_map(str(folder / "batch.arrow")) as source:
        words = spans_of(pa.ipc.open_file(source).read_all()["text"].combine_chunks())
    before = private_bytes()["private"]
    encoder = None
    for line in sys.stdin:
        if line.strip() == "open":
            encoder = Encoder.open(folder / "encoder")
            if how == "copied":
                arrays = {name: np.array(array) for name, array in encoder.model.arrays().items()}
                encoder = Encoder(EncoderModel.restore(arrays))
            encoder.importance(words)
            print("opened", flush=True)
        elif line.strip() == "measure":
            print(json.dumps({"before": before, "after": private_bytes()["private"]}), flush=True)
        else:
            break


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
