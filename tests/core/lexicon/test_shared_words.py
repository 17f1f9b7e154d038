"""Lexicons cut down to their common words: ids agree, vectors go with their words, nothing is copied in vain."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon, same_words, with_shared_words
from dptext_spark.lexicon.vocabulary import Vocabulary


def lexicon(words: str, name: str = "lexicon", metric: str = "cosine") -> Lexicon:
    """Every letter has its code as its vector."""
    vectors = np.array([[ord(w), -ord(w)] for w in words], np.float32)
    return Lexicon(Vocabulary.of(list(words)), vectors, metric=metric, name=name)  # type: ignore[arg-type]


def test_the_words_of_all_in_the_order_of_the_first() -> None:
    found = with_shared_words([lexicon("zebra", "a"), lexicon("abcdez", "b", "euclidean"), lexicon("ezxba")])
    assert [one.vocabulary.strings().to_pylist() for one in found] == [list("zeba")] * 3
    for one in found:
        assert one.vectors[:, 0].tolist() == [ord(w) for w in "zeba"]
        assert one.vectors.dtype == np.float32
        assert one.vectors.flags.c_contiguous
    assert [one.name for one in found] == ["a", "b", "lexicon"]
    assert [one.metric for one in found] == ["cosine", "euclidean", "cosine"]
    assert same_words(found)


def test_those_that_agree_stay_themselves() -> None:
    given = [lexicon("abc"), lexicon("abc")]
    assert all(one is other for one, other in zip(with_shared_words(given), given, strict=True))
    assert with_shared_words(given[:1]) == (given[0],)


def test_the_same_words_in_another_order_are_put_in_order() -> None:
    assert not same_words([lexicon("abc"), lexicon("acb")])
    found = with_shared_words([lexicon("abc"), lexicon("cab")])
    assert same_words(found)
    assert (found[0].vectors == found[1].vectors).all()


@pytest.mark.parametrize(("other", "number"), [("xyz", 0), ("ayz", 1)])
def test_too_few(other: str, number: int) -> None:
    with pytest.raises(DataError, match=rf"{number} word\(s\) are in all of one \(3\), two \(3\)"):
        with_shared_words([lexicon("abc", "one"), lexicon(other, "two")])


def test_words_that_share_their_bytes_otherwise() -> None:
    """Same letters, other boundaries."""
    one = Lexicon(Vocabulary.of(["ab", "c"]), np.eye(2, dtype=np.float32))
    other = Lexicon(Vocabulary.of(["a", "bc"]), np.eye(2, dtype=np.float32))
    assert not same_words([one, other])
