"""What the settings require of a run: by the run, by an audit, by a report, with the exit code that each ends with."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
pytest.importorskip("jinja2", reason="the extra [audit] is not installed")

from dptext_spark.cli.app import main
from dptext_spark.config.load import load_config
from dptext_spark.config.model import RunConfig
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.certificate import Certificate
from dptext_spark.model.record import RecordEpsilon
from dptext_spark.spark.job import runs
from dptext_spark.spark.run_report import report
from dptext_spark.spark.runner import after_run, run
from dptext_spark.spark.schemas import METRICS, RUNS
from tests.core.names import beginning
from tests.core.unstyled import UNSTYLED

MARKER = "Qzmarkerword"
ROWS = 40


@pytest.fixture(scope="module")
def folder(session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source whose texts each hold the marker, which the lexicon lacks."""
    place = tmp_path_factory.mktemp("required")
    rows = [(i, f"Hello {MARKER}, please call James Miller in London about the money") for i in range(ROWS)]
    frame = session.createDataFrame(rows, "id long, body string").coalesce(1)
    frame.write.format("delta").save(str(place / "in"))
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
def test_what_rests_on_a_certificate_that_bounds_nothing_is_broken(spark, folder, found, standing) -> None:
    config = loaded(settings(folder, "unbounded", require=["record_epsilon <= 50"]))
    promised = Guarantee("epsilon_dp_within_group", 2.0)
    facts = RunFacts(
        config=config, guarantee=promised, certificate=Certificate(found, promised, None, "A finding."),
        status="succeeded", figures={}, record_epsilon=RecordEpsilon("sums", max=8.0),
    )  # fmt: skip
    judged = after_run(spark, config, facts)
    assert (judged.standing, judged.judged[0].standing) == (standing, standing)
    assert len(judged.against) == (standing == "broken")


def test_a_figure_that_the_model_has_not_ends_the_run_before_anything_is_written(spark, folder, capsys):
    beginning(Lexicon.default(), 200).save(folder / "words")
    file = settings(
        folder, "never", require=["record_epsilon <= 9"], mechanism={"name": "tem", "epsilon": 9.0},
        lexicon={"source": str(folder / "words")},
    )  # fmt: skip
    assert main(["run", str(file)]) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "require: 'record_epsilon' has no figure by this mechanism" in err
    assert not [one for one in folder.iterdir() if one.name.startswith("never") and one != file]


HELD = ["changed_share >= 0.01", "names_kept <= 1", "ledger_epsilon <= 1000", "record_epsilon <= 1000"]
BROKEN = ["changed_share <= 0.000001", "names_kept <= 1"]
APPROVAL = {"purpose": "A purpose of ours", "owner": "An owner"}


def called(*arguments: object) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(map(str, arguments)))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def committed(session, folder: Path) -> tuple[int, str, str]:
    """A run whose requirement is broken: the one that the tests below ask for again, under other requirements."""
    return called("run", settings(folder, "decided", require=BROKEN))


@pytest.mark.long
def test_what_is_broken_ends_with_7_after_the_commit_and_again(spark, folder: Path, committed) -> None:
    file, out = settings(folder, "decided", require=BROKEN), folder / "broken.html"
    for code, printed, err in (committed, called("run", file)):
        assert code == 7
        assert "requirement broken: changed_share <= 1e-06. Do not publish the table of run decided." in err
        assert MARKER not in err
        assert MARKER not in printed
    commands = f"dptext audit {file}; then dptext report {file}"
    assert f"next {commands}" in " ".join(committed[1].split())
    assert spark.read.format("delta").load(str(folder / "decided")).count() == ROWS
    assert called("report", file, "--run", "decided", "--out", out)[0] == 7
    assert '<div class="verdict broken">' in out.read_text(encoding="utf-8")
    loose = loaded(settings(folder, "decided", require=["changed_share <= 1"]))
    written = report("decided", loose, examine=False, spark=spark)
    assert written.broken == []
    assert written.facts.verdict.standing == "holds"


@pytest.mark.long
def test_the_account_is_the_same_with_requirements_and_without(spark, folder: Path, committed) -> None:
    bare = run(loaded(settings(folder, "decided")), spark)  # the same run id: bound by the same settings
    assert (bare.status, bare.verdict) == ("unchanged", None)
    assert "verdict" not in bare.as_dict()
    full = run(loaded(settings(folder, "decided", require=HELD, approval=APPROVAL)), spark)
    assert full.status == "unchanged"
    assert full.verdict is not None
    assert full.broken == []
    tables = folder / "decided_audit"
    row = runs.find(spark, f"{tables}/shareable/runs", "decided")
    assert not {"require", "approval"} & row.settings.values.keys()
    for name, schema in (("shareable/runs", RUNS), ("restricted/metrics", METRICS)):
        assert spark.read.format("delta").load(f"{tables}/{name}").schema.names == schema.names


@pytest.mark.long
def test_a_run_an_audit_and_a_report_decide_together(spark, folder: Path, committed) -> None:
    file = settings(folder, "decided", require=HELD, approval=APPROVAL)
    table, source, out = folder / "decided", folder / "in", folder / "report.html"
    code, printed, _ = called("run", file, "--json")
    verdict = json.loads(printed)["verdict"]
    assert (code, verdict["standing"]) == (0, "not decided")
    standing = [entry["standing"] for entry in verdict["requirements"]]
    assert standing == ["holds", "not measured", "holds", "holds"]
    assert called("report", file, "--run", "decided", "--out", out)[0] == 0
    assert '<div class="verdict open">' in out.read_text(encoding="utf-8")
    code, printed, _ = called("audit", table, "--against", source, "--config", file, "--json")
    assert code == 0
    assert json.loads(printed)["verdict"]["requirements"][0]["standing"] == "holds"
    for outside in (["--public"], []):
        assert called("report", file, "--run", "decided", "--out", out, *outside)[0] == 0
        text = out.read_text(encoding="utf-8")
        assert '<div class="verdict holds">' in text
        assert APPROVAL["purpose"] in text
        assert MARKER.lower() not in text.lower()
        assert ("RESTRICTED" in text) == (not outside)


def test_an_expired_approval_is_refused_before_anything_is_read(folder: Path) -> None:
    with pytest.raises(SettingsError, match="the approval has expired"):
        loaded(settings(folder, "late", approval={"expires": "2020-01-01"}))
