"""Results of our own and other audits in a report: read strictly, nothing measured is lost, and held back where restricted."""

from __future__ import annotations

import json
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.audit.attacks.inference import attribute_attack, membership_attack
from dptext_spark.audit.results import AuditResult, Estimate, Figures, Group, OtherResult, WordAttack
from dptext_spark.audit.text_classifier import LEARNT, Pair, TextClassifier, downstream_accuracy
from dptext_spark.audit.text_utility import EncoderSimilarity, VectorSimilarity, text_overlap
from dptext_spark.errors import DataError
from dptext_spark.report.audits_section import measured, utility
from dptext_spark.report.blocks import Chart, Table
from dptext_spark.report.deniability_section import Model
from dptext_spark.report.facts import gathered, read_results, require_run, result_of
from tests.core.audit.labelled_texts import labelled, replaced
from tests.core.report.accounts import METRICS, row, small_model


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


ATTACK: dict[str, Any] = {
    "name": "An attack on the neighbours", "measures": "What is found.", "knows": "The adversary knows all.",
    "success": 0.25, "lower": 0.2, "upper": 0.3, "random": 0.1, "unprotected": 1.0, "exact": False, "draws": None,
    "confidence": 0.95, "restricted": True,
}  # fmt: skip
UTILITY: dict[str, Any] = {
    "name": "Accuracy of a classifier", "measures": "How often it is right", "exact": False, "restricted": False,
    "figures": {"plain to plain": 0.81, "private to private": 0.72}, "baselines": {"commonest label": 0.5}, "texts": 872,
}  # fmt: skip
COUNTED: dict[str, Any] = {"name": "Linked records", "measures": "Who", "exact": True, "restricted": False,
                           "bits": {"length": 3.5}, "records": 10}  # fmt: skip
SAMPLED: dict[str, Any] = {
    "name": "downstream accuracy", "measures": "How often a label is predicted.", "exact": False, "restricted": False,
    "classes": 2, "train_rows": 64, "test_rows": 16, "resamples": 1_000, "confidence": 0.95,
    "accuracy": {"plain/plain": {"value": 0.8125, "lower": 0.75, "upper": 0.875}},
    "gain": {"private/plain": {"value": -0.0625, "lower": -0.125, "upper": 0.0}},
    "majority": {"value": 0.5, "lower": 0.4375, "upper": 0.5625}, "settings": {"seed": 7},
}  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Model:
    return small_model(words=60)


def test_files_hold_one_result_or_several(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(ATTACK))
    (tmp_path / "two.json").write_text(json.dumps([UTILITY, COUNTED]))
    found = read_results([tmp_path / "one.json", tmp_path / "two.json"])
    assert [one.as_dict() for one in found] == [ATTACK, UTILITY, COUNTED]
    assert [type(one) for one in found] == [WordAttack, OtherResult, OtherResult]


def test_an_audit_of_a_table_is_results_of_its_run(tmp_path: Path) -> None:
    audit = {"audit_id": "r1", "table": "/data/out", "figures": [{"name": "r"}], "results": [ATTACK, COUNTED]}
    (tmp_path / "audit.json").write_text(json.dumps(audit))
    found = read_results([tmp_path / "audit.json"])
    expected = [{**one, "audit": "r1", "table": "/data/out"} for one in (ATTACK, COUNTED)]
    assert [one.as_dict() for one in found] == expected
    other = result_of(UTILITY)
    require_run([*found, other], "r1")
    with pytest.raises(DataError, match=r"^figures: 'r1' .*'/data/out'.* r2 "):
        require_run([other, *found], "r2")


def test_a_result_that_lacks_a_field_of_its_kind_is_shown_as_it_is() -> None:
    partial = {name: value for name, value in SAMPLED.items() if name != "classes"}
    found = result_of(partial)
    assert type(found) is OtherResult
    assert found.as_dict() == partial
    assert [group.name for group in found.shown().groups] == ["accuracy", "gain"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read as JSON"),
        ('{"audit_id": "r1", "figures": []}', "is an audit without results"),
        ("[1]", "lacks name, measures, restricted, exact"),
        (json.dumps({**UTILITY, "restricted": "no"}), "lacks restricted"),
    ],
)
def test_what_is_no_result_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(DataError, match=said):
        read_results([tmp_path / "r.json"])
    with pytest.raises(DataError, match="cannot be read as JSON"):
        read_results([tmp_path / "none.json"])


def test_restricted_results_are_shown_to_insiders_only(model: Model) -> None:
    pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
    pytest.importorskip("jinja2", reason="the extra [audit] is not installed")
    from dptext_spark.report.page import page

    results = [result_of(one) for one in (ATTACK, UTILITY, COUNTED, SAMPLED)]
    record = row(model)
    pages = (page(gathered(record, model="x", results=results, metrics=each)) for each in (None, METRICS))
    shared, whole = pages
    assert ATTACK["name"] not in shared
    assert ATTACK["name"] in whole
    assert "20.00 to 30.00 %" in whole
    assert [text.count("they are on the restricted page") for text in (shared, whole)] == [1, 0]
    # Estimates with their bounds; what may be negative stands in a table.
    figures = ("0.8125", "0.75 to 0.875", "-0.0625", "-0.125 to 0", "0.4375 to 0.5625", "872")
    names = (UTILITY["name"], "private to private", "commonest label", COUNTED["name"], "length")
    assert [part for part in (*names, *figures) if part not in shared] == []
    assert "seed" not in shared
