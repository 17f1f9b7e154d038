"""The report of a run on real tables: what it reads, what it refuses, what it remembers, and no private word in it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
pytest.importorskip("jinja2", reason="the extra [audit] is not installed")

from dptext_spark.audit.options import ReportOptions
from dptext_spark.cli.app import main
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.randomness import RunKey
from dptext_spark.spark import run_report as reporting
from dptext_spark.spark.run_report import Account, report_facts, write_page
from dptext_spark.spark.runner import run

pytestmark = pytest.mark.long
MARKER = "Qzmarkerword"
ROWS = 30


@pytest.fixture(scope="module")
def config(session, tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    """Two runs of a table whose every text holds the marker, which the lexicon lacks."""
    folder = tmp_path_factory.mktemp("reported")
    rows = [(i, f"Hello {MARKER}, please call {i} about the money") for i in range(ROWS)]
    session.createDataFrame(rows, "id long, body string").write.format("delta").save(str(folder / "in"))
    settings: dict[str, Any] = {
        "input": {"path": str(folder / "in")}, "columns": ["body"], "row_key": "id",
        "output": {"path": str(folder / "out"), "other_columns": "keep", "mode": "overwrite"},
    }  # fmt: skip
    for name in ("first", "second"):
        again = {**settings, "run": {"id": name, "second_release": "accept"}}
        run(parse_config(again), session, key=RunKey.generate())
    return parse_config(settings)


@pytest.fixture
def account(config: RunConfig) -> Account:
    return Account.of(config, None)


def test_the_report_holds_the_account_and_no_private_word(spark, account: Account, tmp_path: Path) -> None:
    facts = report_facts("second", account, ReportOptions(public=True), spark)
    file = write_page(facts, tmp_path / "report.html")
    text = file.read_text(encoding="utf-8")
    assert facts.run.run_id == "second"
    assert facts.certificate.verdict == "confirmed"
    assert facts.deniability.figures
    assert facts.attacks
    assert facts.metrics is None
    assert MARKER.lower() not in text.lower()
    assert "RESTRICTED" not in text
    assert "Decision on run second" in text
    assert "holds 2 releases of this tool" in text


def test_latest_is_the_newest_and_one_that_does_not_exist_is_named_with_it(spark, account, tmp_path) -> None:
    assert report_facts("latest", account, ReportOptions(examine=False), spark).run.run_id == "second"
    with pytest.raises(SettingsError, match=r"no run 'third' in .*newest are second \(succeeded\), first"):
        report_facts("third", account, ReportOptions(), spark)
    with pytest.raises(SettingsError, match=r"report: there is no table .*runs"):
        report_facts("latest", Account.of(None, str(tmp_path)), ReportOptions(), spark)
    with pytest.raises(SettingsError, match=r"run\.id: "):
        report_facts("x' or '1", account, ReportOptions(), spark)


def test_an_account_is_named_once() -> None:
    for arguments in ((None, None), (object(), "folder")):
        with pytest.raises(SettingsError, match=r"^report: "):
            Account.of(*arguments)  # type: ignore[arg-type]


def test_internal_figures_are_those_of_the_run(spark, account: Account, tmp_path: Path) -> None:
    facts = report_facts("first", account, ReportOptions(examine=False), spark)
    assert facts.metrics["oov"] == ROWS
    assert "body" in facts.metrics_by_column
    file = write_page(facts, None, tmp_path)
    assert file == tmp_path / "report-first-restricted.html"
    assert "RESTRICTED" in file.read_text(encoding="utf-8").splitlines()[0]
    assert file.stat().st_mode & 0o077 == 0
    assert MARKER not in file.read_text(encoding="utf-8")
    elsewhere = Account(account.shareable, str(tmp_path))
    with pytest.raises(DataError, match=r"audit\.restricted: .* holds no metrics of run first"):
        report_facts("first", elsewhere, ReportOptions(examine=False), spark)


def test_examples_are_pairs_of_the_run_and_mark_the_file(spark, account: Account, tmp_path: Path) -> None:
    facts = report_facts("first", account, ReportOptions(with_examples=True, examine=False), spark)
    assert len(facts.examples) == 3
    for pair in facts.examples:
        assert MARKER in pair.before
        assert MARKER not in pair.after
        assert "[OOV]" in pair.after
    other = report_facts("second", account, ReportOptions(with_examples=True, examine=False), spark)
    assert other.examples != facts.examples  # each run's own version of the target
    assert "holds private text" in write_page(facts, tmp_path / "r.html").read_text().splitlines()[0]


def test_examples_need_the_runs_own_settings(spark, account: Account, config: RunConfig) -> None:
    account_alone = Account.of(None, f"{config.output.path}_audit")
    with pytest.raises(SettingsError, match=r"^with_examples: "):
        report_facts("first", account_alone, ReportOptions(with_examples=True, examine=False), spark)
    changed = parse_config({**config.as_dict(), "output": {"path": "/elsewhere"}})
    elsewhere = Account(account.shareable, account.restricted, changed)
    with pytest.raises(SettingsError, match=r"output: .* run first"):
        report_facts("first", elsewhere, ReportOptions(with_examples=True), spark)


def test_a_model_that_is_another_now_is_left_out(spark, account: Account, monkeypatch: Any) -> None:
    found = reporting._record_of
    monkeypatch.setattr(reporting, "_record_of", lambda *given: replace(found(*given), artifact="another"))
    facts = report_facts("first", account, ReportOptions(), spark)
    assert "another model" in facts.model_missing
    assert facts.worst_pair is None
    # The certificate is not the other model's: the run's own account keeps it.
    assert facts.certificate == found(spark, account, "first").certified
    assert facts.deniability.figures == ()
    assert not facts.attacks


def test_the_command_writes_the_file_and_prints_where(spark, config, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(reporting, "_model", lambda *given: "not examined here.")
    folder, file = f"{config.output.path}_audit", tmp_path / "page.html"
    assert main(["report", folder, "--out", str(file)]) == 0
    out, _ = capsys.readouterr()
    assert out.strip() == str(file)
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["report", folder, "--run", "first", "--statement", "md"]) == 0
    assert capsys.readouterr().out.startswith("### Protected")
    assert main(["report", folder, "--run", "nope"]) == 2
    assert "no run 'nope'" in capsys.readouterr().err
    assert main(["report", folder, "--run", "first", "--statement", "pdf"]) == 2
    assert main(["report", folder, "--run", "first", "--out", "/none/there/r.html"]) == 3


def test_it_says_what_to_install(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(SettingsError, match=r"jinja2: not installed.*pip install 'dptext-spark\[audit\]'"):
        report_facts("first", account, ReportOptions())
