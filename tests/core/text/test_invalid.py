"""Invalid UTF-8 is counted in exactly the rows that hold it, and no row looks at its neighbours."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.text.samples import KEPT, TEXTS, WORDS, plain, privatizer, row, run
from tests.core.text.samples import WordsOnly as Policy

BAD = {
    "stray continuation": b"\x80",
    "overlong slash": b"\xc0\xaf",
    "overlong of 3": b"\xe0\x80\xaf",
    "overlong of 4": b"\xf0\x80\x80\xaf",
    "overlong NUL": b"\xc0\x80",
    "surrogate": b"\xed\xa0\x80",
    "surrogate pair": b"\xed\xa0\xbd\xed\xb8\x80",
    "last surrogate": b"\xed\xbf\xbf",
    "past 10FFFF": b"\xf4\x90\x80\x80",
    "lead byte F5": b"\xf5\x80\x80\x80",
    "5 bytes": b"\xf8\x88\x80\x80\x80",
    "FF": b"\xff",
    "FE": b"\xfe",
    "2 bytes cut off": b"\xc3",
    "3 bytes cut off": b"\xe2\x80",
    "4 bytes cut off": b"\xf0\x9f\x98",
    "lead then ASCII": b"\xe2A\x80",
    "Latin-1": "é".encode("latin-1"),
}
NEAR_MISSES = [char.encode() for char in "\ud7ff\ue000\U0010ffff\x80\u0800\U00010000"]
PLACES = {
    "alone": b"%s",
    "at the start": b"%scat dog",
    "at the end": b"cat dog%s",
    "after a letter, at the end": b"the c%s",
    "inside a word": b"the ca%st dog",
    "inside a word of another script": "при%sвет cat".encode(),  # noqa: RUF001
    "after an apostrophe": b"cat'%ss",
    "after a joiner": "cat\u200d%st".encode(),
    "in a run of ASCII": b"abcdefghijkl%smnopqrstuvwxyz abcdefgh",
    "past 16 letters": b"abcdefghijklmnopq%s",
    "in a number": b"12%s34",
    "after other characters": "™%s™".encode(),
    "among spaces": b"cat  %s  dog",
}
POLICIES = [
    Policy(),
    KEPT,
    Policy(stop_words="draw", oov="draw", numbers="random", case="lower", gaps="normalise"),
    Policy(tokenizer="whitespace"),
    Policy(tokenizer="whitespace", oov="draw", case="lower", gaps="normalise"),
]


WHOLE = TEXTS.map(str.encode)
BROKEN = st.tuples(WHOLE, st.sampled_from([*BAD.values(), *NEAR_MISSES]), WHOLE).map(b"".join)


def is_valid(text: bytes) -> bool:
    """Python's own decoder is strict about all of it."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def check(rows: list[bytes], policy: Policy) -> None:
    outputs, counters = run(privatizer(policy, 3), rows, pa.binary())
    for i, (text, output) in enumerate(zip(rows, outputs, strict=True)):
        assert (counters.column("invalid")[i] > 0) == (not is_valid(text)), text
        if is_valid(text):
            pattern, counts, _ = plain(policy, 3).expected(text.decode())
            assert pattern.fullmatch(output.decode()), text
            assert counts.items() <= row(counters, i).items()
        else:
            assert output == b""  # what was not cut must not leave as it is


def test_what_counts_as_bad_is_bad() -> None:
    assert not any(is_valid(bad) for bad in BAD.values())
    assert all(is_valid(good) for good in NEAR_MISSES)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_every_kind_in_every_place(place: str, policy: Policy) -> None:
    for bad in [*BAD.values(), *NEAR_MISSES]:
        # Continuation bytes wait in the next row for whoever reads past the border.
        check([b"cat", PLACES[place] % bad, b"\x80\x80\x80", b"dog", "\u2019s".encode()], policy)


@pytest.mark.long
@settings(max_examples=300)
@given(st.lists(st.one_of(WHOLE, st.binary(max_size=12), BROKEN), max_size=5), st.sampled_from(POLICIES))
def test_any_bytes(rows: list[bytes], policy: Policy) -> None:
    check(rows, policy)


@settings(max_examples=200)
@given(TEXTS, st.lists(st.integers(0, 60), max_size=4), st.sampled_from(["words", "whitespace"]))
def test_a_text_cut_into_rows_anywhere(text: str, cuts: list[int], tokenizer: str) -> None:
    """Rows that continue each other byte for byte come out as each would alone."""
    data = text.encode()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    rows = [data[a:b] for a, b in itertools.pairwise(edges)]
    made = privatizer(Policy(oov="draw", tokenizer=tokenizer), 3)
    together, counters = run(made, rows, pa.binary())
    for i, part in enumerate(rows):
        alone, counted = run(made, [part], pa.binary(), row_ids=pa.array([i]))
        assert row(counters, i) == row(counted, 0)
        assert together[i] == alone[0]


@pytest.mark.parametrize("policy", [POLICIES[0], POLICIES[3]], ids=str)
def test_every_word_cut_into_rows_at_every_byte(policy: Policy) -> None:
    """Letters of the next row lie where 8 or 16 bytes are read at once."""
    for word in [*WORDS, "k" * 40, "cat'dog-ox", "1" * 40, "the"]:
        data = (word + word.upper()).encode()
        check([row for i in range(len(data) + 1) for row in (data[:i], data[i:], b"cat", data[i:])], policy)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_nulls_stay_null_beside_invalid_rows(kind: pa.DataType) -> None:
    out, counters = run(privatizer(), pa.array([None, b"cat", b"private \xff private", b"", None], kind))
    assert out == [None, b"cat", b"", b"", None]
    assert counters.column("invalid").tolist() == [0, 0, 1, 0, 0]
