"""How frequent words are in public: the prior of every attack that guesses words.

Without a public text it is the law of Zipf and Mandelbrot over the lexicon's order, 1/(r + 2.7) for the word of rank r (from
0); lexicons come in the order of frequency. Counts of a public text are mixed with that law, so that no word is impossible.
"""

from __future__ import annotations

import numpy as np

from dptext_spark.arrays import F64, I64, Bools
from dptext_spark.errors import SettingsError

SHIFT = 2.7


def zipf(words: int) -> F64:
    """Return float64[V], the law over the lexicon's order."""
    law = 1.0 / (np.arange(words) + SHIFT)
    return np.asarray(law / law.sum(), np.float64)


def counted(counts: I64, base: F64 | None = None) -> F64:
    """Return (c(w) + T·z(w)) / (N + T): counts that T more tokens of the base law complete (Witten and Bell 1991).

    Args:
        counts: int64[V], of a public text.
        base: float64[V], z; :func:`zipf` where it is None.

    Returns:
        float64[V]; N is the number of tokens, T that of distinct words among them (at least 1).
    """
    base = zipf(len(counts)) if base is None else base
    kinds = max(1, int(np.count_nonzero(counts)))
    return np.asarray((counts + kinds * base) / (counts.sum() + kinds), np.float64)


def of_drawn(prior: F64, drawn: Bools | None) -> F64:
    """Return the prior of the words that the policy draws: who sees a replacement knows that it is none of the kept words.

    Args:
        prior: float64[V], not negative.
        drawn: bool[V], the words that the policy draws; None for all.

    Returns:
        float64[V] that sums to 1.

    Raises:
        SettingsError: lengths that differ, a negative or infinite number, or no word that is both drawn and possible.
    """
    prior = np.asarray(prior, np.float64)
    if drawn is not None and len(drawn) != len(prior):
        raise SettingsError(f"drawn: {len(drawn)} words given; valid: {len(prior)}, as in the prior.")
    if not np.isfinite(prior).all() or (prior < 0).any():
        raise SettingsError("prior: it holds a number that is negative or infinite; valid: 0 or greater.")
    kept = prior if drawn is None else np.where(drawn, prior, 0.0)
    if not kept.sum() > 0:
        raise SettingsError("prior: no word that is drawn is possible; valid: at least one.")
    return np.asarray(kept / kept.sum(), np.float64)
