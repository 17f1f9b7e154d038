"""A text and its replacement as an attack sees them: ids, records, and which words were replaced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dptext_spark.arrays import I64, Bools, Ids
from dptext_spark.errors import DataError
from dptext_spark.mechanisms.base import NO_WORD


@dataclass(frozen=True, eq=False)
class Tokens:
    """A tokenized text beside its replacement, word for word.

    Attributes:
        words: int32[n], the input: word ids, or `EDGE` (punctuation) and `UNKNOWN` (numbers, unknown words) of
            :mod:`dptext_spark.text.tokens`.
        outputs: int32[n], what was released in its place. Where nothing was drawn it is a number of the word table, or below 0
            (anything else), and read only where draws depend on the word before them.
        drawn: bool[n], where the mechanism drew. All else is released as it is, or tells nothing (`UNKNOWN`).
        bounds: int64[s + 1], record i is the tokens bounds[i]:bounds[i + 1].
    """

    words: Ids
    outputs: Ids
    drawn: Bools
    bounds: I64

    def __post_init__(self) -> None:
        """Check that the arrays fit each other."""
        n = len(self.words)
        if not n == len(self.outputs) == len(self.drawn):
            raise DataError(
                f"tokens: {n} words, {len(self.outputs)} outputs and {len(self.drawn)} flags given; valid: equal numbers."
            )
        bounds = self.bounds
        if len(bounds) < 1 or bounds[0] != 0 or bounds[-1] != n or (np.diff(bounds) < 0).any():
            raise DataError("tokens: the bounds of the records must ascend from 0 to the number of tokens.")
        if n and (self.drawn & ((self.words < 0) | (self.outputs < 0))).any():
            raise DataError("tokens: a token is marked as drawn that is no word of the lexicon.")

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.bounds) - 1

    def by_record(self, flags: Bools) -> I64:
        """Count the flagged tokens of each record: int64[s]."""
        ends = np.append(0, np.cumsum(flags))
        return np.asarray(ends[self.bounds[1:]] - ends[self.bounds[:-1]], np.int64)

    @property
    def before(self) -> Ids:
        """What is released before each token: int32[n], a number of the word table, or `NO_WORD`."""
        left, _ = self.neighbours(self.outputs, NO_WORD)
        return np.where(left >= 0, left, NO_WORD).astype(np.int32)

    def neighbours(self, values: Ids, edge: int) -> tuple[Ids, Ids]:
        """Return what stands before and after each token: int32[n] each.

        Args:
            values: int32[n], what stands for each token.
            edge: what stands before and after a record.
        """
        left, right = np.append(edge, values[:-1]), np.append(values[1:], edge)
        filled = np.diff(self.bounds) > 0
        left[self.bounds[:-1][filled]] = edge
        right[self.bounds[1:][filled] - 1] = edge
        return left[: len(values)].astype(np.int32), right[: len(values)].astype(np.int32)
