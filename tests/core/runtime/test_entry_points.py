"""The jobs for spark-submit and the settings are found, in a checkout and in an installed package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dptext_spark.cli.app import main
from dptext_spark.runtime import paths

CHECKOUT = Path(__file__).resolve().parents[3]


def test_a_name_prints_its_path_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs", "privatize"]) == 0
    assert capsys.readouterr().out == f"{CHECKOUT / 'jobs' / 'privatize.py'}\n"
    assert main(["jobs", "--conf"]) == 0
    assert capsys.readouterr().out == f"{CHECKOUT / 'conf'}\n"


def test_all_are_listed_with_what_they_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs"]) == 0
    said = capsys.readouterr().out
    assert f"{CHECKOUT / 'jobs' / 'doctor.py'}\n    The check of a cluster for spark-submit\n" in said
    assert main(["jobs", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["jobs"]) == {
        file.stem for file in (CHECKOUT / "jobs").glob("*.py")
    }


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs", "privatise"]) == 2
    assert "Did you mean 'privatize'?" in capsys.readouterr().err


def test_the_wheels_own_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "dptext_spark" / "runtime" / "paths.py"))
    assert main(["jobs"]) == 3
    assert "install its wheel" in capsys.readouterr().err
    (tmp_path / "dptext_spark" / "jobs").mkdir(parents=True)
    (tmp_path / "jobs").mkdir()
    assert paths.folder_of("jobs") == tmp_path / "dptext_spark" / "jobs"
