"""Bootstrap intervals of rates: records are resampled, because the words of one record are not independent."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F64

RESAMPLES = 1_000
AT_ONCE = 1 << 22
_SEED = int.from_bytes(
    hashlib.sha256(b"bootstrap").digest()[:8], "little"
)  # public: an interval is repeatable


def rate_interval(
    hits: npt.ArrayLike, totals: npt.ArrayLike, confidence: float = 0.95, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Return the percentile interval of Σ hits / Σ totals over resampled records (Efron 1979).

    Args:
        hits: [s], of each record; may be differences.
        totals: [s], what could have been hit.
        confidence: of the interval.
        resamples: how often the records are drawn anew.

    Returns:
        (lower, upper); (0, 0) where nothing could be hit.
    """
    top, bottom = np.asarray(hits, np.float64), np.asarray(totals, np.float64)
    # Records without anything to hit change no rate.
    top, bottom = top[bottom > 0], bottom[bottom > 0]
    if not len(top):
        return 0.0, 0.0
    random = np.random.default_rng(_SEED)
    rates: list[F64] = []
    step = max(1, AT_ONCE // len(top))
    for start in range(0, resamples, step):
        chosen = random.integers(0, len(top), (min(step, resamples - start), len(top)))
        rates.append(top[chosen].sum(axis=1) / bottom[chosen].sum(axis=1))
    low, high = np.quantile(np.concatenate(rates), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
