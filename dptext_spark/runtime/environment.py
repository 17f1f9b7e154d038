"""What a process works with: versions, machine code, matrix products, free space, its clock. Asked on driver and executors."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from dptext_spark._version import __version__
from dptext_spark.runtime import jit
from dptext_spark.runtime.paths import writable

# What the results, or their transport, depend on; the worker's pyspark is the cluster's.
LIBRARIES = ("pyspark", "pyarrow", "numpy", "numba", "cryptography", "faiss-cpu", "onnxruntime", "tokenizers")


def process_facts(folders: Iterable[str] = ()) -> dict[str, Any]:
    """Return the facts of this process, JSON-able.

    Args:
        folders: where it also writes: free space is asked there, too.
    """
    cache = Path(jit.code_cache())
    return {
        "host": socket.gethostname(),
        "at": time.time(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "package": __version__,
        "build": jit.build(),
        "folder": str(Path(jit.__file__).parents[1]),
        "versions": {name: _installed(name) for name in LIBRARIES},
        "cache": str(cache),
        "cache_writable": writable(cache),
        "cache_lasting": not cache.is_relative_to(tempfile.gettempdir()),
        "blas": sorted({str(one["architecture"]) for one in threadpool_info() if one.get("architecture")}),
        "avx512": "avx512f" in _processor(),
        "free": {folder: _free(folder) for folder in sorted({tempfile.gettempdir(), str(cache), *folders})},
    }


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return getattr(sys.modules.get(name), "__version__", None)


def _processor() -> frozenset[str]:
    """Return the processor's features as Linux lists them; none where it does not."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    return frozenset(next((line for line in text.splitlines() if line.startswith("flags")), "").split())


def _free(folder: str) -> int:
    """Return the bytes that are free where `folder` is, or would be."""
    place = os.path.abspath(folder)
    while not os.path.exists(place):
        place = os.path.dirname(place)
    return shutil.disk_usage(place).free
