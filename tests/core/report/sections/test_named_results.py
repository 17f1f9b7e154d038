"""Results of our own audits as a report shows them: nothing measured is lost, baselines stand beside what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from dptext_spark.audit.attacks.attribute import attribute_attack
from dptext_spark.audit.attacks.membership import membership_attack
from dptext_spark.audit.utility.accuracy import Both, downstream_accuracy
from dptext_spark.audit.utility.encoder_similarity import EncoderSimilarity
from dptext_spark.audit.utility.learning import TextClassifier
from dptext_spark.audit.utility.scoring import Estimate
from dptext_spark.audit.utility.text_metrics import VectorSimilarity, text_overlap
from dptext_spark.report.blocks import Chart
from dptext_spark.report.sections.measured import measured
from dptext_spark.report.sections.named_results import arranged
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
        VectorSimilarity(
            Estimate(0.5, 0.4, 0.6), {"p5": 0.1, "p95": 0.8}, others=0.3, unprotected=1.0, records=9, left_out=2, exact=False,
            confidence=0.95, resamples=1_000, restricted=True,
        ),
        EncoderSimilarity(
            Estimate(0.5, 0.4, 0.6), {"p5": 0.1, "p95": 0.8}, others=0.3, unprotected=1.0,
            matched={"precision": Estimate(0.7, 0.65, 0.75), "F1": Estimate(0.71, 0.66, 0.76)},
            other_matched={"precision": 0.31, "F1": 0.32}, records=9, left_out=2, exact=False, confidence=0.95, resamples=1_000,
            restricted=True,
        ),
    )  # fmt: skip
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
        ("vector similarity", "cosine", "a record and another's replacement"),
        ("encoder similarity", "cosine", "a record and another's replacement"),
    ],
)
def test_no_number_is_lost(results: dict[str, dict[str, Any]], name: str, group: str, baseline: str) -> None:
    given = results[name]
    before = {**given}
    shown = arranged(given)
    assert given == before
    assert baseline in shown["baselines"]
    assert shown[group]
    lost = set(numbers({key: part for key, part in given.items() if key != "settings"})) - set(numbers(shown))
    assert lost <= {float(given["resamples"])}
    # Nor is one shown twice: what stands in a group or among the baselines is gone from where it was.
    assert not {"random", "unprotected", "other_bleu", "majority"} & shown.keys()


def test_the_first_group_is_the_one_with_baselines(results: dict[str, dict[str, Any]]) -> None:
    shown = arranged(results["attribute attack"])
    groups = [
        name
        for name, part in shown.items()
        if isinstance(part, dict) and name not in ("baselines", "says", "settings")
    ]
    assert groups == ["accuracy", "F1, mean of the classes"]
    assert (shown["rows learnt from"], shown["rows tried on"]) == (80, 10)


def test_another_shape_stays_as_it_is() -> None:
    for one in ({"name": "attribute attack", "success": 0.5}, {"name": "anything", "figures": {"a": 1.0}}):
        assert arranged(one) is one


def test_each_chart_says_what_it_shows_once_and_how_sure_it_is(results: dict[str, dict[str, Any]]) -> None:
    pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
    first, second = (
        block for block in measured(results["vector similarity"], "similarity") if isinstance(block, Chart)
    )
    assert "as the cosine of the mean vectors" in first.shows
    assert "hatched ones" in first.read
    assert "with a confidence of 0.95" in first.read
    assert second.shows.startswith("So many percent of the records")
    assert second.read == "Each bar is a figure of its own. Estimated; no bounds were computed."


def test_matched_sub_words_are_a_chart_of_their_own(results: dict[str, dict[str, Any]]) -> None:
    pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
    drawn = [one for one in measured(results["encoder similarity"], "similarity") if isinstance(one, Chart)]
    assert [one.title for one in drawn][2].endswith("matched by their vectors (BERTScore)")
    assert "No weights for rare words" in drawn[2].shows
    rows = {row[0]: row[1] for row in drawn[2].table.rows}
    assert rows == {
        "precision": "0.7", "F1": "0.71", "precision, with another record's": "0.31", "F1, with another record's": "0.32",
    }  # fmt: skip
