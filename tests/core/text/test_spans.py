"""Spans that are out of order, overlap or cut a character are refused, and no word is said."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.errors import DataError
from dptext_spark.text.chunks import Spans, check_spans, padded


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
        ([0, 3], [4, 6], [0, 2, 2, 2], "span of text 0 of the batch overlaps another"),
        (
            [3, 0],
            [5, 2],
            [0, 2, 2, 2],
            "span of text 0 of the batch stands before the one listed ahead of it",
        ),
        ([2], [2], [0, 1, 1, 1], "span of text 0 of the batch is empty or lies outside its text"),
        ([9], [14], [0, 0, 0, 1], "span of text 2 of the batch is empty or lies outside its text"),
        ([8], [10], [0, 0, 0, 1], "span of text 2 of the batch is empty or lies outside its text"),
        ([9], [10], [0, 0, 1, 1], "span of text 1 of the batch is empty or lies outside its text"),
        ([7], [8], [0, 1, 1, 1], "span of text 0 of the batch cuts a character in two"),
        ([8], [9], [0, 1, 1, 1], "span of text 0 of the batch cuts a character in two"),
        ([0], [1, 2], [0, 1, 1, 1], "1 starts, 2 ends and 4 bounds for 3 texts"),
        ([0], [1], [0, 1, 1], "1 starts, 1 ends and 3 bounds for 3 texts"),
        ([0], [1], [0, 0, 0, 2], "the bounds do not rise"),
    ],
)
def test_what_is_wrong_is_named(starts: list[int], ends: list[int], bounds: list[int], said: str) -> None:
    with pytest.raises(DataError) as caught:
        check_spans(spans(starts, ends, bounds), "here")
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)
