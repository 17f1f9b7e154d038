"""Results of other audits in a report: read strictly, shown by what they are, and held back where they are restricted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.audit.results import OtherResult, WordAttack
from dptext_spark.errors import DataError
from dptext_spark.report.deniability_section import Model
from dptext_spark.report.facts import gathered, read_results, require_run, result_of
from tests.core.report.accounts import METRICS, row, small_model

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
