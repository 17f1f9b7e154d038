"""A long text is cut into strips, and spans are checked: nothing that leaves the engine may tell."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.text import chunks
from dptext_spark.text.chunks import Spans, check_spans, padded
from dptext_spark.text.identifiers.finder import Finder
from dptext_spark.text.policy import Identifiers, Policy
from tests.core.text.samples import IDENTIFYING, IDENTIFYING_TEXTS, TEXTS, FirstLane, privatizer

ROWS = st.lists(st.one_of(st.none(), st.lists(TEXTS, max_size=4).map("".join)), max_size=4)
KEY = RunKey.insecure(11)


def strips(least: int, *given: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "STRIP_BYTES", least)
        return chunks.strips(*given)


def sanitized(model: Privatizer, texts: list[str | None], least: int) -> tuple[list[Any], Any]:
    rows, ids = pa.array(texts, pa.string()), pa.array(range(len(texts)), pa.int64())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "STRIP_BYTES", least)
        out, counters = model.privatize(rows, column="body", row_ids=ids, key=KEY, run_id="r")
    return out.to_pylist(), counters.rows.tolist()


@settings(max_examples=150)
@given(
    policy=IDENTIFYING,
    level=st.sampled_from(["token", "record", "dataset"]),
    texts=st.lists(st.one_of(st.none(), IDENTIFYING_TEXTS), max_size=4),
    least=st.sampled_from([1, 2, 7, 30]),
)
def test_any_text_in_strips_of_any_length(policy: Policy, level: str, texts: Any, least: int) -> None:
    words = privatizer().vocabulary
    model = Privatizer(words, FirstLane(0, len(words)), policy, level)  # which shows what each draw is for
    assert sanitized(model, texts, least) == sanitized(model, texts, 1 << 40)


@settings(max_examples=200)
@given(texts=ROWS, least=st.sampled_from([1, 5, 20]), tokenizer=st.sampled_from(["words", "whitespace"]))
def test_strips_cover_the_rows_and_begin_where_no_word_goes_on(
    texts: Any, least: int, tokenizer: Any
) -> None:
    data, bounds = padded(pa.array(texts, pa.string()))
    found = strips(least, data, bounds, tokenizer)
    assert found.bounds[0] == 0
    assert (np.diff(found.bounds) >= 0).all()
    assert found.bounds[found.first].tolist() == bounds.tolist()
    assert (np.diff(found.first) >= 1).all() if len(texts) else len(found.rows) == 0
    for strip, row in enumerate(found.rows):
        start = found.bounds[strip]
        if start == bounds[row]:
            continue
        assert start - found.bounds[strip - 1] >= least  # the one before it is long enough
        begins = chr(data[start])
        assert begins.isascii()
        assert not begins.isalnum()
        assert begins not in "'-"
        assert tokenizer == "words" or begins.isspace() or begins in "\x1c\x1d\x1e\x1f"


def test_the_engine_holds_no_more_for_a_long_text_than_for_many_short_ones() -> None:
    lexicon = Lexicon.default()
    model = Privatizer(lexicon, CusText(epsilon=1.0).compile(lexicon))
    line = "please call the office about the broken heater and the late delivery "
    short = pa.array([line] * 10_000)
    whole = pa.array([line * 10_000])
    peaks = []
    for texts in (short, whole, short, whole):  # the first two compile and warm up
        ids = pa.array(range(len(texts)), pa.int64())
        tracemalloc.start()
        model.privatize(texts, column="body", row_ids=ids, key=KEY)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[3] < 1.5 * peaks[2]


@settings(max_examples=100)
@given(
    texts=st.lists(st.one_of(st.none(), IDENTIFYING_TEXTS), max_size=4),
    least=st.sampled_from([1, 5, 1 << 40]),
)
def test_an_identifier_is_a_strip_of_its_own(texts: list[str | None], least: int) -> None:
    rows = pa.array(texts, pa.string())
    data, bounds = padded(rows)
    spans = Finder(Identifiers()).find(data, bounds, rows).spans
    found = strips(least, data, bounds, "words", spans)
    assert found.bounds[found.first].tolist() == bounds.tolist()
    held = np.flatnonzero(found.spans >= 0) if len(spans.starts) else np.zeros(0, np.int64)
    assert found.spans[held].tolist() == list(range(len(spans.starts)))
    assert found.bounds[held].tolist() == spans.starts.tolist()
    assert found.bounds[held + 1].tolist() == spans.ends.tolist()
    assert (np.diff(found.first) >= 1).all()


def spans(starts: list[int], ends: list[int], bounds: list[int]) -> Spans:
    data, rows = padded(pa.array(["secret é", None, "word"]))
    return Spans(data, rows, *(np.array(values, np.int64) for values in (starts, ends, bounds)))


@pytest.mark.parametrize(
    ("starts", "ends", "bounds"),
    [([], [], [0, 0, 0, 0]), ([0, 7], [6, 9], [0, 2, 2, 2]), ([0, 3, 9, 10], [3, 9, 10, 13], [0, 2, 2, 4])],
)
def test_sound_ones_pass(starts: list[int], ends: list[int], bounds: list[int]) -> None:
    check_spans(spans(starts, ends, bounds), "here")
    assert spans(starts, ends, bounds).owners.tolist() == np.repeat([0, 1, 2], np.diff(bounds)).tolist()


@pytest.mark.parametrize(
    ("starts", "ends", "bounds", "said"),
    [
        ([8], [10], [0, 0, 0, 1], "span of text 2 of the batch is empty or lies outside its text"),
        ([9], [10], [0, 0, 1, 1], "span of text 1 of the batch is empty or lies outside its text"),
        ([8], [9], [0, 1, 1, 1], "span of text 0 of the batch cuts a character in two"),
        ([0], [1, 2], [0, 1, 1, 1], "1 starts, 2 ends and 4 bounds do not fit 3 texts"),
        ([0], [1], [0, 1, 1], "1 starts, 1 ends and 3 bounds do not fit 3 texts"),
        ([0], [1], [0, 0, 0, 2], "the bounds do not rise"),
    ],
)
def test_what_is_wrong_is_named(starts: list[int], ends: list[int], bounds: list[int], said: str) -> None:
    """Beside what a provider may say, which is tested there."""
    with pytest.raises(DataError, match=said) as caught:
        check_spans(spans(starts, ends, bounds), "here")
    assert "secret" not in str(caught.value)
