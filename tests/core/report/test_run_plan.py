"""A planned run and the screen of a dry run: kept as text; no condition on a text is shown, nothing is read, and it fits."""

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
from dptext_spark.model.table_checks import DryRunResult, only_the_run
from dptext_spark.report.console import LINES, WIDTH
from dptext_spark.report.run_plan import Plan, as_record, plan
from tests.frozen.written import assert_as_frozen, beyond

OUTPUT = {"path": "/none/out"}
APPROVAL = {"owner": "Customer care", "expires": "2999-01-31"}
ASKED = {"require": ["names_kept <= 0.02", "bleu >= 5"], "approval": APPROVAL}
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "keyed": {
        "input": {"table": "s.t", "where": {"lang": "en"}}, "row_key": "id", "record_key": "customer", "consistency": "record",
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
    "condition on the text": {"input": {"path": "/none/in", "where": {"lang": "en", "Body": "MARKER"}}},
}  # fmt: skip


def plan_of(**more: Any) -> Plan:
    least = {"input": {"path": "/none/in"}, "columns": ["body"], "output": OUTPUT}
    return plan(parse_config({**least, **more}))


def settings_in(planned: Plan) -> str:
    return str(planned).split("settings in effect\n")[1].split("\n\n")[0]


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
        text = " ".join(planned.screen().text(columns, full=True).split())
        assert all(each in text for _, some in planned.facts.disclosure.sections for each in some)
    settings, without = (yaml.safe_load(settings_in(text)) for text in (planned, plan_of()))
    assert {name: settings[name] for name in ASKED} == ASKED
    assert not ASKED.keys() & without.keys()


def test_a_key_file_is_checked(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^key\.file: "):
        plan_of(key={"file": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("others", "where", "hidden"),
    [
        ("drop", {"body": "70123"}, True),
        ("drop", {"salary": 70123}, True),
        ("drop", {"id": {"gt": 70123}}, False),
        (["lang"], {"lang": "en", "salary": 70123}, True),
        (["Salary"], {"salary.net": 70123}, False),
        ("keep", {"salary": [70123, 5]}, False),
    ],
)
def test_a_condition_on_a_text_or_a_column_that_is_left_out_is_not_shown(
    others: str | list[str], where: dict[str, Any], hidden: bool
) -> None:
    output = {**OUTPUT, "other_columns": others}
    planned = plan_of(input={"path": "/none/in", "where": where}, row_key="id", output=output)
    for text in (json.dumps(planned.as_dict()), str(planned), planned._repr_html_()):
        assert ("70123" not in text) == hidden


def test_a_notebook_shows_promises_and_places_escaped() -> None:
    planned = plan_of(input={"path": "/none/<b>in", "where": {"body": "secret", "lang": "<script>"}})
    html = planned._repr_html_()
    for word in ("secret", "<script", "<b>"):
        assert word not in html
    texts = [unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", html)]
    cells = dict(zip(texts[::2], texts[1::2], strict=True))
    assert cells["guarantee"] == str(planned.facts.guarantee)
    assert cells["certificate"] == planned.as_dict()["certificate"]["sentence"]
    for place in planned.writes:
        assert cells[place.name] == f"{place.where} (to be shared: {place.share})"
    uncertified = replace(planned, facts=replace(planned.facts, certificate=None))._repr_html_()
    assert "dptext certify" in uncertified


def dry(names: tuple[str, ...] = ("id", "body", "day"), **more: Any) -> tuple[Plan, DryRunResult]:
    least = {
        "input": {"path": "/data/in", "format": "parquet"}, "columns": ["body"], "row_key": "id",
        "mechanism": {"epsilon": 2.0}, "output": {"path": "/data/out"},
    }  # fmt: skip
    config = parse_config({**least, **more})
    checked = DryRunResult("the schema of its files", names, names, "new", tuple(only_the_run(config)))
    return plan(config), checked


LONG = tuple(f"a_column_with_quite_a_long_name_{n}" for n in range(200))
DEEP = "/data/" + "folder/" * 40
REQUIRED = ["names_kept <= 0.1", "context_success <= 0.5", "ledger_epsilon <= 5"]
SCREENS: dict[str, dict[str, Any]] = {
    "plain": {},
    "record key": {"record_key": "day"},
    "no row key": {"row_key": None},
    "no row key, table": {"row_key": None, "input": {"table": "a.b"}},
    "no row key, requirements": {"row_key": None, "require": REQUIRED},
    "requirements": {"require": REQUIRED},
    "oov keep": {"policy": {"oov": "keep"}},
    "oov and numbers keep": {"policy": {"oov": "keep", "numbers": "keep"}},
    "stop words drawn": {"policy": {"stop_words": "draw"}},
    "condition on the text": {"input": {"path": "/in", "where": {"body": "zqxmarker"}}},
    "condition on a column": {"input": {"path": "/in", "where": {"salary": "zqxmarker"}}},
    "ledger, path": {"ledger": {"path": "/budget", "limit": 3}},
    "ledger": {"ledger": {"limit": 3}},
    "ledger, table": {"ledger": {"table": "main.budget"}},
}


@pytest.mark.long
def test_screens_are_as_they_were() -> None:
    texts: dict[str, str] = {}
    for name, settings in SCREENS.items():
        planned, checked = dry(**settings)
        shown = planned.screen(checked).text(200).replace(planned.artifact, "/model")
        assert "zqxmarker" not in shown
        texts[name] = beyond(shown, texts.get("plain", ""))
    assert_as_frozen("terminal", "dry run", texts)


@pytest.mark.long
@pytest.mark.parametrize("columns", [60, WIDTH, 200])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"columns": list(LONG[:100]), "names": ("id", *LONG)},
        {"input": {"path": DEEP + "in", "format": "csv", "where": {"id": ["a long value of a list"] * 40}},
         "output": {"path": DEEP + "out"}},
        {"consistency": "record", "record_key": "day", "policy": {"oov": "keep", "numbers": "keep"},
         "mechanism": {"epsilon": 20.0, "remap": "bayes"}, "ledger": {"path": DEEP + "ledger", "limit": 50}},
        {"require": REQUIRED[:2], "row_key": None},
        {"importance": {"percent": 30}, "row_key": None, "policy": {"mask": [{"file": "/none"}]}},
        {"mode": "streaming", "input": {"path": "/data/in"}, "record_key": "day"},
        {"mechanism": {"name": "tem", "epsilon": 11}, "policy": {"stop_words": "draw", "names": {"lists": True}}},
    ],
)  # fmt: skip
def test_it_fits(settings: dict[str, Any], columns: int) -> None:
    planned, checked = dry(**settings)
    lines = planned.screen(checked).text(columns).splitlines()
    assert len(lines) <= LINES
    assert max(len(line) for line in lines if "/" not in line) <= columns
    heads = [line.split()[0] for line in lines[1:] if line[2] != " "]
    assert (*heads[:2], heads[-1]) == ("drawn", "rows", "next")
    assert planned.facts.disclosure is not None
    assert heads.count("WARNING") == len(planned.facts.disclosure.under("Warnings"))
    assert " ".join(str(planned.facts.guarantee).split()) in " ".join(" ".join(lines).split())


@pytest.mark.long
def test_the_whole_has_settings_and_every_sentence_and_programs_get_what_was_checked() -> None:
    planned, checked = dry()
    text = " ".join(planned.screen(checked).text(full=True).split())
    assert all(sentence in text for sentence in ("input: path: /data/in", checked.read, *checked.open))
    record = as_record(planned, checked)
    assert {name: value for name, value in record.items() if name != "checked"} == planned.as_dict()
    assert record["checked"] == {
        "read": "the schema of its files", "columns": ["id", "body", "day"], "kept": ["id", "body", "day"],
        "target": "new", "open": list(checked.open), "slow": "",
    }  # fmt: skip
