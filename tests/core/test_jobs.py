"""The entry points for spark-submit, as far as they go without Spark."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from dptext_spark.config.load import parse_model_config
from dptext_spark.model.compile import prepare

JOBS = Path(__file__).resolve().parents[2] / "jobs"


def job(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"job_{name}", JOBS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_prepare_writes_what_a_run_can_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings, folder = tmp_path / "model.yaml", tmp_path / "model"
    settings.write_text("mechanism: {epsilon: 3}\n")
    assert job("prepare").main([str(settings), str(folder), "--set", "consistency=record", "--no-code"]) == 0
    run = {"artifact": str(folder), "artifact_fingerprint": capsys.readouterr().out.strip()}
    named = {"style": "balanced", "mechanism": {"epsilon": 3}, "consistency": "record", "run": run}
    assert prepare(parse_model_config(named))[1] == folder


def test_prepare_refuses_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "model.yaml"
    settings.write_text("mechanism: {epsilon: -3}\n")
    assert job("prepare").main([str(settings), str(tmp_path / "model")]) == 2
    assert capsys.readouterr().err.startswith("dptext: bad settings: mechanism.epsilon: -3 is not valid")
    assert not (tmp_path / "model").exists()


def test_audit_is_the_audit_command(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["/none/out", "--against", "/none/in", "--columns", "body", "--row-key", "id"]
    assert job("audit").main([*given, "--dry-run"]) == 0
    assert "rows joined by id" in capsys.readouterr().out
    assert job("audit").main([*given, "--require", "shares <= 1"]) == 2
