"""Public priors: integers, smoothed pairs, and where a lexicon's prior comes from."""

from __future__ import annotations

import io
import zipfile
from fractions import Fraction
from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon, with_shared_words
from dptext_spark.lexicon.prior import ONE, SHIFT, PairModel, Prior, zipf
from dptext_spark.lexicon.vocabulary import Vocabulary
from tools.lexicon import DICTIONARY_FILE, PAIRS_FILE, build_prior, completed

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
    # What is no context is that of no known word.
    contexts, words = (grid.ravel() for grid in np.mgrid[-1 : H + 1, 0:V])
    found = dict(zip(zip(contexts, words, strict=True), model.weights(contexts, words), strict=True))
    base = [int(zipf(V)[u] * ONE) for u in range(V)]
    for (h, u), weight in found.items():
        row = {v: c for (g, v), c in PAIRS.items() if g == h}
        number = max(1, sum(row.values()), totals[h] if totals is not None and 0 <= h < H else 0)
        taken = Fraction(number - sum(row.values())) + Fraction(3, 4) * len(row)
        backoff = int(taken / number * ONE) if row else ONE
        plain = (backoff * base[u]) >> SHIFT
        seen = int((Fraction(row[u]) - Fraction(3, 4)) / number * ONE) if u in row else 0
        assert weight == max(1, seen + plain)
    assert min(found.values()) >= 1
    assert max(found.values()) < ONE
    words = np.array([1 - 3e-12, 1e-12, 1e-12, 1e-12])  # every word follows every context
    zero = np.array([0], np.int32)
    model = PairModel.of_counts(words, zero, zero, np.array([10**10]), 4)
    weights = model.weights(*(grid.ravel() for grid in np.mgrid[-1:4, 0:4]))
    assert (weights.min(), weights.max()) == (1, ONE - 1)


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
    for contexts, words in (([0], [V]), ([0], [-1])):
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
    given = lexicon.with_prior(Prior("pairs of a test", zipf(V), pairs(), ("don't", "it's")))
    assert given.prior.name == "pairs of a test"
    assert given.fingerprint == lexicon.fingerprint
    with pytest.raises(DataError, match=r"^prior: 4 words do not fit"):
        lexicon.with_prior(Prior.by_rank(4))


def test_some_of_the_words_keep_their_pairs_and_other_contexts_move() -> None:
    prior = Prior("of a test", zipf(V), pairs(), ("don't", "it's"))
    kept = np.array([4, 0, 1], np.int32)
    cut = prior.of_words(kept)
    assert cut.words == pytest.approx(zipf(V)[kept] / zipf(V)[kept].sum())
    assert cut.pairs is not None
    assert prior.pairs is not None
    assert cut.pairs.contexts == 3 + 2
    # Words 4, 0, 1 are 0, 1, 2 now, the two others 3 and 4: weights are as they were.
    then, now = np.array([4, 0, 1, 5, 6, -1], np.int32), np.array([0, 1, 2, 3, 4, -1], np.int32)
    for new, old in enumerate(kept):
        before = prior.pairs.weights(then, np.full(6, old))
        assert cut.pairs.weights(now, np.full(6, new)).tolist() == before.tolist()
    moved = prior.before(("it's", "new", "don't"))
    assert moved.pairs is not None
    found = moved.pairs.weights(np.array([5, 6, 7], np.int32), np.full(3, 4))
    assert found.tolist() == prior.pairs.weights(np.array([6, -1, 5], np.int32), np.full(3, 4)).tolist()
    assert prior.before(("don't", "it's")) is prior


def test_a_saved_lexicon_keeps_its_prior(tmp_path: Path) -> None:
    vectors = np.random.default_rng(1).normal(size=(V, 3)).astype(np.float32)
    lexicon = Lexicon(Vocabulary.of(list("abcde")), vectors)
    prior = Prior("of a test", zipf(V)[::-1].copy(), pairs(), ("don't", "it's"))
    lexicon.with_prior(prior).save(tmp_path / "with")
    found = Lexicon.open(tmp_path / "with")
    assert (found.prior.name, found.prior.digest) == (prior.name, prior.digest)
    assert found.fingerprint == lexicon.fingerprint
    other = Lexicon(Vocabulary.of(list("ebxa")), vectors[:4].copy())
    shared, _ = with_shared_words([found, other])
    assert shared.prior.digest == prior.of_words(np.array([0, 1, 4], np.int32)).digest
    np.save(tmp_path / "with" / "prior.words.npy", zipf(V))
    with pytest.raises(DataError, match=r"^prior: its numbers have changed"):
        _ = Lexicon.open(tmp_path / "with").prior
    lexicon.save(tmp_path / "without")
    assert not list((tmp_path / "without").glob("prior.*"))


def test_the_packaged_lexicon_knows_words_and_pairs() -> None:
    lexicon = Lexicon.default()
    prior = lexicon.prior
    assert prior.pairs is not None
    assert "packaged counts" in prior.name
    ids = lexicon.vocabulary.ids(pa.array(["new", "york", "the", "labor", "parcel"]))
    new, york, the, labor, parcel = ids
    weights = prior.pairs.weights(np.array([new, the, -1], np.int32), np.array([york, york, york], np.int32))
    assert weights[0] > 10 * weights.max(where=[False, True, True], initial=0)
    assert prior.words[the] == prior.words.max()
    # Without a count of its own: that of its neighbours in the order.
    assert prior.words[labor] > prior.words[parcel] / 10
    files = Path(str(resources.files("dptext_spark.lexicon") / "default")).glob("prior.*.npy")
    with zipfile.ZipFile(io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in files:
            wheel.write(file, file.name)
        assert 0 < sum(one.compress_size for one in wheel.infolist()) < 2_000_000


def test_counts_of_the_packaged_lexicon(tmp_path: Path) -> None:
    (tmp_path / DICTIONARY_FILE).write_text("the 1000\nnew 100\nyork 10\nother 5\n", encoding="utf-8")
    (tmp_path / PAIRS_FILE).write_text("new york 576\nthe new 6400\nthe other 640\n", encoding="utf-8")
    prior = build_prior(Vocabulary.of(["the", "labor", "new", "york"]), tmp_path)
    counts = np.array([1000, 100, 100, 10])  # "labor" has the median of those about it
    assert prior.words == pytest.approx(counts / counts.sum())
    assert completed(np.array([0, 4, 0, 8, 0])).tolist() == [6, 4, 6, 8, 6]
    assert prior.pairs is not None
    totals = np.array([1000, 0, 100, 10])
    new, york = np.array([2], np.int32), np.array([3], np.int32)
    after_new = PairModel.of_counts(prior.words, new, york, np.array([9]), 4, totals)
    asked = np.full(4, 2, np.int32), np.arange(4, dtype=np.int32)
    assert prior.pairs.weights(*asked).tolist() == after_new.weights(*asked).tolist()
    (tmp_path / PAIRS_FILE).write_text("new york\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"^dictionary: .*bigram.* is damaged"):
        build_prior(Vocabulary.of(["the", "new"]), tmp_path)
    with pytest.raises(DataError, match="holds no word of the lexicon"):
        build_prior(Vocabulary.of(["xyz", "zyx"]), tmp_path)
