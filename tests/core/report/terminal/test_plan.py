"""A planned run: steps, places, guarantee and disclosure, without reading data."""

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
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.report.terminal.plan import Plan, plan, plan_text


def plan_of(**more: Any) -> Plan:
    least = {"input": {"path": "/none/in"}, "columns": ["body"], "output": {"path": "/none/out"}}
    return plan(parse_config({**least, **more}))


def planned(**more: Any) -> dict[str, Any]:
    return plan_of(**more).as_dict()


def test_a_plan_is_json_and_reads_nothing() -> None:
    found = json.loads(json.dumps(planned()))
    assert set(found) == {"settings", "guarantee", "certificate", "disclosure", "steps", "writes", "artifact"}
    assert [place["where"] for place in found["writes"]] == [
        "/none/out", "/none/out_audit/shareable", "/none/_dptext_ledger", "/none/out_audit/restricted"
    ]  # fmt: skip
    assert f"{len(Lexicon.default()):,} words" in json.dumps(found["disclosure"])


@pytest.mark.long
def test_the_steps_follow_the_settings() -> None:
    assert planned()["steps"] == [
        "read /none/in (delta)",
        "look at a sample of 1,000 rows; refused where most of their words are not in the lexicon",
        "replace the words of body by custext at token level; no other column goes along",
        "reserve in the ledger what the release spends; refused past the limit that it keeps, where it keeps one",
        "write /none/out in one commit (mode error), counting on the way",
        "compare the counts with the commit, and write the account",
        "(after it) the table cannot be audited against its source afterwards: there is no row_key, and nothing else joins their "
        "rows; a unique column that is named as row_key lets it",
    ]
    steps = planned(
        input={"table": "s.t", "where": "lang = 'en'"},
        row_key="id",
        record_key="customer",
        consistency="record",
        output={"path": "/none/out", "other_columns": ["day", "LANG"], "mode": "append"},
    )["steps"]
    assert steps[0] == "read s.t (catalog) where lang = 'en'"
    assert steps[1].startswith("check that id is unique")
    assert steps[2] == "check that customer is never NULL"
    assert steps[4].endswith("at record level; beside them only id, day, LANG")
    assert "mode append" in steps[6]
    assert steps[7] == "check on about 1,000 rows (whole records) that equal words have equal replacements"
    assert "no other column goes along" in planned(output={"path": "/o", "other_columns": "drop"})["steps"][2]
    assert "not possible without a row_key" in planned(consistency="dataset")["steps"][5]
    chosen = planned(importance={"percent": 30})
    assert chosen["steps"][1:4] == [
        "count in how many texts each word occurs (a pass over the text)",
        "look at a sample of 1,000 rows; refused where most of their words are not in the lexicon",
        "replace the words of body that importance chooses by custext at token level; no other column goes along",
    ]
    assert "counted in the private texts themselves" in str(chosen["disclosure"])
    limited = planned(ledger={"path": "/none/budget", "limit": 2})
    assert limited["steps"][3].endswith(
        "refused past ε = 2 for one word of a column, or the lower limit that it keeps"
    )
    assert "/none/budget" in [place["where"] for place in limited["writes"]]


def test_a_stream_says_where_it_goes_on_and_what_comes_again() -> None:
    stream = {"mode": "streaming", "row_key": "id", "stream": {"max_files": 5, "duplicates": "drop"}}
    found = planned(**stream)
    assert found["steps"][:5] == [
        "compare key, settings, model and source with those that /none/out_checkpoint began with",
        "read what was added to /none/in (delta) since /none/out_checkpoint was last written to",
        "where the stream begins: look at a sample of 1,000 rows; refused where most of their words are not in the lexicon",
        "take it in micro-batches of at most 5 files, every 10 seconds until it is stopped, each as follows",
        "check that id is never NULL and does not come again (drop)",
    ]
    assert "mode append" in found["steps"][7]
    assert found["writes"][-1]["where"] == "/none/out_checkpoint"
    assert "In a stream" in str(found["disclosure"])
    assert "until nothing is left" in planned(mode="incremental", row_key="id")["steps"][3]


def test_a_key_file_is_checked(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"key.file: .* cannot be read"):
        planned(key={"file": str(tmp_path / "none")})


@pytest.mark.parametrize("columns", [60, 100])
def test_no_sentence_is_longer_than_the_console(columns: int) -> None:
    found = plan_of()
    text = plan_text(found, columns).split("WHAT WOULD HAPPEN")[1]
    assert max(map(len, text.splitlines()[:-1])) <= columns
    flat = " ".join(text.split())
    assert found.facts.disclosure is not None
    for _, sentences in found.facts.disclosure.sections:
        assert all(sentence in flat for sentence in sentences)


def test_the_text_holds_settings_guarantee_and_disclosure() -> None:
    text = plan_text(plan_of())
    for expected in (
        "SETTINGS IN EFFECT\ninput:",
        "WHAT WOULD HAPPEN\n  1. read",
        "GUARANTEE",
        "    - Every further release of the same records",
    ):
        assert expected in text
    assert (
        "\n\nNo data was read, so columns, keys and target were not checked.\nNothing was written but the model:\n/"
        in text
    )


def test_the_settings_in_effect_hold_what_is_required_and_approved() -> None:
    asked = {
        "require": ["names_kept <= 0.05"],
        "approval": {"owner": "Customer care", "expires": "2999-01-31"},
    }
    held = plan_text(plan_of(**asked)).split("\n\n")[0]
    settings = yaml.safe_load(held.partition("\n")[2])
    assert settings["require"] == ["names_kept <= 0.05"]
    assert settings["approval"] == {"owner": "Customer care", "expires": "2999-01-31"}
    bare = yaml.safe_load(plan_text(plan_of()).split("\n\n")[0].partition("\n")[2])
    assert not {"require", "approval"} & set(bare)


def test_a_condition_on_the_text_is_not_shown() -> None:
    """A dry run's output ends up in logs."""
    found = plan_of(input={"path": "/none/in", "where": "lang = 'en' AND Body LIKE '%MARKER%'"})
    assert found.steps[0] == "read /none/in (delta) where (hidden: it reads lang, Body)"
    assert "MARKER" not in json.dumps(found.as_dict())
    assert "MARKER" not in plan_text(found)


@pytest.mark.parametrize(
    ("others", "where", "hidden"),
    [
        ("drop", "salary > 70123", True),
        ("drop", "id > 70123", False),
        (["lang"], "lang = 'en' AND salary > 70123", True),
        (["Salary"], "lang = 'en' OR salary.net > 70123", True),
        (["Salary"], "salary.net > 70123", False),
        ("keep", "salary > 70123", False),
    ],
)
def test_a_condition_on_a_column_that_is_left_out_is_not_shown(
    others: str | list[str], where: str, hidden: bool
) -> None:
    output = {"path": "/none/out", "other_columns": others}
    found = plan_of(input={"path": "/none/in", "where": where}, row_key="id", output=output)
    for text in (json.dumps(found.as_dict()), plan_text(found), found._repr_html_()):
        assert ("70123" not in text) == hidden


def test_a_notebook_shows_steps_places_and_promises_escaped() -> None:
    found = plan_of(
        input={"path": "/none/<b>in", "where": "body LIKE '%secret%' AND lang = '<script>'"},
        output={"path": "/none/out"},
    )
    html = found._repr_html_()
    assert "secret" not in html
    assert "<script" not in html
    assert "<b>" not in html
    said = [unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", html)]
    cells = list(zip(said[::2], said[1::2], strict=True))
    assert cells == [
        *((f"step {number}", step) for number, step in enumerate(found.steps, start=1)),
        *((place.where, f"{place.what} (to be shared: {place.share})") for place in found.writes),
        ("guarantee", str(found.facts.guarantee)),
        ("certificate", found.as_dict()["certificate"]["sentence"]),
    ]
    assert cells[0][1].startswith("read /none/<b>in (delta) where (hidden")
    assert html.endswith("<p>No data was read, so columns, keys and target were not checked.</p></div>")
    uncertified = replace(found, facts=replace(found.facts, certificate=None))._repr_html_()
    assert "none was made; `dptext certify` makes one" in uncertified


def test_what_is_required_is_a_step_and_a_key_that_is_kept_can_be_audited() -> None:
    steps = planned(row_key="id", require=["names_kept <= 0.02", "bleu >= 5"])["steps"]
    assert (
        steps[-1]
        == "hold what was measured against names_kept <= 0.02, bleu >= 5; broken, it ends with exit code 7"
    )
    for others in ("drop", ["stars"], "keep"):
        steps = planned(row_key="id", output={"path": "/none/out", "other_columns": others})["steps"]
        assert steps[-1] == "compare the counts with the commit, and write the account"
