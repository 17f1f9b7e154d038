"""Long texts as windows that an encoder takes at once, and windows as batches of one length.

A text that fits is one window. A longer one is cut into full windows that overlap by a quarter; the last one is moved back so
that it is full, too. Each sub-word is looked at in the window in which it stands most centrally, which is to say that two
windows share their overlap by halves: nothing is lost and nothing counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

SIGNS = 2  # [CLS] and [SEP]
OVERLAP = 4  # a window shares one in so many of its sub-words with the next
AT_ONCE = 512  # tokens of a batch: more are slower, since they leave the processor's cache
Places = npt.NDArray[np.int64]


class Windows(NamedTuple):
    """Windows on the sub-words of some texts, in order.

    Attributes:
        texts: int64[w], the text of each.
        starts: int64[w], its first sub-word.
        sizes: int64[w], how many it has.
        first: int64[w], the first sub-word that is looked at in it.
        last: int64[w], one past the last such sub-word.
    """

    texts: Places
    starts: Places
    sizes: Places
    first: Places
    last: Places


def windows(bounds: Places, positions: int) -> Windows:
    """Cut texts into windows.

    Args:
        bounds: int64[r + 1], where the sub-words of each text begin and end.
        positions: how many tokens the encoder takes, [CLS] and [SEP] among them.
    """
    most = positions - SIGNS
    step = most - most // OVERLAP
    lengths = np.diff(bounds)
    counts = np.where(lengths > most, -(-(lengths - most) // step) + 1, lengths > 0)
    texts = np.repeat(np.arange(len(lengths)), counts)
    number = np.arange(len(texts)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = bounds[texts] + np.minimum(number * step, np.maximum(lengths[texts] - most, 0))
    sizes = np.minimum(lengths[texts], most)
    first = starts.copy()
    shared = np.flatnonzero(number > 0)
    first[shared] = (starts[shared] + starts[shared - 1] + sizes[shared - 1]) // 2
    last = bounds[texts + 1]
    last[shared - 1] = first[shared]
    return Windows(texts, starts, sizes, first, last)


def padded_lengths(sizes: Places, positions: int) -> Places:
    """Return how many tokens windows are padded to, int64[w]: at most one part in sixteen more than they have.

    It depends on the window alone, so that its figures are the same in every batch, bit for bit.
    """
    tokens = sizes + SIGNS
    digits = np.frexp(tokens)[1].astype(np.int64)  # binary ones
    step = 2 ** np.maximum(digits - 5, 0)
    return np.asarray(np.minimum(-(-tokens // step) * step, positions), np.int64)


def batches(lengths: Places) -> Iterator[Places]:
    """Yield windows of one length, some at a time: places in `lengths`, int64[b]."""
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    edges = np.append(np.flatnonzero(np.diff(ordered, prepend=-1)), len(order))
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        most = max(1, AT_ONCE // int(ordered[start]))
        for at in range(start, end, most):
            yield order[at : min(at + most, end)]
