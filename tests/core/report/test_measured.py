"""Results of our own audits as a report shows them: nothing measured is lost, baselines stand beside what was measured."""

from __future__ import annotations

import json
from dataclasses import astuple, replace
from typing import Any

import pytest

from dptext_spark.audit.attacks.inference import attribute_attack, membership_attack
from dptext_spark.audit.results import AuditResult, Estimate, Figures, Group, OtherResult, WordAttack
from dptext_spark.audit.text_classifier import LEARNT, Pair, TextClassifier, downstream_accuracy
from dptext_spark.audit.text_utility import EncoderSimilarity, VectorSimilarity, text_overlap
from dptext_spark.report.audits_section import measured, utility
from dptext_spark.report.blocks import Chart, Table
from tests.core.audit.labelled_texts import labelled, replaced


@pytest.fixture(scope="module")
def results() -> dict[str, AuditResult]:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")
    pytest.importorskip("rouge_score", reason="the extra [audit] is not installed")
    texts, moods = labelled(100, 1)
    both = Pair(texts, replaced(texts, 0.5, 2))
    found = (
        downstream_accuracy(TextClassifier(), both, moods, both, moods),
        attribute_attack(both, moods),
        membership_attack(TextClassifier(), both, moods),
        text_overlap(both.plain[:9], both.private[:9]),
        VectorSimilarity(
            mean=Estimate(0.5, 0.4, 0.6), percentiles={"p5": 0.1, "p95": 0.8}, others=0.3, unprotected=1.0, records=9, left_out=2,
            confidence=0.95, resamples=1_000,
        ),
        EncoderSimilarity(
            mean=Estimate(0.5, 0.4, 0.6), percentiles={"p5": 0.1, "p95": 0.8}, others=0.3, unprotected=1.0,
            matched={"precision": Estimate(0.7, 0.65, 0.75), "F1": Estimate(0.71, 0.66, 0.76)},
            other_matched={"precision": 0.31, "F1": 0.32}, records=9, left_out=2, exact=False, confidence=0.95, resamples=1_000,
            restricted=True,
        ),
    )  # fmt: skip
    return {one.name: one for one in found}


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers(part)]
    if isinstance(value, list | tuple):
        return [number for part in value for number in numbers(part)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def shown_numbers(figures: Figures) -> list[float]:
    return numbers([astuple(one)[:3] if isinstance(one, Estimate) else one for one in figures.values()])


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
def test_no_number_is_lost(results: dict[str, AuditResult], name: str, group: str, baseline: str) -> None:
    given = results[name]
    found = given.shown()
    assert found.groups[0].name == group
    assert baseline in found.baselines
    shown = [*(one.figures for one in found.groups), found.baselines, found.singles]
    own = {key: part for key, part in given.as_dict().items() if key not in ("settings", "confidence")}
    lost = set(numbers(own)) - {number for part in shown for number in shown_numbers(part)}
    assert lost <= {float(given.resamples or 0)}
    # Nor is one shown twice: what stands in a group or among the baselines is none of the single ones.
    assert not {"random", "unprotected", "other_bleu", "majority"} & found.singles.keys()


def test_results_are_written_and_read_again(results: dict[str, AuditResult]) -> None:
    found = results["attribute attack"].shown()
    assert [one.name for one in found.groups] == ["accuracy", "F1, mean of the classes"]
    assert (found.singles["rows for training"], found.singles["rows for testing"]) == (80, 10)
    for one in results.values():
        written = json.loads(json.dumps(one.as_dict(), allow_nan=False))
        assert type(one).from_dict(written) == one
        assert type(one).from_dict({**written, "noted": 3}).as_dict() == {**one.as_dict(), "noted": 3}
        del written["measures"]
        with pytest.raises(ValueError, match="validation error"):
            type(one).from_dict(written | {"exact": "no"})


def test_the_shape_of_another_result_is_read_off_its_figures() -> None:
    given = {
        "name": "anything", "measures": "Something.", "exact": True, "restricted": False, "unit": "share", "records": 3,
        "figures": {"a": 1.0, "b": {"value": 0.5, "lower": 0.4, "upper": 0.6}}, "whole": {"value": 2, "lower": 1, "upper": 3},
        "bits": {"c": 4}, "axes": {"bits": "bits told"}, "says": {"bits": "More."}, "baselines": {"chance": 0.25},
        "no_group": {"a": 1.0, "b": "text"}, "settings": {"seed": 7},
    }  # fmt: skip
    found = OtherResult.from_dict(given)
    shown = found.shown()
    first = Group("", {"a": 1.0, "b": Estimate(0.5, 0.4, 0.6)}, "share")
    assert shown.groups == [first, Group("bits", {"c": 4}, "bits told", "More.")]
    assert shown.baselines == {"chance": 0.25}
    assert shown.singles == {"records": 3, "whole": Estimate(2, 1, 3)}
    assert found.as_dict() == given


def test_charts_say_how_sure_they_are_and_sub_words_have_their_own(results: dict[str, AuditResult]) -> None:
    pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")

    def charts(name: str) -> list[Chart]:
        return [block for block in measured(results[name], "similarity") if isinstance(block, Chart)]

    first, second = charts("vector similarity")
    assert ["confidence of 0.95" in chart.read for chart in (first, second)] == [True, False]
    assert first.shows != second.shows
    matched = charts("encoder similarity")[2].table
    assert {row[0]: row[1] for row in matched.rows} == {
        "precision": "0.7", "F1": "0.71", "precision, with another record's": "0.31", "F1, with another record's": "0.32",
    }  # fmt: skip


def test_usefulness_stands_beside_the_attacks_on_the_same_table(results: dict[str, AuditResult]) -> None:
    audits = {"downstream accuracy": "r1", "membership attack": "r1", "attribute attack": "r2"}
    learnt, membership, other = (replace(results[name], audit=audit) for name, audit in audits.items())
    words = WordAttack(name="each word alone", success=0.25, lower=0.2, upper=0.3, audit="r1")
    blocks = utility([learnt], "", [membership, other, words, replace(words, audit=None)]).blocks
    table = next(block for block in blocks if isinstance(block, Table))
    assert [row[0] for row in table.rows] == [*LEARNT.values(), "always the commonest label"]
    assert [row[2:] for row in table.rows[1:]] == [("each word alone", "0.25 (0.2 to 0.3)"), *[("", "")] * 3]
    assert table.rows[0][2] == "membership attack: a classifier trained on privatized text"
    assert table.rows[0][1].startswith(f"{learnt.accuracy['plain/plain'].value:.4g} (")
    alone = utility([results["downstream accuracy"]], "", [words]).blocks
    assert not any(isinstance(block, Table) and "what an adversary finds" in block.head for block in alone)
