"""From the attention that sub-words receive to the importance of words (MECHANISMS §11; Fu 2024)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext_spark.encoder.tokenizer import Pieces
from dptext_spark.encoder.windows import Windows
from dptext_spark.text.spans import Spans

Reals = npt.NDArray[np.float64]


def of_pieces(received: npt.NDArray[np.float32], cut: Windows) -> Reals:
    """Return what each sub-word receives, as a share of what all sub-words of its window do: float64[m].

    All windows of a text that has several hold equally many sub-words, so that shares of one compare with shares of another.

    Args:
        received: float32[sum of sizes], of the sub-words of all windows, one window after the other.
        cut: the windows.
    """
    ends = np.cumsum(cut.sizes)
    window = np.repeat(np.arange(len(cut.sizes)), cut.sizes)
    whole = np.bincount(window, received, len(cut.sizes))
    shares = received / np.maximum(whole, np.finfo(np.float64).tiny)[window]
    looked_at = cut.last - cut.first
    from_window = np.repeat(ends - cut.sizes + cut.first - cut.starts, looked_at)
    within = np.arange(int(looked_at.sum())) - np.repeat(np.cumsum(looked_at) - looked_at, looked_at)
    return np.asarray(shares[from_window + within], np.float64)


def of_words(shares: Reals, pieces: Pieces, words: Spans) -> npt.NDArray[np.float32]:
    """Sum sub-words to words, and divide by the sum over the words of the text.

    A sub-word belongs to the first word that it shares a byte with; what stands between words belongs to none. A word without a
    sub-word has 0.

    Args:
        shares: float64[m], of the sub-words.
        pieces: where they stand.
        words: n words.

    Returns:
        float32[n], in 0..1; those of a text sum to 1, or to 0 where none has a sub-word.
    """
    n = len(words.starts)
    if not n:
        return np.zeros(0, np.float32)
    word = np.searchsorted(words.ends, pieces.starts, side="right")
    inside = np.flatnonzero((word < n) & (words.starts[np.minimum(word, n - 1)] < pieces.ends))
    sums = np.bincount(word[inside], shares[inside], n)
    text = np.repeat(np.arange(len(words.bounds) - 1), np.diff(words.bounds))
    whole = np.bincount(text, sums, len(words.bounds) - 1)[text]
    return np.divide(sums, whole, out=np.zeros(n), where=whole > 0).astype(np.float32)
