"""The rule of Vickrey: a coin that looks at the noisy vector alone may release the second nearest word.

With d1 <= d2 the distances of the noisy vector to its nearest and its second nearest word, the nearest is released with
probability (1-t)·d2 / (t·d1 + (1-t)·d2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dptext_spark.mechanisms.samplers.neighbor_table import OPEN
from dptext_spark.runtime.jit import compiled


@compiled
def choose(noisy: Any, words: Any, found: Any, coins: Any, t: float, out: Any) -> None:
    """Release the nearest word, or the second.

    Where d2 = 0 (so d1, too) the probability is 1-t; where t = 1, it is 0.

    Args:
        noisy: float64[n, d].
        words: float32[V, d].
        found: int32[n, 2], the nearest and the second nearest word, or `OPEN`, which stays.
        coins: uint64[n].
        t: in [0, 1].
        out: int32[n], filled.
    """
    for i in range(out.shape[0]):
        out[i] = found[i, 0]
        if found[i, 0] == OPEN:
            continue
        d1 = _distance(noisy[i], words[found[i, 0]])
        d2 = _distance(noisy[i], words[found[i, 1]])
        rest = (1.0 - t) * d2
        p = 1.0 - t if d2 == 0.0 or t == 1.0 else rest / (t * d1 + rest)
        if p < 1.0 and coins[i] >= np.uint64(p * 2.0**64):
            out[i] = found[i, 1]


@compiled
def _distance(x: Any, y: Any) -> Any:
    """Return the Euclidean distance of float64[d] and float32[d], summed in order."""
    total = 0.0
    for k in range(x.shape[0]):
        gap = x[k] - np.float64(y[k])
        total += gap * gap
    return np.sqrt(total)
