"""Cosine of mean vectors, ROUGE and BLEU of texts and their replacements; similarity to an encoder; and word order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from dptext_spark.arrays import I64, Ids
from dptext_spark.audit import text_utility
from dptext_spark.audit.attacks.attacked_text import Bigrams
from dptext_spark.audit.text_utility import (
    OwnOrder,
    encoder_similarity,
    log_probability,
    matched,
    record_cosines,
    text_overlap,
    vector_similarity,
    word_order,
)
from dptext_spark.encoder.encoder import TextVectors
from dptext_spark.errors import DataError
from dptext_spark.text.tokens import EDGE, UNKNOWN


@dataclass
class Words:
    words: npt.NDArray[np.int32]
    bounds: npt.NDArray[np.int64]


def records(*rows: list[int]) -> Words:
    words = np.array([word for row in rows for word in row], np.int32)
    return Words(words, np.cumsum([0, *map(len, rows)]).astype(np.int64))


VECTORS = np.array([[1, 0], [0, 1], [1, 1], [-1, 0]], np.float32)


def test_cosines_of_mean_vectors() -> None:
    plain = records([0, 1, -1], [0], [2, 2, 2], [-2], [0, 3], [0, -1, 1])
    private = records([2], [1, -2], [2], [0], [1], [3, 3, 1])
    found = record_cosines(VECTORS, plain, private)
    # (1,1)/2 and (1,1); orthogonal; equal; no word; a mean of zero; (1,1)/2 and (-2,1)/3.
    assert found[[0, 1, 2, 5]] == pytest.approx([1.0, 0.0, 1.0, -1 / math.sqrt(10)], abs=1e-6)
    assert np.isnan(found[[3, 4]]).all()
    with pytest.raises(DataError, match="6 and 1 "):
        record_cosines(VECTORS, plain, records([0]))


def test_records_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    vectors = random.normal(size=(50, 8)).astype(np.float32)
    plain, private = (records(*random.integers(0, 50, (40, 5)).tolist()) for _ in range(2))
    means = (vectors[side.words].reshape(40, 5, 8).mean(axis=1) for side in (plain, private))
    expected = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in zip(*means, strict=True)]
    monkeypatch.setattr(text_utility, "ROWS", 7)
    assert record_cosines(vectors, plain, private) == pytest.approx(expected, abs=1e-5)


def test_similarity_stands_beside_that_of_others() -> None:
    random = np.random.default_rng(2)
    vectors = random.normal(size=(100, 20)).astype(np.float32)
    rows = random.integers(0, 100, (200, 6))
    noisy = np.where(random.random(rows.shape) < 0.5, random.integers(0, 100, rows.shape), rows)
    plain, private = records([-1], *rows.tolist()), records([0], *noisy.tolist())
    found = vector_similarity(vectors, plain, private)
    assert (found.records, found.left_out) == (200, 1)
    cosines = record_cosines(vectors, plain, private)[1:]
    assert found.mean.value == pytest.approx(cosines.mean())
    error = 1.96 * cosines.std() / math.sqrt(200)
    assert found.mean.upper - found.mean.lower == pytest.approx(2 * error, rel=0.2)
    assert found.percentiles["p50"] == np.percentile(cosines, 50)
    # Others have in common what the mean of all 100 vectors is: 6 in 100 of the square of a mean of 6; standard error 0.016.
    assert found.mean.value > 0.4 > 0.15 > abs(found.others)
    assert found.unprotected == 1.0
    assert found.restricted
    assert vector_similarity(vectors, plain, plain).mean.value == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(DataError, match="none of them holds a word"):
        vector_similarity(vectors, records([-1]), records([0]))


def test_every_record_is_compared_with_another() -> None:
    for many in (2, 3, 50):
        order = text_utility.other_records(many)
        assert sorted(order.tolist()) == list(range(many))
        assert (order != np.arange(many)).all()


def test_overlap() -> None:
    pytest.importorskip("rouge_score", reason="the extra [audit] is not installed")
    pytest.importorskip("sacrebleu", reason="the extra [audit] is not installed")
    plain = ["the cat sat on the mat", "a b c d"]
    private = ["the dog sat on a mat", "a b c d"]
    found = text_overlap(plain, private)
    # First record: 4 of 6 words shared; 1 of 5 pairs (sat on); longest common subsequence the sat on mat = 4.
    expected = {"ROUGE-1": (4 / 6 + 1) / 2, "ROUGE-2": (1 / 5 + 1) / 2, "ROUGE-L": (4 / 6 + 1) / 2}
    assert {name: estimate.value for name, estimate in found.rouge.items()} == pytest.approx(expected)
    # 8 of 10 words, 4 of 8 pairs, 2 of 6 triples, 1 of 4 quadruples; as long as the original.
    assert found.bleu == pytest.approx(100 * (8 / 10 * 4 / 8 * 2 / 6 * 1 / 4) ** 0.25)
    assert found.other_rouge["ROUGE-2"] == 0.0
    assert found.other_bleu < 10
    assert found.records == 2
    assert "version:" in found.bleu_signature
    same = text_overlap(plain, plain)
    assert same.bleu == pytest.approx(100)
    assert {e.value for e in same.rouge.values()} == {1.0}
    assert text_overlap([None, "a"], ["b", None]) == text_overlap(["", "a"], ["b", ""])
    with pytest.raises(DataError, match="2 and 1 "):
        text_overlap(plain, private[:1])
    with pytest.raises(DataError, match="0 and 0 "):
        text_overlap([], [])


AXES = {word: np.eye(4, dtype=np.float32)[i] for i, word in enumerate("abcd")}


def read(texts: Sequence[str]) -> TextVectors:
    """Each word is an axis of its own, and a text the mean of its words."""
    rows = [np.array([AXES[word] for word in text.split()], np.float32).reshape(-1, 4) for text in texts]
    means = np.array([one.mean(axis=0) if len(one) else np.zeros(4) for one in rows], np.float32)
    lengths = np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    bounds = np.append(0, np.cumsum([len(one) for one in rows]))
    return TextVectors(means / lengths, np.concatenate(rows), bounds)


def test_sub_words_are_matched_with_the_most_similar() -> None:
    a, b, c = AXES["a"], AXES["b"], AXES["c"]
    near = (a + b) / np.sqrt(np.float32(2))
    precision, recall, both = matched(np.array([a, b, b]), np.array([near, c]))
    assert precision == pytest.approx((1 / np.sqrt(2) + 0) / 2)
    assert recall == pytest.approx(1 / np.sqrt(2))
    assert both == pytest.approx(2 * precision * recall / (precision + recall))
    assert matched(np.array([a]), np.array([b])) == (0.0, 0.0, 0.0)


def test_figures_by_hand() -> None:
    found = encoder_similarity(read, ["a b", "c", None, "d"], ["a c", "c", "a", "d"])
    cosines = [0.5, 1.0, 1.0]
    assert found.mean.value == pytest.approx(np.mean(cosines))
    assert (found.records, found.left_out) == (3, 1)
    assert found.matched["precision"].value == pytest.approx((0.5 + 1 + 1) / 3)
    assert found.percentiles["p50"] == pytest.approx(1.0)
    assert found.unprotected == 1.0
    assert found.others < found.mean.value
    assert found.mean.lower <= found.mean.value <= found.mean.upper
    assert found.as_dict()["name"] == "encoder similarity"


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    plain, private = ([" ".join(rng.choice([*"abcd"], 5)) for _ in range(23)] for _ in range(2))
    whole = encoder_similarity(read, plain, private)
    monkeypatch.setattr(text_utility, "AT_ONCE", 4)
    assert encoder_similarity(read, plain, private) == whole


def test_others_are_other_records() -> None:
    texts = [*"abcd"]
    found = encoder_similarity(read, texts, texts)
    assert found.mean.value == 1.0
    assert found.others == 0.0
    assert found.other_matched["F1"] == 0.0


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(DataError, match="equal numbers"):
        encoder_similarity(read, ["a"], [])
    with pytest.raises(DataError, match="none of them holds a sub-word"):
        encoder_similarity(read, ["a", ""], ["", "b"])


WORDS = 40


def chain(records: int, seed: int, kept: float = 0.9) -> tuple[Ids, I64]:
    """Words that mostly follow each other by number, with punctuation and unknown words between."""
    random = np.random.default_rng(seed)
    tokens: list[int] = []
    bounds = [0]
    for _ in range(records):
        word = int(random.integers(WORDS))
        for _ in range(int(random.integers(3, 9))):
            tokens.append(word)
            word = (word + 1) % WORDS if random.random() < kept else int(random.integers(WORDS))
        tokens.extend((UNKNOWN, EDGE))
        bounds.append(len(tokens))
    return np.array(tokens, np.int32), np.array(bounds, np.int64)


@pytest.fixture(scope="module")
def language() -> Bigrams:
    return Bigrams.of(*chain(400, 1), WORDS)


def test_the_probability_of_a_word_is_the_formula(language: Bigrams) -> None:
    words, bounds = chain(20, 2)
    state = {UNKNOWN: WORDS, EDGE: WORDS + 1}
    logs = []
    for start, end in pairwise(bounds):
        before = WORDS + 1
        for token in words[start:end].tolist():
            now = state.get(token, token)
            if token >= 0:
                share = language.probability(np.array([before], np.int32), np.array([now], np.int32))
                logs.append(math.log(share[0]))
            before = now
    here = np.flatnonzero(words >= 0)
    assert log_probability(words, bounds, here, language) == pytest.approx(logs, rel=1e-12)


def test_words_in_order_gain_and_the_same_words_dealt_anew_do_not(language: Bigrams) -> None:
    words, bounds = chain(300, 3)
    ordered = word_order(words, bounds, language)
    assert ordered.lower > 1.0
    dealt = words.copy()
    dealt[words >= 0] = np.random.default_rng(4).permutation(words[words >= 0])
    assert word_order(dealt, bounds, language).upper < 0.1
    own = OwnOrder.of(words, bounds, language)
    assert own.left(words, bounds).value == pytest.approx(1.0)
    assert own.left(dealt, bounds).upper < 0.1


def test_one_common_word_everywhere_reads_well_and_is_in_no_order(language: Bigrams) -> None:
    words, bounds = chain(100, 5)
    common = np.where(words >= 0, int(language.unigram[:WORDS].argmax()), words).astype(np.int32)
    assert word_order(common, bounds, language).value == pytest.approx(0.0, abs=1e-12)


def test_a_text_in_no_order_and_one_without_words_are_refused(language: Bigrams) -> None:
    words, bounds = chain(100, 6, kept=0.0)
    with pytest.raises(DataError, match=r"language: .* no order"):
        OwnOrder.of(words, bounds, language)
    with pytest.raises(DataError, match="no word is in the lexicon"):
        word_order(np.full(4, UNKNOWN, np.int32), np.array([0, 4]), language)
