"""One grammar for four commands: a file of settings is enough, and a wrong use gets the full command to use instead."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from dptext_spark.config.styles import REQUIRED, TableSettings, settings_file
from dptext_spark.report.console import LOADING
from tests.core.cli.test_app import SETTINGS, as_json, dptext


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with settings `r.yaml`, a file `t.csv`, a folder of a table, and the folder of an account."""
    monkeypatch.chdir(tmp_path)
    Path("r.yaml").write_text(SETTINGS)
    Path("t.csv").write_text("id,body\n1,the man\n")
    for folder in ("t", "t_audit"):
        Path(folder).mkdir()
    return tmp_path


WRONG = {
    "release t.csv": ["dptext start t.csv", "dptext release t.yaml"],
    "release t": ["dptext start t", "dptext release t.yaml"],
    "release db.tickets": ["dptext start db.tickets", "dptext release tickets.yaml"],
    "release none.yaml": ["dptext start TABLE --to none.yaml", "dptext release none.yaml"],
    "release r.yaml --label stars": ["dptext run FILE", "dptext audit FILE --label ..", "dptext report FILE"],
    "release --config r.yaml": ["dptext release FILE"],
    "run --config=r.yaml": ["dptext run FILE"],
    "ledger --config r.yaml": ["dptext ledger FILE"],
    "run t": ["dptext start t", "dptext run t.yaml"],
    "run none.yaml": ["dptext start TABLE --to none.yaml", "dptext run none.yaml"],
    "start r.yaml": ["dptext release r.yaml"],
    "audit t": ["dptext audit FILE", "dptext audit t --against SOURCE --config FILE"],
    "audit t --config r.yaml": ["dptext audit r.yaml", "dptext audit t --against SOURCE --config r.yaml"],
    "audit r.yaml --against t": ["dptext audit r.yaml"],
    "audit r.yaml --config r.yaml": ["dptext audit r.yaml"],
    "audit none.yaml": ["dptext audit none.yaml"],
    "report first --config r.yaml": ["dptext report FILE"],
    "report first --audit t_audit": ["dptext report FOLDER"],
    "report none.yaml": ["dptext report none.yaml"],
    "report first": ["dptext report FILE", "dptext report FILE --run first"],
    "report t": ["dptext report FILE", "dptext report t_audit"],
    "report t_audit": ["dptext report FILE"],
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_use_gets_the_full_command(here: Path, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(here.iterdir())
    assert dptext(*shlex.split(line)) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.removeprefix(f"{LOADING}\n").splitlines())) == ("", 1)
    assert [command for command in WRONG[line] if command not in err] == []
    assert sorted(here.iterdir()) == before


# What follows the settings: what the error names.
UNDECIDED = {
    "require: [accuracy_private_private >= 0.7, original_share <= 0.5]": [
        "accuracy_private_private >= 0.7", "dptext run r.yaml", "dptext audit r.yaml --label COLUMN", "dptext report r.yaml",
    ],
    "require: [attribute_adaptive <= 0.5, cosine >= 0.1]": ["dptext audit r.yaml --attribute COLUMN --similarity"],
    "require: [listed_kept <= 0.5]": ["dptext audit r.yaml --names FILE"],
    "mode: incremental\nkey: {file: k}": ["mode: 'incremental'", "dptext run r.yaml; dptext audit r.yaml; dptext report r.yaml"],
    "mode: streaming\nkey: {file: k}": ["mode: 'streaming'", "dptext run r.yaml"],
}  # fmt: skip


@pytest.mark.parametrize("more", UNDECIDED)
def test_what_a_release_cannot_decide_is_refused_before_it_begins(
    here: Path, more: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("r.yaml").write_text(f"{SETTINGS}{more}\n")
    for arguments in (("release", "r.yaml"), ("release", "r.yaml", "--dry-run")):
        assert dptext(*arguments) == 2
        out, err = capsys.readouterr()
        assert (out, len(err.removeprefix(f"{LOADING}\n").splitlines())) == ("", 1)
        assert [part for part in UNDECIDED[more] if part not in err] == []
    assert not (here / "k").exists()


def test_a_requirement_of_an_audit_needs_a_row_key(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keyless = SETTINGS.replace("row_key: id", "row_key: {none: accept}")
    Path("r.yaml").write_text(f"{keyless}require: [bayes_success <= 0.5]\n")
    assert dptext("release", "r.yaml") == 2
    assert "bayes_success <= 0.5" in (err := capsys.readouterr().err)
    assert "row_key" in err
    assert dptext("audit", "r.yaml") == 2
    assert "row_key" in capsys.readouterr().err


def test_the_settings_of_a_run_are_all_an_audit_takes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = ("-s", "output.path=/none/other", "--label", "stars")
    short = as_json(capsys, "audit", "r.yaml", "--dry-run", *named)
    assert (short["table"], short["source"], short["label"]) == ("/none/other", "/none/in", "stars")
    assert short["metrics"] == "/none/other_audit/restricted/metrics"
    long = ["audit", "/none/out", "--against", "/none/in", "--config", "r.yaml", "--dry-run"]
    written = as_json(capsys, *long)
    assert as_json(capsys, "audit", "r.yaml", "--dry-run") == written


def test_settings_are_known_by_their_sections_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("r.yaml").rename("reviews.settings")
    Path("in.json").write_text('{"input": "a text", "output": "another"}\n')  # a table of one record
    assert as_json(capsys, "audit", "reviews.settings", "--dry-run")["source"] == "/none/in"
    assert dptext("run", "in.json") == 2
    assert "dptext start in.json" in capsys.readouterr().err


@pytest.mark.parametrize("style", REQUIRED)
def test_the_settings_of_a_table_require_what_its_release_can_decide(style: str, here: Path) -> None:
    columns = {"columns": ("body",), "others": ("country", "note"), "attributes": ("country",)}
    text, config = settings_file(TableSettings("/in.csv", "csv", row_key="id", **columns), style)
    assert [str(limit) for limit in config.require] == list(REQUIRED[style])
    assert all(f"  - {limit}  # {why}\n" in text for limit, why in REQUIRED[style].items())
    assert "--attribute COLUMN" in text
    keyless, without_key = settings_file(TableSettings("/in.csv", "csv", **columns), style)
    assert [limit.subject for limit in without_key.require] == ["original_share"]
    assert "--attribute" not in keyless
    for kind in ({"is_foreign": True}, {"has_names": False}):
        nameless = TableSettings("/in.csv", "csv", row_key="id", **columns, **kind)
        assert not any("names" in limit.subject for limit in settings_file(nameless, style)[1].require)
    # Each is decided without options of an audit: nothing but Spark stands between the file and a release.
    Path("s.yaml").write_text(text)
    assert dptext("audit", "s.yaml", "--dry-run") == 0
