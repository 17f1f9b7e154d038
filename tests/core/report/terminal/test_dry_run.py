"""A dry run fits one screen, whatever the settings, and says on it what the run means for a record."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.model.dry_run import Checked, only_the_run
from dptext_spark.report.terminal.console import WIDTH
from dptext_spark.report.terminal.plan import LINES, Plan, as_record, full, plan, screen

GOLDEN = """\
DRY RUN: no schema, key or target stands against this run. Nothing was written but its model.
input        /data/in (parquet), 3 columns; pyarrow read the footers of 1 of 8 files
text         body
rows         by row_key id
records      record_key is not set: each row is a record of its own
drawn        by custext, ε = 2, at token level; in clear: stop words
guarantee    One drawn word is ε-differentially private with ε = 2 against every other drawn word
             that has the same output set, and against no other word (20 candidates, balanced
             mapping; half of the words share their set with at most 9 others, the least with 0).
             The unit is one occurrence of a word that the policy draws.
certificate  Confirmed: no pair of words that share an output set loses more than N, and 2 is
             claimed
in clear     id, day, beside what words and gaps tell (--full)
output       /data/out (new), to be shared with the disclosure
account      /data/out_audit/shareable, may be shared; ledger /data/_dptext_ledger
restricted   /data/out_audit/restricted, depends on the private text
not checked  only the run can tell whether it has rows, whether id is unique and never NULL, whether
             the lexicon has most of the words, what the ledger has left
next         the same without --dry-run; with --full, too: settings, steps and all N points of
"""


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


@pytest.mark.long
def test_the_screen_of_plain_settings() -> None:
    shown = re.sub(r"more than [\d.]+,", "more than N,", screen(*dry()))
    assert re.sub(r"all \d+ points of.*", "all N points of", shown) + "\n" == GOLDEN


LONG = tuple(f"a_column_with_quite_a_long_name_{n}" for n in range(200))
DEEP = "/data/" + "folder/" * 40


@pytest.mark.long
@pytest.mark.parametrize("columns", [60, WIDTH, 200])
@pytest.mark.parametrize(
    "settings",
    [
        {"columns": list(LONG[:100]), "names": ("id", *LONG)},
        {"input": {"path": DEEP + "in", "format": "csv", "where": "(day > 3) AND " * 40 + "(day < 9)"},
         "output": {"path": DEEP + "out"}},
        {"consistency": "record", "record_key": "day", "policy": {"oov": "keep", "numbers": "keep"},
         "mechanism": {"epsilon": 20.0, "remap": "bayes"}, "ledger": {"path": DEEP + "ledger", "limit": 50}},
        {"require": ["names_kept <= 0.1", "context_success <= 0.5"], "approval": {"approver": "o" * 300}, "row_key": None},
        {"importance": {"percent": 30}, "row_key": None, "policy": {"mask": [{"file": "/none"}]}},
        {"mode": "streaming", "input": {"path": "/data/in"}, "record_key": "day"},
        {"mechanism": {"name": "tem", "epsilon": 11}, "policy": {"stop_words": "draw", "names": {"lists": True}}},
    ],
)  # fmt: skip
def test_it_fits(settings: dict[str, Any], columns: int) -> None:
    given = {name: value for name, value in settings.items() if name != "names"}
    lines = screen(*dry(settings.get("names", ("id", "body", "day")), **given), columns).splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= columns
    heads = [line.split("  ")[0] for line in lines if line[0] != " "]
    assert heads[1:4] == ["input", "text", "rows"]
    assert heads[-1] == "next"


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "records      record_key is not set: each row is a record of its own"),
        ({"record_key": "day"}, "records      by record_key day: all rows that share it are one record"),
        ({"row_key": None}, "rows         row_key is not set: file and position in it tell rows apart"),
        ({"row_key": None, "input": {"table": "a.b"}}, "rows         row_key is not set: the place in the scan tells rows apart"),
        ({"row_key": None}, "no audit     there is no row_key (--full)"),
        ({"row_key": None, "require": ["names_kept <= 0.1", "bayes_success <= 0.5", "ledger_epsilon <= 5"]},
         "no audit     there is no row_key, so that 2 requirements will not be decided (--full)"),
        ({"require": ["names_kept <= 0.1", "context_success <= 0.5", "ledger_epsilon <= 5"], "approval": {"approver": "Officer"}},
         "required     to be signed by Officer: names_kept <= 0.1, context_success <= 0.5 and 1 more"),
        ({"policy": {"oov": "keep"}}, "in clear: stop words, UNKNOWN WORDS"),
        ({"policy": {"oov": "keep", "numbers": "keep"}}, "WARNING      1 of 2: UNKNOWN WORDS ARE RELEASED IN CLEAR"),
        ({"policy": {"stop_words": "draw"}}, "no word is meant to stay in clear"),
        ({"input": {"path": "/in", "where": "lower(body) = 'zqxmarker'"}}, "; where (hidden: it reads body)"),
        ({"input": {"path": "/in", "where": "salary = 'zqxmarker'"}}, "; where (hidden: it reads salary)"),
        ({"ledger": {"path": "/budget", "limit": 3}}, "may be shared; ledger /budget\n"),
        ({"ledger": {"limit": 3}}, "may be shared; ledger /data/_dptext_ledger\n"),
        ({"ledger": {"table": "main.budget"}}, "may be shared; ledger main.budget\n"),
    ],
)  # fmt: skip
def test_what_it_says(settings: dict[str, Any], said: str) -> None:
    shown = screen(*dry(**settings), 200)
    assert said in shown
    assert "zqxmarker" not in shown


def test_the_whole_has_settings_and_every_sentence(tmp_path: Path) -> None:
    planned, checked = dry()
    text = " ".join(full(planned, checked).split())
    assert planned.facts.disclosure is not None
    assert all(" ".join(one.split()) in text for _, said in planned.facts.disclosure.sections for one in said)
    assert "SETTINGS IN EFFECT input: path: /data/in" in text
    assert (
        "Columns, keys and targets were checked by pyarrow, which read the footers of 1 of 8 files. Only the run can tell: "
        "whether it has rows; whether id is unique and never NULL; whether the lexicon has most of the words; what the ledger "
        "has left." in text
    )
    assert "No data was read" not in text


def test_programs_get_what_was_checked() -> None:
    planned, checked = dry()
    found = as_record(planned, checked)
    assert {name: value for name, value in found.items() if name != "checked"} == planned.as_dict()
    assert found["checked"] == {
        "by": "pyarrow", "read": "the footers of 1 of 8 files", "columns": ["id", "body", "day"], "kept": ["id", "body", "day"],
        "target": "new", "open": list(checked.open),
        "slow": "",
    }  # fmt: skip
