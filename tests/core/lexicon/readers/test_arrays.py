from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.readers import arrays as array_formats
from dptext_spark.lexicon.readers.builder import ReadCounts

WORDS = ["the", "of", "naïve", "日本"]
TABLE = np.arange(12, dtype=np.float32).reshape(4, 3) / 8


def npz(folder: Path, compressed: bool = False, **arrays: object) -> Path:
    save = np.savez_compressed if compressed else np.savez
    save(folder / "vectors.npz", **{"words": np.array(WORDS), "vectors": TABLE, **arrays})
    return folder / "vectors.npz"


def parquet(folder: Path, words: object = None, vectors: object = None, **options: object) -> Path:
    table = pa.table(
        {
            "rank": pa.array(range(4 if words is None else len(words))),
            "word": pa.array(WORDS) if words is None else words,
            "vector": pa.array(TABLE.tolist(), pa.list_(pa.float32())) if vectors is None else vectors,
        }
    )
    pq.write_table(table, folder / "vectors.parquet", **options)
    return folder / "vectors.parquet"


def check(lexicon: Lexicon) -> None:
    assert lexicon.vocabulary.strings().to_pylist() == WORDS
    assert lexicon.vectors.dtype == np.float32
    np.testing.assert_array_equal(lexicon.vectors, TABLE)
    assert lexicon.counts == ReadCounts(read=4, kept=4)
    assert lexicon.name == "vectors"


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("block", [1, 6, 1 << 20])
def test_npz(
    tmp_path: Path, compressed: bool, dtype: str, order: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_formats, "BLOCK_VALUES", block)
    check(Lexicon.read(npz(tmp_path, compressed, vectors=np.array(TABLE, dtype, order=order))))


def test_npz_with_words_as_bytes(tmp_path: Path) -> None:
    check(Lexicon.read(npz(tmp_path, words=np.array([word.encode() for word in WORDS])), format="npz"))
    lexicon = Lexicon.read(npz(tmp_path, words=np.array([b"a", b"\xff", b"b", b""])))
    assert lexicon.counts == ReadCounts(read=4, kept=2, unproducible=2)


def test_too_large_for_float32(tmp_path: Path) -> None:
    wide = TABLE.astype(np.float64)
    wide[1, 1], wide[2, 0] = 1e39, np.nan
    assert Lexicon.read(npz(tmp_path, vectors=wide)).counts == ReadCounts(read=4, kept=2, non_finite=2)
    vectors = pa.array(wide.tolist(), pa.list_(pa.float64()))
    assert Lexicon.read(parquet(tmp_path, vectors=vectors)).counts.non_finite == 2


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"words": np.array(WORDS, object)}, "Python objects are never read"),
        ({"vectors": TABLE.astype(object)}, "given object"),
        ({"words": np.array([1, 2, 3, 4])}, "words must be strings"),
        ({"words": np.array([WORDS])}, "words must be strings"),
        ({"words": np.array(["\ud800", "a", "b", "c"])}, "words 0 to 3 is no valid Unicode"),
        ({"vectors": TABLE.astype(np.int32)}, "given int32"),
        ({"vectors": TABLE.astype(np.complex64)}, "given complex64"),
        ({"vectors": TABLE[0]}, r"given float32\[3\]"),
        ({"vectors": TABLE[:3]}, "4 words, but 3 vectors"),
        ({"vectors": np.zeros((4, 0), np.float32)}, "0 dimensions"),
    ],
)
def test_npz_that_cannot_be(tmp_path: Path, arrays: dict, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        Lexicon.read(npz(tmp_path, **arrays))
    assert "vectors.npz" in str(caught.value)


def test_npz_without_an_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", vectors=TABLE, labels=np.array(WORDS))
    with pytest.raises(DataError, match="no array words; it must hold words and vectors"):
        Lexicon.read(tmp_path / "other.npz")


def test_damaged_npz(tmp_path: Path) -> None:
    whole = npz(tmp_path).read_bytes()
    path = tmp_path / "cut.npz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"damaged or truncated \.npz"):
        Lexicon.read(path)
    at = whole.index(TABLE.tobytes())
    path.write_bytes(whole[:at] + b"\x01" + whole[at + 1 :])
    with pytest.raises(DataError, match=r"damaged or truncated \.npz"):
        Lexicon.read(path)
    wide = np.arange(400_000, dtype=np.float32).reshape(4, -1)[:, :60_000].copy()
    whole = npz(tmp_path, vectors=wide).read_bytes()
    at = whole.index(wide.tobytes())
    path.write_bytes(whole[: at + 500_000] + b"\x01" + whole[at + 500_001 :])
    with pytest.raises(DataError, match="vectors is damaged"):
        Lexicon.read(path)
    path.write_bytes(b"no archive at all")
    with pytest.raises(DataError, match=r"damaged or truncated \.npz"):
        Lexicon.read(path, format="npz")


def test_an_array_shorter_than_its_header_says(tmp_path: Path) -> None:
    full = io.BytesIO()
    np.save(full, TABLE)
    words = io.BytesIO()
    np.save(words, np.array(WORDS))
    with zipfile.ZipFile(tmp_path / "short.npz", "w") as archive:
        archive.writestr("words.npy", words.getvalue())
        archive.writestr("vectors.npy", full.getvalue()[:-5])
    with pytest.raises(DataError, match="ends 5 bytes too early"):
        Lexicon.read(tmp_path / "short.npz")


@pytest.mark.parametrize("number", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("kind", ["list", "large_list", "fixed"])
def test_parquet(tmp_path: Path, number: pa.DataType, kind: str) -> None:
    makers = {"list": pa.list_, "large_list": pa.large_list, "fixed": lambda value: pa.list_(value, 3)}
    values = TABLE.astype(number.to_pandas_dtype())
    check(Lexicon.read(parquet(tmp_path, vectors=pa.array(list(map(list, values)), makers[kind](number)))))


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_words(tmp_path: Path, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    check(Lexicon.read(parquet(tmp_path, words=pa.array(WORDS).cast(kind))))
    monkeypatch.setattr(array_formats, "PARQUET_ROWS", 1)
    check(
        Lexicon.read(parquet(tmp_path, words=pa.array(WORDS).cast(kind), row_group_size=3), format="parquet")
    )


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["the", None, "a", "b"], None, "row 2: word is NULL"),
        (None, [[1.0, 2], [1, 2], None, [1, 2]], "row 3: vector is NULL"),
        (None, [[1.0, 2], [1, 2], [1, None], [1, 2]], "row 3: vector holds a NULL"),
        (None, [[1.0, 2], [1, 2], [1, 2], [1, 2, 3]], "row 4: 3 numbers where row 1 has 2"),
        (None, [[1.0, 2], [], [1, 2], [1, 2]], "row 2: 0 numbers where row 1 has 2"),
        (None, [[], [], [], [1.0]], "0 dimensions"),
        (None, [[1, 2]] * 4, "column vector is list<.*int64.*>; it must be a list of floating-point"),
        (None, [1.0] * 4, "column vector is double"),
        ([1, 2, 3, 4], None, "column word is int64; it must be a string"),
    ],
)
@pytest.mark.parametrize("rows", [1, 4096])
def test_parquet_that_cannot_be(
    tmp_path: Path, words: list, vectors: list, message: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_formats, "PARQUET_ROWS", rows)
    path = parquet(
        tmp_path,
        None if words is None else pa.array(words),
        None if vectors is None else pa.array(vectors),
    )
    with pytest.raises(DataError, match=message):
        Lexicon.read(path)


def test_parquet_without_columns_or_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"token": WORDS}), tmp_path / "other.parquet")
    with pytest.raises(DataError, match="no column word, vector"):
        Lexicon.read(tmp_path / "other.parquet")
    empty = parquet(tmp_path, pa.array([], pa.string()), pa.array([], pa.list_(pa.float32())))
    with pytest.raises(DataError, match="no rows"):
        Lexicon.read(empty)


def test_damaged_parquet(tmp_path: Path) -> None:
    whole = parquet(tmp_path, compression="none", use_dictionary=False).read_bytes()
    path = tmp_path / "cut.parquet"
    path.write_bytes(whole[:-9])
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        Lexicon.read(path)
    path.write_bytes(b"PAR1" + b"\xff" * (len(whole) // 2) + whole[4 + len(whole) // 2 :])
    with pytest.raises(DataError, match=r"row 1|cannot be read"):
        Lexicon.read(path)


def test_parquet_words_that_are_no_valid_utf8(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 1, 2, 3, 4], np.int32))
    words = pa.StringArray.from_buffers(4, offsets, pa.py_buffer(b"a\xffb\xfe"))
    lexicon = Lexicon.read(parquet(tmp_path, words=words, use_dictionary=False, write_statistics=False))
    assert lexicon.counts == ReadCounts(read=4, kept=2, unproducible=2)


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_cut_by_the_limit(tmp_path: Path, kind: str) -> None:
    path = npz(tmp_path) if kind == "npz" else parquet(tmp_path)
    assert Lexicon.read(path, limit=2).counts == ReadCounts(read=2, kept=2, over_limit=2, limit_reached=True)
