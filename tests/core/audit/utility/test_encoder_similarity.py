"""Similarity to an encoder: by hand on vectors that are set, and by a BERT made here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dptext_spark.audit.utility import text_metrics as module
from dptext_spark.audit.utility.text_metrics import encoder_similarity, matched
from dptext_spark.encoder.encoder import TextVectors
from dptext_spark.errors import DataError

AXES = {word: np.eye(4, dtype=np.float32)[i] for i, word in enumerate("abcd")}


def read(texts: Sequence[str]) -> TextVectors:
    """Each word is an axis of its own, and a text the mean of its words."""
    rows = [np.array([AXES[word] for word in text.split()], np.float32).reshape(-1, 4) for text in texts]
    means = np.array([one.mean(axis=0) if len(one) else np.zeros(4) for one in rows], np.float32)
    lengths = np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    return TextVectors(
        means / lengths, np.concatenate(rows), np.append(0, np.cumsum([len(one) for one in rows]))
    )


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
    monkeypatch.setattr(module, "AT_ONCE", 4)
    assert encoder_similarity(read, plain, private) == whole


def test_others_are_other_records() -> None:
    texts = [*"abcd"] * 1
    found = encoder_similarity(read, texts, texts)
    assert found.mean.value == 1.0
    assert found.others == 0.0
    assert found.other_matched["F1"] == 0.0


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(DataError, match="valid: equal numbers"):
        encoder_similarity(read, ["a"], [])
    with pytest.raises(DataError, match="none of them holds a sub-word"):
        encoder_similarity(read, ["a", ""], ["", "b"])


def test_by_a_bert(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra [encoder] is not installed")
    pytest.importorskip("tokenizers", reason="the extra [encoder] is not installed")
    from functools import partial

    from dptext_spark.encoder.encoder import Encoder, vectors
    from tests.core.encoder.tiny_bert import make_tiny_bert

    reader = partial(vectors, Encoder.open(make_tiny_bert(tmp_path)))
    texts = ["the movie was good", "the film was bad", "dull and bad", "unbelievable"]
    same = encoder_similarity(reader, texts, texts)
    assert same.mean.value == pytest.approx(1, abs=1e-6)
    assert same.matched["F1"].value == pytest.approx(1, abs=1e-6)
    assert same.others < 1
    other = encoder_similarity(reader, texts, ["the film was good", *texts[1:]])
    assert other.mean.value < same.mean.value
