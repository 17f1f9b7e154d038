"""A text as an attack sees it: ids, records, replaced words, and a bigram model of the language.

Draws for an audit, made by every processor: the release of a text by a mechanism, with a public key of their own.

An audit of success needs the law, not the release. It draws anew, so it needs no key and nothing of the run.

A smoothed bigram model of a public or held-out text: which word follows which.

P(b|a) = λ(a)·c(a,b)/c(a) + (1 - λ(a))·P(b), P the smoothed unigrams of the same text (:mod:`dptext_spark.lexicon.prior`). By
default λ(a) = c(a)/(c(a) + 5·T(a)), T(a) the number of different words seen after a: Witten and Bell (1991) with a factor. A
public text is seldom of the same kind, so the factor helps (on SST-2 every factor from 3 to 12 beats 1). A fixed λ can be given;
0 leaves the unigrams.

Beside the V words there are two states that nobody needs to guess. `EDGE` marks the ends of a record and punctuation, `UNKNOWN`
marks numbers and words that the lexicon does not hold.

The bigram baseline guesses a word without its replacement, from the neighbours that were kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dptext_spark.arrays import F64, I64, Bools, Ids, offsets
from dptext_spark.errors import DataError, SettingsError, require_choice
from dptext_spark.lexicon.prior import Prior, counted
from dptext_spark.mechanisms.base import NO_WORD, PREVIOUS, Sampler, check_context
from dptext_spark.mechanisms.matrices import in_threads
from dptext_spark.randomness import Draws
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.tokens import EDGE, UNKNOWN


@dataclass(frozen=True, eq=False)
class Tokens:
    """A tokenized text beside its replacement, word for word.

    Attributes:
        words: int32[n], the input: word ids, or `EDGE` (punctuation) and `UNKNOWN` (numbers, unknown words) of
            :mod:`dptext_spark.text.tokens`.
        outputs: int32[n], what was released in its place. Where nothing was drawn it is a number of the word table, or below 0
            (anything else). It is read only where draws depend on the word before.
        drawn: bool[n], where the mechanism drew. All else is released as it is, or reveals nothing (`UNKNOWN`).
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
                f"tokens: {n} words, {len(self.outputs)} outputs and {len(self.drawn)} flags are not valid. Give "
                "equal numbers."
            )
        bounds = self.bounds
        if len(bounds) < 1 or bounds[0] != 0 or bounds[-1] != n or (np.diff(bounds) < 0).any():
            raise DataError(
                "tokens: the bounds of the records are not valid. Give ascending ones from 0 to the token count."
            )
        if n and (self.drawn & ((self.words < 0) | (self.outputs < 0))).any():
            raise DataError("tokens: a drawn token is not in the lexicon. Give drawn tokens a word id.")

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.bounds) - 1

    def by_record(self, flags: Bools) -> I64:
        """Count the flagged tokens of each record: int64[s]."""
        ends = offsets(flags)
        return np.asarray(ends[self.bounds[1:]] - ends[self.bounds[:-1]], np.int64)

    @property
    def before(self) -> Ids:
        """The released state before each token: int32[n], a number of the word table, or `NO_WORD`."""
        left, _ = self.neighbours(self.outputs, NO_WORD)
        return np.where(left >= 0, left, NO_WORD).astype(np.int32)

    def neighbours(self, values: Ids, edge: int) -> tuple[Ids, Ids]:
        """Return the values before and after each token: int32[n] each.

        Args:
            values: int32[n], the value of each token.
            edge: the value before and after a record.
        """
        left, right = np.append(edge, values[:-1]), np.append(values[1:], edge)
        filled = np.diff(self.bounds) > 0
        left[self.bounds[:-1][filled]] = edge
        right[self.bounds[1:][filled] - 1] = edge
        return left[: len(values)].astype(np.int32), right[: len(values)].astype(np.int32)


LEVELS = ("token", "record", "dataset")
Level = Literal["token", "record", "dataset"]
SUBKEY = hashlib.sha256(b"attack").digest()  # public: these draws are released nowhere
DRAWN = 4_096  # draws of a part; whole tiles of the search for the word next to a noisy vector


def sampled(sampler: Sampler, ids: Ids, draws: Draws) -> Ids:
    """Draw as `sampler.sample` does, int32[n]: a draw depends on its own number alone."""
    parts = in_threads(lambda part: sampler.sample(ids[part], draws.take(part)), np.arange(len(ids)), DRAWN)
    return np.concatenate([np.empty(0, np.int32), *parts])


def simulate(
    sampler: Sampler,
    words: Ids,
    drawn: Bools,
    bounds: I64,
    level: Level = "token",
    numbers: Ids | None = None,
) -> Tokens:
    """Replace the words of a text; what is not drawn stays as it is.

    Args:
        sampler: of any mechanism.
        words: int32[n], ids, or `EDGE` and `UNKNOWN`.
        drawn: bool[n], marks the drawn words.
        bounds: int64[s + 1], of the records.
        level: `token` draws every occurrence anew; `record` one draw per record and word; `dataset` one per word.
        numbers: int32[n], the words by their numbers in the word table, on which draws may depend; None: `words`.

    Raises:
        SettingsError: another level than token, where draws depend on the word before them.
    """
    require_choice("level", level, LEVELS)
    if sampler.reads_context:
        check_context(level)
        return _in_context(sampler, words, drawn, bounds, words if numbers is None else numbers)
    at = np.flatnonzero(drawn)
    blocks = np.zeros((len(at), 2), np.uint64)
    if level == "token":
        blocks[:, 0] = at
    else:
        blocks[:, 1] = np.uint64(1) + words[at].astype(np.uint64)
    if level == "record":
        blocks[:, 0] = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))[at]
    # What shares a draw is drawn once.
    distinct, where = np.arange(len(at)), np.arange(len(at))
    if level != "token":
        _, distinct, where = np.unique(
            np.stack([blocks[:, 0], words[at].astype(np.uint64)], axis=1),
            axis=0, return_index=True, return_inverse=True,
        )  # fmt: skip
    drawn_words = np.ascontiguousarray(words[at[distinct]], np.int32)
    outputs = np.array(words, np.int32)
    outputs[at] = sampled(sampler, drawn_words, Draws(SUBKEY, blocks[distinct]))[where.reshape(-1)]
    return Tokens(words, outputs, drawn, bounds)


def _in_context(sampler: Sampler, words: Ids, drawn: Bools, bounds: I64, numbers: Ids) -> Tokens:
    """Replace the words of a text at token level, each after the word that is released before it."""
    at = np.flatnonzero(drawn)
    text = Tokens(words, np.array(numbers, np.int32), drawn, bounds)
    before = np.where(drawn, PREVIOUS, np.maximum(numbers, NO_WORD)).astype(np.int32)
    left, _ = text.neighbours(before, NO_WORD)
    blocks = np.zeros((len(at), 2), np.uint64)
    blocks[:, 0] = at
    inputs = np.ascontiguousarray(words[at], np.int32)
    text.outputs[at] = sampler.sample_after(inputs, left[at], Draws(SUBKEY, blocks))
    return text


SPECIAL = 2
CAUTION = 5
Chain: TypeAlias = tuple[F64, F64, I64, Ids, F64]
HIDDEN = -1  # a neighbour that was replaced: it tells nothing here


def states(tokens: Ids, words: int) -> Ids:
    """Return the state of each token: words as they are, `EDGE` as V + 1, `UNKNOWN` as V.

    Raises:
        DataError: a token that is neither a word of the lexicon nor one of the two.
    """
    tokens = np.asarray(tokens, np.int32)
    if len(tokens) and not (tokens.min() >= -SPECIAL and tokens.max() < words):
        raise DataError(
            f"tokens: an id is outside {UNKNOWN} to {words - 1}. Use word ids, {EDGE} (EDGE) or {UNKNOWN} (UNKNOWN)."
        )
    return np.where(tokens < 0, tokens + words + SPECIAL, tokens).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Bigrams:
    """The model over V + 2 states.

    Attributes:
        unigram: float64[V + 2], P(b).
        weight: float64[V + 2], λ(a); 0 where a was never followed by anything.
        starts: int64[V + 3]; the followers of a are starts[a]:starts[a + 1] of the next two.
        following: int32[m], ascending for each a.
        share: float64[m], c(a,b)/c(a).
        tokens: how many tokens were counted, edges not among them.
    """

    unigram: F64
    weight: F64
    starts: I64
    following: Ids
    share: F64
    tokens: int
    smoothing: str

    @property
    def chain(self) -> Chain:
        """(unigram, weight, starts, following, share), as compiled loops take it."""
        return self.unigram, self.weight, self.starts, self.following, self.share

    @property
    def words(self) -> int:
        """V, the words of the lexicon."""
        return len(self.unigram) - SPECIAL

    @classmethod
    def of(
        cls, tokens: Ids, bounds: I64, words: int, weight: float | None = None, prior: Prior | None = None
    ) -> Bigrams:
        """Count a text.

        Args:
            tokens: int32[n], word ids, `EDGE` or `UNKNOWN`.
            bounds: int64[s + 1], record i is tokens[bounds[i]:bounds[i + 1]].
            words: V.
            weight: λ for all words, at least 0 and below 1; None for the above.
            prior: how frequent words are where the text is silent; None for Zipf's law over the lexicon's order.

        Raises:
            SettingsError: a weight out of its range, or a prior of other words.
            DataError: a token out of its range.
        """
        if weight is not None and not 0 <= weight < 1:
            raise SettingsError(f"weight: {weight!r} is not valid. Use None, or at least 0 and below 1.")
        stream = with_edges(states(tokens, words), bounds, words + SPECIAL - 1)
        size = words + SPECIAL
        inside = np.ones(len(stream) - 1, np.bool_)
        # One record's end and the next one's beginning are no pair.
        inside[(bounds[1:] + 2 * np.arange(1, len(bounds)) - 1)[:-1]] = False
        pairs = stream[:-1][inside].astype(np.int64) * size + stream[1:][inside]
        keys, counts = np.unique(pairs, return_counts=True)
        first, second = keys // size, (keys % size).astype(np.int32)
        before = np.bincount(first, weights=counts, minlength=size)
        kinds = np.bincount(first, minlength=size)
        occurs = before > 0
        if weight is None:
            weights = np.divide(before, before + CAUTION * kinds, out=np.zeros(size), where=occurs)
        else:
            weights = np.where(occurs, weight, 0.0)
        public = Prior.by_rank(words) if prior is None else prior
        if len(public) != words:
            raise SettingsError(f"prior: {len(public):,} words are not valid. Give the lexicon's {words:,}.")
        base = np.append(public.words * (words / size), np.full(SPECIAL, 1.0 / size))
        unigram = counted(np.bincount(stream, minlength=size).astype(np.int64), base)
        how = f"λ(a) = c(a)/(c(a) + {CAUTION}·T(a)), after Witten and Bell"
        how = how if weight is None else f"λ = {weight:g}"
        return cls(
            unigram, weights, offsets(kinds), second, counts / before[first], len(tokens),
            f"λ·bigram + (1 - λ)·unigram with {how}; unigrams completed by {public.name}",
        )  # fmt: skip

    def probability(self, first: Ids, second: Ids) -> F64:
        """Return P(second|first), states [n] each: float64[n]."""
        size = len(self.unigram)
        keys = np.repeat(np.arange(size, dtype=np.int64), np.diff(self.starts)) * size + self.following
        pair_keys = np.asarray(first, np.int64) * size + second
        where = np.minimum(np.searchsorted(keys, pair_keys), max(0, len(keys) - 1))
        is_known = (keys[where] == pair_keys) if len(keys) else np.zeros(len(pair_keys), np.bool_)
        share = np.where(is_known, self.share[where] if len(keys) else 0.0, 0.0)
        weight = self.weight[first]
        return np.asarray(weight * share + (1.0 - weight) * self.unigram[second], np.float64)


def with_edges(stream: Ids, bounds: I64, edge: int) -> Ids:
    """Return the records with an edge before and after each: int32[n + 2s]."""
    records = len(bounds) - 1
    out = np.full(len(stream) + 2 * records, edge, np.int32)
    row = np.repeat(np.arange(records), np.diff(bounds))
    out[np.arange(len(stream)) + 2 * row + 1] = stream
    return out


@compiled
def place_in(following: Ids, low: Int, high: Int, state: Int) -> Int:
    """Return the place of `state` in following[low:high], or -1."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if following[middle] < state:
            low = middle + 1
        else:
            high = middle
    return low if low < end and following[low] == state else np.int64(-1)


@compiled
def _share(starts: I64, following: Ids, share: F64, a: Int, b: Int) -> float:
    """Return c(a,b)/c(a)."""
    place = place_in(following, starts[a], starts[a + 1], b)
    return float(share[place]) if place >= 0 else 0.0


@compiled
def _guess(
    left: I64, right: I64, model: Chain, back: tuple[I64, Ids], guessable: Bools, likely: I64, out: Ids
) -> None:
    unigram, weight, starts, following, share = model
    back_starts, preceding = back
    for n in range(left.shape[0]):
        a, b = np.int64(left[n]), np.int64(right[n])
        best, top = np.int64(-1), -1.0
        # A word seen neither after a nor before b: the best of those depends on b only by whether it is known.
        ends = (
            starts[a] if a >= 0 else np.int64(0), starts[a + 1] if a >= 0 else np.int64(0),
            back_starts[b] if b >= 0 else np.int64(0), back_starts[b + 1] if b >= 0 else np.int64(0),
        )  # fmt: skip
        many = ends[1] - ends[0] + ends[3] - ends[2]
        for e in range(-1, many):
            if e < 0:
                w = np.int64(likely[1] if b >= 0 else likely[0])
            elif e < ends[1] - ends[0]:
                w = np.int64(following[ends[0] + e])
            else:
                w = np.int64(preceding[ends[2] + e - (ends[1] - ends[0])])
            if not guessable[w]:
                continue
            value = unigram[w]
            if a >= 0:
                value = (1.0 - weight[a]) * value + weight[a] * _share(starts, following, share, a, w)
            if b >= 0:
                value *= (1.0 - weight[w]) * unigram[b] + weight[w] * _share(starts, following, share, w, b)
            if value > top or (value == top and w < best):
                best, top = w, value
        out[n] = best


def guess_bigram_baseline(bigrams: Bigrams, left: Ids, right: Ids, drawn: Bools) -> Ids:
    """Return argmax_w P(w|left)·P(right|w) over the words that the policy draws, exactly; ties to the lower id: int32[n].

    Args:
        bigrams: the model.
        left: int32[n], the state before each word; `HIDDEN` leaves P(w) in its place.
        right: int32[n], the state after it; `HIDDEN` leaves the factor out.
        drawn: bool[V].
    """
    words, size = bigrams.words, len(bigrams.unigram)
    order = np.argsort(bigrams.following, kind="stable")
    first = np.repeat(np.arange(size, dtype=np.int32), np.diff(bigrams.starts))
    counts = np.bincount(bigrams.following, minlength=size)
    back = (offsets(counts), first[order])
    guessable = np.append(drawn, np.zeros(size - words, np.bool_))
    alone = np.where(guessable, bigrams.unigram, -1.0)
    likely = np.array([alone.argmax(), (alone * (1.0 - bigrams.weight)).argmax()], np.int64)
    # Neighbours repeat: "the _ of" is looked at once.
    keys, where = np.unique(
        (np.asarray(left, np.int64) + 1) * (size + 1) + np.asarray(right, np.int64) + 1, return_inverse=True
    )
    out = np.empty(len(keys), np.int32)
    _guess(keys // (size + 1) - 1, keys % (size + 1) - 1, bigrams.chain, back, guessable, likely, out)
    return out[where.reshape(-1)]
