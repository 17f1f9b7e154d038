"""Which texts a classifier of names reads, written down plainly: a text at a time, a word at a time."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache

from dptext_spark.lexicon.characters import look_up_form
from dptext_spark.text.names.normal_words import LONGEST
from dptext_spark.text.names.public_lists import LIKELY
from tests.core.encoder.plain_classifier import LETTER, WORD
from tests.core.text.names.plain_names import words
from tests.core.text.names.plain_public_names import is_upper, lists

JOINER = re.compile("['\u2019-]")


def letters(text: str) -> list[str]:
    return [char for char in text if re.fullmatch(LETTER, char)]


def is_capitalised(text: str) -> bool:
    """Whether it holds a part of a word of two letters or more that begins with a capital, or with a letter without case."""
    for match in WORD.finditer(text):
        parts = JOINER.split(match[0])
        for place, part in enumerate(parts):
            lone = place > 0 and written_so(parts[place - 1]) and len(letters(parts[place - 1])) == 1
            apostrophe = text[match.start() + sum(len(one) + 1 for one in parts[:place]) - 1] in "'\u2019"
            count = len(letters(part))
            if (written_so(part) and count > 1) or (place > 0 and lone and apostrophe and count > 2):
                return True
    return False


def written_so(part: str) -> bool:
    return is_upper(part[0]) or part[0] == part[0].lower() == part[0].upper()


def holds_unknown(text: str, known: Collection[str], identifiers: Sequence[tuple[int, int]] = ()) -> bool:
    """Whether a word is unknown; `identifiers` are stretches of characters."""
    for match in WORD.finditer(text):
        if any(start <= match.start() < end for start, end in identifiers):
            continue
        if look_up_form(match[0]) in known:
            continue
        parts = [part for part in JOINER.split(match[0]) if len(letters(part)) > 1]
        if any(look_up_form(part) not in known for part in parts):
            return True
    return False


def holds_listed(text: str) -> bool:
    """Whether some words in a row are a name of a list, of a likely class."""
    forms = [word.form.rstrip(".") for word in words(text)]
    for first, _ in enumerate(forms):
        for last in range(first + 1, len(forms) + 1):
            entry = tuple(forms[first:last])
            if not all(0 < len(form.encode()) <= LONGEST for form in entry):
                break
            if max(of_class(entry)) >= LIKELY and not (len(entry) == 1 and entry[0] in lists().stop):
                return True
            if entry not in lists().beginnings:
                break
    return False


@cache
def of_class(entry: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(lists().entries.get(entry, (0, 0, 0, 0)))


def is_read(text: str, known: Collection[str], identifiers: Sequence[tuple[int, int]] = ()) -> bool:
    return is_capitalised(text) or holds_unknown(text, known, identifiers) or holds_listed(text)
