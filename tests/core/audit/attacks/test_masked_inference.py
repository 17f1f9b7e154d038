"""Words named by a masked language model: by hand with answers that are set, and by a BERT made here."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.audit.attacks.inference import MaskedInference, masked_inference
from dptext_spark.errors import DataError
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.text.chunks import Spans
from dptext_spark.text.engine import Engine
from dptext_spark.text.policy import Policy
from dptext_spark.text.word_table import WordTable

PLAIN = ["The Movie was good", "a dull film", None, "bad bad movie", "zzz good"]
PRIVATE = ["The Film was good", "a good film", None, "dull bad movie", "[OOV] film"]


@pytest.fixture(scope="module")
def engine() -> Engine:
    policy = Policy()
    vocabulary = Vocabulary.of(pa.array(["movie", "film", "good", "bad", "dull"]))
    return Engine(WordTable.build(vocabulary, policy.stop_list()), policy)


def words_in(words: Spans) -> list[str]:
    return [words.data[a:b].tobytes().decode() for a, b in zip(words.starts, words.ends, strict=True)]


def always(answer: str) -> object:
    def guess(words: Spans) -> Iterator[tuple[np.ndarray, list[str]]]:
        for place in range(len(words.starts)):
            yield np.array([place]), [answer]

    return guess


def found(engine: Engine, guess: object, **more: object) -> MaskedInference:
    known = frozenset({"movie", "film", "good"})
    return masked_inference(engine, guess, str.lower, known, PLAIN, PRIVATE, **more)  # type: ignore[arg-type]


def test_the_words_that_are_drawn_are_asked_for(engine: Engine) -> None:
    asked: list[list[str]] = []

    def guess(words: Spans) -> Iterator[tuple[np.ndarray, list[str]]]:
        asked.append(words_in(words))
        assert len(words.bounds) == 6
        assert words.bounds[-1] == len(words.starts)
        yield np.arange(len(words.starts)), ["?"] * len(words.starts)

    result = found(engine, guess)
    assert asked == [
        ["Film", "good", "good", "film", "dull", "bad", "movie", "film"],
        ["Movie", "good", "dull", "film", "bad", "bad", "movie", "good"],
    ]
    assert (result.success, result.unprotected, result.words, result.drawn, result.records) == (0, 0, 8, 8, 4)
    assert result.unchanged == 4 / 8  # good, film, bad, movie
    assert result.guessable == 5 / 8


def test_a_whole_word_of_the_source_is_a_hit_whatever_its_case(engine: Engine) -> None:
    result = found(engine, always("movie"))
    assert result.success == result.unprotected == 2 / 8
    assert 0 <= result.lower <= result.success <= result.upper
    shown = result.as_dict()
    assert shown["also"]["privacy, as the papers define it"] == "0.7500"
    assert shown["success"] == 0.25
    assert "knows" in shown


def test_few_words_are_spread_over_the_texts_and_progress_is_told(engine: Engine) -> None:
    told: list[tuple[int, int]] = []
    result = found(engine, always("good"), most=3, progress=lambda done, whole: told.append((done, whole)))
    assert (result.words, result.drawn) == (3, 8)
    assert told == [(i, 6) for i in range(1, 7)]


@pytest.mark.parametrize(("private", "message"), [(["a"], "no drawn word is in both"), ([], "1 and 0")])
def test_nothing_in_common_is_refused(engine: Engine, private: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        masked_inference(engine, always("x"), str.lower, frozenset(), ["a"], private)  # type: ignore[arg-type]
