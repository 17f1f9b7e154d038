"""Which words an output may stand for, best first: the law read backwards, under a public prior.

For an output u the words w with P(w)·P(u|w) > 0; of more than a stated number the likeliest, and what is left out is stated.
A law that is counted from draws misses rare inputs: an attack that uses it reaches less than one with more draws would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.audit.deniability.outcomes import DRAWS, blocks
from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.runtime.jit import Int, compiled

MOST = 64
Ids = npt.NDArray[np.int32]
Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The plausible inputs of some outputs.

    Attributes:
        slot: int32[V], the row of an output; -1 for those that were not asked for.
        starts: int64[n + 1], rows of the next two.
        ids: int32[m], words, the largest P(w)·P(u|w) first, ties to the lower id.
        probability: float64[m], P(u|w).
        possible: int64[n], how many words can lead to each output at all.
        covered: float64[n], the share of Σ_w P(w)·P(u|w) that the listed words hold; 1 where nothing can lead to u.
        most: at most so many are listed for an output.
        draws: of each word, where the law was counted from draws; None where it is exact.
    """

    slot: Ids
    starts: npt.NDArray[np.int64]
    ids: Ids
    probability: Reals
    possible: npt.NDArray[np.int64]
    covered: Reals
    most: int
    draws: int | None

    @property
    def best(self) -> Ids:
        """The likeliest word of each row, int32[n]: the Bayes adversary's guess; -1 where there is none."""
        filled = np.diff(self.starts) > 0
        best = np.full(len(filled), -1, np.int32)
        best[filled] = self.ids[self.starts[:-1][filled]]
        return best

    def row(self, output: int) -> tuple[Ids, Reals]:
        """Return (words, P(output|word)) of an output that was asked for."""
        row = int(self.slot[output])
        part = slice(int(self.starts[row]), int(self.starts[row + 1]))
        return self.ids[part], self.probability[part]


@compiled
def _collect(
    words: Any, starts: Any, ids: Any, probability: Any, prior: Any, slot: Any, kept: Any, shares: Any, scores: Any,
    possible: Any, total: Any,
) -> None:  # fmt: skip
    """Take the laws of some words in: each output keeps its best candidates, in no order."""
    most = np.int64(kept.shape[1])
    for i in range(words.shape[0]):
        word = words[i]
        for e in range(starts[i], starts[i + 1]):
            row = np.int64(slot[ids[e]])
            score = prior[word] * probability[e]
            if row < 0 or score <= 0.0:
                continue
            place: Int = possible[row]
            possible[row] += 1
            total[row] += score
            if place >= most:
                place = 0
                for j in range(1, most):
                    low = scores[row, j] < scores[row, place]
                    if low or (scores[row, j] == scores[row, place] and kept[row, j] > kept[row, place]):
                        place = j
                if score < scores[row, place] or (score == scores[row, place] and word > kept[row, place]):
                    continue
            kept[row, place], shares[row, place], scores[row, place] = word, probability[e], score


def candidates(
    sampler: Sampler, prior: Reals, outputs: Ids, most: int = MOST, draws: int = DRAWS
) -> Candidates:
    """Read a mechanism backwards.

    Args:
        sampler: of any mechanism.
        prior: float64[V], of the words that are drawn; words of probability 0 are no candidates.
        outputs: int32[n], the outputs that are asked for; repeated ones count once.
        most: candidates of an output.
        draws: of each word, where there is no law.

    Raises:
        SettingsError: `most` below 1.
    """
    if most < 1:
        raise SettingsError(f"most: {most} given; valid: 1 or more.")
    wanted = np.unique(np.asarray(outputs, np.int32))
    slot = np.full(len(prior), -1, np.int32)
    slot[wanted] = np.arange(len(wanted), dtype=np.int32)
    kept = np.zeros((len(wanted), most), np.int32)
    shares, scores = np.zeros((len(wanted), most)), np.zeros((len(wanted), most))
    possible, total = np.zeros(len(wanted), np.int64), np.zeros(len(wanted))
    counted: int | None = None
    for block in blocks(sampler, np.flatnonzero(prior).astype(np.int32), draws):
        counted = block.draws
        _collect(
            block.words, block.starts, block.ids, block.probability, prior, slot, kept, shares, scores, possible, total
        )  # fmt: skip
    counts = np.minimum(possible, most)
    filled = np.arange(most) < counts[:, None]
    order = np.lexsort((kept, -np.where(filled, scores, -1.0)), axis=1)
    kept, shares = np.take_along_axis(kept, order, 1), np.take_along_axis(shares, order, 1)
    covered = np.divide(scores.sum(axis=1), total, out=np.ones(len(wanted)), where=total > 0)
    starts = np.append(0, np.cumsum(counts)).astype(np.int64)
    return Candidates(
        slot, starts, kept[filled], shares[filled], possible, np.minimum(covered, 1.0), most, counted
    )
