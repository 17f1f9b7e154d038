"""Vectors of texts and sub-words, against BERT in NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dptext_spark.encoder.encoder import Encoder, vectors
from tests.core.encoder.plain_bert import PlainBert
from tests.core.encoder.tiny_bert import make_tiny_bert

TEXTS = [
    "The movie was good.",
    "",
    "unbelievable!",
    "...",
    "the dull movie was bad and the film was good " * 4,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_bert(tmp_path_factory.mktemp("vectors") / "tiny")


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_vectors_are_those_of_a_plain_bert(folder: Path) -> None:
    encoder, plain = Encoder.open(folder), PlainBert(folder)
    found = vectors(encoder, TEXTS)
    for text in (0, 2, 3):
        raw = TEXTS[text].encode()
        ids = encoder.tokenizer.pieces(np.frombuffer(raw, np.uint8), np.array([0, len(raw)])).ids.tolist()
        _, states = plain.run([encoder.tokenizer.start, *ids, encoder.tokenizer.end])
        np.testing.assert_allclose(found.texts[text], unit(states.mean(axis=0)), atol=1e-6)
        inside = slice(found.bounds[text], found.bounds[text + 1])
        np.testing.assert_allclose(found.pieces[inside], unit(states[1:-1]), atol=1e-6)
    assert not found.texts[1].any()
    assert found.bounds[1] == found.bounds[2]


def test_a_long_text_has_a_vector_for_every_sub_word(folder: Path) -> None:
    found = vectors(Encoder.open(folder), TEXTS[4:])
    assert len(found.pieces) == 40
    np.testing.assert_allclose(np.linalg.norm(found.pieces, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found.texts, axis=1), 1, atol=1e-6)


def test_a_vector_does_not_depend_on_the_batch(folder: Path) -> None:
    encoder = Encoder.open(folder)
    together = vectors(encoder, TEXTS * 30)
    alone = vectors(encoder, TEXTS)
    assert np.array_equal(together.texts, np.tile(alone.texts, (30, 1)))
    assert np.array_equal(together.pieces, np.tile(alone.pieces, (30, 1)))
