"""A planned run: its steps and places are kept as text; no condition on a text is shown, and nothing is read."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml

from dptext_spark.config.load import parse_config
from dptext_spark.errors import SettingsError
from dptext_spark.report.terminal.plan import Plan, plan, plan_text
from tests.frozen.written import assert_as_frozen

OUTPUT = {"path": "/none/out"}
ASKED = {
    "require": ["names_kept <= 0.02", "bleu >= 5"],
    "approval": {"owner": "Customer care", "expires": "2999-01-31"},
}
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "keyed": {
        "input": {"table": "s.t", "where": "lang = 'en'"}, "row_key": "id", "record_key": "customer", "consistency": "record",
        "output": {**OUTPUT, "other_columns": ["day", "LANG"], "mode": "append"},
    },
    **{
        f"other columns {columns}": {"row_key": "id", "output": {**OUTPUT, "other_columns": columns}}
        for columns in ("drop", ["stars"], "keep")
    },
    "dataset": {"consistency": "dataset"},
    "importance": {"importance": {"percent": 30}},
    "limit": {"ledger": {"path": "/none/budget", "limit": 2}},
    "requirements": {**ASKED, "row_key": "id"},
    "stream": {"mode": "streaming", "row_key": "id", "stream": {"max_files": 5, "duplicates": "drop"}},
    "incremental": {"mode": "incremental", "row_key": "id"},
    "condition on the text": {"input": {"path": "/none/in", "where": "lang = 'en' AND Body LIKE '%MARKER%'"}},
}  # fmt: skip


def plan_of(**more: Any) -> Plan:
    least = {"input": {"path": "/none/in"}, "columns": ["body"], "output": OUTPUT}
    return plan(parse_config({**least, **more}))


@pytest.mark.long
def test_steps_and_places_are_as_they_were() -> None:
    texts = {}
    for name, settings in CASES.items():
        planned = plan_of(**settings).as_dict()
        places = (f"{place['where']} ({place['share']})" for place in planned["writes"])
        texts[name] = "\n".join([*planned["steps"], "writes:", *places])
    assert_as_frozen("terminal", "plan", texts)


def test_a_plan_is_json_and_its_text_holds_all_of_it_in_the_console() -> None:
    planned = plan_of(**ASKED)
    assert set(json.loads(json.dumps(planned.as_dict()))) == {
        "settings", "guarantee", "certificate", "disclosure", "steps", "writes", "artifact",
    }  # fmt: skip
    assert planned.facts.disclosure is not None
    for columns in (60, 100):
        text = plan_text(planned, columns).split("WHAT WOULD HAPPEN")[1]
        assert max(map(len, text.splitlines()[:-1])) <= columns
        flat = " ".join(text.split())
        assert all(one in flat for _, some in planned.facts.disclosure.sections for one in some)
    settings = yaml.safe_load(plan_text(planned).split("\n\n")[0].partition("\n")[2])
    assert {name: settings[name] for name in ASKED} == ASKED
    assert not ASKED.keys() & yaml.safe_load(plan_text(plan_of()).split("\n\n")[0].partition("\n")[2]).keys()


def test_a_key_file_is_checked(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^key\.file: "):
        plan_of(key={"file": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("others", "where", "hidden"),
    [
        ("drop", "body like '70123'", True),
        ("drop", "salary > 70123", True),
        ("drop", "id > 70123", False),
        (["lang"], "lang = 'en' AND salary > 70123", True),
        (["Salary"], "lang = 'en' OR salary.net > 70123", True),
        (["Salary"], "salary.net > 70123", False),
        ("keep", "salary > 70123", False),
    ],
)
def test_a_condition_on_a_text_or_a_column_that_is_left_out_is_not_shown(
    others: str | list[str], where: str, hidden: bool
) -> None:
    planned = plan_of(
        input={"path": "/none/in", "where": where}, row_key="id", output={**OUTPUT, "other_columns": others}
    )
    for text in (json.dumps(planned.as_dict()), plan_text(planned), planned._repr_html_()):
        assert ("70123" not in text) == hidden


def test_a_notebook_shows_steps_places_and_promises_escaped() -> None:
    planned = plan_of(
        input={"path": "/none/<b>in", "where": "body LIKE '%secret%' AND lang = '<script>'"},
    )
    html = planned._repr_html_()
    for word in ("secret", "<script", "<b>"):
        assert word not in html
    texts = [unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", html)]
    assert list(zip(texts[::2], texts[1::2], strict=True)) == [
        *((f"step {number}", step) for number, step in enumerate(planned.steps, start=1)),
        *((place.where, f"{place.what} (to be shared: {place.share})") for place in planned.writes),
        ("guarantee", str(planned.facts.guarantee)),
        ("certificate", planned.as_dict()["certificate"]["sentence"]),
    ]
    uncertified = replace(planned, facts=replace(planned.facts, certificate=None))._repr_html_()
    assert "dptext certify" in uncertified
