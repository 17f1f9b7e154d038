"""What the settings require of a run: by the run, by an audit, by a report, with the exit code that each ends with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
pytest.importorskip("jinja2", reason="the extra [audit] is not installed")

from dptext_spark.cli.app import main
from dptext_spark.config.load import load_config
from dptext_spark.config.model import RunConfig
from dptext_spark.disclosure.facts import RecordEpsilon, Restricted, RunFacts
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.certificate import Certificate
from dptext_spark.spark.job import runs
from dptext_spark.spark.run_report import report
from dptext_spark.spark.runner import after_run, run
from dptext_spark.spark.tables.schemas import METRICS, RUNS
from tests.core.names import beginning
from tests.core.unstyled import UNSTYLED

MARKER = "Qzmarkerword"
ROWS = 40


@pytest.fixture(scope="module")
def folder(session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source as Delta and as CSV, whose texts each hold the marker, which the lexicon lacks."""
    place = tmp_path_factory.mktemp("required")
    rows = [(i, f"Hello {MARKER}, please call James Miller in London about the money") for i in range(ROWS)]
    frame = session.createDataFrame(rows, "id long, body string").coalesce(1)
    frame.write.format("delta").save(str(place / "in"))
    frame.selectExpr("cast(id as string) id", "body").write.option("header", True).csv(str(place / "csv"))
    return place


def settings(folder: Path, name: str, **more: Any) -> Path:
    file = folder / f"{name}.yaml"
    given = {
        **UNSTYLED, "input": {"path": str(folder / "in")}, "columns": ["body"], "row_key": "id",
        "output": {"path": str(folder / name), "other_columns": "keep"}, "run": {"id": name}, **more,
    }  # fmt: skip
    file.write_text(yaml.safe_dump(given), encoding="utf-8")
    return file


def loaded(file: Path) -> RunConfig:
    return load_config(file)


@pytest.mark.parametrize(
    ("found", "standing"), [("confirmed", "holds"), ("not refuted", "holds"), ("no bound", "broken"), ("refuted", "broken")]
)  # fmt: skip
def test_what_rests_on_a_certificate_that_bounds_nothing_is_broken(
    spark, folder: Path, found: Any, standing: str
) -> None:
    config = loaded(settings(folder, "unbounded", require=["record_epsilon <= 50"]))
    promised = Guarantee("epsilon_dp_within_group", 2.0)
    facts = RunFacts(
        config=config, guarantee=promised, certificate=Certificate(found, promised, None, "A finding."),
        status="succeeded", restricted=Restricted({}, RecordEpsilon("sums", max=8.0)),
    )  # fmt: skip
    judged = after_run(spark, config, facts)
    assert (judged.standing, judged.judged[0].standing) == (standing, standing)
    assert len(judged.against) == (standing == "broken")


def test_a_figure_that_the_model_has_not_ends_the_run_before_anything_is_written(
    spark, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beginning(Lexicon.default(), 200).save(folder / "words")
    file = settings(
        folder, "never", require=["record_epsilon <= 9"], mechanism={"name": "tem", "epsilon": 9.0},
        lexicon={"source": str(folder / "words")},
    )  # fmt: skip
    assert main(["run", str(file)]) == 2
    assert "require: 'record_epsilon' has no figure by this mechanism" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not [one for one in folder.iterdir() if one.name.startswith("never") and one != file]


@pytest.mark.long
def test_a_run_an_audit_and_a_report_decide_together(
    spark, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = settings(
        folder,
        "decided",
        require=[
            "changed_share >= 0.01",
            "names_kept <= 1",
            "ledger_epsilon <= 1000",
            "record_epsilon <= 1000",
        ],
        approval={"purpose": "A purpose of ours", "owner": "An owner"},
    )
    assert main(["run", str(file), "--internal"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "required changed_share >= 0.01: holds" in said
    assert "required names_kept <= 1: not measured" in said
    assert "verdict not decided (2 of these answers depend on the private text, a bit each)" in said
    assert (
        f"next dptext audit {folder / 'decided'} --against {folder / 'in'} --config {file}; then dptext report decided"
        in said
    )
    assert "PRIVATE TEXT, body: Hello" in said
    # Again, nothing is done, and the answer is the account's.
    assert main(["run", str(file), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["status"] == "unchanged"
    assert again["verdict"]["standing"] == "not decided"
    assert [one["standing"] for one in again["verdict"]["requirements"]] == [
        "holds",
        "not measured",
        "holds",
        "holds",
    ]
    out = folder / "report.html"
    assert main(["report", "decided", "--config", str(file), "--out", str(out)]) == 0
    assert '<div class="verdict open">' in out.read_text(encoding="utf-8")
    arguments = [
        "audit",
        str(folder / "decided"),
        "--against",
        str(folder / "in"),
        "--config",
        str(file),
        "--json",
    ]
    capsys.readouterr()
    assert main(arguments) == 0
    audited = json.loads(capsys.readouterr().out)
    assert audited["verdict"]["requirements"][0]["standing"] == "holds"
    assert main(["report", "decided", "--config", str(file), "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert '<div class="verdict holds">' in text
    assert "A purpose of ours" in text
    assert MARKER.lower() not in text.lower()
    assert "RESTRICTED" not in text


@pytest.mark.long
def test_what_is_broken_ends_with_7_after_the_commit_and_again(
    spark, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = settings(folder, "broken", require=["changed_share <= 0.000001"])
    for _ in range(2):
        assert main(["run", str(file)]) == 7
        ended = capsys.readouterr()
        assert (
            "requirement broken: changed_share <= 1e-06. Do not publish the table of run broken." in ended.err
        )
        assert MARKER not in ended.err + ended.out
    assert spark.read.format("delta").load(str(folder / "broken")).count() == ROWS
    out = folder / "broken.html"
    assert main(["report", "broken", "--config", str(file), "--out", str(out)]) == 7
    assert '<div class="verdict broken">' in out.read_text(encoding="utf-8")
    loose = report(
        "broken",
        loaded(settings(folder, "broken", require=["changed_share <= 1"])),
        examine=False,
        spark=spark,
    )
    assert loose.broken == []
    assert loose.facts.verdict.standing == "holds"


@pytest.mark.cluster
def test_the_account_is_the_same_with_requirements_and_without(spark, folder: Path) -> None:
    bare = loaded(settings(folder, "plain"))
    full = loaded(settings(folder, "plain", require=["names_kept <= 1"], approval={"purpose": "x"}))
    first = run(bare, spark)
    assert first.verdict is None
    assert "verdict" not in first.as_dict()
    then = run(full, spark)  # the same run id: bound by the same settings
    assert then.status == "unchanged"
    assert then.verdict is not None
    assert then.broken == []
    kept = runs.find(spark, f"{folder / 'plain_audit'}/shareable/runs", "plain")
    assert kept is not None
    assert "require" not in kept.settings.values
    assert "approval" not in kept.settings.values
    assert (
        spark.read.format("delta").load(f"{folder / 'plain_audit'}/shareable/runs").schema.names == RUNS.names
    )
    assert (
        spark.read.format("delta").load(f"{folder / 'plain_audit'}/restricted/metrics").schema.names
        == METRICS.names
    )


@pytest.mark.cluster
def test_a_source_that_is_a_csv_is_audited_by_its_settings_and_by_its_format(
    spark, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = settings(
        folder, "from_csv", input={"path": str(folder / "csv"), "format": "csv", "options": {"header": True}}
    )
    assert main(["run", str(file)]) == 0
    table, source = str(folder / "from_csv"), str(folder / "csv")
    assert main(["audit", table, "--against", source, "--config", str(file), "--json"]) == 0
    printed = capsys.readouterr().out
    found = json.loads(printed[printed.index("{") :])
    assert next(one["value"] for one in found["figures"] if one["name"] == "rows") == ROWS
    assert found["source_version"].startswith("files:")
    wrong = [
        "audit",
        table,
        "--against",
        source,
        "--config",
        str(file),
        "--against-format",
        "xml",
        "--dry-run",
    ]
    assert main(wrong) == 2
    assert (
        "against_format: 'xml' is not known; valid: delta, parquet, csv, tsv, json, text."
        in capsys.readouterr().err
    )
    named = [
        "audit",
        table,
        "--against",
        "a.table",
        "--config",
        str(file),
        "--against-format",
        "csv",
        "--dry-run",
    ]
    assert main(named) == 2
    assert "given with the catalog name 'a.table'" in capsys.readouterr().err


@pytest.mark.long
def test_a_run_that_cannot_be_audited_says_so_before_it_reads(
    spark, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = settings(folder, "keyless", row_key={"none": "accept"})
    told: list[str] = []
    run(loaded(file), spark, progress=told.append)
    assert told[0].startswith(
        "the table cannot be audited against its source afterwards: there is no row_key"
    )
    arguments = ["audit", str(folder / "keyless"), "--against", str(folder / "in"), "--columns", "body"]
    assert main(arguments) == 2  # Delta without deletion vectors does not say which row of its file a row is
    assert "row_key: none given, and" in capsys.readouterr().err


def test_an_expired_approval_is_refused_before_anything_is_read(folder: Path) -> None:
    with pytest.raises(SettingsError, match="the approval has expired"):
        loaded(settings(folder, "late", approval={"expires": "2020-01-01"}))
