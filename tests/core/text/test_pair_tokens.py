"""Texts beside their rewritten forms: pieces, words, and which word stands in whose place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import CusText
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.text.engine import Engine
from dptext_spark.text.pair_tokens import (
    DRAWN_WORD,
    KEPT_WORD,
    NO_WORD,
    NUMBER,
    UNKNOWN_WORD,
    Pairing,
    Words,
    pair,
    words_of,
)
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import UNKNOWN
from dptext_spark.text.word_table import WordTable

KEYS = (np.uint64(5), np.uint64(7))
LEXICON = ("the", "dog", "cat", "house", "mother-in-law", "well", "known")


@pytest.fixture(scope="module")
def read() -> Callable[..., Words]:
    vocabulary = Vocabulary.of(pa.array(LEXICON))

    def words(*texts: str | None, **policy: object) -> Words:
        chosen = Policy(**policy)  # type: ignore[arg-type]
        return words_of(
            Engine(WordTable.build(vocabulary, chosen.stop_list()), chosen),
            pa.array(texts, pa.string()),
            KEYS,
        )

    return words


def paired(read: Callable[..., Words], source: str | None, output: str | None) -> Pairing:
    return pair(read(source), read(output))


def test_each_word_has_its_kind_its_id_and_its_place(read) -> None:
    words = read("The dog,  cat-zzz 12", None, "House")
    assert words.kind.tolist() == [KEPT_WORD, DRAWN_WORD, DRAWN_WORD, UNKNOWN_WORD, NUMBER, DRAWN_WORD]
    assert words.ids.tolist() == [0, 1, 2, UNKNOWN, UNKNOWN, 3]
    assert words.starts.tolist() == [0, 1, 2, 4, 5, 6]
    assert words.pieces.tolist() == [0, 4, 4, 5]
    assert words.bounds.tolist() == [0, 5, 5, 6]
    assert words.marked.tolist() == [False, False, True, False, False, False]
    assert not words.invalid.any()


def test_the_policy_says_what_is_drawn_and_nothing_else(read) -> None:
    for oov in ("mask", "draw", "keep"):
        for numbers in ("random", "mask", "keep"):
            words = read("the dog zzz 12", oov=oov, numbers=numbers)
            assert words.kind.tolist() == [KEPT_WORD, DRAWN_WORD, UNKNOWN_WORD, NUMBER]
    assert read("the dog", stop_words="draw").kind.tolist() == [DRAWN_WORD, DRAWN_WORD]


def test_forms_are_equal_without_case_and_hold_no_word(read) -> None:
    form = read("Dog dog DOG cat").form
    assert (form[:3] == form[0]).all()
    assert (form[3] != form[0]).all()
    assert b"dog" not in form.tobytes()


def test_invalid_text_is_marked(read) -> None:
    binary = pa.array([b"dog", b"dog \xff\xfe"], pa.binary())
    vocabulary = Vocabulary.of(pa.array(LEXICON))
    engine = Engine(WordTable.build(vocabulary, Policy().stop_list()), Policy())
    assert words_of(engine, binary, KEYS).invalid.tolist() == [False, True]


@pytest.mark.parametrize(
    ("source", "output", "partner"),
    [
        ("dog cat", "house well", [0, 1]),
        ("dog  cat\n", "house well", [0, 1]),
        ("a zzz b", "a [OOV] b", [0, 1, 2]),
        ("dog, cat-house 12", "dog, well-known 97", [0, 1, 2, 3]),
        ("dog cat", "dog", [-1, -1]),
        ("dog cat", "dog the cat", [-1, -1]),
        # One word becomes three within a piece: the pieces beside it stay aligned.
        ("dog cat-house well", "dog cat-well-known dog", [0, -1, -1, 4]),
        ("-- dog !", "dog", [0]),
        ("", "", []),
        (None, "", []),
        ("dog", None, [-1]),
    ],
)
def test_words_are_paired_within_pieces(read, source, output, partner: list[int]) -> None:
    assert paired(read, source, output).partner.tolist() == partner


def test_rows_are_apart(read) -> None:
    found = pair(read("dog", "cat house", "well"), read("cat", "cat", "known"))
    assert found.partner.tolist() == [0, -1, -1, 2]
    assert found.rows.tolist() == [True, False, True]


def test_only_words_alone_in_their_piece_are_sure(read) -> None:
    # A drawn word may hold a hyphen of its own: where it ends beside another one is not certain.
    assert paired(read, "dog cat-house", "mother-in-law well-known").alone.tolist() == [True, False, False]


def test_what_the_engine_writes_is_aligned() -> None:
    """Words of the packaged lexicon, unknown ones, numbers, clitics and joiners between them."""
    whole = Lexicon.default()
    words = whole.vocabulary.strings().slice(0, 5000).to_pylist()
    lexicon = Lexicon(Vocabulary.of(pa.array(words)), whole.vectors[:5000].copy())
    privatizer, key = Privatizer(lexicon, CusText(k=10).compile(lexicon)), RunKey.insecure(1)
    rows = [
        f"{words[7 * i % 5000]}, {words[i].title()}-{words[2 * i]} zanzibarian{i} isn't {i}.5 ({words[3 * i]}) état-{words[i]}"
        for i in range(1200)
    ]
    texts = pa.array(rows)
    out, _ = privatizer.privatize(texts, column="", row_ids=pa.array(range(len(rows))), key=key)
    found = pair(words_of(privatizer.engine, texts, KEYS), words_of(privatizer.engine, out, KEYS))
    assert found.rows.all()
    assert (found.partner >= 0).mean() > 0.98


def test_an_identifier_is_paired_with_its_placeholder_and_is_no_word(read: Callable[..., Words]) -> None:
    source, output = read("The cat 0171 1234567, dog jane@example.com"), read("The dog [PHONE], cat [EMAIL]")
    assert (
        source.kind.tolist() == [KEPT_WORD, DRAWN_WORD, NO_WORD, DRAWN_WORD, NO_WORD] == output.kind.tolist()
    )
    assert pair(source, output).partner.tolist() == [0, 1, 2, 3, 4]
