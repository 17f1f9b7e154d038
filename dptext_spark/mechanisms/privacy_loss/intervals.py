"""Bounds on a probability from how often an event was seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

Reals = npt.NDArray[np.float64]


def clopper_pearson(counts: npt.ArrayLike, draws: int, spare: float) -> tuple[Reals, Reals]:
    """Bound the probabilities of events (Clopper and Pearson 1934).

    Args:
        counts: [m], how often each was seen, from 0 to `draws`.
        draws: how many independent draws there were.
        spare: the probability that a bound is wrong, each of the two.

    Returns:
        (lower, upper), float64[m] each.
    """
    seen, where = np.unique(np.asarray(counts, np.float64), return_inverse=True)
    # The ends are put in afterwards: the inverse has no value there.
    low: Any = betaincinv(np.maximum(seen, 1.0), draws - seen + 1.0, spare)
    high: Any = 1.0 - betaincinv(np.maximum(draws - seen, 1.0), seen + 1.0, spare)
    low[seen == 0], high[seen == draws] = 0.0, 1.0
    return low[where.reshape(-1)], high[where.reshape(-1)]
