"""What can come out of a word and how likely: exact where the mechanism has a law, counted from draws where it has none.

Every audit reads this and nothing else of a mechanism. Laws are sparse rows; those of a whole lexicon come block by block, for
V² numbers fit no memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F64, I64, Ids
from dptext_spark.audit.deniability.simulated import sampled
from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms.base import TOTAL, Sampler
from dptext_spark.mechanisms.privacy_loss.loss import clopper_pearson
from dptext_spark.randomness.draws import Draws

DRAWS = 1_000  # of a word without a law
MOST_BYTES = 1 << 28  # of a block, with what it takes to make it
SUBKEY = hashlib.sha256(b"audit").digest()  # public: nothing private is drawn here
DRAWN_AT_ONCE = 1 << 14
TOGETHER = 32  # words whose distances are taken together
_LOWER, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The laws of some words, as sparse rows.

    Attributes:
        words: int32[n], the inputs.
        starts: int64[n + 1]; row i is starts[i]:starts[i + 1] of the other two.
        ids: int32[m], the outputs that are possible (or were seen), ascending within a row.
        probability: float64[m]: P(output | word), or the share of the draws.
        draws: of each word; None where the laws are exact.
    """

    words: Ids
    starts: I64
    ids: Ids
    probability: F64
    draws: int | None

    @property
    def exact(self) -> bool:
        """Whether these are laws, not shares of draws."""
        return self.draws is None

    @property
    def rows(self) -> I64:
        """The row of each entry: int64[m]."""
        return np.repeat(np.arange(len(self.words)), np.diff(self.starts))

    def row(self, index: int) -> tuple[Ids, F64]:
        """Return (outputs, probabilities) of the word at a position of `words`."""
        part = slice(int(self.starts[index]), int(self.starts[index + 1]))
        return self.ids[part], self.probability[part]

    def bounds(self, confidence: float) -> tuple[F64, F64]:
        """Return bounds of each probability that hold, one at a time, with `confidence`; of exact ones, themselves.

        An output that was never drawn has no entry; :func:`interval` of a count of 0 bounds it.

        Returns:
            (lower, upper), float64[m] each, by Clopper and Pearson (1934).
        """
        if self.draws is None:
            return self.probability, self.probability
        return interval(np.rint(self.probability * self.draws), self.draws, confidence)


def interval(counts: npt.ArrayLike, draws: int, confidence: float) -> tuple[F64, F64]:
    """Bound the probabilities of events by how often they were seen (Clopper and Pearson 1934).

    Args:
        counts: [m], each from 0 to `draws`.
        draws: how many independent draws there were.
        confidence: that both bounds of one event hold; (1 - confidence)/2 is spent on either side.

    Returns:
        (lower, upper), float64[m] each.
    """
    return clopper_pearson(counts, draws, (1.0 - confidence) / 2.0)


def outcomes(sampler: Sampler, words: Ids, draws: int = DRAWS, subkey: bytes = SUBKEY) -> Outcomes:
    """Return the laws of some words, or what was drawn of them where there are no laws.

    Args:
        sampler: of any mechanism.
        words: int32[n].
        draws: of each word, where there is no law. A draw depends on the word and its number alone, not on the other words.
        subkey: 32 bytes that the draws are made from; public.

    Raises:
        SettingsError: no draws are asked for where they are needed.
    """
    words = np.asarray(words, np.int32)
    found = sampler.laws(words)
    if found is not None:
        return Outcomes(words, found.starts, found.ids, found.weight.astype(np.float64) / TOTAL, None)
    if draws < 1:
        raise SettingsError(f"draws: {draws} given; valid: 1 or more.")
    return _drawn(sampler, words, draws, subkey)


def blocks(
    sampler: Sampler,
    words: Ids,
    draws: int = DRAWS,
    most_bytes: int = MOST_BYTES,
    subkey: bytes = SUBKEY,
) -> Iterator[Outcomes]:
    """Yield :func:`outcomes` of consecutive parts of `words`, each of which takes about `most_bytes` at most to make."""
    step = max(1, most_bytes // _bytes_a_word(sampler, draws))
    if sampler.law_bytes() is None:
        step = min(
            step, max(1, DRAWN_AT_ONCE // draws)
        )  # drawing takes its time: let others tell how far it is
    for start in range(0, len(words), step):
        yield outcomes(sampler, words[start : start + step], draws, subkey)


def _bytes_a_word(sampler: Sampler, draws: int) -> int:
    """Return about what a word's row takes while it is made: its law, or numbers, blocks and what is sorted."""
    return sampler.law_bytes() or 48 * draws


def _joined(ids: list[Ids], shares: list[F64]) -> tuple[I64, Ids, F64]:
    starts = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    none = (np.empty(0, np.int32), np.empty(0))
    return starts, np.concatenate([none[0], *ids]), np.concatenate([none[1], *shares])


def _drawn(sampler: Sampler, words: Ids, draws: int, subkey: bytes) -> Outcomes:
    """Draw every word, and count what came out."""
    ids: list[Ids] = []
    shares: list[F64] = []
    step = max(1, DRAWN_AT_ONCE // draws)
    for start in range(0, len(words), step):
        some = words[start : start + step]
        numbers = np.zeros((len(some), draws, 2), np.uint64)
        numbers[:, :, 0] = np.arange(draws)
        numbers[:, :, 1] = some[:, None]
        drawn = sampled(sampler, np.repeat(some, draws), Draws(subkey, numbers.reshape(-1, 2)))
        for row in drawn.reshape(len(some), draws):
            seen, counts = np.unique(row, return_counts=True)
            ids.append(seen.astype(np.int32))
            shares.append(counts / draws)
    return Outcomes(words, *_joined(ids, shares), draws)
