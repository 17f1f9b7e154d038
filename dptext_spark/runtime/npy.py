"""One .npy file: memory-mapped on disk, read whole inside an archive, never unpickled."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.errors import DataError

if sys.version_info >= (3, 11):
    from importlib.resources.abc import Traversable
else:
    from importlib.abc import Traversable

__all__ = ["Traversable", "read_array"]


def read_array(file: Path | Traversable) -> npt.NDArray[Any]:
    """Return the array that `file` holds.

    Args:
        file: a path on disk (memory-mapped, read-only), or a packaged file inside a .zip (read whole).

    Raises:
        DataError: the file is missing, truncated, or no .npy file.
    """
    try:
        if isinstance(file, Path):
            return np.asarray(np.load(file, mmap_mode="r", allow_pickle=False))
        return np.asarray(np.load(io.BytesIO(file.read_bytes()), allow_pickle=False))
    except FileNotFoundError as reason:
        raise DataError(f"{file}: there is no such file.") from reason
    except (ValueError, EOFError, OSError) as reason:
        raise DataError(f"{file}: not a complete .npy file.") from reason
