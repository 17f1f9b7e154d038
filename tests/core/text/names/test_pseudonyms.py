"""Pseudonyms: the name of a kind that a keyed number chooses, equal for equal names of a scope."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.randomness import RunKey, encrypt, hash_keys
from dptext_spark.text.chunks import padded
from dptext_spark.text.names.public_names import KINDS
from dptext_spark.text.names.search import POOL_SIZES
from dptext_spark.text.replacements import KeyedNames, pool, pseudonyms
from tests.core.text.names.plain_names import words

GIVEN, SURNAME, CITY, REGION, INITIAL = range(len(KINDS))
SECRET = RunKey.insecure(3).derive("content", length=16)
SUBKEY = RunKey.insecure(3).derive("draws")
KEYED = KeyedNames(hash_keys(SECRET), lambda blocks: encrypt(SUBKEY, blocks))


def names_of(kind: int, case: int = 1) -> list[str]:
    data, bounds, size = pool(kind)
    return [bytes(data[a:b]).decode() for a, b in pairwise(bounds[case * size : (case + 1) * size + 1])]


def made(texts: list[str], kinds: list[int], keyed: KeyedNames = KEYED, identity: Any = None) -> list[str]:
    """Return the pseudonym of each of some names, each a text of its own."""
    data, rows = padded(pa.array(texts))
    places = rows[:-1], rows[:-1], rows[1:]
    text, bounds = pseudonyms(data, places, np.array(kinds), identity, False, keyed)
    return [bytes(text[a:b]).decode() for a, b in pairwise(bounds)]


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_number_chooses_among_all_names_of_the_kind_alike(kind: int) -> None:
    names = names_of(kind)
    n = len(names)
    # The number of name i lies in the middle of the i-th of n equal parts of all numbers of 64 bits.
    numbers = np.array([((2 * i + 1) * 2**64) // (2 * n) for i in range(n)], np.uint64)

    def draw(blocks: np.ndarray) -> np.ndarray:
        return np.stack([numbers, np.zeros(n, np.uint64)], axis=1)

    assert made(["Ada"] * n, [kind] * n, KeyedNames(KEYED.hash_keys, draw)) == names
    assert len(set(names)) == n or kind in (CITY, REGION)


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_every_pseudonym_is_one_word(kind: int) -> None:
    for case in range(3):
        names = names_of(kind, case)
        for name in names[:: max(1, len(names) // 500)]:
            (word,) = words(name)
            assert (word.start, word.stop) == (0, len(name))


def test_how_many_there_are_is_what_the_statement_says() -> None:
    assert [pool(kind).size for kind in range(len(KINDS))] == [*POOL_SIZES]


def test_equal_names_have_one_pseudonym_in_their_case() -> None:
    found = made(["Lovelace", "LOVELACE", "lovelace", "O'Brien", "obrien", "Ørsted"], [SURNAME] * 6)
    assert [one.lower() for one in found[:3]] == [found[2]] * 3
    assert (found[0].istitle(), found[1].isupper(), found[2].islower()) == (True, True, True)
    assert found[3].lower() == found[4]
    assert len({one.lower() for one in found}) == 3


def test_kind_and_record_tell_names_apart() -> None:
    ids = np.array([[1, 2], [1, 2], [3, 4]], np.uint64)
    one, same, other = made(["Smith"] * 3, [SURNAME] * 3, identity=ids)
    assert one == same != other
    assert made(["Paris"], [GIVEN]) != made(["Paris"], [CITY])
    (capital,) = made(["J"], [INITIAL])
    assert made(["J", "j"], [INITIAL] * 2) == [capital, capital.lower()]
