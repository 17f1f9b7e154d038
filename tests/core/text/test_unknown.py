"""How many words of a sample are unknown: counted as by the plain engine, and when that ends a run."""

# Look-alikes of other scripts are what these texts are about.
# ruff: noqa: RUF001
from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext_spark.errors import DataError
from dptext_spark.text.policy import Policy
from dptext_spark.text.unknown_words import (
    AT_ONCE,
    ENGLISH,
    LEAST_ROWS,
    LEAST_WORDS,
    NAMES,
    UnknownWords,
    can_tell,
    count_unknown,
    likely_language,
    refusal,
)
from tests.core.text.samples import POLICIES, TEXTS, WORDS, WordsOnly, plain, privatizer, run

GERMAN = "Seit gestern kann ich mich leider nicht mehr anmelden, obwohl das Passwort stimmt."
FRENCH = "Depuis hier je ne peux plus me connecter, alors que mon mot de passe est juste."
# Without a space between words: Chinese, Japanese, Thai, Khmer, Lao, Burmese; and mixed with Latin letters, digits and marks.
UNSPACED = (
    "您好，从昨天开始我无法登录。",
    "昨日からログインできません！パスワードは正しいです",
    "สวัสดีครับ ผมเข้าสู่ระบบไม่ได้ตั้งแต่เมื่อวาน",
    "ខ្ញុំមិនអាចចូលបានទេ",
    "ຂ້ອຍບໍ່ສາມາດເຂົ້າສູ່ລະບົບ",
    "ကျွန်ုပ် ဝင်၍မရပါ",
    "cat手机dog 的iPhone15里有ภาษาไทย２０２６年",
    "𠮷野家で㍿と〇〇㋿",
)


@given(policy=POLICIES, texts=st.lists(st.one_of(st.none(), TEXTS), max_size=5))
def test_words_are_counted_as_the_plain_engine_does(policy: Policy, texts: list[str | None]) -> None:
    words, missing = count_unknown(privatizer(policy).engine, pa.array(texts, pa.string()))
    for text, looked_up, unknown in zip(texts, words, missing, strict=True):
        counts = plain(policy).expected(text or "")[1]
        assert (looked_up, unknown) == (counts["words"] - counts["numbers"], counts["oov"])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()], ids=str)
def test_texts_of_many_batches_are_counted_each_for_itself(kind: pa.DataType) -> None:
    texts = [f"cat wurbel{'s' * i} 17 flimsch dog" if i % 3 else None for i in range(3 * AT_ONCE + 5)]
    words, missing = count_unknown(privatizer().engine, pa.array(texts, pa.string()).cast(kind))
    assert words.tolist() == [4 * bool(i % 3) for i in range(len(texts))]
    assert missing.tolist() == [2 * bool(i % 3) for i in range(len(texts))]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([b"wurbel cat", b"wurbel \xff cat", None, b""], ([2, 0, 0, 0], [1, 0, 0, 0])),
        (["cat wurbel@flimsch.example dog"], ([2], [0])),
    ],
    ids=["no UTF-8", "an identifier"],
)
def test_what_has_no_words(texts: list[Any], expected: tuple[list[int], list[int]]) -> None:
    words, missing = count_unknown(privatizer(Policy()).engine, pa.array(texts))
    assert (words.tolist(), missing.tolist()) == expected


def of(*rows: tuple[int, int]) -> UnknownWords:
    words, unknown = np.array(rows, np.int64).reshape(-1, 2).T
    return UnknownWords.of_rows(words, unknown)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda two: (max(two), min(two)))))
def test_a_run_ends_where_most_words_of_most_rows_are_unknown(rows: list[tuple[int, int]]) -> None:
    found = of(*rows)
    spoken = [Fraction(unknown, words) for words, unknown in rows if words]
    words, unknown = sum(one for one, _ in rows), sum(one for _, one in rows)
    assert found == UnknownWords(
        len(rows), len(spoken), sum(one > Fraction(1, 2) for one in spoken), words, unknown
    )
    enough = words >= LEAST_WORDS and len(spoken) >= LEAST_ROWS
    assert found.is_enough == enough
    half = Fraction(1, 2)
    most = enough and Fraction(unknown, words) > half and sorted(spoken)[(len(spoken) - 1) // 2] > half
    # The lower median is above a half just where more than half of the rows are.
    assert found.is_mostly_unknown == bool(most)
    if words:
        low, high = map(int, re.findall(r"\d+", found.band))
        assert high - low == 10
        assert low <= 100 * Fraction(unknown, words) <= high


def test_one_odd_text_ends_nothing_however_long() -> None:
    assert not of(*[(5, 0)] * 999, (100_000, 100_000)).is_mostly_unknown
    assert not of((100_000, 100_000)).is_mostly_unknown
    assert not of(*[(3, 3)] * 20).is_mostly_unknown  # 60 words say nothing
    assert of(*[(10, 10)] * 10).is_mostly_unknown
    assert not of(*[(10, 5)] * 1000).is_mostly_unknown  # half is not most
    assert not of(*[(10, 10)] * 500, *[(5, 0)] * 500).is_mostly_unknown
    assert not of(*[(5, 5)] * 600, *[(100, 0)] * 400).is_mostly_unknown


@pytest.mark.parametrize(
    ("language", "can", "said"),
    [
        ("German", True, "German"),
        (None, True, "No other"),
        (ENGLISH, True, "No other"),
        (None, False, r"\[language\]"),
    ],
)
def test_the_error_names_a_band_and_the_language(language: str | None, can: bool, said: str) -> None:
    error = refusal(of(*[(20, 15)] * 1000), language, can_tell=can)
    assert isinstance(error, DataError)
    assert error.exit_code == 3
    assert re.search(
        rf"^policy.allow_unknown: 70 to 80 % .* 1,000 rows .*{said}.*Choose a lexicon", str(error)
    )
    assert not {"20,000", "15,000"} & set(str(error).split())


@pytest.mark.skipif(not can_tell(), reason="the extra [language] is not installed")
@pytest.mark.parametrize(
    ("texts", "language"),
    [
        ([GERMAN] * 3 + [FRENCH] * 2, "German"),
        ([FRENCH, None, b"\xff" * 50, "ok", ""], "French"),
        ([GERMAN, FRENCH], None),
        (["ok", None], None),
        (["Since yesterday I cannot log in any more, though the password is right."], ENGLISH),
        ([UNSPACED[0]], None),  # too few letters
        ([2 * UNSPACED[0]], "Chinese"),
        ([UNSPACED[2]], "Thai"),
    ],
)
def test_the_language_is_that_of_most_texts(texts: list[Any], language: str | None) -> None:
    raw = [text.encode() if isinstance(text, str) else text for text in texts]
    assert likely_language(raw) == language


def test_languages_have_names() -> None:
    assert NAMES["de"] == "German"
    assert all(re.fullmatch("[a-z]{2,3}", code) and name[0].isupper() for code, name in NAMES.items())


def test_without_the_package_no_language_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dptext_spark.text.unknown_words.find_spec", lambda name: None)
    assert not can_tell()
    assert likely_language([GERMAN.encode()]) is None


@pytest.mark.parametrize("oov", ["mask", "draw"])
@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
@pytest.mark.parametrize("stop_words", ["keep", "draw"])
def test_scripts_without_spaces_never_leave_in_clear(oov: str, tokenizer: str, stop_words: str) -> None:
    policy = WordsOnly(oov=oov, tokenizer=tokenizer, stop_words=stop_words, numbers="mask")
    out, _ = run(privatizer(policy, 3), [*UNSPACED, "".join(UNSPACED)])
    spelt = {char for text in UNSPACED for char in text if unicodedata.category(char)[0] in "LMN"}
    # What the lexicon itself writes may come out: no character of the others may.
    spelt -= {*"catdogiPhone", *(char for word in WORDS for char in word)}
    assert len(spelt) > 100
    for text in out:
        assert not spelt & set(text.decode())
    # Each stretch between spaces and marks is one word.
    words, missing = count_unknown(privatizer(WordsOnly()).engine, pa.array(UNSPACED[:3]))
    assert words.tolist() == missing.tolist() == [2, 2, 2]
