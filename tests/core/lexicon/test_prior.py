"""Public priors: integers, smoothed pairs, and where a lexicon's prior comes from."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import ONE, SHIFT, PairModel, Prior, zipf
from dptext_spark.lexicon.vocabulary import Vocabulary

V, H = 5, 7
PAIRS = {(0, 1): 9, (0, 3): 1, (2, 0): 4, (6, 4): 2}  # (context, word): count


def pairs(totals: list[int] | None = None) -> PairModel:
    first, second = np.array(list(PAIRS), np.int32).T
    counts = np.array(list(PAIRS.values()), np.int64)
    given = None if totals is None else np.array(totals, np.int64)
    return PairModel.of_counts(zipf(V), first, second, counts, H, given)


@pytest.mark.parametrize("totals", [None, [20, 0, 2, 0, 0, 0, 9]])
def test_weights_are_the_formula_rounded_down(totals: list[int] | None) -> None:
    model = pairs(totals)
    contexts, words = (grid.ravel() for grid in np.mgrid[-1:H, 0:V])
    found = dict(zip(zip(contexts, words, strict=True), model.weights(contexts, words), strict=True))
    base = [int(zipf(V)[u] * ONE) for u in range(V)]
    for (h, u), weight in found.items():
        row = {v: c for (g, v), c in PAIRS.items() if g == h}
        number = max(1, sum(row.values()), totals[h] if totals is not None and h >= 0 else 0)
        taken = Fraction(number - sum(row.values())) + Fraction(3, 4) * len(row)
        backoff = int(taken / number * ONE) if row else ONE
        plain = (backoff * base[u]) >> SHIFT
        seen = int((Fraction(row[u]) - Fraction(3, 4)) / number * ONE) if u in row else 0
        assert weight == max(1, seen + plain)
    assert min(found.values()) >= 1
    assert max(found.values()) < ONE


def test_every_word_follows_every_context() -> None:
    words = np.array([1 - 3e-12, 1e-12, 1e-12, 1e-12])
    model = PairModel.of_counts(
        words, np.array([0], np.int32), np.array([0], np.int32), np.array([10**10]), 4
    )
    contexts, ids = (grid.ravel() for grid in np.mgrid[-1:4, 0:4])
    weights = model.weights(contexts, ids)
    assert weights.min() == 1
    assert weights.max() == ONE - 1


def test_pairs_that_are_wrong() -> None:
    model = pairs()
    for name, array in (
        ("following", model.following[::-1].copy()),
        ("weight", np.zeros_like(model.weight)),
        ("base", model.base[:-1]),
        ("backoff", model.backoff[:-1]),
        ("starts", model.starts.astype(np.int32)),
    ):
        with pytest.raises(DataError, match=r"^prior: "):
            PairModel(**{**model.arrays(), name: array})
    for contexts, words in (([H], [0]), ([-2], [0]), ([0], [V]), ([0], [-1])):
        with pytest.raises(DataError, match=r"^prior: "):
            model.weights(np.array(contexts, np.int32), np.array(words, np.int32))
    with pytest.raises(DataError, match=r"^prior: pairs of 5 words"):
        Prior("of other words", zipf(4), model)
    for wrong in (np.array([0.0, 1.0]), np.array([0.5, 0.6]), np.array([np.nan, 1.0])):
        with pytest.raises(DataError, match=r"^prior: "):
            Prior("wrong", wrong)


def test_a_lexicon_has_zipfs_law_until_it_is_given_a_prior() -> None:
    vectors = np.random.default_rng(1).normal(size=(V, 3)).astype(np.float32)
    lexicon = Lexicon(Vocabulary.of(list("abcde")), vectors)
    assert lexicon.prior.words.tolist() == zipf(V).tolist()
    assert lexicon.prior.pairs is None
    assert "Zipf" in lexicon.prior.name
    given = lexicon.with_prior(Prior("pairs of a test", zipf(V), pairs()))
    assert given.prior.name == "pairs of a test"
    assert given.fingerprint == lexicon.fingerprint
    with pytest.raises(DataError, match=r"^prior: 4 words given"):
        lexicon.with_prior(Prior.by_rank(4))
