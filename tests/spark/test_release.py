"""From a table to a release in two commands: run, audit and report in one session; the first that fails gives the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
pytest.importorskip("jinja2", reason="the extra [audit] is not installed")

from dptext_spark.cli.app import main
from dptext_spark.config.load import load_config
from dptext_spark.config.sections import STYLES
from dptext_spark.demo.tickets import tickets
from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.spark import audit_job as auditing
from tests.core.names import beginning

ROWS = 120
PAGES = "tickets_sanitized_audit/restricted"
LIMITS = "require: [original_share <= 0.9, bayes_success <= 1, names_kept <= 1]\n"


def dptext(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture
def here(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    table = tickets(ROWS).select(["ticket_id", "customer_id", "topic", "body"])
    pyarrow.csv.write_csv(table, tmp_path / "tickets.csv")
    return tmp_path


@pytest.fixture
def settings(here: Path) -> Path:
    """What `start` writes of them, with few words, whose figures are quick, and other limits."""
    assert dptext("start", "tickets.csv", "--column", "body") == 0
    file = here / "tickets.yaml"
    beginning(Lexicon.default(), 600).save(here / "words")
    written, _, limits = file.read_text(encoding="utf-8").partition("require:\n")
    assert "bayes_success <= " in limits
    more = "lexicon: {source: words}\npolicy: {allow_unknown: true}\n"
    file.write_text(f"{written}{LIMITS}{more}", encoding="utf-8")
    return file


@pytest.mark.cluster
@pytest.mark.parametrize("style", STYLES)
def test_tickets_meet_what_the_settings_of_each_style_require(here: Path, style: str) -> None:
    assert dptext("start", "tickets.csv", "--style", style, "--column", "body") == 0
    assert dptext("run", "tickets.yaml") == dptext("audit", "tickets.yaml") == 0


def released(*arguments: object, capsys: pytest.CaptureFixture[str], code: int = 0) -> Any:
    capsys.readouterr()
    assert dptext("release", *arguments, "--json") == code
    return json.loads(capsys.readouterr().out)


def test_a_csv_file_comes_to_a_release_and_its_page(here: Path, settings: Path, capsys) -> None:
    capsys.readouterr()
    assert dptext("release", settings, "--set", "run.id=r1") == 0
    out, err = capsys.readouterr()
    page = here / PAGES / "report-r1-restricted.html"
    required = list(map(str, load_config(settings).require))
    shown = " ".join(out.split())
    assert f"required holds: {'; '.join(required)} verdict" in shown
    assert page.name in "".join(out.split())
    assert [step for step in ("run: ", "audit: ", "report: ") if f"\n{step}" not in f"\n{err}"] == []
    assert '<div class="verdict holds">' in page.read_text(encoding="utf-8")
    # The same again does nothing twice, and another limit is judged by the run that was made.
    limits = "require=[original_share <= 0.0001, names_kept <= 1]"
    again = released(settings, "-s", "run.id=r1", "-s", limits, capsys=capsys, code=7)
    assert again["run"]["status"] == "unchanged"
    assert [each["standing"] for each in again["verdict"]["requirements"]] == ["broken", "holds"]
    assert again["audit"]["id"] == "r1"
    assert '<div class="verdict broken">' in page.read_text(encoding="utf-8")


@pytest.mark.long
def test_a_dry_run_shows_both_plans_and_writes_nothing(here: Path, settings: Path, capsys) -> None:
    assert "# - topic" in settings.read_text(encoding="utf-8")  # few values, not released
    before = sorted(here.iterdir())
    plans = released(settings, "--dry-run", capsys=capsys)
    assert plans["run"]["checked"]["columns"] == ["ticket_id", "customer_id", "topic", "body"]
    places = (str(here / "tickets_sanitized"), str(here / "tickets.csv"))
    assert (plans["audit"]["table"], plans["audit"]["source"]) == places
    assert dptext("release", settings, "--dry-run") == 0
    assert sorted(here.iterdir()) == before
    assert released(settings, "--dry-run", "-s", "columns=[nope]", capsys=capsys, code=3)["exit_code"] == 3


@pytest.mark.long
def test_without_a_row_key_the_audit_is_left_out_and_why_is_said(here: Path, settings: Path, capsys) -> None:
    keyless = settings.read_text(encoding="utf-8").replace("row_key: ticket_id", "row_key: {none: accept}")
    settings.write_text(keyless, encoding="utf-8")
    capsys.readouterr()
    limits = ("-s", "require=[original_share <= 0.9]", "-s", "run.id=r2")
    assert dptext("release", settings, *limits) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "audit left out: " in shown
    assert "verdict holds" in shown
    assert (here / PAGES / "report-r2-restricted.html").exists()


@pytest.mark.long
@pytest.mark.parametrize(("limit", "code"), [("original_share <= 1", 3), ("original_share <= 0.0001", 7)])
def test_a_step_that_fails_after_the_commit(here, settings: Path, limit, code, monkeypatch, capsys) -> None:
    def fails(*_: object, **__: object) -> None:
        raise DataError("row_key: no row of the two matches.")

    monkeypatch.setattr(auditing, "audit_table", fails)
    given = ["--set", f"require=[{limit}]", "--set", "run.id=r3"]
    capsys.readouterr()
    assert dptext("release", settings, *given) == code
    err = capsys.readouterr().err
    for left in (
        f"dptext audit {settings} --set",
        f"dptext report {settings} --set",
        "no row of the two matches",
    ):
        assert left in err
    assert ("requirement broken" in err) == (code == 7)
    assert not (here / PAGES / "report-r3-restricted.html").exists()
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert dptext("audit", settings, *given) == (code == 7 and 7)
    assert dptext("report", settings, *given) == (code == 7 and 7)
    assert (here / PAGES / "report-r3-restricted.html").exists()


@pytest.mark.long
def test_an_audit_reads_the_rows_that_the_run_read(here: Path, settings: Path, capsys) -> None:
    topic = tickets(ROWS)["topic"].to_pylist()[0]
    some = tickets(ROWS)["topic"].to_pylist().count(topic)
    given = ["-s", f"input.where.topic={topic}", "-s", "run.id=r4"]
    assert released(settings, *given, capsys=capsys)["run"]["rows"] == some
    assert dptext("audit", settings, *given, "--json") == 0
    every = json.loads(capsys.readouterr().out)["figures"]
    figures = {each["name"]: each["value"] for each in every if not each["column"]}
    assert (figures["rows"], figures["missing_in_table"]) == (some, 0)
