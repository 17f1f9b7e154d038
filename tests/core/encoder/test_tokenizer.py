"""Sub-words stand at their bytes; windows lose nothing and count nothing twice, and padding depends on the window alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.encoder import sub_words
from dptext_spark.encoder.sub_words import Tokenizer, read_tokenizer
from dptext_spark.errors import DataError
from tests.core.encoder.tiny_bert import VOCABULARY, make_tiny_bert


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer(read_tokenizer(make_tiny_bert(tmp_path_factory.mktemp("pieces")) / "vocab.txt"))


def test_sub_words_and_their_bytes(tokenizer: Tokenizer) -> None:
    raw = "Unbelievable, 日本 movie".encode()
    found = tokenizer.pieces(np.frombuffer(raw, np.uint8), np.array([0, len(raw)]))
    assert [VOCABULARY[i] for i in found.ids] == ["un", "##believ", "##able", ",", "日", "本", "movie"]
    said = [raw[start:end].decode() for start, end in zip(found.starts, found.ends, strict=True)]
    assert said == ["Un", "believ", "able", ",", "日", "本", "movie"]
    assert found.bounds.tolist() == [0, 7]


def test_a_text_cannot_bring_signs_of_the_encoder(tokenizer: Tokenizer) -> None:
    raw = b"[CLS] [SEP] [MASK] [PAD]"
    found = tokenizer.pieces(np.frombuffer(raw, np.uint8), np.array([0, len(raw)]))
    assert not {0, 2, 3, 4} & {*found.ids.tolist()}


@given(
    st.lists(st.binary(max_size=40) | st.text(max_size=30).map(lambda text: text.encode("utf-8", "replace")))
)
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_cut(tokenizer: Tokenizer, texts: list[bytes]) -> None:
    rows = np.append(0, np.cumsum([len(text) for text in texts])).astype(np.int64)
    found = tokenizer.pieces(np.frombuffer(b"".join(texts), np.uint8), rows)
    assert (found.starts <= found.ends).all()
    assert len(found.bounds) == len(rows)
    row = np.repeat(np.arange(len(texts)), np.diff(found.bounds))
    assert (found.starts >= rows[row]).all()
    assert (found.ends <= rows[row + 1]).all()


def test_a_word_in_the_form_of_the_sub_words(tokenizer: Tokenizer) -> None:
    assert tokenizer.form("MoVie") == "movie"


def test_a_tokenizer_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        Tokenizer("{}")
    (tmp_path / "vocab.txt").write_text("a\nb\n[UNK]\n")
    with pytest.raises(DataError, match=r"lacks one of the special tokens \[CLS\]"):
        Tokenizer(read_tokenizer(tmp_path / "vocab.txt"))


@pytest.mark.parametrize("positions", [4, 5, 8, 24, 512])
def test_every_sub_word_is_looked_at_once(positions: int) -> None:
    lengths = np.array([0, 1, 2, positions - 2, positions - 1, 0, 3 * positions, 10 * positions + 1, 0])
    bounds = np.append(0, np.cumsum(lengths))
    cut = sub_words.windows(bounds, positions)
    looked_at = np.concatenate([np.arange(*pair) for pair in zip(cut.first, cut.last, strict=True)])
    assert np.array_equal(looked_at, np.arange(lengths.sum()))
    assert (cut.first >= cut.starts).all()
    assert (cut.last <= cut.starts + cut.sizes).all()
    assert (cut.starts >= bounds[cut.texts]).all()
    assert (cut.starts + cut.sizes <= bounds[cut.texts + 1]).all()
    assert (cut.sizes == np.minimum(lengths[cut.texts], positions - 2)).all()


def test_padding_is_small_and_depends_on_the_window_alone() -> None:
    sizes = np.arange(1, 511)
    found = sub_words.padded_lengths(sizes, 512)
    assert (found >= sizes + 2).all()
    assert (found <= 512).all()
    assert ((found - sizes - 2) / (sizes + 2)).max() <= 1 / 16
    assert np.array_equal(sub_words.padded_lengths(sizes[::-1], 512), found[::-1])
    assert sub_words.padded_lengths(np.array([97]), 99).tolist() == [99]


def test_batches_hold_each_window_once_and_one_length() -> None:
    lengths = np.random.default_rng(3).integers(3, 600, 3_000)
    found = list(sub_words.batches(lengths))
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(3_000))
    for batch in found:
        assert len(set(lengths[batch].tolist())) == 1
        assert len(batch) == 1 or len(batch) * lengths[batch[0]] <= sub_words.AT_ONCE
    assert list(sub_words.batches(np.empty(0, np.int64))) == []
