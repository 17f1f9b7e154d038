"""Sub-words stand at their bytes, whatever the text holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.encoder.tokenizer import Tokenizer, read_tokenizer
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
