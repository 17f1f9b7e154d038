"""What a process works with: versions, machine code, matrix products, free space, its clock. Asked on driver and executors."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info

from dptext_spark._version import __version__
from dptext_spark.runtime import jit
from dptext_spark.runtime.paths import writable
from dptext_spark.runtime.record import Record

# What the results, or their transport, depend on; the worker's pyspark is the cluster's.
LIBRARIES = ("pyspark", "pyarrow", "numpy", "numba", "cryptography", "faiss-cpu", "onnxruntime", "tokenizers")


@dataclass(frozen=True)
class ProcessFacts(Record):
    """What a process says of itself; one that lacks the package says no more than the first three, and what is `missing`.

    Attributes:
        host: its name.
        python: version of the interpreter.
        executable: its path.
        missing: the module that could not be imported; empty where none is missing.
        at: seconds since 1970 when it was asked.
        package: version of this package.
        build: digest of its compiled loops.
        folder: where it is installed.
        versions: of `LIBRARIES`; None for one that is not there.
        cache: the folder for machine code.
        cache_writable: whether it can be written.
        cache_lasting: whether it is no temporary folder.
        blas: architectures that OpenBLAS chose.
        avx512: whether the processor has AVX-512.
        free: bytes that are free, by folder.
        drawn: digest of what the model draws of fixed texts under a key that is no secret.
        seconds: that this took, opening included.
        compiled: loops that it compiled.
        seal: of the model that it sees.
        model_error: kind of the error that opening the model ended in; empty where it opened.
        container: its control group, empty where there is none: processes of one host and group share their memory.
        memory: bytes that the container may hold, at most those of the machine; None where that is not to be seen.
        held: bytes that it holds alone with a classifier of names open; None without one, or where that is not to be seen.
    """

    host: str
    python: str
    executable: str
    missing: str = ""
    at: float = 0.0
    package: str = ""
    build: str = ""
    folder: str = ""
    versions: Mapping[str, str | None] = field(default_factory=dict)
    cache: str = ""
    cache_writable: bool = False
    cache_lasting: bool = False
    blas: tuple[str, ...] = ()
    avx512: bool = False
    free: Mapping[str, int] = field(default_factory=dict)
    drawn: str = ""
    seconds: float = 0.0
    compiled: int = 0
    seal: str = ""
    model_error: str = ""
    container: str = ""
    memory: int | None = None
    held: int | None = None


def process_facts(folders: Iterable[str] = ()) -> ProcessFacts:
    """Return the facts of this process, without what a model draws here.

    Args:
        folders: where it also writes: free space is asked there, too.
    """
    cache = Path(jit.code_cache())
    container, memory = container_memory()
    return ProcessFacts(
        host=socket.gethostname(),
        at=time.time(),
        python=platform.python_version(),
        executable=sys.executable,
        package=__version__,
        build=jit.build(),
        folder=str(Path(jit.__file__).parents[1]),
        versions={name: _installed(name) for name in LIBRARIES},
        cache=str(cache),
        cache_writable=writable(cache),
        cache_lasting=not cache.is_relative_to(tempfile.gettempdir()),
        blas=tuple(
            sorted({str(one["architecture"]) for one in threadpool_info() if one.get("architecture")})
        ),
        avx512="avx512f" in _processor(),
        free={folder: _free(folder) for folder in sorted({tempfile.gettempdir(), str(cache), *folders})},
        container=container,
        memory=memory,
    )


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


def container_memory(root: str | os.PathLike[str] = "/") -> tuple[str, int | None]:
    """Return the control group of this process, and the bytes that it may hold: the least of its limits and the machine's memory.

    Both versions of control groups are read, also from within a container, which sees its own group as the root.

    Args:
        root: where /proc and /sys are.

    Returns:
        (the group, empty where there is none; the bytes, None where nothing is to be seen).
    """
    base = Path(root)
    group, limits = "", []
    for line in _lines(base / "proc/self/cgroup"):
        number, controllers, place = line.split(":", 2)
        if "memory" in controllers.split(","):
            top, name, group = base / "sys/fs/cgroup/memory", "memory.limit_in_bytes", place
        elif number == "0":
            top, name, group = base / "sys/fs/cgroup", "memory.max", group or place
        else:
            continue
        folder = top / place.lstrip("/")
        for above in (folder, *folder.parents):
            limits += [int(text) for text in _lines(above / name) if text.isdigit()]
            if above == top:
                break
    for line in _lines(base / "proc/meminfo"):
        if line.startswith("MemTotal:"):
            limits.append(int(line.split()[1]) * 1024)
    return group, min(limits, default=None)


def held_bytes(root: str | os.PathLike[str] = "/") -> int | None:
    """Return the bytes that this process holds alone and that no file holds, too; None where that is not to be seen."""
    for line in _lines(Path(root) / "proc/self/smaps_rollup"):
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) * 1024
    return None


def _lines(file: Path) -> list[str]:
    """Return the lines of a file of the system's, none where there is no such file."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _free(folder: str) -> int:
    """Return the bytes that are free where `folder` is, or would be."""
    place = os.path.abspath(folder)
    while not os.path.exists(place):
        place = os.path.dirname(place)
    return shutil.disk_usage(place).free
