"""Every word of a text: those that the engine counts, where it cuts them, and punctuation where it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.randomness.draws import RunKey
from dptext_spark.text import chunks
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import PUNCTUATION, list_words
from tests.core.text.plain_engine import form
from tests.core.text.samples import POLICIES, TEXTS, WORDS, plain, privatizer

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
