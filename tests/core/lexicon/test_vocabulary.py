from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext_spark.errors import DataError
from dptext_spark.lexicon.vocabulary import BYTES_FILE, OFFSETS_FILE, Vocabulary

WORDS = ["the", "naïve", "日本", "a", "don't", "\U0001f600"]


def test_both_ways() -> None:
    vocabulary = Vocabulary.of(WORDS)
    assert len(vocabulary) == 6
    assert [vocabulary.word(i) for i in range(6)] == WORDS == vocabulary.strings().to_pylist()
    assert vocabulary.words(np.array([5, 0, 0], np.int32)).to_pylist() == ["\U0001f600", "the", "the"]
    ids = vocabulary.ids(pa.array(["a", "zebra", None, "The", "日本", ""]))
    assert ids.dtype == np.int32
    assert ids.tolist() == [3, -1, -1, -1, 2, -1]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
def test_any_text_type_sliced_or_chunked(kind: pa.DataType) -> None:
    array = pa.array(["skipped", *WORDS], pa.string()).cast(kind)[1:]
    assert Vocabulary.of(array).strings().to_pylist() == WORDS
    assert Vocabulary.of(pa.chunked_array([array[:2], array[2:]])).strings().to_pylist() == WORDS
    assert Vocabulary.of([]).ids(array).tolist() == [-1] * len(WORDS)


@given(st.lists(st.text(), unique=True, max_size=30))
def test_any_distinct_words(words: list[str]) -> None:
    vocabulary = Vocabulary.of(words)
    assert vocabulary.strings().to_pylist() == words
    for kind in (pa.string(), pa.large_string()):
        array = pa.array(["skipped", *words], kind)[1:]
        assert vocabulary.ids(array).tolist() == list(range(len(words)))


def test_saved_and_memory_mapped(tmp_path: Path) -> None:
    Vocabulary.of(WORDS).save(tmp_path / "new" / "folder")
    opened = Vocabulary.open(tmp_path / "new" / "folder")
    assert isinstance(opened.data.base, np.memmap)
    assert opened.strings().to_pylist() == WORDS
    assert opened.ids(pa.array(["日本"])).tolist() == [2]
    assert Vocabulary.open(str(tmp_path / "new" / "folder")).word(1) == "naïve"


@pytest.mark.parametrize("index", [-1, 6])
def test_ids_that_do_not_exist(index: int) -> None:
    vocabulary = Vocabulary.of(WORDS)
    with pytest.raises(IndexError, match="0"):
        vocabulary.word(index)
    with pytest.raises(IndexError, match="0 and 5"):
        vocabulary.words(np.array([0, index], np.int32))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b", "a"], "only 2 distinct"),
        (pa.array(["a", None]), "1 of 2 words are NULL"),
        (pa.array([b"a", b"\xff"]), "valid Unicode"),
        (["\ud800"], "valid Unicode"),
        ([1, 2], "valid Unicode"),
        (pa.array([[1]]), "valid Unicode"),
    ],
)
def test_words_that_cannot_be(words: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Vocabulary.of(words)


@pytest.mark.parametrize(
    ("offsets", "data"),
    [
        (np.array([0, 3, 2, 4]), np.zeros(4, np.uint8)),
        (np.array([0, 3]), np.zeros(4, np.uint8)),
        (np.array([1, 4]), np.zeros(4, np.uint8)),
        (np.zeros(0, np.int64), np.zeros(0, np.uint8)),
        (np.array([0, 4], np.int32), np.zeros(4, np.uint8)),
        (np.array([0, 4]), np.zeros(4, np.int8)),
        (np.array([[0, 4]]), np.zeros(4, np.uint8)),
    ],
)
def test_arrays_that_do_not_fit(offsets: np.ndarray, data: np.ndarray) -> None:
    with pytest.raises(DataError, match="vocabulary"):
        Vocabulary(offsets, data)


def test_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        Vocabulary.open(tmp_path)
    Vocabulary.of(WORDS).save(tmp_path)
    whole = (tmp_path / BYTES_FILE).read_bytes()
    (tmp_path / BYTES_FILE).write_bytes(whole[:-1])
    with pytest.raises(DataError, match=BYTES_FILE):
        Vocabulary.open(tmp_path)
    (tmp_path / BYTES_FILE).write_bytes(b"")
    with pytest.raises(DataError, match=BYTES_FILE):
        Vocabulary.open(tmp_path)
    np.save(tmp_path / BYTES_FILE, np.array([object()]), allow_pickle=True)
    with pytest.raises(DataError, match=BYTES_FILE):
        Vocabulary.open(tmp_path)
    (tmp_path / BYTES_FILE).write_bytes(whole)
    np.save(tmp_path / OFFSETS_FILE, np.array([0, 400]))
    with pytest.raises(DataError, match="offsets"):
        Vocabulary.open(tmp_path)
