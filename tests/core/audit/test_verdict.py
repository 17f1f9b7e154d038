"""A verdict: every combination of what may be shown and what was found, and that it holds no restricted figure."""

from __future__ import annotations

import itertools
import json

import pytest

from dptext_spark.config.requirements import (
    ALONE,
    COUNTED,
    FIGURES,
    MEANING,
    Metric,
    Requirement,
    Standing,
    Verdict,
    contradictions,
    is_restricted,
    named_requirement,
    of_metrics,
)

LIMIT = 0.5
# A value that meets `<= 0.5`, one that does not, none; and the same of estimates, by their upper bound.
FOUND: dict[str, tuple[list[Metric], Standing]] = {
    "met": ([Metric("x", 0.5)], "holds"),
    "missed": ([Metric("x", 0.5000001)], "broken"),
    "bound met": ([Metric("x", 0.4, 0.3, 0.5)], "holds"),
    "bound missed": ([Metric("x", 0.4, 0.3, 0.51)], "broken"),
    "no value": ([Metric("x", None)], "not measured"),
    "nothing": ([], "not measured"),
    "of a column only": ([Metric("x", 0.1, column="body")], "not measured"),
    "twice, one missed": ([Metric("x", 0.1), Metric("x", 0.6)], "broken"),
    "twice, one without a value": ([Metric("x", None), Metric("x", 0.1)], "holds"),
}
# (figure, whether a budget bounds ε of a record, whether it is restricted).
KINDS = [
    ("names_kept", False, True), ("names_kept", True, True), ("record_epsilon", False, True), ("record_epsilon", True, False),
    ("ledger_epsilon", False, False), ("ledger_epsilon", True, False),
]  # fmt: skip


def limits(*texts: str) -> list[Requirement[str]]:
    return [named_requirement(text, FIGURES, "a run") for text in texts]


def named(name: str, found: list[Metric]) -> list[Metric]:
    return [Metric(name, one.value, one.lower, one.upper, one.column) for one in found]


@pytest.mark.parametrize(("name", "bounded", "restricted"), KINDS)
@pytest.mark.parametrize("case", FOUND)
def test_one_requirement(name: str, bounded: bool, restricted: bool, case: str) -> None:
    found, expected = FOUND[case]
    made = Verdict.of(limits(f"{name} <= {LIMIT}"), named(name, found), bounded=bounded)
    (one,) = made.judged
    assert (one.requirement, one.standing, one.restricted) == (f"{name} <= {LIMIT}", expected, restricted)
    assert made.standing == {"holds": "holds", "broken": "broken", "not measured": "not decided"}[expected]
    assert made.bits == (restricted and expected != "not measured")
    # A figure that may not be shown is in nothing that the verdict holds.
    values = [each.value for each in found if each.value is not None and each.column is None]
    assert one.shown == ("" if restricted or not values else f"{max(values):.10g}")
    written = json.dumps(made.as_dict()) + repr(made)
    for value in values if restricted else []:
        if value != LIMIT:
            assert f"{value:.10g}" not in written


STANDINGS: tuple[Standing, ...] = ("holds", "broken", "not measured")


@pytest.mark.parametrize("several", list(itertools.product(STANDINGS, repeat=3)))
def test_several_come_to_the_worst_and_not_measured_decides_nothing(several: tuple[Standing, ...]) -> None:
    names = ("names_kept", "bayes_success", "ledger_epsilon")
    value = {"holds": 0.1, "broken": 0.9, "not measured": None}
    found = [Metric(name, value[standing]) for name, standing in zip(names, several, strict=True)]
    made = Verdict.of(limits(*(f"{name} <= 0.5" for name in names)), found)
    assert tuple(one.standing for one in made.judged) == several
    if "broken" in several:
        expected = "broken"
    elif "not measured" in several:
        expected = "not decided"
    else:
        expected = "holds"
    assert made.standing == expected
    assert len(made.broken) == several.count("broken")
    assert len(made.not_measured) == several.count("not measured")
    assert made.bits == sum(standing != "not measured" for standing in several[:2])


def test_without_requirements_nothing_is_decided_and_what_is_wrong_breaks_all() -> None:
    assert Verdict.of([], []).standing == "not decided"
    met = [Metric("names_kept", 0.0)]
    assert Verdict.of(limits("names_kept <= 0"), met).standing == "holds"
    assert Verdict.of(limits("names_kept <= 0"), met, unfinished=True).standing == "not decided"
    wrong = Verdict.of(limits("names_kept <= 0"), met, against=["its guarantee is refuted"])
    assert (wrong.standing, wrong.broken, wrong.why) == ("broken", [], ["its guarantee is refuted"])


def test_metrics_are_read_with_their_bounds_and_an_audit_stands_beside_the_run() -> None:
    figures = {
        "original_share": 0.5, "speed": 1.0, "audit_original_share": 0.75, "audit_context_success": 0.25,
        "audit_context_success_lower": 0.125, "audit_context_success_upper": 0.375,
    }  # fmt: skip
    assert of_metrics(figures, COUNTED) == [
        Metric("original_share", 0.5), Metric("original_share", 0.75), Metric("context_success", 0.25, 0.125, 0.375),
    ]  # fmt: skip
    assert not [name for name in FIGURES if name.endswith(("_lower", "_upper"))]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("bleu <= 3", "bleu >= 3"), 0), (("bleu < 3", "bleu >= 3"), 1), (("bleu <= 3", "bleu > 3"), 1),
        (("bleu < 3", "bleu > 3"), 1), (("bleu <= 3", "bleu >= 4"), 1), (("bleu <= 4", "bleu >= 3"), 0),
        (("bleu <= 3", "rows >= 4"), 0), (("bleu <= 3", "bleu <= 4"), 0), (("bleu >= 4", "bleu <= 5", "bleu < 3"), 1),
    ],
)  # fmt: skip
def test_limits_that_leave_no_value(texts: tuple[str, ...], expected: int) -> None:
    assert len(list(contradictions(limits(*texts)))) == expected


def test_every_figure_of_an_audit_is_restricted_and_has_a_sentence_of_its_own() -> None:
    assert all(is_restricted(name, bounded=bounded) for name in MEANING for bounded in (False, True))
    assert set(ALONE) < set(MEANING)
    starts = ("of those", "of which", "the same", "both", "share of these")
    leaning = [name for name, said in MEANING.items() if said.startswith(starts)]
    assert [name for name in leaning if name not in ALONE] == []
