"""Public frequencies of words and word pairs. Every attack that guesses words knows them, and fluent draws follow them.

Without a public text it is the law of Zipf and Mandelbrot over the lexicon's order: 1/(r + 2.7) for the word of rank r (from 0).
Lexicons come in the order of frequency. Counts of a public text are mixed with that law, so that no word is impossible.

A :class:`PairModel` gives the words that follow a word: integers, equal on every processor, because draws may depend on them.
Absolute discounting takes 3/4 of a pair from each counted pair. It gives that to all words by their frequency
(concepts/mechanisms, Public priors):

    P(u|h) = max(c(h,u) - 3/4, 0)/N(h) + λ(h)·P(u),  λ(h) = 1 - Σ_u max(c(h,u) - 3/4, 0)/N(h)

A prior is public by declaration. It is no part of a lexicon's fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F64, I64, U32, Bools, Ids, ReadOnlyArrays, read_only
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.runtime.jit import Int, compiled, inlined

MANDELBROT = 2.7
ZIPF = "Zipf-Mandelbrot, 1/(rank + 2.7) over the lexicon's order"
SHIFT = 28  # a weight b(u|h) is P(u|h)·2^28, rounded down, at least 1 and below 2^28
ONE = 1 << SHIFT
DISCOUNT = 0.75  # of a pair, taken from the count of each
_BITS = np.uint64(SHIFT)


def zipf(words: int) -> F64:
    """Return float64[V], the law over the lexicon's order; the same bits on every processor."""
    law = 1.0 / (np.arange(words) + MANDELBROT)
    return np.asarray(law / math.fsum(law), np.float64)


def counted(counts: I64, base: F64 | None = None) -> F64:
    """Return (c(w) + T·z(w)) / (N + T): counts, completed by T more tokens of the base law (Witten and Bell 1991).

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
    """Return the prior of the words that the policy draws. An adversary knows that a replaced word is none of the kept words.

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
        raise SettingsError(f"drawn: {len(drawn)} words do not fit the {len(prior)} of the prior.")
    if not np.isfinite(prior).all() or (prior < 0).any():
        raise SettingsError("prior: a number is negative or infinite. Choose 0 or greater.")
    possible = prior if drawn is None else np.where(drawn, prior, 0.0)
    if not possible.sum() > 0:
        raise SettingsError("prior: no drawn word has a probability above 0. Choose another prior.")
    return np.asarray(possible / possible.sum(), np.float64)


class PairArrays(NamedTuple):
    """A :class:`PairModel` as compiled loops take it; the fields are those of the model."""

    starts: I64
    following: Ids
    weight: U32
    backoff: U32
    base: U32


@inlined
def pair_weight(pairs: Any, context: Int, word: Int) -> Int:
    """`pair_weight(pairs: PairArrays, h, u) -> uint64`: b(u|h); -1 means any h outside the model's contexts; u is not checked."""
    last = pairs.starts.shape[0] - 1
    h = context if 0 <= context < last else last
    low = pairs.starts[h] if h < last else np.int64(0)
    end = pairs.starts[h + 1] if h < last else np.int64(0)
    high = end
    while low < high:
        middle = (low + high) >> 1
        if pairs.following[middle] < word:
            low = middle + 1
        else:
            high = middle
    weight = np.uint64(1)
    if low < end and pairs.following[low] == word:
        weight = np.uint64(pairs.weight[low])
    else:
        weight = (np.uint64(pairs.backoff[h]) * np.uint64(pairs.base[word])) >> _BITS
    return max(np.uint64(1), weight)


@compiled
def _weights(pairs: Any, contexts: Any, words: Any, out: Any) -> None:
    for n in range(out.shape[0]):
        out[n] = pair_weight(pairs, np.int64(contexts[n]), np.int64(words[n]))


@dataclass(frozen=True, eq=False)
class PairModel(ReadOnlyArrays):
    """b(u|h): a positive integer weight, 1 <= b < 2^28, of every lexicon word u after every context h.

    For a pair that was not counted it is max(1, (λ(h)·base(u)) >> 28). Contexts are the words of a word table: the V words of
    the lexicon, then words that it lacks (stop words). -1, or a number of H or more, is any other context. These are the
    boundary of a sentence, `[OOV]`, a number, an identifier, and an unknown word.

    Attributes:
        starts: int64[H + 1]; the counted continuations of context h are following[starts[h]:starts[h + 1]].
        following: int32[m], ids u < V, ascending within a context.
        weight: uint32[m], b(u|h) of the counted pairs.
        backoff: uint32[H + 1], λ(h) times 2^28; the last one is that of context -1.
        base: uint32[V], the frequency of each word times 2^28, 1 or more and below 2^28.
    """

    starts: I64
    following: Ids
    weight: U32
    backoff: U32
    base: U32

    def __post_init__(self) -> None:
        """Check that the arrays fit each other; :class:`DataError`: they do not, or a weight is out of its range."""
        super().__post_init__()
        kinds = (np.int64, np.int32, np.uint32, np.uint32, np.uint32)
        for entry, kind in zip(fields(self), kinds, strict=True):
            array = getattr(self, entry.name)
            if array.dtype != kind or array.ndim != 1:
                raise DataError(
                    f"prior: {entry.name} is {array.dtype}{list(array.shape)}. Choose {np.dtype(kind)}[n]."
                )
        starts, following, pairs = self.starts, self.following, len(self.following)
        sound = len(starts) >= 1 and starts[0] == 0 and starts[-1] == pairs == len(self.weight)
        sound = sound and not (np.diff(starts) < 0).any() and len(self.backoff) == len(starts)
        if not (sound and len(self.base) <= self.contexts):
            raise DataError("prior: the arrays of its pairs do not fit each other.")
        descends = np.diff(following) <= 0
        first = (
            starts[(starts > 0) & (starts < pairs)] - 1
        )  # the last pair of a context, where ids begin anew
        descends[first] = False
        if pairs and (descends.any() or following.min() < 0 or following.max() >= self.words):
            raise DataError("prior: the words after a context must be ids below V that ascend.")
        for name, most in (("weight", ONE - 1), ("base", ONE - 1), ("backoff", ONE)):
            array = getattr(self, name)
            if len(array) and not (int(array.min()) >= (name != "backoff") and int(array.max()) <= most):
                raise DataError(f"prior: {name} is {array.min()} to {array.max()}. Choose 1 to {most}.")

    @property
    def words(self) -> int:
        """V, the words that can follow."""
        return len(self.base)

    @property
    def contexts(self) -> int:
        """H, the words that can come before."""
        return len(self.starts) - 1

    @property
    def loops(self) -> PairArrays:
        """The arrays, as compiled loops take them (:func:`pair_weight`)."""
        return PairArrays(self.starts, self.following, self.weight, self.backoff, self.base)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def weights(self, contexts: Ids, words: Ids) -> U32:
        """Return b(u|h), elementwise: uint32[n], 1 or more and below 2^28.

        Args:
            contexts: int32[n]; a number outside 0 to H - 1 means no known word.
            words: int32[n], from 0 to V - 1.

        Raises:
            DataError: a word out of its range.
        """
        contexts, words = np.asarray(contexts, np.int32), np.asarray(words, np.int32)
        if len(words) and not (words.min() >= 0 and words.max() < self.words):
            raise DataError(
                f"prior: word ids {words.min()} to {words.max()} are not valid. Choose 0 to {self.words - 1}."
            )
        out = np.empty(len(words), np.uint32)
        _weights(self.loops, read_only(contexts), read_only(words), out)
        return out

    @classmethod
    def of_counts(
        cls, words: F64, first: Ids, second: Ids, counts: I64, contexts: int, totals: I64 | None = None
    ) -> PairModel:
        """Smooth the counts of pairs.

        Args:
            words: float64[V], the frequency of each word, sums to 1.
            first: int32[m], contexts from 0 to H - 1.
            second: int32[m], ids of words; each pair occurs once.
            counts: int64[m], of the pairs, 1 or more.
            contexts: H.
            totals: int64[H], how often each context occurred before any word, for lists of pairs that are not complete; None for
                the sums of the counts. N(h) is the larger of both.
        """
        order = np.lexsort((second, first))
        first, second, counts = first[order], second[order], counts[order]
        kinds = np.bincount(first, minlength=contexts).astype(np.int64)
        summed = np.zeros(contexts, np.int64)
        np.add.at(summed, first, counts)
        number = np.maximum(1, summed if totals is None else np.maximum(summed, totals)).astype(np.float64)
        # Every step is one correctly rounded operation on exact numbers, so each processor gets the same integers.
        base = np.clip(np.floor(words * ONE), 1, ONE - 1).astype(np.uint32)
        left = (number - summed + DISCOUNT * kinds) / number
        backoff = np.where(kinds > 0, np.minimum(np.floor(left * ONE), ONE), ONE).astype(np.uint32)
        counted = np.floor((counts - DISCOUNT) / number[first] * ONE).astype(np.uint64)
        spread = (backoff[first].astype(np.uint64) * base[second].astype(np.uint64)) >> _BITS
        return cls(
            np.append(0, np.cumsum(kinds)).astype(np.int64),
            second.astype(np.int32),
            np.clip(counted + spread, 1, ONE - 1).astype(np.uint32),
            np.append(backoff, ONE).astype(np.uint32),
            base,
        )

    def with_contexts(self, rows: I64) -> PairModel:
        """Return the model with other contexts before the same words.

        `rows`: int64[H'], the present context that each is; -1 for that of no known word.
        """
        starts, place = self._places(rows)
        return PairModel(starts, self.following[place], self.weight[place], self._backoff(rows), self.base)

    def of_words(self, kept: Ids) -> PairModel:
        """Return the model of some of the words, int32[V'], ascending or not; of other contexts those that follow them stay."""
        number = np.full(self.words, -1, np.int64)
        number[kept] = np.arange(len(kept))
        rows = np.append(kept, np.arange(self.words, self.contexts)).astype(np.int64)
        starts, place = self._places(rows)
        context, following = np.repeat(np.arange(len(rows)), np.diff(starts)), number[self.following[place]]
        stays = np.flatnonzero(following >= 0)
        stays = stays[np.lexsort((following[stays], context[stays]))]
        starts = np.append(0, np.cumsum(np.bincount(context[stays], minlength=len(rows)))).astype(np.int64)
        weight = self.weight[place[stays]]
        return PairModel(
            starts, following[stays].astype(np.int32), weight, self._backoff(rows), self.base[kept]
        )

    def _places(self, rows: I64) -> tuple[I64, I64]:
        """Return (where the pairs of each of some contexts begin in the next, int64[H' + 1]; their places, int64[m])."""
        sizes = np.where(rows >= 0, np.append(np.diff(self.starts), 0)[rows], 0)
        starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
        return starts, np.arange(starts[-1]) - np.repeat(starts[:-1], sizes) + np.repeat(
            self.starts[rows], sizes
        )

    def _backoff(self, rows: I64) -> U32:
        """Return λ of some contexts, and at the end that of no known word: uint32[H' + 1]."""
        return np.append(self.backoff[rows], self.backoff[-1])


@dataclass(frozen=True, eq=False)
class Prior(ReadOnlyArrays):
    """Public frequencies of a lexicon's words, and of the words that follow them.

    Attributes:
        name: what every figure says that it used.
        words: float64[V], positive, sums to 1.
        pairs: which word follows which; None where only single words are known.
        others: the words of contexts V to H - 1, in look-up form.

    Examples:
        >>> prior = dp.Lexicon.default().prior
        >>> len(prior), prior.pairs.words
        (21163, 21163)
    """

    name: str
    words: F64
    pairs: PairModel | None = None
    others: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            DataError: a frequency that is not positive, a sum that is not 1, or pairs of other words.
        """
        super().__post_init__()
        words = self.words
        if words.dtype != np.float64 or words.ndim != 1 or not len(words):
            raise DataError(f"prior: words are {words.dtype}{list(words.shape)}. Choose float64[V].")
        if not (np.isfinite(words).all() and (words > 0).all() and abs(float(words.sum()) - 1) < 1e-9):
            raise DataError("prior: frequencies of words must be above 0 and have the sum 1.")
        if self.pairs is not None and self.pairs.words != len(words):
            raise DataError(f"prior: pairs of {self.pairs.words:,} words do not fit {len(words):,} words.")
        if (0 if self.pairs is None else self.pairs.contexts - len(words)) != len(self.others):
            raise DataError(
                "prior: a context outside the lexicon has no word in `others`. Name one for each such context."
            )

    def __len__(self) -> int:
        """Return V."""
        return len(self.words)

    def __repr__(self) -> str:
        """Return the name and the sizes."""
        pairs = "no pairs" if self.pairs is None else f"{len(self.pairs.following):,} pairs"
        return f"Prior({self.name!r}, {len(self):,} words, {pairs})"

    @classmethod
    def by_rank(cls, words: int) -> Prior:
        """Return Zipf's law over a lexicon's order."""
        return cls(ZIPF, zipf(words))

    @property
    def is_by_rank(self) -> bool:
        """Whether it is Zipf's law: only the lexicon's order is known, and nothing need be stored."""
        return self.name == ZIPF

    @cached_property
    def digest(self) -> str:
        """The sha256 (hex) of its numbers, without the name."""
        digest = hashlib.sha256(json.dumps(self.others).encode())
        for name, array in sorted(self.arrays().items()):
            digest.update(f"{name}|{array.dtype.str}|{len(array)}|".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name."""
        return {"words": self.words, **({} if self.pairs is None else self.pairs.arrays())}

    @classmethod
    def restore(
        cls,
        name: str,
        arrays: Mapping[str, npt.NDArray[Any]],
        others: tuple[str, ...] = (),
        digest: str | None = None,
    ) -> Prior:
        """Build again from :meth:`arrays`.

        Args:
            name: of the prior.
            arrays: its arrays, which may be memory-mapped.
            others: the words of contexts beyond the lexicon's.
            digest: the expected one; None: any.

        Raises:
            DataError: they are those of no prior, or of another.
        """
        names = [entry.name for entry in fields(PairModel)]
        if set(arrays) not in ({"words"}, {"words", *names}):
            raise DataError(
                f"prior: the arrays {', '.join(sorted(arrays))} are not valid. Choose words, alone or with "
                f"{', '.join(names)}."
            )
        pairs = (
            PairModel(**{field_name: arrays[field_name] for field_name in names}) if len(arrays) > 1 else None
        )
        prior = cls(name, arrays["words"], pairs, others)
        if digest is not None and prior.digest != digest:
            raise DataError("prior: its numbers have changed since they were saved.")
        return prior

    def of_words(self, kept: Ids) -> Prior:
        """Return the prior of some of the words, int32[V']."""
        words = self.words[kept]
        pairs = None if self.pairs is None else self.pairs.of_words(kept)
        return Prior(self.name, np.asarray(words / math.fsum(words)), pairs, self.others)

    def before(self, others: Sequence[str]) -> Prior:
        """Return the same prior, its contexts beyond the lexicon's words in the order of a word table.

        Args:
            others: the words of the table that the lexicon lacks, in its order; nothing is known to follow those that were
                not counted.
        """
        if self.pairs is None or tuple(others) == self.others:
            return self
        place = {word: self.pairs.words + number for number, word in enumerate(self.others)}
        beyond = np.array([place.get(word, -1) for word in others], np.int64)
        rows = np.append(np.arange(self.pairs.words, dtype=np.int64), beyond)
        return Prior(self.name, self.words, self.pairs.with_contexts(rows), tuple(others))
