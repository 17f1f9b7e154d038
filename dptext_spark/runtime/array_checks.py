"""Arrays of a compiled model, checked before they are used.

Compiled loops check no index. A model's seal is a digest that anybody can make, so arrays that were changed and sealed again must
end in an error here: never in a crash, an endless loop, or a word that the lexicon does not hold. Checks take the least and the
greatest value rather than a mask for each element, so that a memory-mapped file stays the only copy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.errors import DataError

Array = npt.NDArray[Any]


class Arrays:
    """The arrays of one part of a model, by name. Every method raises :class:`DataError` that names the array."""

    def __init__(self, part: str, arrays: Mapping[str, Array]) -> None:
        """Take the arrays of `part`, which messages name."""
        self._part, self._arrays = part, arrays

    def __contains__(self, name: str) -> bool:
        """Whether there is an array of that name."""
        return name in self._arrays

    def only(self, *names: str) -> None:
        """Require these arrays and no others."""
        given = sorted(self._arrays)
        if given != sorted(names):
            raise DataError(
                f"artifact: {self._part} holds the arrays {', '.join(given) or 'none'}; valid: "
                f"{', '.join(sorted(names)) or 'none'}."
            )

    def take(self, name: str, dtype: npt.DTypeLike, *shape: int | None) -> Array:
        """Return an array of this type and shape in C order; None stands for any length."""
        if name not in self._arrays:
            raise DataError(f"artifact: {self._part}.{name} is missing.")
        array = self._arrays[name]
        wanted = np.dtype(dtype)
        fits = len(array.shape) == len(shape) and all(
            size is None or size == given for size, given in zip(shape, array.shape, strict=True)
        )
        if array.dtype != wanted or not fits or not array.flags.c_contiguous or not array.flags.aligned:
            sizes = ", ".join("any" if size is None else str(size) for size in shape)
            raise DataError(
                f"artifact: {self._part}.{name} is {array.dtype}{list(array.shape)}; valid: {wanted}[{sizes}] in C order."
            )
        return array

    def require(self, name: str, holds: object, valid: str) -> None:
        """Require that something holds of an array; `valid` says what."""
        if not holds:
            raise DataError(
                f"artifact: {self._part}.{name} does not hold what its readers rely on; valid: {valid}."
            )

    def within(self, name: str, values: Array, low: int, high: int) -> None:
        """Require integers from `low` to `high`, both included."""
        if values.size and not (low <= int(values.min()) and int(values.max()) <= high):
            raise DataError(
                f"artifact: {self._part}.{name} holds numbers from {int(values.min())} to {int(values.max())}; valid: {low} to "
                f"{high}."
            )

    def finite(self, name: str, values: Array, low: float = -math.inf, high: float = math.inf) -> None:
        """Require finite numbers from `low` to `high`, both included."""
        if not values.size:
            return
        least, most = float(values.min()), float(values.max())  # NaN where one is NaN
        if not (math.isfinite(least) and math.isfinite(most) and low <= least and most <= high):
            bounds = "" if low == -math.inf and high == math.inf else f" from {low:g} to {high:g}"
            raise DataError(
                f"artifact: {self._part}.{name} holds numbers from {least:g} to {most:g}; valid: finite numbers{bounds}."
            )

    def ascending(self, name: str, values: Array, *, strictly: bool = False) -> None:
        """Require numbers that ascend, or at least never fall."""
        wrong = values[1:] <= values[:-1] if strictly else values[1:] < values[:-1]
        self.require(name, not wrong.any(), "ascending numbers" if strictly else "numbers that never fall")

    def permutation(self, name: str, values: Array, size: int) -> None:
        """Require each number from 0 to size - 1 once."""
        self.within(name, values, 0, size - 1)
        each = values.shape == (size,) and bool((np.bincount(values, minlength=size) == 1).all())
        self.require(name, each, f"each number from 0 to {size - 1} once")
