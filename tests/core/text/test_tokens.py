"""Texts as word ids, and their words as a list: the same words, drawn and kept, as the engine that replaces them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.randomness import RunKey
from dptext_spark.text import chunks
from dptext_spark.text.engine import COUNTERS, Engine, Noise
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import EDGE, PUNCTUATION, UNKNOWN, drawn_words, list_words, read
from dptext_spark.text.word_table import CLITICS, WordTable
from tests.core.text.plain_engine import form
from tests.core.text.samples import POLICIES, TEXTS, WORDS, plain, privatizer

LEXICON = ["the", "film", "good", "s", "well", "known", "a" * 20]


def engine(**choices: object) -> Engine:
    policy = Policy(**choices)  # type: ignore[arg-type]
    return Engine(WordTable.build(Vocabulary.of(LEXICON), policy.stop_list()), policy)


def seen(text: str | None, **choices: object) -> list[tuple[object, bool]]:
    found = read(engine(**choices), pa.array([text], pa.string()))
    names = {EDGE: "|", UNKNOWN: "?"} | dict(enumerate(LEXICON))
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


@pytest.mark.parametrize("numbers", ["random", "mask", "keep"])
@pytest.mark.parametrize("oov", ["mask", "draw", "keep"])
def test_other_policies(numbers: str, oov: str) -> None:
    three = [("?", False), ("?", False), ("good", True)]
    assert seen("12 zq good", numbers=numbers, oov=oov) == three
    assert seen("the film", stop_words="draw") == [("the", True), ("film", True)]
    assert seen("good , film's", tokenizer="whitespace") == [("good", True), ("|", False), ("?", False)]
    assert seen("The film", case="lower") == [("the", False), ("film", True)]


def test_records() -> None:
    texts = pa.array(["Good film", None, "", "GOOD, fIlm", "the Good"])
    for batch in (texts, texts.cast(pa.large_string()), pa.concat_arrays([texts, texts])[5:]):
        found = read(engine(), batch)
        assert found.bounds.tolist() == [0, 2, 2, 2, 5, 7]


@pytest.mark.parametrize("choices", [{}, {"stop_words": "draw"}, {"tokenizer": "whitespace"}], ids=str)
def test_it_draws_what_the_engine_draws(choices: dict[str, object]) -> None:
    texts, made = pa.array([text for text, _ in KEEPING]), engine(**choices)
    same, keys = lambda blocks: blocks, (np.uint64(2), np.uint64(3))
    noise = Noise(0, np.zeros((len(texts), 2), np.uint64), keys, lambda ids, _: ids, same, same)
    _, counts = made.privatize(texts, noise)
    found = read(made, texts)
    ends = np.append(0, np.cumsum(found.drawn))
    assert np.diff(ends[found.bounds]).tolist() == counts[:, COUNTERS.index("drawn")].tolist()


CHOICES = ({}, {"stop_words": "draw"}, {"stop_word_list": ("film", "re")}, {"tokenizer": "whitespace"})


@pytest.mark.parametrize("choices", CHOICES, ids=str)
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
    held, written = seen("film jane@example.com, good"), seen("film [EMAIL], good")
    assert held == written == [("film", True), ("?", False), ("|", False), ("good", True)]
    assert seen("+49 171 1234567") == [("?", False)]


KEY = RunKey.insecure(2)


def listed(texts: list[str | None], policy: Policy = Policy(), **more: bool) -> list[list[str]]:  # noqa: B008
    found = list_words(privatizer(policy).engine, pa.array(texts, pa.string()), **more).words
    pieces = [bytes(found.data[a:b]).decode() for a, b in zip(found.starts, found.ends, strict=True)]
    return [pieces[a:b] for a, b in zip(found.bounds[:-1], found.bounds[1:], strict=True)]


@settings(max_examples=200)
@given(
    policy=POLICIES,
    texts=st.lists(st.one_of(st.none(), TEXTS), max_size=4),
    least=st.sampled_from([1, 7, 1 << 40]),
)
def test_words_are_those_of_the_engine(policy: Policy, texts: list[str | None], least: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "STRIP_BYTES", least)
        model = privatizer(policy)
        array = pa.array(texts, pa.string())
        listing = list_words(model.engine, array)
        marked = list_words(model.engine, array, marks=True)
        _, counters = model.privatize(
            array, column="b", row_ids=pa.array(range(len(texts)), pa.int64()), key=KEY
        )
    assert np.diff(listing.words.bounds).tolist() == counters.column("words").tolist()
    drawn = np.append(0, np.cumsum(listing.codes >= 0))[listing.words.bounds]
    assert np.diff(drawn).tolist() == counters.column("drawn").tolist()
    rules = plain(policy)
    pieces = [[piece for piece in rules.pieces(text or "") if piece.counter] for text in texts]
    assert listed(texts, policy) == [[piece.source for piece in row] for row in pieces]
    actions = [piece for row in pieces for piece in row]
    for piece, code in zip(actions, listing.codes, strict=True):
        assert (piece.action == "drawn") == (code >= 0)
        assert code < 0 or WORDS[code] == form(piece.source)
    words = marked.codes != PUNCTUATION
    assert marked.words.starts[words].tolist() == listing.words.starts.tolist()
    assert (np.diff(marked.words.starts) > 0).all()
    assert (marked.words.ends > marked.words.starts).all()


@pytest.mark.parametrize(
    ("text", "tokenizer", "expected"),
    [
        ("A cat, the dog!", "words", ["A", "cat", ",", "the", "dog", "!"]),
        ("cat-ox ... it's", "words", ["cat", "-", "ox", ".", ".", ".", "it's"]),
        ("zq12 x7", "words", ["zq", "12", "x", "7"]),
        ("A cat , the dog ... !?", "whitespace", ["A", "cat", ",", "the", "dog", "...", "!?"]),
        ("", "words", []),
        (" , ", "words", [","]),
    ],
)
def test_punctuation(text: str, tokenizer: Any, expected: list[str]) -> None:
    policy = Policy(tokenizer=tokenizer)
    assert listed([text, None, text], policy, marks=True) == [expected, [], expected]


def test_what_stands_behind_bad_bytes_is_not_cut() -> None:
    found = list_words(privatizer().engine, pa.array([b"cat \xff dog", b"ox"], pa.binary()))
    assert np.diff(found.words.bounds).tolist()[1] == 1


@pytest.mark.parametrize(("oov", "known"), [("keep", True), ("mask", False), ("draw", False)])
def test_a_word_that_is_kept_stands_before_the_next_one_by_its_number(oov: str, known: bool) -> None:
    # "ll" is no word of this lexicon, but one of the word table, which keeps it after an apostrophe.
    for text, number in (("film'll good", True), ("film ll good", known)):
        found = read(engine(oov=oov), pa.array([text]))
        assert found.words.tolist() == [LEXICON.index("film"), UNKNOWN, LEXICON.index("good")]
        assert (found.numbers[1] >= len(LEXICON)) == number
        assert (found.numbers[1] == UNKNOWN) != number
