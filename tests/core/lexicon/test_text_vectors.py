"""Text vectors: what a line is, what is malformed or dropped; each number is rounded once, to the float32 nearest to it."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dptext_spark.errors import DataError
from dptext_spark.lexicon import vector_formats
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vector_formats import FINE, NO_NUMBER, _block
from dptext_spark.lexicon.vector_intake import ReadCounts
from tests.core.lexicon.conftest import put, words

GLOVE = b"the 0.1 -2 3e-1\nof 4 5 6\nand .5 +6 7.\n"
HUGE = b"999999999999999999 3\n" + GLOVE
TABLE = np.array([[0.1, -2, 0.3], [4, 5, 6], [0.5, 6, 7]], np.float32)


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
    for reader in (format, "auto"):
        lexicon = Lexicon.read(path, format=reader)
        assert words(lexicon) == ["the", "of", "and"]
        np.testing.assert_array_equal(lexicon.vectors, TABLE)
        assert lexicon.counts == ReadCounts(read=3, kept=3)
        assert lexicon.name == name.rsplit(".", 1)[0]


@pytest.mark.parametrize("chunk", [1, 7, 16, 17, 1000])
def test_the_size_of_a_block_is_free(tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_formats, "CHUNK", 64)
    path = put(tmp_path, b"3 3\n" + GLOVE)
    monkeypatch.setattr(vector_formats, "CHUNK", max(chunk, 20))
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
        with pytest.raises(DataError, match=r"line 3: [45] fields do not fit a word and 2 numbers"):
            Lexicon.read(put(tmp_path, b"the 1 2\nof 1 2\n" + line + b"\nto 1 2\n", "long.txt"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"to 1 2", "line 4: 3 fields do not fit a word and 3 numbers"),
        (b"", "line 4: 1 fields"),
        (b"to 1 2 x", "line 4: field 4 is not a number"),
        (b"to 1 nope 3", "line 4: field 3 is not a number"),
        (b"to 1,5 2 3", "line 4: field 2 is not a number"),
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


@pytest.mark.parametrize(
    ("content", "format", "said"),
    [
        (b"the 1 x 3\nof 1 2 3\n", "auto", "line 1: field 3 is not a number"),
        (GLOVE, "word2vec", "line 1: not a header"),
        (GLOVE, "fasttext", "line 1: not a header"),
        *(
            (b"%d 3\n" % n + GLOVE, "auto", f"line 1 announces {n} entries, but the file has 3")
            for n in (2, 4, 0)
        ),
        (b"3 4\n" + GLOVE, "word2vec", "line 2: 4 fields do not fit a word and 4 numbers"),
        (b"3 99999999\n" + GLOVE, "word2vec", "dimensions are not valid. Choose 1 to"),
        (b"3 0\na\nb\nc\n", "word2vec", "0 dimensions"),
        (HUGE, "auto", "It is truncated"),
        (b"x" * (vector_formats.CHUNK + 5), "glove", "line 1: the line is longer"),
        (b"a 1\nb 2\n" + b"x" * (2 * vector_formats.CHUNK), "glove", "line 3: the line is longer"),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_a_file_that_is_not_what_it_says(tmp_path: Path, content: bytes, format: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        Lexicon.read(put(tmp_path, content), format=format)
    if content == HUGE:
        assert len(Lexicon.read(put(tmp_path, content), limit=2)) == 2


def test_the_first_usable_of_duplicates_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"a nan 1\nb 1 2\na 3 4\nb 5 6\na 7 8\nc 1 -inf\nd 1e39 1\ne 1 1e400\nf Infinity 2\n"
    lexicon = Lexicon.read(put(tmp_path, lines))
    assert words(lexicon) == ["b", "a"]
    np.testing.assert_array_equal(lexicon.vectors, np.array([[1, 2], [3, 4]], np.float32))
    assert lexicon.counts == ReadCounts(read=9, kept=2, non_finite=5, duplicates=2)
    monkeypatch.setattr(vector_formats, "CHUNK", 24)  # several blocks
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


def test_one_dimension(tmp_path: Path) -> None:
    lexicon = Lexicon.read(put(tmp_path, b"5 3\na 1\nb 2\n"), format="glove")  # no header: "5" is a key
    assert words(lexicon) == ["a", "b"]
    assert lexicon.counts == ReadCounts(read=3, kept=2, unproducible=1)
    lexicon = Lexicon.read(put(tmp_path, b"2 1\na 1\nb 2\n"))
    assert lexicon.counts == ReadCounts(read=2, kept=2)


def test_gzip_of_several_members_and_truncated_or_damaged(tmp_path: Path) -> None:
    rows = "".join(f"w {i} {i * i}\n" for i in range(5000)).encode()
    several = put(tmp_path, gzip.compress(GLOVE[:20]) + gzip.compress(GLOVE[20:]), "two.gz")
    np.testing.assert_array_equal(Lexicon.read(several).vectors, TABLE)
    whole = gzip.compress(rows)
    for cut in (len(whole) // 2, len(whole) - 4):
        with pytest.raises(DataError, match=r"a truncated gzip file after [\d,]+ unpacked bytes"):
            Lexicon.read(put(tmp_path, whole[:cut], "cut.gz"), format="glove")
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    with pytest.raises(DataError, match=r"(damaged|truncated) gzip"):
        Lexicon.read(put(tmp_path, bytes(broken), "broken.gz"), format="glove")
    with pytest.raises(DataError, match="damaged gzip data"):
        Lexicon.read(put(tmp_path, whole + b"garbage", "tail.gz"), format="glove")


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
        assert tracemalloc.get_traced_memory()[1] < 2 * table + 8 * vector_formats.CHUNK
    finally:
        tracemalloc.stop()


def test_the_real_glove_file(shared_data: Path) -> None:
    path = shared_data / "glove.840B.300d.34k.txt.gz"
    lexicon = Lexicon.read(path)
    assert lexicon.counts.read == 33_860
    assert (lexicon.counts.kept, lexicon.counts.unproducible) == (32_857, 1_003)
    assert len(Lexicon.read(path, tokenizer="whitespace")) == 33_849  # eleven keys hold a no-break space
    with gzip.open(path, "rb") as stream:
        stream.readline()
        lines = [line.rstrip(b"\n").split(b" ") for line, _ in zip(stream, range(500), strict=False)]
    known = {word: i for i, word in enumerate(words(lexicon))}
    for key, *fields in lines:
        row = known.get(key.decode())
        if row is not None:
            expected = np.array([float(x) for x in fields], np.float32)
            np.testing.assert_array_equal(lexicon.vectors[row], expected)


INFINITY = 0x7F800000  # as a bit pattern; those of the positive float32 ascend with them
TOP = float(np.finfo(np.float32).max)


def as_read(text: str) -> np.float32 | None:
    """What the reader makes of a field, between two others."""
    _, values, _, trouble, field = _block(f"word 1 {text} 7\n".encode(), 3)
    assert (trouble, field) == ((FINE, 0) if len(values) else (NO_NUMBER, 3))
    return np.float32(values[0, 1]) if len(values) else None


def value_of(bits: int) -> Fraction:
    """The float32 with this bit pattern; that of infinity stands for the power of two after the largest."""
    return Fraction(2**128) if bits == INFINITY else Fraction(*struct.unpack("<f", struct.pack("<I", bits)))


def nearest(text: str) -> np.float32:
    """The float32 nearest to a decimal, ties to even, by bisection over the ordered bit patterns."""
    exact = abs(Fraction(text))
    low, high = 0, INFINITY
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if value_of(middle) <= exact else (low, middle)
    below, above = exact - value_of(low), value_of(high) - exact
    bits = low if below < above or (below == above and low % 2 == 0) else high
    found = np.uint32(bits).view(np.float32)
    return -found if text.startswith("-") else found


digits = st.text("0123456789", min_size=1, max_size=30)


@settings(max_examples=500)
@given(st.sampled_from(["", "-", "+"]), digits, st.none() | digits, st.none() | st.integers(-60, 60))
@example("", "1", "00000005960464477539062500000000000000000001", None)  # just above a middle
@example("", "1", "0000000596046447753906250", None)  # a middle: to even
@example("", "1", "000000178813934326171875", None)  # the next middle: to even, upwards
@example("", "0", "0000", -5)
@example("-", "340282356779733661637539395458142568447", None, None)  # just below the overflow
@example("", "340282356779733661637539395458142568448", None, None)  # the overflow
@example("", "7", "006492321624085", -46)  # half of the smallest subnormal
def test_rounded_once(sign: str, whole: str, fraction: str | None, exponent: int | None) -> None:
    text = sign + whole + (f".{fraction}" if fraction is not None else "")
    text += f"e{exponent}" if exponent is not None else ""
    assert as_read(text).tobytes() == nearest(text).tobytes()


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_every_float32_survives_its_own_text(value: float) -> None:
    for text in (repr(value), f"{value:.9g}", f"{value:.17g}", f"{value:.150f}"):
        assert as_read(text) == np.float32(value)


def test_what_is_not_finite() -> None:
    for text in ("nan", "NaN", "-nan", "inf", "-Inf", "+infinity"):
        assert not np.isfinite(as_read(text))
    for text in ("3.5e38", "-1e39", "1e400", "9" * 400):
        assert np.isinf(as_read(text))
    assert as_read("-1e39") < 0
    assert as_read(repr(TOP)) == np.float32(TOP)
    assert as_read("1e-400") == 0
    assert np.signbit(as_read("-1e-400"))


# fmt: off
NO_NUMBERS = [
    "", "-", "+", ".", "-.", "e5", "1e", "1e+", "1.2.3", "1_0", "0x10", "1,5", "12a", "--1", "1-", "1e5.0",
    "1e5e5", "word", "nano", "in", "infinite", "-nope", "\t1", "1\u00a0", "\u0661",
]
# fmt: on


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number(text: str) -> None:
    assert as_read(text) is None
