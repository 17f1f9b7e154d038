"""Texts as word ids: the same words, drawn and kept, as the engine that replaces them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.text.engine import COUNTERS, Engine, Noise
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import EDGE, UNKNOWN, drawn_words, read
from dptext_spark.text.word_table import CLITICS, WordTable

WORDS = ["the", "film", "good", "s", "well", "known", "a" * 20]


def engine(**choices: object) -> Engine:
    policy = Policy(**choices)  # type: ignore[arg-type]
    return Engine(WordTable.build(Vocabulary.of(WORDS), policy.stop_list()), policy)


def seen(text: str | None, **choices: object) -> list[tuple[object, bool]]:
    found = read(engine(**choices), pa.array([text], pa.string()))
    names = {EDGE: "|", UNKNOWN: "?"} | dict(enumerate(WORDS))
    return [(names[int(word)], bool(drawn)) for word, drawn in zip(found.words, found.drawn, strict=True)]


KEEPING = [
    ("the film", [("the", False), ("film", True)]),
    ("The FILM, good!", [("the", False), ("film", True), ("|", False), ("good", True), ("|", False)]),
    ("film's", [("film", True), ("s", False)]),
    ("s good", [("s", True), ("good", True)]),
    ("well-known", [("well", True), ("known", True)]),
    ("12 films", [("?", False), ("?", False)]),
    ("don't ... (good)", [("?", False), ("|", False), ("good", True), ("|", False)]),
    ("A" * 20, [("a" * 20, True)]),
    ("", []),
    (None, []),
]


@pytest.mark.parametrize(("text", "expected"), KEEPING)
def test_words_kept_and_drawn(text: str | None, expected: list[tuple[str, bool]]) -> None:
    assert seen(text) == expected


def test_other_policies() -> None:
    assert seen("the film", stop_words="draw") == [("the", True), ("film", True)]
    for numbers in ("random", "mask", "keep"):
        for oov in ("mask", "draw", "keep"):
            assert seen("12 zq good", numbers=numbers, oov=oov) == [
                ("?", False),
                ("?", False),
                ("good", True),
            ]
    assert seen("good , film's", tokenizer="whitespace") == [("good", True), ("|", False), ("?", False)]
    assert seen("The film", case="lower") == [("the", False), ("film", True)]


def test_records() -> None:
    texts = pa.array(["Good film", None, "", "GOOD, fIlm", "the Good"])
    for batch in (texts, texts.cast(pa.large_string()), pa.concat_arrays([texts, texts])[5:]):
        found = read(engine(), batch)
        assert found.bounds.tolist() == [0, 2, 2, 2, 5, 7]


def test_it_draws_what_the_engine_draws() -> None:
    texts = pa.array([text for text, _ in KEEPING])
    for choices in ({}, {"stop_words": "draw"}, {"tokenizer": "whitespace"}):
        made = engine(**choices)

        noise = Noise(
            0, np.zeros((len(texts), 2), np.uint64), (np.uint64(2), np.uint64(3)), lambda ids, _: ids,
            lambda blocks: blocks, lambda blocks: blocks,
        )  # fmt: skip
        _, counts = made.privatize(texts, noise)
        found = read(made, texts)
        ends = np.append(0, np.cumsum(found.drawn))
        by_row = ends[found.bounds[1:]] - ends[found.bounds[:-1]]
        assert by_row.tolist() == counts[:, COUNTERS.index("drawn")].tolist()


def test_which_words_are_drawn() -> None:
    assert drawn_words(engine()).tolist() == [False, True, True, True, True, True, True]
    assert drawn_words(engine(stop_words="draw")).all()


@pytest.mark.parametrize(
    "choices",
    [{}, {"stop_words": "draw"}, {"stop_word_list": ("film", "re")}, {"tokenizer": "whitespace"}],
    ids=str,
)
def test_the_words_that_count_as_drawn_are_those_that_the_engine_draws(choices: dict[str, object]) -> None:
    """Each word of a lexicon in a text of its own: a clitic without its apostrophe is a word like any."""
    policy = Policy(**choices)  # type: ignore[arg-type]
    vocabulary = Vocabulary.of([*Lexicon.default().vocabulary.strings().to_pylist(), "ll", "re", "ve"])
    made = Engine(WordTable.build(vocabulary, policy.stop_list()), policy)
    words = vocabulary.strings()
    found = read(made, words)
    assert np.diff(found.bounds).tolist() == [1] * len(words)
    assert found.drawn.tolist() == drawn_words(made).tolist()
    clitics = np.flatnonzero(np.isin(words.to_numpy(zero_copy_only=False), CLITICS))
    assert drawn_words(made)[clitics].sum() == 3 - (choices.get("stop_word_list") is not None)
    kept = read(made, pa.array([f"film'{words[int(i)]}" for i in clitics]))
    assert choices or kept.drawn.tolist() == [True, False] * 3


def test_an_identifier_is_one_token_that_is_no_word() -> None:
    texts = ["film jane@example.com, good", "film [EMAIL], good", "+49 171 1234567"]
    held, written, number = (read(engine(), pa.array([text])) for text in texts)
    assert held.words.tolist() == written.words.tolist()
    assert held.drawn.tolist() == written.drawn.tolist()
    assert held.drawn.sum() == 2
    assert (held.words == UNKNOWN).sum() == 1
    assert number.words.tolist() == [UNKNOWN]
    assert not number.drawn.any()
