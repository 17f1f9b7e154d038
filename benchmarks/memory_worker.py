"""One worker of the memory benchmark, a process of its own: `python -m benchmarks.memory_worker mapped|copied FOLDER`.

FOLDER holds `model` and `model.pickle`, `toy` and `toy.pickle`, and `batch.arrow`. It first does everything with the toy
model that it will do with the real one (imports, machine code, the scratch of a whole batch), so that what is added
afterwards is the model's. Then it follows the lines on its standard input: `open`, `measure`, `exit`.
"""

from __future__ import annotations

import ctypes
import gc
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.sources import row_ids
from dptext_spark.model.artifact import open_model
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey

ROLLUP = Path("/proc/self/smaps_rollup")
PAGE = 4096


def private_bytes() -> dict[str, int]:
    """Return what this process holds alone (`private`), and with its share of what it shares (`proportional`)."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)  # freed scratch goes back to the system: it is no part of a model
    sizes: dict[str, int] = {}
    for line in ROLLUP.read_text().splitlines()[1:]:
        name, amount, *_ = line.split()
        sizes[name.rstrip(":")] = int(amount) * 1024
    return {"private": sizes["Private_Clean"] + sizes["Private_Dirty"], "proportional": sizes["Pss"]}


def opened(how: str, folder: Path, name: str) -> Privatizer:
    """Open a model memory-mapped, or load it the way a worker loads a broadcast."""
    if how == "mapped":
        return open_model(folder / name)
    with open(folder / f"{name}.pickle", "rb") as file:
        privatizer: Privatizer = pickle.load(file)
    return privatizer


def used(privatizer: Privatizer, batch: pa.Array) -> int:
    """Sanitize the batch and read every page of every array; return a number that depends on them."""
    key = RunKey.insecure(0)
    _, counters = privatizer.privatize(batch, column="text", row_ids=row_ids(len(batch)), key=key)
    seen = counters.totals()["words"]
    for array in privatizer.arrays().values():
        flat = array.reshape(-1).view(np.uint8)
        seen += int(flat[::PAGE].sum(dtype=np.int64))
    return seen


def main(how: str, folder: Path) -> None:
    """Answer each line of standard input by one line."""
    with pa.memory_map(str(folder / "batch.arrow")) as source:
        batch = pa.ipc.open_file(source).read_all()["text"].combine_chunks()
        used(opened(how, folder, "toy"), batch)
        before = private_bytes()
        print("ready", flush=True)
        model = None
        for line in sys.stdin:
            if line.strip() == "open":
                model = opened(how, folder, "model")
                used(model, batch)
                print("opened", flush=True)
            elif line.strip() == "measure":
                print(json.dumps({"before": before, "after": private_bytes()}), flush=True)
            else:
                break


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
