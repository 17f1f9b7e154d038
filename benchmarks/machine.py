"""What figures were measured on: the processor, the memory, the versions, the commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.sources import CHECKOUT

PACKAGES = (
    "numpy",
    "pyarrow",
    "numba",
    "llvmlite",
    "faiss-cpu",
    "cryptography",
    "pyspark",
    "delta-spark",
    "pandas",
)


def machine() -> dict[str, Any]:
    """Return the processor's model and cache, the cores that this process may use, the memory, the load."""
    info = _fields(Path("/proc/cpuinfo"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": info.get("model name") or platform.processor() or platform.machine(),
        "cpu_family": info.get("cpu family"),
        "cpu_model": info.get("model"),
        "cache": info.get("cache size"),
        "cores": cores,
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def _fields(file: Path) -> dict[str, str]:
    """Return the first value of each `name : value` line; nothing where there is no such file."""
    if not file.exists():
        return {}
    found: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    return found


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that do the work; those that are missing are left out."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit() -> dict[str, Any]:
    """Return the commit of the checkout, and whether the measured files differ from it; None without git."""
    head = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--", "dptext_spark", "benchmarks/*.py")
    return {"commit": head, "changed_since": None if changed is None else bool(changed)}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
