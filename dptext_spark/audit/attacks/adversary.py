"""The best known adversary against a mechanism of any kind: its success on one word, and the words that it weighs.

Tables are read exactly, and so are small lexicons. Laws that are formulas (over the whole lexicon, along lists) are read
backwards (:mod:`dptext_spark.audit.attacks.bayes`). Noise on vectors lies between two adversaries. For all others the adversary
is held to the likeliest words of the prior, each known by draws. That still gives bounds. The adversary never names another word,
so its success counts those inputs as missed: a lower bound of the optimum. Naming the output itself gives another lower bound. An
adversary who found all the other words would gain their whole probability, and this gives the upper bound.

Bayes vulnerability of every word that a policy draws: how often it is guessed from its replacement alone.

The adversary is the Bayes-optimal one with a public prior, the lexicon's. Unlike the figures of a single law, the guess for an
output depends on every word. Where laws can be read, the figure of each word is known. Where the best guesses are unknown
(noise), only the success on a token is known, between bounds.

If a law cannot be read, a trial chooses the most often guessed words, and separate draws measure them.

Words are taken evenly spaced from those that can be the input. Each is drawn a few times; the hundredth that is guessed most
often is drawn anew, for the trial flatters whom it chose. The result is the mean over these words: other words of the lexicon may
be found more often.

Attacks on noise that is added to word vectors, where no law can be read: from below and from above, over all words.

From below: an adversary who ranks words by their distance to the released one, ln P(w) - τ·d^p. It learns τ and p on public
draws; its success is measured on others. Great τ names the output itself, τ = 0 the commonest word. From above: an adversary who
sees the noisy vector before it is snapped to a word. The word is a function of that vector (and of a coin). So no adversary who
sees the word succeeds more often than the best who sees the vector. That best adversary is known, since the density of the noise
is: argmax_w ln P(w) + ln f(z - φ(w)). Both are measured on words that are drawn from the prior, with bounds by Clopper and
Pearson (1934). Snapping is close to the best guess itself, so that the two are seldom far apart.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from dptext_spark.arrays import F32, F64, I64, Bools, Ids, spaced
from dptext_spark.audit.attacks import bayes
from dptext_spark.audit.attacks.attacked_text import sampled
from dptext_spark.audit.attacks.bayes import InputWords
from dptext_spark.audit.results import CONFIDENCE, Estimate, statistic
from dptext_spark.audit.word_figures import Intervals, share_of
from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.matrices import in_threads, products
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from dptext_spark.randomness import Draws
from dptext_spark.runtime.jit import compiled

LEARNT = 1_024  # of the tries, that τ and p are learnt on
SLOW = 1_024  # tries for noise whose density is no matrix product
STRENGTHS = tuple(2.0**k for k in range(-3, 6))  # τ·s^p, s the typical distance of a word to its nearest
ROOM = 1e-6  # what rounding may push past the end of truncated noise


@dataclass(frozen=True, eq=False)
class Ranking:
    """The rule by which the adversary from below ranks words.

    Attributes:
        centers: float32[V, d], where noise is as long in every direction.
        targets: float32[V, d], of the outputs.
        power: p.
        strength: τ.
    """

    centers: F32
    targets: F32
    power: int
    strength: float

    def likelihood(self, outputs: Ids) -> F32:
        """Return exp(-τ·d^p) over all words, 1 for the nearest: float32[n, V]."""
        exponent = -self.strength * _distances(self.targets[outputs], self.centers) ** self.power
        return np.asarray(np.exp(exponent - exponent.max(axis=1, keepdims=True)), np.float32)


def bayes_between(
    sampler: NoiseSampler, prior: F64, tries: int, confidence: float
) -> tuple[Estimate, Ranking]:
    """Return the success on one word, from below, with both bounds of the optimum; and how the words were ranked.

    Args:
        sampler: of noise on vectors.
        prior: float64[V], sums to 1.
        tries: number of words drawn from the prior; twice `LEARNT` or more, or half are used to learn.
        confidence: that both bounds hold.
    """
    sure = (1.0 + confidence) / 2.0
    words, draws = bayes.drawn_from(prior, tries)
    outputs = sampled(sampler, words, draws)
    split = min(LEARNT, tries // 2)
    ranking = _learnt(sampler, prior, words[:split], outputs[:split])
    distinct, where = np.unique(outputs[split:], return_inverse=True)
    named = bayes.likeliest_inputs(ranking.likelihood, prior, distinct.astype(np.int32))
    hits = int((named[where.reshape(-1)] == words[split:]).sum())
    below = share_of(hits, tries - split, sure)
    draw_count = tries if sampler.noise in ("radial", "gaussian") else min(SLOW, tries)
    noisy = sampler.noisy(words[:draw_count], draws)
    likely = np.log(np.maximum(prior, 1e-300)).astype(np.float32)
    place = _NoiseSpace.of(sampler)
    guess = in_threads(
        lambda part: (place.density(noisy[part]) + likely).argmax(axis=1),
        np.arange(draw_count, dtype=np.int32),
        bayes.AT_ONCE,
    )
    above = share_of(int((np.concatenate(guess) == words[:draw_count]).sum()), draw_count, sure)
    value = below.value
    return Estimate(value, min(value, below.lower), max(value, above.upper)), ranking


def learnt(sampler: NoiseSampler, prior: F64) -> Ranking:
    """Return the ranking alone: what :func:`bayes_between` finds from below, without its success."""
    words, draws = bayes.drawn_from(prior, LEARNT)
    return _learnt(sampler, prior, words, sampler.sample(words, draws))


def candidates_of_vectors(
    sampler: NoiseSampler, prior: F64, words: Ids, most: int = bayes.MOST
) -> InputWords:
    """Return the plausible inputs of the noisy vectors of int32[n] words, by their places 0 to n - 1."""
    numbers = np.stack([np.arange(len(words), dtype=np.uint64), np.ones(len(words), np.uint64)], axis=1)
    noisy = sampler.noisy(words, Draws(bayes.SUBKEY, numbers))
    place = _NoiseSpace.of(sampler)

    def likelihood(part: Ids) -> F32:
        density = place.density(noisy[part])
        return np.asarray(np.exp(density - density.max(axis=1, keepdims=True)), np.float32)

    return bayes.from_columns(likelihood, prior, np.arange(len(words), dtype=np.int32), most)


@dataclass(frozen=True, eq=False)
class _NoiseSpace:
    """The places of vectors under noise that is as long in every direction; a matrix that multiplied it is taken back."""

    sampler: NoiseSampler
    back: F64 | None
    centers: F32

    @classmethod
    def of(cls, sampler: NoiseSampler) -> _NoiseSpace:
        back = np.asarray(np.linalg.inv(sampler.columns), np.float64) if len(sampler.columns) else None
        return cls(sampler, back, cls.moved(sampler.centers, back))

    @staticmethod
    def moved(vectors: F32, back: F64 | None) -> F32:
        return vectors if back is None else np.asarray(vectors @ back, np.float32)

    def density(self, noisy: F64) -> F32:
        """Return ln f(z - φ(w)) up to a constant for each of float64[n, d]: float32[n, V]."""
        noise, scale = self.sampler.noise, float(self.sampler.parameters[0])
        if noise not in ("radial", "gaussian"):
            return self._by_coordinates(noisy, scale)
        at = noisy if self.back is None else noisy @ self.back
        narrow = at.astype(np.float32)
        squares = np.einsum("ij,ij->i", self.centers, self.centers)
        out = np.empty((len(at), len(self.centers)), np.float32)
        square = (at * at).sum(axis=1)[:, None].astype(np.float32)
        length = np.sqrt(square)
        for part, gap in products(narrow, self.centers):
            # |z - c|² - |z|², so that far vectors lose no digits.
            gap *= -2.0
            gap += squares[part]
            if noise == "gaussian":
                np.multiply(gap, np.float32(-0.5 / scale**2), out=out[:, part])
                continue
            sums = square + gap
            np.maximum(sums, 0.0, out=sums)
            np.sqrt(sums, out=sums)
            sums += length
            gap *= -np.float32(scale)
            np.divide(gap, sums, out=out[:, part])
        return out

    def _by_coordinates(self, noisy: F64, scale: float) -> F32:
        centers = self.sampler.centers.astype(np.float64)
        log_density = -cdist(noisy, centers, "cityblock") / scale
        if self.sampler.noise == "truncated_laplace":
            end = float(self.sampler.parameters[1]) * (1.0 + ROOM) + ROOM
            log_density[cdist(noisy, centers, "chebyshev") > end] = -np.inf
        return np.asarray(log_density - log_density.max(axis=1, keepdims=True), np.float32)


@compiled
def _name(distances: F32, likely: F32, squared: Bools, taus: F32, named: I64) -> None:
    """Fill named int64[n, g] with the words of largest ln P(w) - τ·d^p, ties to the lower id, for each τ and p."""
    best = np.empty(taus.shape[0], np.float32)
    for row in range(distances.shape[0]):
        best[:] = -np.inf
        for w in range(distances.shape[1]):
            gap = distances[row, w]
            for g in range(taus.shape[0]):
                value = likely[w] - taus[g] * (gap * gap if squared[g] else gap)
                if value > best[g]:
                    best[g], named[row, g] = value, w


def _learnt(sampler: NoiseSampler, prior: F64, words: Ids, outputs: Ids) -> Ranking:
    """Return the ranking that names most of some words from their outputs, of a grid; ties to the first."""
    place = _NoiseSpace.of(sampler)
    is_own = sampler.targets.vectors is sampler.centers
    targets = place.centers if is_own else place.moved(sampler.targets.vectors, place.back)
    distinct, where = np.unique(outputs, return_inverse=True)
    likely = np.log(np.maximum(prior, 1e-300)).astype(np.float32)
    near = _distances(targets[distinct[:64]], place.centers)
    typical = float(np.median(np.partition(near, 1, axis=1)[:, 1])) or 1.0
    grid = [(power, strength / typical**power) for power in (1, 2) for strength in STRENGTHS]
    squared = np.array([power == 2 for power, _ in grid])
    taus = np.array([tau for _, tau in grid], np.float32)

    def hits(part: Ids) -> I64:
        named = np.empty((len(part), len(grid)), np.int64)
        _name(_distances(targets[part], place.centers), likely, squared, taus, named)
        return named

    named = np.concatenate(in_threads(hits, distinct.astype(np.int32), bayes.AT_ONCE))[where.reshape(-1)]
    power, strength = grid[int((named == words[:, None]).sum(axis=0).argmax())]
    return Ranking(place.centers, targets, power, strength)


def _distances(some: F32, centers: F32) -> F32:
    """Return Euclidean distances, float32[n, V]."""
    out = np.empty((len(some), len(centers)), np.float32)
    squares, mine = np.einsum("ij,ij->i", centers, centers), np.einsum("ij,ij->i", some, some)[:, None]
    for part, distance in products(some, centers):
        distance *= -2.0
        distance += squares[part] + mine
        np.maximum(distance, 0.0, out=distance)
        np.sqrt(distance, out=out[:, part])
    return out


SMALL = 2_000  # words of a lexicon whose laws are all read
FEW = 500  # words that the adversary considers, where there is no other way
DRAWS = 100  # of each of them, where there is no law
QUICK_DRAWS = 200  # of every word of the lexicon, where draws are quick


@dataclass(frozen=True, eq=False)
class Adversary:
    """The best known adversary.

    Attributes:
        alone: success on one word, or its bounds; None where that was not asked for.
        plausible: the words that it weighs for some outputs, int32[n], at most so many (`MOST`) for each.
        considered: bool[V], the words that it ever names.
    """

    alone: Estimate | None
    plausible: Callable[..., InputWords]
    considered: Bools
    how: str

    def guesses(self, outputs: Ids) -> Ids:
        """Return the word that it names for each of int32[n] outputs; the output itself where it weighs none."""
        inputs = self.plausible(outputs, 1)
        named = inputs.best[inputs.slot[outputs]]
        return np.where(named < 0, outputs, named).astype(np.int32)


def adversary(
    sampler: Sampler,
    prior: F64,
    *,
    few: int | None = None,
    draws: int | None = None,
    tries: int = bayes.TRIES,
    confidence: float = CONFIDENCE,
    measured: bool = True,
) -> Adversary:
    """Return the best adversary that there is a way to.

    Args:
        sampler: of any mechanism.
        prior: float64[V], sums to 1.
        few: words that it considers at most, where there is no other way; None for `FEW`, or all where draws are quick.
        draws: of each considered word, where there is no law; None for `DRAWS`, or `QUICK_DRAWS` where they are quick.
        tries: words drawn from the prior, where its success on one word is estimated.
        confidence: with which both bounds of that success hold together.
        measured: whether to measure its success on one word; False leaves `alone` None.
    """
    words, possible = len(prior), prior > 0
    quick = sampler.draws_quickly
    few = few or (words if quick else FEW)
    draws = draws or (QUICK_DRAWS if quick else DRAWS)
    if sampler.has_short_laws or (is_small(words) and sampler.law(0) is not None):
        alone = None
        if measured:
            attack = bayes.bayes_attack(sampler, words, prior)
            alone = Estimate(attack.success, attack.lower, attack.upper, exact=True)
        how = "exact: the laws of all words of the lexicon were read"
        how += f", {sampler.law_is}" if sampler.law_is else ""
        return Adversary(alone, partial(bayes.candidates, sampler, prior), possible, how)
    if sampler.law_columns() is not None:
        alone = bayes.bayes_by_tries(sampler, prior, tries, confidence) if measured else None
        how = f"estimated from {tries:,} words drawn from the prior; the guesses consider all words of the lexicon"
        return Adversary(alone, partial(bayes.from_columns, bayes.columns_of(sampler), prior), possible, how)
    noisy = sampler.noisy_vectors()
    if noisy is not None:
        alone, ranking = (
            bayes_between(noisy, prior, tries, confidence) if measured else (None, learnt(noisy, prior))
        )
        how = (
            f"between bounds, from {tries:,} words drawn from the prior. Lower: an adversary who ranks all words "
            "of the lexicon by their distance to the output. Upper: an adversary who sees the noisy vector"
        )
        return Adversary(alone, partial(bayes.from_columns, ranking.likelihood, prior), possible, how)
    considered = likeliest(prior, few)
    mass = float(prior[considered].sum())
    alone = _bounded(sampler, prior, considered, draws, tries, confidence) if measured else None
    how = f"bounded: the adversary considers the {int(considered.sum()):,} likeliest words, {100 * mass:.1f} % of the prior"
    how += "" if sampler.law(0) is not None else f", each known by {draws:,} draws"
    how += "; upper bounds count all other words as found"
    considered_prior = np.where(considered, prior, 0.0)
    return Adversary(
        alone, partial(bayes.candidates, sampler, considered_prior, draws=draws), considered, how
    )


def is_small(words: int) -> bool:
    """Check that a lexicon of so many words is small enough to read all its laws."""
    return words <= SMALL


def _bounded(
    sampler: Sampler, prior: F64, considered: Bools, draws: int, tries: int, confidence: float
) -> Estimate:
    """Return the success of the better of two adversaries with bounds of the best possible one.

    One knows the considered words only, the other names the output itself. Each gets half of the error 1 - confidence.
    """
    mass = float(prior[considered].sum())
    sure = (1.0 + confidence) / 2.0
    attack = bayes.bayes_attack(sampler, len(prior), prior, considered, draws=draws, confidence=sure)
    words, numbers = bayes.drawn_from(prior, tries)
    same = int((words == sampled(sampler, words, numbers)).sum())
    low = share_of(same, tries, sure).lower
    value = max(mass * attack.success, same / tries)
    upper = max(value, min(1.0, mass * attack.upper + 1.0 - mass))  # a sum of rounded numbers can end below 1
    return Estimate(value, max(mass * attack.lower, low), upper)


def likeliest(prior: F64, most: int) -> Bools:
    """Return bool[V]: the words of largest probability, ties to the lower id; none of probability 0."""
    chosen = np.zeros(len(prior), np.bool_)
    chosen[np.lexsort((np.arange(len(prior)), -prior))[:most]] = True
    return np.asarray(chosen & (prior > 0))


TOKEN, WORST_WORDS, NAMES, GIVEN_WORDS = "token", "worst", "names", "words"
GROUPS = {NAMES: "names in public lists", GIVEN_WORDS: "the words of --words"}
LOOKED_AT = 500  # words
TRIAL, FRESH = 10, 100  # draws of each word of the trial, and of each that it chose
WORST_SUBKEY = hashlib.sha256(b"worst words").digest()  # public: nothing private is drawn here


@dataclass(frozen=True)
class BayesVulnerability:
    """Probability that a word is guessed; its statistics are those of other figures, `token`, `worst`, `names` and `words`."""

    name: ClassVar[str] = "bayes"
    meaning: ClassVar[str] = (
        "success of a Bayes-optimal adversary who sees the replacement alone and knows public word frequencies"
    )
    statistics: ClassVar[tuple[str, ...]] = (TOKEN, WORST_WORDS, NAMES, GIVEN_WORDS)


@dataclass(frozen=True, eq=False)
class Guesses:
    """Guesses of the adversary at one ε.

    Attributes:
        words: int32[n], the words that can be the input.
        of: float64[n] with bounds, of each word; None where the law cannot be read.
        how: how it was found, as a sentence without its end; empty where it is exact.
        groups: of some of the words their weights by public frequency, float64[n] that sum to 1, by the name of their statistic.
    """

    words: Ids
    of: Intervals | None
    token: Estimate
    how: str
    groups: Mapping[str, F64] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """True if it was read off laws."""
        return self.token.exact

    @property
    def of_names(self) -> float | None:
        """Probability that a name of public lists is guessed; None where that is not known, or there is none."""
        return self.statistic("values", NAMES)[0] if self.of is not None and NAMES in self.groups else None

    def statistic(self, side: str, name: str) -> tuple[float, int | None]:
        """Return (a statistic of the values or of a bound, the id of a word that has it).

        Args:
            side: `values`, `lower` or `upper`.
            name: `token` (words weighted by their public frequency) or `worst` (mean of the hundredth of the words that is
                guessed most often). Also `names` and `words` (those words, weighted likewise), or a
                :func:`~dptext_spark.audit.results.statistic`.

        Raises:
            SettingsError: a statistic over words where only the success on a token is known, or over words that are not given.
        """
        if name == TOKEN:
            return float(getattr(self.token, "value" if side == "values" else side)), None
        if self.of is None:
            raise SettingsError(
                f"require: 'bayes {name}' needs a law to read, and this mechanism has none for single words. Use "
                f"'bayes {TOKEN}'."
            )
        values = getattr(self.of, side)
        if name in GROUPS:
            if name not in self.groups:
                raise SettingsError(
                    f"require: 'bayes {name}' is about {GROUPS[name]}, and the policy draws none that the lexicon holds. "
                    f"Use 'bayes {TOKEN}', or words of the lexicon."
                )
            return float((self.groups[name] * values).sum()), None
        if name == WORST_WORDS:
            return float(np.sort(values)[-max(1, math.ceil(bayes.WORST * len(values))) :].mean()), None
        value, place = statistic(values, name)
        return value, None if place is None else int(self.words[place])


def bayes_vulnerability(
    sampler: Sampler,
    prior: F64,
    confidence: float,
    tries: int = bayes.TRIES,
    groups: Mapping[str, Bools] | None = None,
) -> Guesses:
    """Measure it.

    Args:
        sampler: of any mechanism.
        prior: float64[V], sums to 1; 0 for words that cannot be the input.
        confidence: that both bounds hold, where it is estimated.
        tries: words drawn from the prior, where it is.
        groups: bool[V], words that have a statistic of their own, by its name.
    """
    words = np.flatnonzero(prior).astype(np.int32)
    lawful = sampler.law(0) is not None
    if lawful and not (sampler.law_columns() is not None and not is_small(len(prior))):
        guess, best, _ = bayes.guesses(sampler, prior)
        return _score(words, bayes.found_by_word(guess, best, prior), prior, 0.0, "", groups or {})
    if lawful:
        success = bayes.found_by_word(*bayes.guesses_backwards(sampler, prior), prior)
        how = bayes.BACKWARDS[:1].lower() + bayes.BACKWARDS[1:-1]
        return _score(words, success, prior, bayes.ROUNDING, how, groups or {})
    best_known = adversary(sampler, prior, tries=tries, confidence=confidence)
    assert best_known.alone is not None
    return Guesses(words, None, best_known.alone, best_known.how)


def _score(words: Ids, found: F64, prior: F64, room: float, how: str, groups: Mapping[str, Bools]) -> Guesses:
    values = np.minimum(found[words], 1.0)
    success = min(1.0, float((prior * found).sum()))
    token = Estimate(success, success, min(1.0, success * (1.0 + room)), exact=not room)
    weights = {name: np.where(some, prior, 0.0)[words] for name, some in groups.items()}
    shares = {name: weight / weight.sum() for name, weight in weights.items() if weight.sum() > 0}
    return Guesses(words, Intervals(values, values, values), token, how, shares)


@dataclass(frozen=True)
class WorstWords:
    """Success of the adversary on the words that it finds most often.

    Attributes:
        words: their ids, the worst of the trial first, ties to the lower id.
        looked_at: how many words the trial took.
        draws: of each word in the trial, then of each worst word.
    """

    mean: Estimate
    words: tuple[int, ...]
    looked_at: int
    draws: tuple[int, int]


def worst_words(
    sampler: Sampler, best: Adversary, drawn: Bools, confidence: float, looked_at: int = LOOKED_AT
) -> WorstWords:
    """Try an adversary.

    Args:
        sampler: of any mechanism.
        best: the adversary.
        drawn: bool[V], the words that can be the input; at least one.
        confidence: that both bounds hold (Clopper and Pearson 1934; draws of several words spread less than those of one with the
            same mean, Hoeffding 1956).
        looked_at: words of the trial, or a few less.
    """
    able = np.flatnonzero(drawn).astype(np.int32)
    words = able[spaced(len(able), looked_at)]
    trial = _count_guesses(sampler, best, words, TRIAL, 0)
    chosen = words[np.lexsort((words, -trial))][: max(1, math.ceil(bayes.WORST * len(words)))]
    fresh = _count_guesses(sampler, best, chosen, FRESH, 1)
    draws = FRESH * len(chosen)
    mean = share_of(int(fresh.sum()), draws, confidence)
    return WorstWords(mean, tuple(chosen.tolist()), len(words), (TRIAL, FRESH))


def _count_guesses(sampler: Sampler, best: Adversary, words: Ids, draws: int, turn: int) -> Ids:
    """Count how often each word is guessed in so many draws: int64[n]."""
    inputs = np.repeat(words, draws)
    numbers = np.zeros((len(inputs), 2), np.uint64)
    numbers[:, 0] = np.uint64(turn) << np.uint64(32) | np.tile(np.arange(draws, dtype=np.uint64), len(words))
    numbers[:, 1] = inputs
    outputs = sampler.sample(inputs, Draws(WORST_SUBKEY, numbers))
    return np.asarray((best.guesses(outputs) == inputs).reshape(len(words), draws).sum(axis=1))
