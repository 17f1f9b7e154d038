"""Dates with a month's name in other languages: found where asked for, in a date only, as a plain reading finds them."""

# Look-alikes of other scripts are what some texts are about.
# ruff: noqa: RUF001
from __future__ import annotations

import hashlib
import re
import unicodedata
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.finder import Finder
from dptext_spark.text.identifiers.rules import month_shapes, months
from dptext_spark.text.identifiers.skeletons import FOREIGN, shapes
from dptext_spark.text.policy import LANGUAGES, Identifiers
from tests.core.text.identifiers.test_finder import found

ENGLISH = Finder(Identifiers(date="mask"))
FILE = Path(str(files("dptext_spark.text.identifiers"))) / "cldr" / "months.txt"
# Of the packaged names: other names are found in a text where it changes, so that a run is not the same with another package.
DIGEST = "ef23c897d0d5ab7c6dff41075370afd9d418fc6ac70b00c893df320e0a788273"


def finder(*languages: str) -> Finder:
    return Finder(Identifiers(date="mask", languages=languages))


def dates(text: str, chosen: Finder) -> list[str]:
    return [held for name, held in found(text, chosen) if name == "date"]


WRITTEN = {
    "ar": ["٣ مارس ٢٠٢٤", "3 يناير 2024", "12 آذار 2023", "أبريل 2024", "5 ابريل"],
    "bg": ["3 март 2024", "12 септември", "5 яну. 2024", "ЯНУАРИ 2024"],
    "cs": ["3. března 2024", "12. září", "5. úno. 2024", "říjen 2023", "1. ŘÍJNA 2023"],
    "da": ["3. marts 2024", "12. maj", "5. okt. 2024", "januar 2024"],
    "de": ["3. März 2024", "12. August", "5. Okt. 2024", "Mai 2023", "1.Jänner", "4. MÄRZ 2024", "3. Sept.", "3. Marz"],
    "el": ["3 Μαρτίου 2024", "12 Αυγούστου", "5 Οκτ. 2024", "Μάιος 2023", "3 ΜΑΡΤΙΟΥ 2024", "ΜΆΙΟΣ 2023", "3η Μαΐου"],
    "es": ["5 de mayo de 2023", "12 de enero", "5 de sept. de 2024", "mayo de 2023", "1 ENERO 2024", "setiembre del 2023"],
    "fi": ["3. maaliskuuta 2024", "12. heinäkuuta", "kesäkuu 2023", "5. TAMMIKUUTA 2024"],
    "fr": ["12 août", "3 janv. 2024", "1er mai 2023", "DECEMBRE 2023", "5 févr.", "14-juillet-1789", "3 Décembre"],
    "hu": ["2024. március 3", "március 15", "2024. márc. 3", "szept. 5", "július 2024", "2024 JÚLIUS 5"],
    "it": ["3 marzo 2024", "12 agosto", "1º maggio", "5 set. 2024", "3/dic/2024", "GENNAIO 2023"],
    "nb": ["3. mars 2024", "17. mai", "5. des. 2024", "desember 2023"],
    "nl": ["3 maart 2024", "12 augustus", "5 mrt. 2024", "mei 2023", "5-mei-2024"],
    "pl": ["12 stycznia 2024", "3 października", "5 sty 2024", "PAŹDZIERNIK 2023", "3 paź. 2024", "5 wrz."],
    "pt": ["1º de março de 2024", "12 de agosto", "5 de out. de 2024", "março 2023", "5/out/2024", "3 MARÇO 2024"],
    "ro": ["3 martie 2024", "12 august", "5 ian. 2024", "noiembrie 2023"],
    "ru": ["3 марта 2024", "12 августа", "5 янв. 2024", "Май 2023", "3-го МАЯ", "1 сент."],
    "sv": ["3 mars 2024", "12 augusti", "5 okt. 2024", "maj 2023", "3:e mars 2024"],
    "tr": ["3 Mart 2024", "12 Ağustos", "5 Oca 2024", "KASIM 2023", "3 kasım", "1 ŞUBAT 2024", "3 EKİM"],
    "uk": ["3 березня 2024", "12 серпня", "5 січ. 2024", "травень 2023", "1 ТРАВНЯ 2024"],
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_written_dates_are_found_whole_wherever_they_stand(language: str) -> None:
    own, every = finder(language), finder(*LANGUAGES)
    for text in WRITTEN[language]:
        around = (("", ""), ("x ", " y"), ("(", ")"), ("am, ", ", x"), ("Ж ", "\nЖ"), ("\n", "!"), ("“", "”"))
        for before, after in around:
            for form in ("NFC", "NFD"):
                whole = unicodedata.normalize(form, text)
                assert dates(f"{before}{whole}{after}", own) == [whole], (before, after, form)
                assert dates(f"{before}{whole}{after}", every) == [whole], (before, after, form)


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_packaged_name_counts_beside_a_day_and_a_year_in_any_case(language: str) -> None:
    own = finder(language)
    for word, whole in packaged()[language].items():
        apart = unicodedata.normalize("NFD", word)
        for written in (word, word.capitalize(), word.upper(), apart, f"{word[0]}\u00ad{word[1:]}"):
            assert dates(f"so 3. {written} 2024 so", own) == [f"3. {written} 2024"]
            assert dates(f"so 3 {written}. so", own) == [f"3 {written}." if not whole else f"3 {written}"]
            bare = f"so 3 {written} so"
            assert dates(bare, own) == ([f"3 {written}"] if whole else dates(bare, ENGLISH))


NONE = {
    "fr": ["mars et mai", "Mars attaque, 3 marseillais", "il y a 3 marais"],
    "de": ["3 Maiglöckchen", "im Märzen 2024er", "33. März", "x3. März", "3März", "3.\nMärz"],
    "it": ["ho 3 set di piatti"],
    "pt": ["I was out 5 times, sold out 2024"],
    "es": ["marzo 5"],  # a month before its day is Hungarian
    "tr": ["iki ocak"],
    "pl": ["Maja 3"],
    "ru": ["3 маям"],
    "el": ["5 Μαρτ"],
}


@pytest.mark.parametrize("language", NONE)
def test_a_name_alone_or_within_a_word_is_none(language: str) -> None:
    for text in NONE[language]:
        assert dates(text, finder(language)) == [], text


def test_who_asks_for_no_language_finds_english_dates_only() -> None:
    for text in ("3. März 2024", "12 août", "5 de mayo de 2023", "3 марта"):
        assert dates(text, ENGLISH) == []
    for text in ("March 4, 2021", "4th of July", "Mar. 4", "3 May 2024", "December 2020", "2021-03-04"):
        assert dates(text, ENGLISH) == dates(text, finder(*LANGUAGES)) == [text]


def test_the_names_are_those_of_the_packaged_file() -> None:
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == DIGEST
    assert tuple(months()) == LANGUAGES
    assert all(len(words) >= 20 for words in months().values())
    assert months()["fr"]["mars"] == (True, False)
    assert (months()["hu"]["marcius"], months()["hu"]["okt"]) == ((True, True), (False, True))


def test_of_several_languages_a_name_means_what_it_means_in_any() -> None:
    assert dates("mars 3", finder("fr")) == []
    assert dates("okt. 5 \u00e9s okt. 2024", finder("de")) == ["okt. 2024"]
    assert dates("okt. 5 \u00e9s okt. 2024", finder("de", "hu")) == ["okt. 5", "okt. 2024"]


def packaged() -> dict[str, dict[str, bool]]:
    """The words of the file in lower case, by language, with whether they are written out."""
    words: dict[str, dict[str, bool]] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        language, kind, _, *named = line.split()
        words.setdefault(language, {}).update(dict.fromkeys(named, kind == "name"))
    return words


@pytest.mark.skipif(find_spec("babel") is None, reason="Babel is a development tool")
def test_the_file_is_what_its_command_makes(tmp_path: Path) -> None:
    from tools.months import build

    build(tmp_path / "months.txt")
    assert (tmp_path / "months.txt").read_bytes() == FILE.read_bytes()


def plain_fold(char: str) -> str:
    """What a letter is the same as: lower case, without accents."""
    low = unicodedata.normalize("NFD", char.lower())[0]
    return {"ı": "i", "ς": "σ"}.get(low, low)


def test_letters_are_folded_as_pythons_database_says() -> None:
    looks, plain = month_shapes(), shapes()
    letters = {char for words in packaged().values() for word in words for char in word + word.upper()}
    letters = {char for char in letters if char.isalpha()}
    byte = {plain_fold(char): int(looks[ord(plain_fold(char))]) for char in letters}
    assert all(looks[ord(char)] == byte[plain_fold(char)] for char in letters)
    assert len(set(byte.values())) == len(byte)
    assert all(code == ord(char) if char.isascii() else code >= 0x80 for char, code in byte.items())
    # All that is no letter of a month looks as it does in any text.
    foreign = plain == FOREIGN
    assert (looks[~foreign & (np.arange(len(looks)) >= 0x80) & (plain >= 32)] < 0x80).all()


def plain_dates(text: str, languages: tuple[str, ...]) -> list[str]:
    """Dates by one regular expression over the whole text, each word of it folded; no windows, no skeletons."""
    known: dict[str, int] = {}
    for language in languages:
        for word, whole in packaged()[language].items():
            folded = "".join(map(plain_fold, word))
            known[folded] = known.get(folded, 4) | whole
    seen, origin = [], []
    for match in re.finditer(r"[^\W\d_]+|.", text, re.DOTALL):
        mark = known.get("".join(map(plain_fold, match[0])))
        for at, char in enumerate(match[0]) if mark is None else [(0, chr(mark))]:
            seen.append(char)
            origin.append(match.start() + at)
    line, origin = "".join(seen), [*origin, len(text)]
    day, year = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:1\d|20|21)\d\d"
    whole, short = "[\x05\x07]", "[\x04\x06]"
    to_year = r"(?:[.,]{1,2}[ -]?|[.,]?[ /-](?:del? )?)"
    any_date = re.compile(
        rf"(?<![^\W_])(?<![\x04-\x07])(?:{day}(?:er|e|:[ae])?(?:\. ?|\.?[ /-](?:de )?|\.? d')"
        rf"(?:[\x04-\x07]{to_year}{year}|{whole}|{short}\.)"
        rf"|{year}\.? [\x04-\x07]\.? {day}|(?:{whole}{to_year}|{short}(?:\.[ -]?(?:del? )?| del? )){year})(?![^\W_]|[\x04-\x07])"
    )
    found: list[list[int]] = []
    for at in range(len(line)):
        match = any_date.match(line, at)
        if match is None:
            continue
        if found and match.start() < found[-1][1]:
            found[-1][1] = max(found[-1][1], match.end())
        else:
            found.append([match.start(), match.end()])
    return [text[origin[a] : origin[b]] for a, b in found]


PIECES = [
    *("août", "AOÛT", "aout", "janv", "mars", "марта", "мая", "янв", "Μαρτίου", "ΜΑΪΟΥ", "stycznia", "sty", "maja", "kuuta"),
    *(" ", " ", " ", ".", ",", " de ", "/", "er", "e", "x", "ж", "2024", "1999", "3", "12", "31", "40", "\n", "(", "d'"),
]  # fmt: skip


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14))
def test_windows_find_what_a_plain_reading_finds(pieces: list[str]) -> None:
    # Days in figures have a rule of their own: no three numbers follow each other with dots or slashes between them.
    text = re.sub(r"(?<=\d)[./]+(?=\d)", " ", "".join(pieces))
    languages = ("el", "fr", "pl", "ru")
    assert [one for one in dates(text, finder(*languages)) if one] == plain_dates(text, languages)


def test_how_texts_are_batched_changes_nothing() -> None:
    texts = [text for texts in WRITTEN.values() for text in texts]
    data, rows = padded(pa.array(texts))
    spans = finder(*LANGUAGES).find(data, rows, pa.array(texts)).spans
    held = [data[a:b].tobytes().decode() for a, b in zip(spans.starts, spans.ends, strict=True)]
    assert held == texts
    assert np.diff(spans.bounds).tolist() == [1] * len(texts)
