"""Attacks on noise that is added to word vectors, where no law can be read: from below and from above, over all words.

From below: an adversary who ranks words by their distance to the one that came out, ln P(w) - τ·d^p; τ and p are learnt on public
draws, the success is measured on others. Great τ names the output itself, τ = 0 the commonest word. From above: an
adversary who sees the noisy vector before it is snapped to a word. The word is a function of that vector (and of a coin), so no
adversary who sees the word succeeds more often than the best who sees the vector; and that one is known, since the density of
the noise is: argmax_w ln P(w) + ln f(z - φ(w)). Both are measured on words that are drawn from the prior, with bounds by Clopper
and Pearson (1934). Snapping is close to the best guess itself, so that the two are seldom far apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from dptext_spark.arrays import F32, F64, I64, Bools, Ids
from dptext_spark.audit.attacks.posterior import AT_ONCE, MOST, SUBKEY, Candidates, drawn_from, from_columns
from dptext_spark.audit.attacks.tokens import sampled
from dptext_spark.audit.deniability.word_figures import share_of
from dptext_spark.audit.estimates import Estimate
from dptext_spark.mechanisms.numerics.matrices import in_threads, products
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from dptext_spark.randomness import Draws
from dptext_spark.runtime.jit import compiled

LEARNT = 1_024  # of the tries, that τ and p are learnt on
SLOW = 1_024  # tries for noise whose density is no matrix product
STRENGTHS = tuple(2.0**k for k in range(-3, 6))  # τ·s^p, s the typical distance of a word to its nearest
ROOM = 1e-6  # what rounding may push past the end of truncated noise


@dataclass(frozen=True, eq=False)
class Ranking:
    """How the adversary from below ranks words.

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
        found = -self.strength * _distances(self.targets[outputs], self.centers) ** self.power
        return np.asarray(np.exp(found - found.max(axis=1, keepdims=True)), np.float32)


def bayes_between(
    sampler: NoiseSampler, prior: F64, tries: int, confidence: float
) -> tuple[Estimate, Ranking]:
    """Return the success on one word, from below, with both bounds of the optimum; and how the words were ranked.

    Args:
        sampler: of noise on vectors.
        prior: float64[V], sums to 1.
        tries: words that are drawn from the prior; twice `LEARNT` or more, or half of them are learnt on.
        confidence: that both bounds hold.
    """
    sure = (1.0 + confidence) / 2.0
    words, draws = drawn_from(prior, tries)
    outputs = sampled(sampler, words, draws)
    split = min(LEARNT, tries // 2)
    ranking = _learnt(sampler, prior, words[:split], outputs[:split])
    weight = prior.astype(np.float32)
    distinct, where = np.unique(outputs[split:], return_inverse=True)
    named = in_threads(
        lambda part: (ranking.likelihood(part) * weight).argmax(axis=1), distinct.astype(np.int32), AT_ONCE
    )
    hits = int((np.concatenate(named)[where.reshape(-1)] == words[split:]).sum())
    below = share_of(hits, tries - split, sure)
    seen = tries if sampler.noise in ("radial", "gaussian") else min(SLOW, tries)
    noisy = sampler.noisy(words[:seen], draws)
    likely = np.log(np.maximum(prior, 1e-300)).astype(np.float32)
    place = _Place.of(sampler)
    guess = in_threads(
        lambda part: (place.density(noisy[part]) + likely).argmax(axis=1),
        np.arange(seen, dtype=np.int32),
        AT_ONCE,
    )
    above = share_of(int((np.concatenate(guess) == words[:seen]).sum()), seen, sure)
    value = below.value
    return Estimate(value, min(value, below.lower), max(value, above.upper)), ranking


def learnt(sampler: NoiseSampler, prior: F64) -> Ranking:
    """Return the ranking alone: what :func:`bayes_between` finds from below, without its success."""
    words, draws = drawn_from(prior, LEARNT)
    return _learnt(sampler, prior, words, sampler.sample(words, draws))


def candidates_of_vectors(sampler: NoiseSampler, prior: F64, words: Ids, most: int = MOST) -> Candidates:
    """Return the plausible inputs of the noisy vectors of int32[n] words, by their places 0 to n - 1."""
    numbers = np.stack([np.arange(len(words), dtype=np.uint64), np.ones(len(words), np.uint64)], axis=1)
    noisy = sampler.noisy(words, Draws(SUBKEY, numbers))
    place = _Place.of(sampler)

    def likelihood(part: Ids) -> F32:
        found = place.density(noisy[part])
        return np.asarray(np.exp(found - found.max(axis=1, keepdims=True)), np.float32)

    return from_columns(likelihood, prior, np.arange(len(words), dtype=np.int32), most)


@dataclass(frozen=True, eq=False)
class _Place:
    """Where noise is as long in every direction: a matrix that multiplied it is taken back."""

    sampler: NoiseSampler
    back: F64 | None
    centers: F32

    @classmethod
    def of(cls, sampler: NoiseSampler) -> _Place:
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
        found = -cdist(noisy, centers, "cityblock") / scale
        if self.sampler.noise == "truncated_laplace":
            end = float(self.sampler.parameters[1]) * (1.0 + ROOM) + ROOM
            found[cdist(noisy, centers, "chebyshev") > end] = -np.inf
        return np.asarray(found - found.max(axis=1, keepdims=True), np.float32)


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
    place = _Place.of(sampler)
    targets = (
        place.centers
        if sampler.targets.vectors is sampler.centers
        else place.moved(sampler.targets.vectors, place.back)
    )
    distinct, where = np.unique(outputs, return_inverse=True)
    likely = np.log(np.maximum(prior, 1e-300)).astype(np.float32)
    near = _distances(targets[distinct[:64]], place.centers)
    typical = float(np.median(np.partition(near, 1, axis=1)[:, 1])) or 1.0
    grid = [(power, strength / typical**power) for power in (1, 2) for strength in STRENGTHS]

    squared, taus = (
        np.array([power == 2 for power, _ in grid]),
        np.array([tau for _, tau in grid], np.float32),
    )

    def hits(part: Ids) -> I64:
        named = np.empty((len(part), len(grid)), np.int64)
        _name(_distances(targets[part], place.centers), likely, squared, taus, named)
        return named

    named = np.concatenate(in_threads(hits, distinct.astype(np.int32), AT_ONCE))[where.reshape(-1)]
    power, strength = grid[int((named == words[:, None]).sum(axis=0).argmax())]
    return Ranking(place.centers, targets, power, strength)


def _distances(some: F32, centers: F32) -> F32:
    """Return Euclidean distances, float32[n, V]."""
    out = np.empty((len(some), len(centers)), np.float32)
    squares, mine = np.einsum("ij,ij->i", centers, centers), np.einsum("ij,ij->i", some, some)[:, None]
    for part, found in products(some, centers):
        found *= -2.0
        found += squares[part] + mine
        np.maximum(found, 0.0, out=found)
        np.sqrt(found, out=out[:, part])
    return out
