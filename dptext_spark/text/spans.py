"""Where things lie in the texts of a batch: words to be ranked, identifiers to be masked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Spans(NamedTuple):
    """Stretches of some texts, in order and apart from each other.

    Attributes:
        data: uint8[...], the bytes of the texts.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
        starts: int64[n], where each stretch begins in `data`, bytes.
        ends: int64[n], where it ends.
        bounds: int64[r + 1], the stretches of text i are starts[bounds[i]:bounds[i + 1]].
    """

    data: npt.NDArray[np.uint8]
    rows: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int64]
