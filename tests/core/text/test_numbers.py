"""Random digits: the shape and the script stay, every digit is uniform, and no block is used twice."""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pytest

from tests.core.text.samples import WordsOnly as Policy
from tests.core.text.samples import privatizer, run

SCRIPTS = ["0", "\u0660", "\u0966", "\uff10", "\U0001d7ce", "\U0001d7d8", "\U0001d7f6", "\U0001e950"]
SCRIPTS = [*"0\u0660\u0966\uff10\U0001d7ce\U0001d7d8\U0001d7f6\U0001e950"]
LIMIT = 51.1


def values(text: str) -> list[int]:
    return [unicodedata.digit(c) for c in text]


def uniform(digits: np.ndarray) -> bool:
    counts = np.bincount(digits, minlength=10)
    return bool(((counts - len(digits) / 10) ** 2 / (len(digits) / 10)).sum() < LIMIT)


@pytest.mark.parametrize("zero", SCRIPTS)
def test_each_script_stays_and_each_digit_is_uniform(zero: str) -> None:
    """At every position, and whatever the digit was: all zeros and all nines give the same law."""
    for digit in (0, 9):
        number = chr(ord(zero) + digit) * 37
        out, counters = run(privatizer(), [f"{number}, {number}"] * 1500)
        drawn = []
        for text in out:
            first, second = text.decode().split(", ")
            assert len(first) == len(second) == 37
            assert {ord(c) - unicodedata.digit(c) for c in first + second} == {ord(zero)}
            drawn += [values(first), values(second)]
        table = np.array(drawn)
        assert all(uniform(table[:, j]) for j in range(37))
        # Neighbours are independent, across the borders of the halves (8) and of the blocks (16) too.
        for j in (0, 6, 7, 8, 14, 15, 16, 31):
            assert abs(np.corrcoef(table[:, j], table[:, j + 1])[0, 1]) < 6 / np.sqrt(len(table))
        assert counters.totals()["numbers"] == counters.totals()["words"] == 3000


@pytest.mark.parametrize("length", [*range(1, 20), 31, 32, 33, 47, 48, 49, 100, 101, 1000])
def test_every_length(length: int) -> None:
    out, counters = run(privatizer(), ["0" * length, "9" * length, "a0" * length])
    assert len(out[0]) == len(out[1]) == length
    assert out[0].isdigit()
    assert out[1].isdigit()
    assert out[0] != out[1] or length < 16
    assert counters.column("numbers").tolist() == [1, 1, length]
    assert [c == ord("a") for c in out[2]] == [True, False] * length


def test_digits_of_several_scripts_in_one_number() -> None:
    text = "1\u0661\u096a\uff19" * 9
    out, counters = run(privatizer(), [text])
    zeros = [ord(c) - unicodedata.digit(c) for c in text]
    assert [ord(c) - unicodedata.digit(c) for c in out[0].decode()] == zeros
    assert counters.totals()["numbers"] == 1


def test_numbers_are_digits_alone() -> None:
    out, counters = run(privatizer(Policy(numbers="mask")), ["-1,234.50 3rd b2b 1e5 (555) 0x1F 10:30 ½ ²"])
    assert out[0].decode() == (
        "-[NUM],[NUM].[NUM] [NUM][OOV] [OOV][NUM][OOV] [NUM][OOV][NUM] ([NUM]) [NUM][OOV][NUM][OOV] "
        "[NUM]:[NUM] [OOV] [OOV]"
    )
    assert counters.totals()["numbers"] == 12


def test_a_number_may_come_out_as_itself() -> None:
    """One digit in ten stays: else the output would say what the input was not."""
    out, counters = run(privatizer(), ["7"] * 4000)
    same = sum(text == b"7" for text in out)
    assert abs(same - 400) < 6 * np.sqrt(4000 * 0.09)
    assert counters.totals()["changed"] == 4000 - same


def test_records_and_datasets_repeat_their_numbers() -> None:
    texts = ["12 and 12 and 345678901234567890123", "345678901234567890123 12"]
    for level, rows in (("record", 1), ("dataset", 2)):
        out, _ = run(privatizer(consistency=level), texts, record_ids=pa.array(["r", "s"]))
        first, second = out[0].decode().split(" and "), out[1].decode().split(" ")
        assert first[0] == first[1] != "12"
        same = [first[0] == second[1], first[2] == second[0]]
        assert same == [rows == 2] * 2
    out, _ = run(privatizer(), ["345678901234567890123 " * 8])
    assert len(set(out[0].split())) == 8


@pytest.mark.parametrize("level", ["token", "record", "dataset"])
def test_parts_of_a_long_number_are_drawn_apart(level: str) -> None:
    """A block gives 16 digits; where every part of the number is the same, no two parts come out alike."""
    out, _ = run(privatizer(consistency=level), ["4" * 96, "4" * 96])
    for text in out:
        assert len({text[i : i + 16] for i in range(0, 96, 16)}) == 6
        assert len({text[i : i + 8] for i in range(0, 96, 8)}) == 12
    assert (out[0] == out[1]) == (level == "dataset")
