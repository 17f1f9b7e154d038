"""Limits on the figures of a written table, as a pipeline states them."""

from __future__ import annotations

import pytest

from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.table.metrics import MEANING, holds, table_requirement
from dptext_spark.errors import SettingsError

FIGURES = (
    Metric("original_share", 0.5),
    Metric("bayes_success", 0.5, 0.4, 0.6),
    Metric("oov_kept_share", None),
    Metric("changed_share", 0.1, column="body"),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("original_share <= 0.5", True),
        ("original_share < 0.5", False),
        ("original_share>=.5", True),
        ("original_share > 0.5", False),
        ("  original_share  <=  5e-1 ", True),
        # An estimate by its bound on the cautious side.
        ("bayes_success <= 0.55", False),
        ("bayes_success <= 0.6", True),
        ("bayes_success >= 0.45", False),
        ("bayes_success >= 0.4", True),
        # What could not be counted, and what only a column has.
        ("oov_kept_share <= 1", False),
        ("oov_kept_share >= 0", False),
        ("changed_share <= 1", False),
    ],
)
def test_holds_or_not(text: str, expected: bool) -> None:
    limit = table_requirement(text, MEANING)
    assert holds(limit, FIGURES) is expected
    assert table_requirement(str(limit), MEANING) == limit


@pytest.mark.parametrize(
    "text", ["", "original_share", "original_share 0.5", "original_share == 1", "original_share <= x", "<= 1",
             "original_share <= nan", "original_share <= inf", "N_w max <= 0.5", "orignal_share <= 1"],
)  # fmt: skip
def test_another_form_and_a_figure_that_there_is_not_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^require: ") as refused:
        table_requirement(text, MEANING)
    assert ("Did you mean 'original_share'" in str(refused.value)) == text.startswith("orignal")
