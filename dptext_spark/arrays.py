"""Array types by their standard names, for annotations: the shape stands in the docstring of what takes or returns them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]

Ids = I32
"""Word ids, int32[n]: the place of a word in the lexicon."""

Vectors = F32
"""Word vectors, float32[V, dim]: a row for each word."""
