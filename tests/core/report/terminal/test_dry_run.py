"""A dry run fits one screen, whatever the settings; what the screen says is kept as text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.model.dry_run import Checked, only_the_run
from dptext_spark.report.terminal.console import WIDTH
from dptext_spark.report.terminal.plan import LINES, Plan, as_record, full, plan, screen
from tests.frozen.written import assert_as_frozen, beyond


def dry(names: tuple[str, ...] = ("id", "body", "day"), **more: Any) -> tuple[Plan, Checked]:
    least = {
        "input": {"path": "/data/in", "format": "parquet"}, "columns": ["body"], "row_key": "id",
        "mechanism": {"epsilon": 2.0}, "output": {"path": "/data/out"},
    }  # fmt: skip
    config = parse_config({**least, **more})
    checked = Checked(
        "pyarrow", "the footers of 1 of 8 files", names, names, "new", tuple(only_the_run(config))
    )
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
    "requirements": {"require": REQUIRED, "approval": {"approver": "Officer"}},
    "oov keep": {"policy": {"oov": "keep"}},
    "oov and numbers keep": {"policy": {"oov": "keep", "numbers": "keep"}},
    "stop words drawn": {"policy": {"stop_words": "draw"}},
    "condition on the text": {"input": {"path": "/in", "where": "lower(body) = 'zqxmarker'"}},
    "condition on a column": {"input": {"path": "/in", "where": "salary = 'zqxmarker'"}},
    "ledger, path": {"ledger": {"path": "/budget", "limit": 3}},
    "ledger": {"ledger": {"limit": 3}},
    "ledger, table": {"ledger": {"table": "main.budget"}},
}


@pytest.mark.long
def test_screens_are_as_they_were() -> None:
    """The plain one whole, of the others the lines that it has not."""
    texts: dict[str, str] = {}
    for name, settings in SCREENS.items():
        shown = re.sub(r"all \d+ points of.*", "all N points of", screen(*dry(**settings), 200))
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
        {"input": {"path": DEEP + "in", "format": "csv", "where": "(day > 3) AND " * 40 + "(day < 9)"},
         "output": {"path": DEEP + "out"}},
        {"consistency": "record", "record_key": "day", "policy": {"oov": "keep", "numbers": "keep"},
         "mechanism": {"epsilon": 20.0, "remap": "bayes"}, "ledger": {"path": DEEP + "ledger", "limit": 50}},
        {"require": REQUIRED[:2], "approval": {"approver": "o" * 300}, "row_key": None},
        {"importance": {"percent": 30}, "row_key": None, "policy": {"mask": [{"file": "/none"}]}},
        {"mode": "streaming", "input": {"path": "/data/in"}, "record_key": "day"},
        {"mechanism": {"name": "tem", "epsilon": 11}, "policy": {"stop_words": "draw", "names": {"lists": True}}},
    ],
)  # fmt: skip
def test_it_fits(settings: dict[str, Any], columns: int) -> None:
    lines = screen(*dry(**settings), columns).splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= columns
    heads = [line.split("  ")[0] for line in lines if line[0] != " "]
    assert heads[1:4] == ["input", "text", "rows"]
    assert heads[-1] == "next"


def test_the_whole_has_settings_and_every_sentence_and_programs_get_what_was_checked() -> None:
    planned, checked = dry()
    text = " ".join(full(planned, checked).split())
    assert planned.facts.disclosure is not None
    assert all(" ".join(one.split()) in text for _, some in planned.facts.disclosure.sections for one in some)
    assert "SETTINGS IN EFFECT input: path: /data/in" in text
    assert all(sentence in text for sentence in (checked.read, *checked.open))
    record = as_record(planned, checked)
    assert {name: value for name, value in record.items() if name != "checked"} == planned.as_dict()
    assert record["checked"] == {
        "by": "pyarrow", "read": "the footers of 1 of 8 files", "columns": ["id", "body", "day"], "kept": ["id", "body", "day"],
        "target": "new", "open": list(checked.open), "slow": "",
    }  # fmt: skip
