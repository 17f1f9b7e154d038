"""Which reader, which words: detection, cuts, progress and settings; and vectors as bytes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon import vector_formats
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vector_formats import FORMATS, detect
from dptext_spark.lexicon.vector_intake import ByteSource, ReadCounts
from tests.core.lexicon.conftest import put, words

TEXT = b"the 1 2\nof 3 4\nThe 5 6\nof 7 8\nand nan 1\nto 9 9\na 1 1\n"


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.txt", b"the 1 2\n", "glove"),
        ("a", b"the " + b" ".join([b"0.125"] * 40_000), "glove"),
        ("a.txt", b"1 2\nthe 1 2\n", "word2vec"),
        ("a.vec", b"1 2\nthe 1 2\n", "fasttext"),
        ("a.bin", b"1 2\nthe \x00\x00\x80?1.5 ", "word2vec-binary"),
        ("a.txt", b"1 2\nthe \x00\x00\x80?1.5 ", "word2vec-binary"),
        ("a", b"1 40000\nthe " + b" ".join([b"0.125"] * 40_000), "word2vec"),
    ],
)
def test_detected(tmp_path: Path, name: str, content: bytes, format: str) -> None:
    with ByteSource(put(tmp_path, content, name)) as source:
        assert detect(source) == format
    with ByteSource(put(tmp_path, gzip.compress(content), f"{name}.gz")) as source:
        assert detect(source) == format


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x93NUMPY\x01\x00", "not recognised. Set format to glove, word2vec, word2vec-binary"),
        (b"just some text\n", "not recognised"),
        (b"\0" * 100_000, "not recognised"),
        (b"PK\x03\x04...", ".npz and Parquet files are not valid"),
        (b"PAR1...", ".npz and Parquet files are not valid"),
        ((793712314).to_bytes(4, "little") + b"\0" * 20, r"this is a fastText model. Choose the \.vec file"),
    ],
)
def test_not_recognised(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Lexicon.read(put(tmp_path, content))


@pytest.mark.parametrize("format", FORMATS)
def test_no_format_reads_noise_or_an_empty_file(tmp_path: Path, format: str) -> None:
    with pytest.raises(DataError):
        Lexicon.read(put(tmp_path, b""), format=format)
    noise = np.random.default_rng(0).integers(0, 256, 5_000_000).astype(np.uint8).tobytes()
    with pytest.raises(DataError):
        Lexicon.read(put(tmp_path, noise), format=format)


def test_the_first_reason_counts(tmp_path: Path) -> None:
    lexicon = Lexicon.read(put(tmp_path, TEXT), vocabulary=["the", "of", "and", "The", "unheard"])
    assert words(lexicon) == ["the", "of"]
    left_out = {"unproducible": 1, "not_in_vocabulary": 2, "non_finite": 1, "duplicates": 1}
    assert lexicon.counts == ReadCounts(read=7, kept=2, **left_out)


@pytest.mark.parametrize("size", [8, 1 << 22])
def test_the_limit_counts_kept_words(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_formats, "CHUNK", size)
    path = put(tmp_path, TEXT + b"malformed\n")
    lexicon = Lexicon.read(path, limit=3, format="glove")
    assert words(lexicon) == ["the", "of", "to"]
    left_out = {"unproducible": 1, "non_finite": 1, "duplicates": 1}
    assert lexicon.counts == ReadCounts(read=6, kept=3, limit_reached=True, **left_out)
    with pytest.raises(DataError, match="line 8"):
        Lexicon.read(path, limit=5, format="glove")
    lexicon = Lexicon.read(put(tmp_path, b"7 2\n" + TEXT), limit=2, format="glove")
    assert lexicon.counts == ReadCounts(read=2, kept=2, over_limit=5, limit_reached=True)
    assert Lexicon.read(put(tmp_path, TEXT), limit=5).counts.limit_reached is False


def test_the_vocabulary_as_a_file_or_any_iterable(tmp_path: Path) -> None:
    path = put(tmp_path, TEXT)
    listed = put(tmp_path, "\ufeffto\r\nof\nunheard\n\n".encode(), "words.txt")
    for vocabulary in (listed, str(listed), ["to", "of"], iter(("of", "to")), {"of": 1, "to": 2}.keys()):
        assert words(Lexicon.read(path, vocabulary=vocabulary)) == ["of", "to"]
    assert words(Lexicon.read(path, vocabulary=listed, limit=2)) == ["of", "to"]


@pytest.mark.parametrize("vocabulary", [[], ["the"], ["nothing", "of", "this"]])
def test_fewer_than_two_words(tmp_path: Path, vocabulary: list[str]) -> None:
    with pytest.raises(DataError, match=r"7 entries read, [01] usable \(1 .*, [456] not in vocabulary"):
        Lexicon.read(put(tmp_path, TEXT), vocabulary=vocabulary)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        *(({"limit": limit}, r"limit: .* an integer of 2 or more") for limit in (1, 0, -5, True, 2.5, "9")),
        ({"format": "glov"}, r"format: 'glov' is not valid. Choose auto, glove.*mean 'glove'"),
        ({"tokenizer": "word"}, "tokenizer: 'word' is not valid. Choose words or whitespace"),
        ({"metric": "dot"}, "metric: 'dot'"),
        ({"vocabulary": ["a", 3]}, "every word must be a string"),
    ],
)
def test_settings_are_checked_before_the_file(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Lexicon.read(tmp_path / "nowhere.txt", **settings)


def test_files_that_are_none(tmp_path: Path) -> None:
    latin, vectors = put(tmp_path, b"\xff\n", "latin"), put(tmp_path, TEXT)
    for path, vocabulary, said in (
        (tmp_path / "nowhere.txt", None, r"nowhere\.txt' cannot be read"),
        (tmp_path, None, r"this is a folder. Open a saved lexicon with Lexicon\.open"),
        (vectors, "nowhere", r"vocabulary: .*nowhere' cannot be read"),
        (vectors, latin, "not UTF-8 text"),
    ):
        with pytest.raises(DataError, match=said):
            Lexicon.read(path, vocabulary=vocabulary)


@pytest.mark.parametrize("zipped", [False, True])
def test_progress_ascends_to_the_end(tmp_path: Path, zipped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_formats, "CHUNK", 1000)
    rng = np.random.default_rng(0)
    rows = "".join(f"{''.join(map(chr, rng.integers(97, 123, 8)))} {rng.random()}\n" for _ in range(20_000))
    path = put(tmp_path, gzip.compress(rows.encode()) if zipped else rows.encode())
    seen: list[tuple[int, int]] = []
    Lexicon.read(path, format="glove", progress=lambda done, total: seen.append((done, total)))
    done = [pair[0] for pair in seen]
    assert {pair[1] for pair in seen} == {path.stat().st_size}
    assert done == sorted(done)
    # gzip reads ahead, by more in newer Pythons: at least one step lies between the first and the last.
    assert len(set(done)) > 2
    assert done[-1] == path.stat().st_size


def test_all_formats_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    keys = sorted({"".join(map(chr, rng.integers(97, 123, 5))) for _ in range(200)})
    table = rng.normal(size=(len(keys), 7)).astype(np.float32)
    lines = "".join(f"{k} {' '.join(map(str, row))}\n" for k, row in zip(keys, table.tolist(), strict=True))
    header = f"{len(keys)} 7\n"
    rows = b"".join(k.encode() + b" " + row.tobytes() for k, row in zip(keys, table, strict=True))
    paths = {
        "glove": put(tmp_path, lines.encode(), "v.txt"),
        "word2vec": put(tmp_path, (header + lines).encode(), "w.txt"),
        "word2vec-binary": put(tmp_path, header.encode() + rows, "v.bin"),
        "fasttext": put(tmp_path, (header + lines).encode(), "v.vec"),
    }
    assert tuple(paths) == FORMATS
    assert len({Lexicon.read(path, format=format).fingerprint for format, path in paths.items()}) == 1
    assert len({Lexicon.read(path).fingerprint for path in paths.values()}) == 1


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("header", ["", "3 2\n"])
def test_a_mark_of_the_encoding_is_no_word(tmp_path: Path, header: str, zipped: bool) -> None:
    text = f"\ufeff{header}haus 0.5 1\nt\u00fcr 1 0\nund 0 1\n".encode()
    file = tmp_path / ("words.txt.gz" if zipped else "words.txt")
    file.write_bytes(gzip.compress(text) if zipped else text)
    assert words(Lexicon.read(file)) == ["haus", "t\u00fcr", "und"]


KEYS = ["the", "of", "</s>", "naïve"]
TABLE = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
TABLE[1] = np.frombuffer(b"\n \n " * 5, np.float32)  # numbers whose bytes are line feeds and spaces


def binary(between: bytes = b"", announced: int = 4) -> bytes:
    entries = zip(KEYS, TABLE, strict=True)
    rows = [key.encode() + b" " + row.astype("<f4").tobytes() + between for key, row in entries]
    return f"{announced} 5\n".encode() + b"".join(rows)


@pytest.mark.parametrize("between", [b"", b"\n"])
@pytest.mark.parametrize("format", ["auto", "word2vec-binary"])
@pytest.mark.parametrize("chunk", [1, 30, 1 << 22])
def test_what_can_be_read(
    tmp_path: Path, between: bytes, format: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_formats, "CHUNK", chunk)
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
        with pytest.raises(DataError, match=rf"ends at byte {size:,}, within entry \d of 4"):
            Lexicon.read(put(tmp_path, whole[:size]), format="word2vec-binary")


def test_more_than_was_announced(tmp_path: Path) -> None:
    place = 4 + sum(len(k.encode()) + 21 for k in KEYS[:3])
    with pytest.raises(DataError, match=f"last of 3 announced entries, at byte {place}"):
        Lexicon.read(put(tmp_path, binary(announced=3)), format="word2vec-binary")
    assert len(Lexicon.read(put(tmp_path, binary(announced=3)), limit=2)) == 2


def test_headers_that_cannot_be(tmp_path: Path) -> None:
    for content in (b"", b"the 1 2\n", b"4 5", b"4 -5\n", b"4  5\n"):
        with pytest.raises(DataError, match="header is missing"):
            Lexicon.read(put(tmp_path, content), format="word2vec-binary")
    for dimensions in (0, 1 << 20):
        with pytest.raises(DataError, match=f"{dimensions:,} dimensions are not valid"):
            Lexicon.read(put(tmp_path, f"4 {dimensions}\n".encode()), format="word2vec-binary")


def test_no_space_where_a_key_should_end(tmp_path: Path) -> None:
    content = b"2 5\n" + b"x" * 100_000
    with pytest.raises(DataError, match="entry 1 at byte 4: no space within 65,536 bytes"):
        Lexicon.read(put(tmp_path, content), format="word2vec-binary")
