from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.readers import formats
from dptext_spark.lexicon.readers.builder import ReadCounts
from tests.core.lexicon.readers.files import put

KEYS = ["the", "of", "</s>", "naïve"]
TABLE = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
TABLE[1] = np.frombuffer(b"\n \n " * 5, np.float32)  # numbers whose bytes are line feeds and spaces


def binary(between: bytes = b"", announced: int = 4) -> bytes:
    rows = [
        k.encode() + b" " + row.astype("<f4").tobytes() + between for k, row in zip(KEYS, TABLE, strict=True)
    ]
    return f"{announced} 5\n".encode() + b"".join(rows)


@pytest.mark.parametrize("between", [b"", b"\n"])
@pytest.mark.parametrize("format", ["auto", "word2vec-binary"])
@pytest.mark.parametrize("chunk", [1, 30, 1 << 22])
def test_what_can_be_read(
    tmp_path: Path, between: bytes, format: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "CHUNK", chunk)
    for path in (
        put(tmp_path, binary(between)),
        put(tmp_path, binary(between), "no-ending"),
        put(tmp_path, gzip.compress(binary(between)), "vectors.bin.gz"),
    ):
        lexicon = Lexicon.read(path, format=format)
        assert lexicon.vocabulary.strings().to_pylist() == ["the", "of", "naïve"]
        np.testing.assert_array_equal(lexicon.vectors, TABLE[[0, 1, 3]])
        assert lexicon.counts == ReadCounts(read=4, kept=3, unproducible=1)


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    row, nan = np.ones(2, "<f4").tobytes(), np.array([1, np.nan], "<f4").tobytes()
    content = b"6 2\n" + b"a " + nan + b"a " + row + b"b " + row + b"a " + row + b"\xff " + row + b" " + row
    lexicon = Lexicon.read(put(tmp_path, content), format="word2vec-binary")
    assert lexicon.counts == ReadCounts(read=6, kept=2, unproducible=2, non_finite=1, duplicates=1)
    lexicon = Lexicon.read(put(tmp_path, binary(), "cut.bin"), limit=2)
    assert lexicon.counts == ReadCounts(read=2, kept=2, over_limit=2, limit_reached=True)


def test_truncated(tmp_path: Path) -> None:
    whole = binary(b"\n")
    for size in range(len("4 5\n"), len(whole) - 1):
        with pytest.raises(DataError, match=rf"ends at byte {size:,} within entry \d of the 4"):
            Lexicon.read(put(tmp_path, whole[:size]), format="word2vec-binary")


def test_more_than_was_announced(tmp_path: Path) -> None:
    place = 4 + sum(len(k.encode()) + 21 for k in KEYS[:3])
    with pytest.raises(DataError, match=f"data after byte {place}, where the last of the 3"):
        Lexicon.read(put(tmp_path, binary(announced=3)), format="word2vec-binary")
    assert len(Lexicon.read(put(tmp_path, binary(announced=3)), limit=2)) == 2


def test_headers_that_cannot_be(tmp_path: Path) -> None:
    for content in (b"", b"the 1 2\n", b"4 5", b"4 -5\n", b"4  5\n"):
        with pytest.raises(DataError, match="no header line"):
            Lexicon.read(put(tmp_path, content), format="word2vec-binary")
    for dimensions in (0, 1 << 20):
        with pytest.raises(DataError, match=f"{dimensions:,} dimensions; valid"):
            Lexicon.read(put(tmp_path, f"4 {dimensions}\n".encode()), format="word2vec-binary")


def test_no_space_where_a_key_should_end(tmp_path: Path) -> None:
    content = b"2 5\n" + b"x" * 100_000
    with pytest.raises(DataError, match="entry 1 at byte 4: no space within 65,536 bytes"):
        Lexicon.read(put(tmp_path, content), format="word2vec-binary")
