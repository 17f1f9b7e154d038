"""Laws over a whole lexicon in plain NumPy, from the formula; losses between words; and a goodness-of-fit test of draws."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import Law, Sampler
from dptext_spark.randomness import Draws, RunKey
from tests.core.mechanisms.plain_noise import too_far

Reals = np.ndarray


def lexicon(vectors: Reals) -> Lexicon:
    """Name the rows w0, w1, ..."""
    names = [f"w{i}" for i in range(len(vectors))]
    return Lexicon(Vocabulary.of(names), np.ascontiguousarray(vectors, np.float32))


def gaussian(words: int, dimensions: int = 4, seed: int = 0) -> Reals:
    return np.random.default_rng(seed).normal(size=(words, dimensions)).astype(np.float32)


@st.composite
def tables(draw: st.DrawFn, most: int = 14, largest: int = 2) -> np.ndarray:
    """Small integer vectors, full of ties, duplicates and zero vectors."""
    words, dimensions = draw(st.integers(2, most)), draw(st.integers(1, 3))
    count = words * dimensions
    values = draw(st.lists(st.integers(-largest, largest), min_size=count, max_size=count))
    return np.array(values, np.float32).reshape(words, dimensions)


def distances(vectors: Reals) -> Reals:
    """Euclidean distances of all pairs, float64[V, V]."""
    wide = vectors.astype(np.float64)
    return np.array([np.sqrt(((wide - row) ** 2).sum(axis=1)) for row in wide])


def laws(away: Reals, epsilon: float, radius: float = np.inf) -> Reals:
    """P(u|w) = exp(-ε·min(d, γ)/2) / Σ, float64[V, V], a row a word."""
    weight = np.exp(-epsilon * np.minimum(away, radius) / 2)
    return weight / weight.sum(axis=1, keepdims=True)


def whole(law: Law, words: int) -> Reals:
    """A law as float64[V], 0 where it cannot go."""
    out = np.zeros(words)
    out[law.ids] = law.probability
    return out


def check_law(law: Law, wanted: Reals, slack: float) -> None:
    """Integers that sum to 2^63, for exactly the outputs that are possible, within `slack` of the logarithm."""
    assert law.weight.dtype == np.uint64
    assert law.ids.dtype == np.int32
    assert sum(map(int, law.weight)) == 2**63
    assert law.ids.tolist() == np.flatnonzero(wanted).tolist()
    assert np.abs(np.log(law.probability) - np.log(wanted[law.ids])).max() <= slack


def draw(made: Sampler, word: int, n: int, purpose: str) -> np.ndarray:
    """Draw n outputs of one word under a key of its own."""
    blocks = np.arange(2 * n, dtype=np.uint64).reshape(n, 2)
    return made.sample(np.full(n, word, np.int32), Draws(RunKey.insecure(word).derive(purpose), blocks))


def check_draws(drawn: np.ndarray, law: Law) -> None:
    """Chi-square at a false-alarm rate of 1e-6, rare outputs together; keys are fixed, so it fails always or never."""
    assert np.isin(drawn, law.ids).all()
    counts = np.bincount(np.searchsorted(law.ids, drawn), minlength=len(law.ids))
    assert not too_far(counts, law.probability)
