"""Figures of a word's law: how often the word stays unchanged, and how many outputs it hides among.

Sources: Feyisetan et al. 2020 (S_w); Meisenbacher et al. 2024 (S_w as the number of outputs in so many draws). Where a
mechanism has no law they are estimated from draws, between bounds.

N_w = P(w|w) (Feyisetan et al. 2020) is read without the whole law where that can be.

The possible outputs of a word and their probabilities: exact if the mechanism has a law, else counted from draws.

Every audit reads this and nothing else of a mechanism. Laws are sparse rows; those of a whole lexicon come block by block, for
V² numbers fit no memory.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from dptext_spark.arrays import F64, I64, Ids
from dptext_spark.audit.attacks.attacked_text import sampled
from dptext_spark.audit.results import Estimate, count_edges
from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms.base import TOTAL, Sampler
from dptext_spark.mechanisms.privacy_loss.loss import clopper_pearson
from dptext_spark.randomness import Draws

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
        """True for laws, false for shares of draws."""
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
    """Bound the probabilities of events by how often they were seen (Clopper and Pearson 1934): (lower, upper), float64[m] each.

    Args:
        counts: [m], each from 0 to `draws`.
        draws: how many independent draws there were.
        confidence: that both bounds hold for one event; (1 - confidence)/2 is spent on either side.
    """
    return clopper_pearson(counts, draws, (1.0 - confidence) / 2.0)


def share_of(hits: int, tries: int, confidence: float) -> Estimate:
    """Return the share of tries that hit, between both bounds of :func:`interval`."""
    low, high = interval([hits], tries, confidence)
    return Estimate(hits / tries, float(low[0]), float(high[0]))


def outcomes(sampler: Sampler, words: Ids, draws: int = DRAWS, subkey: bytes = SUBKEY) -> Outcomes:
    """Return the laws of some words, or their draws where there are no laws.

    Args:
        sampler: of any mechanism.
        words: int32[n].
        draws: of each word, where there is no law. A draw depends on the word and its number alone, not on the other words.
        subkey: 32 bytes that the draws are made from; public.

    Raises:
        SettingsError: no draws are asked for where they are needed.
    """
    words = np.asarray(words, np.int32)
    laws = sampler.laws(words)
    if laws is not None:
        return Outcomes(words, laws.starts, laws.ids, laws.weight.astype(np.float64) / TOTAL, None)
    if draws < 1:
        raise SettingsError(f"draws: {draws} is not valid. Use 1 or more.")
    return _count_draws(sampler, words, draws, subkey)


def blocks(
    sampler: Sampler, words: Ids, draws: int = DRAWS, most_bytes: int = MOST_BYTES, subkey: bytes = SUBKEY
) -> Iterator[Outcomes]:
    """Yield :func:`outcomes` of consecutive parts of `words`, each of which takes about `most_bytes` at most to make."""
    # The bytes of a word's row while it is made: its law, or numbers, blocks and sorted values.
    step = max(1, most_bytes // (sampler.law_bytes() or 48 * draws))
    if sampler.law_bytes() is None:  # drawing takes its time: let others tell how far it is
        step = min(step, max(1, DRAWN_AT_ONCE // draws))
    for start in range(0, len(words), step):
        yield outcomes(sampler, words[start : start + step], draws, subkey)


def _joined(ids: list[Ids], shares: list[F64]) -> tuple[I64, Ids, F64]:
    starts = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    none = (np.empty(0, np.int32), np.empty(0))
    return starts, np.concatenate([none[0], *ids]), np.concatenate([none[1], *shares])


def _count_draws(sampler: Sampler, words: Ids, draws: int, subkey: bytes) -> Outcomes:
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
            outputs, counts = np.unique(row, return_counts=True)
            ids.append(outputs.astype(np.int32))
            shares.append(counts / draws)
    return Outcomes(words, *_joined(ids, shares), draws)


ETA = 0.05
ROUNDING = 1e-12  # of a sum of probabilities: a mass that is short by less than this counts as reached


class Intervals(NamedTuple):
    """A figure of each of n words, float64[n] three times: its value or estimate, and bounds.

    Attributes:
        values: exact, or estimates.
        lower: the values themselves where they are exact.
        upper: as `lower`.
    """

    values: F64
    lower: F64
    upper: F64


class WordFigure(Protocol):
    """A figure of a word's law."""

    @property
    def name(self) -> str:
        """The figure's name in requirements and tables."""

    @property
    def meaning(self) -> str:
        """Definition, as a sentence without its end."""

    @property
    def estimate(self) -> str:
        """Method of the estimate from draws, and of its bounds."""

    @property
    def worst_is_largest(self) -> bool:
        """True if a larger figure is worse for privacy."""

    def edges(self, words: int) -> tuple[float, ...]:
        """Return the bins of its histogram over a lexicon of so many words: by default they double or so."""
        return count_edges(words)

    def shortcut(self, sampler: Sampler, words: Ids) -> Intervals | None:  # noqa: ARG002  (some figures read it)
        """Return the figure of each of int32[n] without the whole laws, where the sampler allows; the bounds hold for certain."""
        return None

    def of(self, laws: Outcomes, words: int, confidence: float) -> Intervals:
        """Return the figure of each word.

        Args:
            laws: laws or counts.
            words: V, how many outputs there can be at most.
            confidence: that the bounds hold for one word.
        """


@dataclass(frozen=True)
class SmallestSet(WordFigure):
    """S_w(η): the size of the smallest set of outputs that holds 1 - η of the probability. `eta`: η, above 0 and below 1."""

    eta: float = ETA

    worst_is_largest = False

    @property
    def name(self) -> str:
        """`S_w`, with η where it is not 0.05."""
        return "S_w" if self.eta == ETA else f"S_w({self.eta:g})"

    @property
    def meaning(self) -> str:
        """Definition of the figure."""
        return f"the size of the smallest set of outputs with a probability of {1 - self.eta:g} or more"

    @property
    def estimate(self) -> str:
        """Method of the estimate."""
        return (
            "the same for the shares of the draws. It is too small for a flat law, because it cannot exceed the "
            "number of draws. The lower bound uses the mass of the true set in the draws, with confidence; the "
            "upper one is the lexicon's size"
        )

    def of(self, laws: Outcomes, words: int, confidence: float) -> Intervals:
        """Return S_w(η) of each word.

        The s most frequent outputs have at least as many draws as any s outputs. The true smallest set holds 1 - η. With
        `confidence` it has at least the binomial quantile of the draws, and so have as many most frequent outputs. S_w is thus at
        least the first size that reaches that quantile.
        """
        cumulative = np.cumsum(-np.sort(-padded(laws), axis=1), axis=1)
        values = _reaching(cumulative, 1.0 - self.eta)
        if laws.draws is None:
            return Intervals(values, values, values)
        least = float(binom.ppf(1.0 - confidence, laws.draws, 1.0 - self.eta)) / laws.draws
        return Intervals(values, _reaching(cumulative, least), np.full(len(values), float(words)))


@dataclass(frozen=True)
class DistinctOutputs(WordFigure):
    """S_w[n] = Σ over u of 1 - (1 - p_u)^n: the expected number of different outputs in n draws. `n`: 1 or more."""

    n: int

    estimate = (
        "the mean number over all subsets of the draws (Hurlbert 1971), without bias; bounds by bounded differences and for "
        "self-bounding functions (Boucheron, Lugosi and Massart 2000)"
    )
    worst_is_largest = False

    @property
    def name(self) -> str:
        """`S_w[n]`."""
        return f"S_w[{self.n}]"

    @property
    def meaning(self) -> str:
        """Definition of the figure."""
        return f"the expected number of different outputs in {self.n:,} draws of a word"

    def edges(self, words: int) -> tuple[float, ...]:
        """Return bins that double or so."""
        return count_edges(min(words, self.n))

    def of(self, laws: Outcomes, words: int, confidence: float) -> Intervals:  # noqa: ARG002  (others of the protocol need it)
        """Return S_w[n] of each word; exact ones within V·n·2^-52. :class:`ValueError`: it is asked of fewer than n draws."""
        if laws.draws is None:
            values = (1.0 - whole_power(1.0 - padded(laws), self.n)).sum(axis=1)
            return Intervals(values, values, values)
        if self.n > laws.draws:
            raise ValueError(f"{self.name} needs {self.n} draws of a word, not {laws.draws}")
        missed = _missed(laws.draws, self.n)[np.rint(padded(laws) * laws.draws).astype(np.int64)]
        values = (1.0 - missed).sum(axis=1)
        return Intervals(values, *_bounds_of_distinct(values, self.n, laws.draws, confidence))


def padded(laws: Outcomes) -> F64:
    """Return the probabilities as float64[n, k], k the longest row, filled up with 0."""
    sizes = np.diff(laws.starts)
    width = int(sizes.max(initial=1))
    if bool((sizes == width).all()):
        return laws.probability.reshape(len(sizes), width)
    out = np.zeros((len(sizes), width))
    out[np.arange(width) < sizes[:, None]] = laws.probability
    return out


def whole_power(base: F64, exponent: int) -> F64:
    """Return base^exponent by squaring, for an exponent of 1 or more: quicker than a power of reals, and as exact."""
    result, square = None, base
    while True:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        square = square * square


def _reaching(cumulative: F64, mass: float) -> F64:
    """Count the largest probabilities that reach a mass: float64[n]."""
    short = (cumulative < mass - ROUNDING).sum(axis=1)
    return np.asarray(np.minimum(short + 1, cumulative.shape[1]), np.float64)


def _missed(draws: int, n: int) -> F64:
    """Return P(n of the `draws` draws, chosen at random, miss an output that was seen c times): float64[draws + 1], by c."""
    share = np.ones(draws + 1)
    for count in range(1, draws + 1):
        left = draws - count + 1
        share[count] = share[count - 1] * max(0, left - n) / left
    return share


def _bounds_of_distinct(values: F64, n: int, draws: int, confidence: float) -> tuple[F64, F64]:
    """Bound the expectation of Hurlbert's number.

    f = (draws/n) times it changes by 1 at most with one draw, and the changes by leaving out each draw sum to f at most. So f is
    self-bounding: P(f >= Ef + t) <= exp(-t²/(2Ef + 2t/3)) and P(f <= Ef - t) <= exp(-t²/(2Ef)). By bounded differences both are
    <= exp(-2t²/draws). Both pairs hold together.
    """
    f, log = values * (draws / n), math.log(4.0 / (1.0 - confidence))
    plain = math.sqrt(draws * log / 2.0)
    below = np.minimum(plain, np.sqrt(4.0 * log * log / 9.0 + 2.0 * log * f) - 2.0 * log / 3.0)
    above = np.minimum(plain, log + np.sqrt(log * log + 2.0 * log * f))
    return np.maximum((f - below) * (n / draws), 1.0), np.minimum((f + above) * (n / draws), float(n))


@dataclass(frozen=True)
class StayRate(WordFigure):
    """N_w = P(w|w)."""

    name = "N_w"
    meaning = "the probability that a word comes out as itself"
    estimate = "the share of the draws; bounds by Clopper and Pearson"
    worst_is_largest = True

    def edges(self, words: int) -> tuple[float, ...]:  # noqa: ARG002  (others of the protocol need it)
        """Return 20 equal bins."""
        return tuple(i / 20 for i in range(21))

    def shortcut(self, sampler: Sampler, words: Ids) -> Intervals | None:
        """Read N_w off lists, or off the sums of laws over a lexicon: those within the slack that such a sampler states."""
        known = sampler.unchanged(words)
        if known is None:
            return None
        values, slack = known
        return Intervals(values, values * np.exp(-slack), np.minimum(values * np.exp(slack), 1.0))

    def of(self, laws: Outcomes, words: int, confidence: float) -> Intervals:  # noqa: ARG002  (others of the protocol need it)
        """Return N_w of each word."""
        row = laws.rows
        itself = laws.ids == laws.words[row]
        values = np.zeros(len(laws.words))
        values[row[itself]] = laws.probability[itself]
        if laws.draws is None:
            return Intervals(values, values, values)
        return Intervals(values, *interval(np.rint(values * laws.draws), laws.draws, confidence))
