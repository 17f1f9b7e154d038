"""Text vectors through the public reader: what a line is, what is malformed, what is dropped."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.readers import text as text_formats
from dptext_spark.lexicon.readers.builder import ReadCounts

GLOVE = b"the 0.1 -2 3e-1\nof 4 5 6\nand .5 +6 7.\n"
TABLE = np.array([[0.1, -2, 0.3], [4, 5, 6], [0.5, 6, 7]], np.float32)


def put(folder: Path, content: bytes, name: str = "vectors.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def words(lexicon: Lexicon) -> list[str]:
    return lexicon.vocabulary.strings().to_pylist()


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("plain.txt", GLOVE, "glove"),
        ("no-last-line-feed.txt", GLOVE[:-1], "glove"),
        ("windows.txt", GLOVE.replace(b"\n", b"\r\n"), "glove"),
        ("trailing-spaces.txt", GLOVE.replace(b"\n", b" \n"), "glove"),
        ("trailing-spaces-windows.txt", GLOVE.replace(b"\n", b" \r\n"), "glove"),
        ("header.txt", b"3 3\n" + GLOVE, "glove"),
        ("header.txt", b"3 3\n" + GLOVE, "word2vec"),
        ("header.txt", b"3 3 \r\n" + GLOVE, "word2vec"),
        ("wiki.vec", b"3 3\n" + GLOVE.replace(b"\n", b" \n"), "fasttext"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_what_can_be_read(tmp_path: Path, name: str, content: bytes, format: str, zipped: bool) -> None:
    path = put(tmp_path, gzip.compress(content) if zipped else content, name + (".gz" if zipped else ""))
    for given in (format, "auto"):
        lexicon = Lexicon.read(path, format=given)
        assert words(lexicon) == ["the", "of", "and"]
        np.testing.assert_array_equal(lexicon.vectors, TABLE)
        assert lexicon.counts == ReadCounts(read=3, kept=3)
        assert lexicon.name == name.rsplit(".", 1)[0]


def test_a_gzip_file_of_several_members(tmp_path: Path) -> None:
    path = put(tmp_path, gzip.compress(GLOVE[:20]) + gzip.compress(GLOVE[20:]), "two.gz")
    np.testing.assert_array_equal(Lexicon.read(path).vectors, TABLE)


@pytest.mark.parametrize("chunk", [1, 7, 16, 17, 1000])
def test_the_size_of_a_block_changes_nothing(
    tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_formats, "CHUNK", 64)
    path = put(tmp_path, b"3 3\n" + GLOVE)
    monkeypatch.setattr(text_formats, "CHUNK", max(chunk, 20))
    np.testing.assert_array_equal(Lexicon.read(path, format="word2vec").vectors, TABLE)
    bad = put(tmp_path, GLOVE + b"to 1 2\n", "bad.txt")
    with pytest.raises(DataError, match=r"bad\.txt, line 4: 3 fields"):
        Lexicon.read(bad, format="glove")
    assert len(Lexicon.read(bad, format="glove", limit=3)) == 3


def test_keys_are_split_on_the_ascii_space_only(tmp_path: Path) -> None:
    odd = ["tab\tkey", "no\u00a0break", '"quote', "x\u2028y", "thin\u2009space", "nul\0"]
    content = "".join(f"{key} 1 2\n" for key in odd) + "café 3 4\n日本 5 6\n"
    lexicon = Lexicon.read(put(tmp_path, content.encode()))
    assert words(lexicon) == ["café", "日本"]
    assert lexicon.counts == ReadCounts(read=8, kept=2, unproducible=6)
    np.testing.assert_array_equal(lexicon.vectors, np.array([[3, 4], [5, 6]], np.float32))


def test_a_key_may_hold_spaces_but_not_end_in_a_number(tmp_path: Path) -> None:
    lexicon = Lexicon.read(put(tmp_path, b"the 1 2\n. . . 3 4\nof 5 6\n1 a 3 4\n 7 8\n"))
    assert words(lexicon) == ["the", "of"]
    assert lexicon.counts == ReadCounts(read=5, kept=2, unproducible=3)
    for line in (b"and 5 7 8", b". . 5 7 8", b"and 1e-44 7 8"):
        with pytest.raises(DataError, match=r"line 3: [45] fields, but a key and 2 numbers are 3"):
            Lexicon.read(put(tmp_path, b"the 1 2\nof 1 2\n" + line + b"\nto 1 2\n", "long.txt"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"to 1 2", "line 4: 3 fields, but a key and 3 numbers are 4"),
        (b"to", "line 4: 1 fields"),
        (b"", "line 4: 1 fields"),
        (b"to 1 2 x", "line 4: field 4 is not a number"),
        (b"to 1 nope 3", "line 4: field 3 is not a number"),
        (b"to nope 1 x", "line 4: field 2 is not a number"),
        (b"to 1,5 2 3", "line 4: field 2 is not a number"),
        (b"to 1 2 3  ", "line 4: 5 fields"),
        (b"to  1 2 3", "line 4: 5 fields"),
        (b"to 1  3", "field 3 is not a number"),
        (b"to 1 2 3 4", "line 4: 5 fields"),
        (b"to\t1\t2\t3", "line 4: 1 fields"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    for header, shift in ((b"", 0), (b"5 3\n", 1)):
        path = put(tmp_path, header + GLOVE + line + b"\nafter 1 2 3\n")
        wanted = message.replace("line 4", f"line {4 + shift}")
        with pytest.raises(DataError, match=wanted) as caught:
            Lexicon.read(path)
        assert str(path) in str(caught.value)
        assert "nope" not in str(caught.value)  # the file may be another one than was meant


def test_a_malformed_first_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 1: field 3 is not a number"):
        Lexicon.read(put(tmp_path, b"the 1 x 3\nof 1 2 3\n"), format="glove")
    with pytest.raises(DataError, match="line 1: field 3 is not a number"):
        Lexicon.read(put(tmp_path, b"the 1 x 3\nof 1 2 3\n"))


def test_numbers_that_are_not_finite_are_dropped_and_counted(tmp_path: Path) -> None:
    lines = [b"the 1 2", b"a nan 1", b"b 1 -inf", b"c 1e39 1", b"d 1 1e400", b"e Infinity 2", b"of 3 4"]
    lexicon = Lexicon.read(put(tmp_path, b"\n".join(lines)))
    assert words(lexicon) == ["the", "of"]
    assert lexicon.counts == ReadCounts(read=7, kept=2, non_finite=5)


def test_numbers_below_the_normal_range(tmp_path: Path) -> None:
    lines = [f"w{chr(97 + i % 26)}{chr(97 + i // 26)} 1e-42 {i}e-43 -2e-44" for i in range(600)]
    lines += [f"n{chr(97 + i % 26)}{chr(97 + i // 26)} nan 1 nan" for i in range(600)]
    fives = [
        f"f{chr(97 + i % 26)}{chr(97 + i // 26)} 1e-42 2e-42 {'3e-42' if i else 'nine'}" for i in range(1)
    ]
    path = put(tmp_path, "\n".join(lines).encode())
    lexicon = Lexicon.read(path, format="glove")
    assert lexicon.counts == ReadCounts(read=1200, kept=600, non_finite=600)
    wanted = np.array([[1e-42, float(f"{i}e-43"), -2e-44] for i in range(600)]).astype(np.float32)
    np.testing.assert_array_equal(lexicon.vectors, wanted)
    with pytest.raises(DataError, match="line 1201: field 4 is not a number"):
        Lexicon.read(put(tmp_path, "\n".join([*lines, *fives]).encode()))


def test_duplicates_the_first_usable_one_wins(tmp_path: Path) -> None:
    lexicon = Lexicon.read(put(tmp_path, b"a nan 1\nb 1 2\na 3 4\nb 5 6\na 7 8\n"))
    assert words(lexicon) == ["b", "a"]
    np.testing.assert_array_equal(lexicon.vectors, np.array([[1, 2], [3, 4]], np.float32))
    assert lexicon.counts == ReadCounts(read=5, kept=2, non_finite=1, duplicates=2)


def test_duplicates_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_formats, "CHUNK", 24)
    lexicon = Lexicon.read(put(tmp_path, b"a 1 1\nb 1 2\n" * 20), format="glove")
    assert lexicon.counts == ReadCounts(read=40, kept=2, duplicates=38)


def test_keys_that_are_no_valid_utf8_are_unproducible(tmp_path: Path) -> None:
    path = put(tmp_path, b"a 1 1\n\xff\xfe 1 2\ncaf\xc3 1 2\n\xed\xa0\x80 1 2\nb 1 3\n")
    for tokenizer in ("words", "whitespace"):
        lexicon = Lexicon.read(path, tokenizer=tokenizer)
        assert words(lexicon) == ["a", "b"]
        assert lexicon.counts == ReadCounts(read=5, kept=2, unproducible=3)


def test_the_tokenizer_decides_what_is_producible(tmp_path: Path) -> None:
    path = put(tmp_path, b"a 1 1\nThe 1 2\n3rd 1 2\n, 1 2\nwell-known 1 2\nb 1 3\n")
    lexicon = Lexicon.read(path)
    assert words(lexicon) == ["a", "well-known", "b"]
    assert lexicon.counts.unproducible == 3
    assert "3rd" in words(Lexicon.read(path, tokenizer="whitespace"))


def test_the_header_must_tell_the_truth(tmp_path: Path) -> None:
    for announced in (2, 4, 0):
        with pytest.raises(DataError, match=f"line 1 announces {announced} entries, the file holds 3"):
            Lexicon.read(put(tmp_path, f"{announced} 3\n".encode() + GLOVE))
    with pytest.raises(DataError, match="line 2: 4 fields, but a key and 4 numbers are 5"):
        Lexicon.read(put(tmp_path, b"3 4\n" + GLOVE), format="word2vec")
    with pytest.raises(DataError, match="dimensions; valid: 1 to"):
        Lexicon.read(put(tmp_path, b"3 99999999\n" + GLOVE), format="word2vec")
    with pytest.raises(DataError, match="0 dimensions"):
        Lexicon.read(put(tmp_path, b"3 0\na\nb\nc\n"), format="word2vec")
    huge = put(tmp_path, b"999999999999999999 3\n" + GLOVE)
    with pytest.raises(DataError, match="it is truncated"):
        Lexicon.read(huge)
    assert len(Lexicon.read(huge, limit=2)) == 2


@pytest.mark.parametrize("format", ["word2vec", "fasttext"])
def test_a_header_that_is_missing(tmp_path: Path, format: str) -> None:
    with pytest.raises(DataError, match="line 1: must be a header"):
        Lexicon.read(put(tmp_path, GLOVE), format=format)


def test_one_dimension(tmp_path: Path) -> None:
    lexicon = Lexicon.read(put(tmp_path, b"5 3\na 1\nb 2\n"), format="glove")  # no header: "5" is a key
    assert words(lexicon) == ["a", "b"]
    assert lexicon.counts == ReadCounts(read=3, kept=2, unproducible=1)
    lexicon = Lexicon.read(put(tmp_path, b"2 1\na 1\nb 2\n"))
    assert lexicon.counts == ReadCounts(read=2, kept=2)


def test_truncated_gzip_names_the_place(tmp_path: Path) -> None:
    rows = "".join(f"w {i} {i * i}\n" for i in range(5000)).encode()
    whole = gzip.compress(rows)
    for cut in (len(whole) // 2, len(whole) - 4):
        with pytest.raises(DataError, match=r"a truncated gzip file, after [\d,]+ unpacked bytes"):
            Lexicon.read(put(tmp_path, whole[:cut], "cut.gz"), format="glove")
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    with pytest.raises(DataError, match=r"(damaged|truncated) gzip"):
        Lexicon.read(put(tmp_path, bytes(broken), "broken.gz"), format="glove")
    with pytest.raises(DataError, match="damaged gzip data"):
        Lexicon.read(put(tmp_path, whole + b"garbage", "tail.gz"), format="glove")


def test_a_line_without_end(tmp_path: Path) -> None:
    endless = put(tmp_path, b"x" * (text_formats.CHUNK + 5))
    with pytest.raises(DataError, match="line 1: longer than"):
        Lexicon.read(endless, format="glove")
    later = put(tmp_path, b"a 1\nb 2\n" + b"x" * (2 * text_formats.CHUNK))
    with pytest.raises(DataError, match="line 3: longer than"):
        Lexicon.read(later, format="glove")


def test_memory_holds_the_table_and_a_few_blocks(tmp_path: Path) -> None:
    rows, dimensions = 30_000, 100
    numbers = " ".join(f"0.{i:09d}" for i in range(dimensions))
    letters = [chr(97 + i) for i in range(26)]
    keys = (a + b + c + d for a in letters for b in letters for c in letters for d in letters)
    text = "".join(f"{key} {numbers}\n" for _, key in zip(range(rows), keys, strict=False)).encode()
    path = put(tmp_path, gzip.compress(text, 1), "many.gz")
    Lexicon.read(path, limit=2)  # compiles
    table = rows * dimensions * 4
    assert len(text) > 3 * table
    del text
    tracemalloc.start()
    try:
        assert len(Lexicon.read(path)) == rows
        assert tracemalloc.get_traced_memory()[1] < 2 * table + 8 * text_formats.CHUNK
    finally:
        tracemalloc.stop()


def test_the_real_glove_file(shared_data: Path) -> None:
    path = shared_data / "glove.840B.300d.34k.txt.gz"
    lexicon = Lexicon.read(path)
    assert lexicon.counts.read == 33_860
    assert lexicon.counts.kept + lexicon.counts.unproducible == 33_860
    assert len(Lexicon.read(path, tokenizer="whitespace")) == 33_849  # eleven keys hold a no-break space
    with gzip.open(path, "rb") as stream:
        stream.readline()
        lines = [line.rstrip(b"\n").split(b" ") for line, _ in zip(stream, range(500), strict=False)]
    known = {word: i for i, word in enumerate(words(lexicon))}
    for key, *fields in lines:
        row = known.get(key.decode())
        if row is not None:
            np.testing.assert_array_equal(
                lexicon.vectors[row], np.array([float(x) for x in fields], np.float32)
            )
