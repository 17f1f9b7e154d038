"""What is required and approved: refused where it cannot be met or is over, and in nothing that a run is bound by."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.load import load_config
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.disclosure.statement import check_measurable
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.report.run_plan import plan
from tests.core.config.test_model import accepted, refused
from tests.core.names import beginning


def days(number: int) -> str:
    return str(datetime.now(timezone.utc).date() + timedelta(days=number))


def test_they_are_read() -> None:
    approval = {"purpose": "Search", "owner": "DPO", "expires": days(0)}
    config = accepted(require=["names_kept <= 0.02", "ledger_epsilon<20"], approval=approval)
    assert [str(one) for one in config.require] == ["names_kept <= 0.02", "ledger_epsilon < 20"]
    assert config.approval.purpose == "Search"
    assert config.approval.expires == date.fromisoformat(days(0))
    assert accepted(require=None, approval=None) == accepted()


def test_they_are_no_part_of_what_a_run_is() -> None:
    bare = accepted()
    full = accepted(require=["names_kept <= 0"], approval={"purpose": "x", "expires": days(9)})
    assert full.as_dict() == bare.as_dict()
    assert full.spec() == bare.spec()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"require": "names_kept <= 0"}, "require: 'names_kept <= 0' is not valid. Choose a list of requirements"),
        ({"require": [1]}, "require: [1] is not valid. Choose a list of requirements"),
        ({"require": ["names_kep <= 0"]}, "'names_kep' is not a figure of a run or of its table"),
        ({"require": ["bleu > 1", "names_kept = 0"]}, "require[1]: 'names_kept = 0' is not valid. Choose a figure, one of"),
        ({"require": ["bleu <= 0.1", "bleu >= 0.2"]}, "'bleu <= 0.1' and 'bleu >= 0.2' contradict each other"),
        ({"require": ["original_share <= 40"]}, "is never above 1. Choose a limit of at most 1, such as 0.4 for 40 per cent."),
        ({"require": ["original_share < 0"]}, "'original_share < 0' is not valid: original_share is never below 0"),
        ({"require": ["rows <= -1"]}, "rows is never below 0"),
        ({"require": ["bleu <= 101"]}, "bleu is never above 100. Choose a limit of at most 100."),
        ({"require": ["frequency_success <= 0.3"]}, "measured at level dataset only"),
        ({"require": ["record_epsilon <= 3"], "consistency": "dataset"}, "not defined at level dataset"),
        ({"require": ["bayes_success <= 0.3"], "importance": {"percent": 30, "provider": "random"}}, "not measured with"),
        ({"approval": {"expires": days(-1)}}, f"approval.expires: {days(-1)} is in the past"),
        ({"approval": {"expires": "2027-02-30"}}, "approval.expires: '2027-02-30' is not valid"),
        ({"approval": {"expires": 20270101}}, "approval.expires: 20270101 is not valid. Choose a day such as 2027-12-31."),
        ({"approval": {"owner": "two\nlines"}}, "approval.owner: 'two\\nlines' is not valid"),
        ({"approval": {"purpose": " "}}, "Choose a text of at most 300 characters, on one line."),
        ({"approval": {"signed": "x"}}, "approval.signed: no such setting. Choose purpose, owner or expires."),
    ],
)  # fmt: skip
def test_refusals(settings: dict[str, Any], said: str) -> None:
    assert said in refused(**settings)


def test_a_file_and_overrides_name_them(tmp_path: Any) -> None:
    file = tmp_path / "s.yaml"
    least = "input: {path: /in}\ncolumns: [body]\nrow_key: id\noutput: {path: /out}\n"
    file.write_text(f"{least}require:\n  - names_kept <= 0.02\napproval:\n  expires: {days(3)}\n")
    config = load_config(file, ["approval.owner=Care", "require=[bleu >= 5]"])
    assert (config.approval.owner, str(config.approval.expires)) == ("Care", days(3))
    assert [str(one) for one in config.require] == ["bleu >= 5"]


def test_a_budget_gives_every_mechanism_a_figure_of_a_record() -> None:
    require = accepted(require=["record_epsilon <= 9"]).require
    check_measurable(require, Guarantee("metric_dp", 1.0, metric="cosine"), bounded=True)


def test_a_plan_of_such_a_figure_is_refused(tmp_path: Path) -> None:
    beginning(Lexicon.default(), 200).save(tmp_path / "lexicon")
    settings: dict[str, Any] = {"mechanism": {"name": "tem", "epsilon": 9.0}}
    settings["lexicon"] = {"source": str(tmp_path / "lexicon")}
    with pytest.raises(SettingsError, match="'record_epsilon' has no figure by this mechanism"):
        plan(accepted(require=["record_epsilon <= 9"], **settings))
    assert plan(accepted(require=["ledger_epsilon <= 9"], **settings)).facts.guarantee.kind == "metric_dp"


def test_the_statement_says_what_the_answers_release() -> None:
    def released(**settings: Any) -> str:
        facts = RunFacts(config=accepted(**settings), guarantee=Guarantee("epsilon_dp", 1.0))
        return " ".join(disclosure(facts).under("Released in clear"))

    said = released(require=["names_kept <= 0.02", "ledger_epsilon <= 3", "record_epsilon <= 9"])
    assert "Answers to requirements: names_kept <= 0.02; record_epsilon <= 9." in said
    bounded = {"require": ["record_epsilon <= 9"], "budget": {"record": 5, "delta": 1e-6}, "row_key": "id"}
    for settings in ({"require": ["ledger_epsilon <= 3"]}, bounded, {"approval": {"purpose": "x"}}):
        assert "was not measured" not in released(**settings)
