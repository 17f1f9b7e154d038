"""What is written in the place of each identifier: a placeholder of its type, or a fake."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.text.identifiers.fakes import Keyed, fakes
from dptext_spark.text.identifiers.finder import Finder, Found
from dptext_spark.text.identifiers.types import FAKE, placeholder

I64 = npt.NDArray[np.int64]


class Replacements(NamedTuple):
    """The replacements of a batch.

    Attributes:
        text: uint8[...].
        bounds: int64[n + 1], that of identifier i is text[bounds[i]:bounds[i + 1]].
        faked: bool[n], which are fakes.
    """

    text: npt.NDArray[np.uint8]
    bounds: I64
    faked: npt.NDArray[np.bool_]


def replacements(finder: Finder, found: Found, keyed: Keyed) -> Replacements:
    """Make the replacements.

    Args:
        finder: whose types and actions count.
        found: the identifiers.
        keyed: what fakes are drawn from.
    """
    wanted = set(finder.identifiers.wanted(FAKE))
    faked = np.array([name in wanted for name in finder.names])[found.types] & ~found.written
    marks = [placeholder(name).encode() for name in finder.names]
    table = np.zeros((len(marks), max(map(len, marks))), np.uint8)
    for row, mark in zip(table, marks, strict=True):
        row[: len(mark)] = np.frombuffer(mark, np.uint8)
    sizes = np.array([len(mark) for mark in marks], np.int64)[found.types]
    at = np.flatnonzero(faked)
    made = np.zeros(0, np.uint8)
    if len(at):
        spans = found.spans
        rows = spans.owners[at]
        places = (rows, spans.rows[rows], spans.starts[at], spans.ends[at])
        made, ends = fakes(spans.data, places, found.types[at], keyed)
        sizes[at] = np.diff(ends)
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    text = np.empty(int(bounds[-1]), np.uint8)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    plain = ~faked[owner]
    place = np.arange(len(text)) - bounds[owner]
    text[plain] = table[found.types[owner[plain]], place[plain]]
    text[~plain] = made
    return Replacements(text, bounds, faked)
