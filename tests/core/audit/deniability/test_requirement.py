"""Requirements: their forms, what they compare, and on which side of an estimate they stand."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.audit.deniability.calibrate import figures_of, judge, word_requirement
from dptext_spark.audit.deniability.deniability import Measured
from dptext_spark.audit.deniability.word_figures import Bounded, DistinctOutputs, SmallestSet, Unchanged
from dptext_spark.errors import SettingsError


@pytest.mark.parametrize(
    ("text", "figure", "statistic", "relation", "limit"),
    [
        ("N_w max <= 0.5", Unchanged(), "max", "<=", 0.5),
        ("N_w p99 < 0.3", Unchanged(), "p99", "<", 0.3),
        ("  S_w   min>=10 ", SmallestSet(), "min", ">=", 10.0),
        ("S_w(0.1) p99.9 > 2", SmallestSet(0.1), "p99.9", ">", 2.0),
        ("S_w[1000] p5 >= 2e1", DistinctOutputs(1000), "p5", ">=", 20.0),
        ("S_w[7] mean<=-1", DistinctOutputs(7), "mean", "<=", -1.0),
        ("N_w p100 <= 1", Unchanged(), "p100", "<=", 1.0),
    ],
)
def test_forms(text: str, figure: object, statistic: str, relation: str, limit: float) -> None:
    found = word_requirement(text)
    subject = found.subject
    assert (subject.figure, subject.name, found.relation, found.limit) == (figure, statistic, relation, limit)
    assert word_requirement(str(found)) == found


@pytest.mark.parametrize("form", ["token <= 0.3", "worst < 0.9", "max <= 1", "p99.5 <= 0.5", "mean >= 0.01"])
def test_forms_of_bayes(form: str) -> None:
    found = word_requirement(f"bayes {form}")
    assert str(found) == f"bayes {form}"
    assert figures_of([found]) == []


@pytest.mark.parametrize(
    "text",
    [
        *("", "N_w", "N_w max", "N_w max <=", "N_w max 0.5", "max N_w <= 0.5", "N_w <= 0.5", "N_w max = 0.5"),
        *("N_w max == 0.5", "N_w max <= half", "N_w max <= nan", "N_w max <= inf", "N_w median <= 0.5"),
        *("N_w p101 <= 0.5", "N_w p <= 0.5", "N_w p-5 <= 0.5", "N max <= 0.5", "n_w max <= 0.5"),
        *("S_w[0] min >= 1", "S_w[1000001] min >= 1", "S_w[] min >= 1", "S_w[-1] min >= 1"),
        *("N_w[3] max <= 1", "S_w[1.5] min >= 1", "N_w token <= 0.3", "S_w worst >= 3", "bayes <= 0.3"),
        *("bayes median <= 0.3", "bayes(0.1) max <= 0.3"),
        *("S_w(0) min >= 1", "S_w(1) min >= 1", "S_w() min >= 1", "S_w(x) min >= 1", "S_w(1e) min >= 1"),
        "N_w max <= 0.5 and S_w min >= 10",
    ],
)
def test_what_has_another_form_is_told_the_valid_ones(text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        word_requirement(text)
    assert str(refused.value).startswith(f"require: {text!r} given; valid: ")


def measured(values: list[float], lower: list[float], upper: list[float], draws: int | None) -> Measured:
    of = Bounded(*(np.array(part) for part in (values, lower, upper)))
    return Measured(
        Unchanged(), np.array([7, 2, 9], np.int32), of, 10, draws, 0.99 if draws else None, "three"
    )


@pytest.mark.parametrize(
    ("text", "value", "judged", "holds", "word"),
    [
        ("N_w max <= 0.6", 0.5, 0.6, True, 2),
        ("N_w max < 0.6", 0.5, 0.6, False, 2),
        ("N_w max <= 0.59", 0.5, 0.6, False, 2),
        ("N_w min >= 0.05", 0.1, 0.05, True, 7),
        ("N_w min > 0.05", 0.1, 0.05, False, 7),
        ("N_w p50 <= 0.4", 0.3, 0.4, True, 9),
        ("N_w p50 >= 0.2", 0.3, 0.2, True, 9),
        ("N_w mean <= 0.3999", 0.3, 0.4, False, None),
    ],
)
def test_estimates_are_compared_by_their_cautious_bound(
    text: str, value: float, judged: float, holds: bool, word: int | None
) -> None:
    found = judge(word_requirement(text), measured([0.1, 0.5, 0.3], [0.05, 0.4, 0.2], [0.2, 0.6, 0.4], 1000))
    assert (found.value, found.judged) == pytest.approx((value, judged))
    assert (found.holds, found.word, found.exact) == (holds, word, False)


def test_exact_figures_are_compared_as_they_are() -> None:
    exact = measured([0.1, 0.5, 0.3], [0.1, 0.5, 0.3], [0.1, 0.5, 0.3], None)
    found = judge(word_requirement("N_w max <= 0.5"), exact)
    assert found.holds
    assert found.exact
    assert found.judged == 0.5
    requirement = word_requirement("N_w max <= 0.4")
    assert requirement.shortfall(judge(requirement, exact)) == pytest.approx(0.25)
    assert requirement.shortfall(found) == 0.0


def test_a_figure_is_measured_once() -> None:
    texts = ("N_w max <= 0.5", "S_w min >= 3", "N_w p99 <= 0.3", "S_w(0.05) p5 >= 4", "S_w[9] min >= 2")
    assert figures_of(map(word_requirement, texts)) == [Unchanged(), SmallestSet(), DistinctOutputs(9)]
