"""Results of our own audits as a report shows them: nothing measured is lost, baselines stand beside what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from dptext_spark.audit.attribute import attribute_attack
from dptext_spark.audit.learning import TextClassifier
from dptext_spark.audit.membership import membership_attack
from dptext_spark.audit.text_metrics import text_overlap
from dptext_spark.audit.utility import Both, downstream_accuracy
from dptext_spark.report.named_results import arranged
from tests.core.audit.labelled_texts import labelled, replaced


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, Any]]:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")
    pytest.importorskip("rouge_score", reason="the extra [audit] is not installed")
    texts, moods = labelled(100, 1)
    both = Both(texts, replaced(texts, 0.5, 2))
    found = (
        downstream_accuracy(TextClassifier(), both, moods, both, moods),
        attribute_attack(both, moods),
        membership_attack(TextClassifier(), both, moods),
        text_overlap(both.plain[:9], both.private[:9]),
    )
    return {one.name: one.as_dict() for one in found}


def numbers(value: Any) -> list[float]:
    """Every number in a result."""
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers(part)]
    if isinstance(value, list | tuple):
        return [number for part in value for number in numbers(part)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


@pytest.mark.parametrize(
    ("name", "group", "baseline"),
    [
        ("downstream accuracy", "accuracy", "always the commonest label"),
        ("attribute attack", "accuracy", "reads original text"),
        ("membership attack", "AUC", "guessing"),
        ("text overlap", "ROUGE, F1", "ROUGE-1, with another record's"),
    ],
)
def test_no_number_is_lost(results: dict[str, dict[str, Any]], name: str, group: str, baseline: str) -> None:
    given = results[name]
    before = {**given}
    shown = arranged(given)
    assert given == before
    assert baseline in shown["baselines"] and shown[group]
    lost = set(numbers({key: part for key, part in given.items() if key != "settings"})) - set(numbers(shown))
    # Of the membership attack nothing but the interval of making them; how often rows were drawn anew is not shown.
    assert lost <= {float(given["resamples"])}


def test_the_first_group_is_the_one_with_baselines(results: dict[str, dict[str, Any]]) -> None:
    shown = arranged(results["attribute attack"])
    groups = [
        name
        for name, part in shown.items()
        if isinstance(part, dict) and name not in ("baselines", "settings")
    ]
    assert groups == ["accuracy", "F1, mean of the classes"]
    assert (shown["rows learnt from"], shown["rows tried on"]) == (80, 10)


def test_another_shape_stays_as_it_is() -> None:
    for one in ({"name": "attribute attack", "success": 0.5}, {"name": "anything", "figures": {"a": 1.0}}):
        assert arranged(one) is one
