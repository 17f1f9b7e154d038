"""The README's settings are valid, its commands work, and its lists agree with the code."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.calibration import markdown
from benchmarks.settings import markdown as side_by_side
from dptext_spark.audit.table.metrics import MEANING
from dptext_spark.cli.app import main
from dptext_spark.config.load import parse_config
from dptext_spark.text.identifiers.types import Identifiers
from dptext_spark.text.policy import Policy

README = Path(__file__).resolve().parent.parent / "README.md"


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_its_settings_are_valid() -> None:
    blocks = _blocks("yaml")
    assert blocks
    for block in blocks:
        assert parse_config(yaml.safe_load(block)).columns == ("title", "body")


def test_its_keys_are_valid() -> None:
    (block,) = [block for block in _blocks("text") if block.startswith("key:")]
    least = {"input": {"path": "/a"}, "columns": ["body"], "output": {"path": "/b"}}
    keys = [parse_config({**least, **yaml.safe_load(line)}).key for line in block.splitlines()]
    assert [key.kind for key in keys] == ["file", "env", "secret", "file"]
    assert [key.deliver for key in keys] == ["closure", "closure", "closure", "executors"]


def test_its_identifiers_are_those_of_the_code() -> None:
    (block,) = [block for block in _blocks("text") if block.startswith("policy:")]
    assert Policy(**yaml.safe_load(block)["policy"]).identifiers.phone == "fake"
    table = README.read_text(encoding="utf-8").split("## Identifiers")[1].split("\n\nThe sample")[0]
    rows = re.findall(r"^\| `(\w+)` \| .*? \| (\w+) \|", table, flags=re.MULTILINE)
    assert dict(rows) == asdict(Identifiers())


def test_its_job_can_be_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "reviews.yaml"
    settings.write_text(_blocks("yaml")[0], encoding="utf-8")
    commands = [line.split("#")[0] for block in _blocks("bash") for line in block.splitlines()]
    dry = [
        shlex.split(line)[1:] for line in commands if line.startswith("dptext run") and "--dry-run" in line
    ]
    assert dry == [["run", "reviews.yaml", "--dry-run"]]
    assert main(["run", str(settings), "--dry-run"]) == 0
    assert "output set" in capsys.readouterr().out


def test_its_search_for_an_epsilon_finds_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "reviews.yaml"
    settings.write_text(_blocks("yaml")[0], encoding="utf-8")
    lines = [line for block in _blocks("bash") for line in block.splitlines()]
    (line,) = [line for line in lines if line.startswith("dptext calibrate")]
    words = [str(settings) if word == "reviews.yaml" else word for word in shlex.split(line)[1:]]
    assert main([*words, "--steps", "4"]) == 0
    assert "is the largest found that satisfies N_w max <= 0.5" in " ".join(capsys.readouterr().out.split())


def test_its_audits_can_be_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "reviews.yaml"
    settings.write_text(_blocks("yaml")[0], encoding="utf-8")
    lines = [line for block in _blocks("bash") for line in block.replace("\\\n", " ").splitlines()]
    audits = [shlex.split(line.split(" > ")[0])[1:] for line in lines if line.startswith("dptext audit")]
    assert len(audits) == 3
    for words in audits:
        given = [str(settings) if word == "reviews.yaml" else word for word in words if word != "--dry-run"]
        assert main([*given, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "original_share <= 0.4" in said
    assert "accuracy_private_private >= 0.7" in said


def test_its_figures_of_an_audit_are_those_of_the_code() -> None:
    table = README.read_text(encoding="utf-8").split("## Write, audit, publish")[1].split("\n\nTexts are")[0]
    named = {
        name
        for row in re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert len(named) > 10
    assert named <= set(MEANING)


def test_its_inline_commands_exist(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(README.read_text(encoding="utf-8").split())
    for command in (
        "preview",
        "mechanisms",
        "lexicon",
        "run",
        "certify",
        "calibrate",
        "compare",
        "report",
        "audit",
        "doctor",
        "jobs",
    ):
        assert f"dptext {command}" in text
        assert main([command, "--help"]) == 0
    capsys.readouterr()
    preview = re.search(r"`dptext preview (\"[^`]*\")`", text)
    assert preview is not None
    assert main(["preview", preview.group(1).strip('"')]) == 0


def test_its_tables_are_those_of_the_schemas() -> None:
    pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
    from dptext_spark.spark.tables.schemas import LEDGER, METRICS, PUBLISHED, RUNS

    text = README.read_text(encoding="utf-8")
    runs = re.search(r"shareable/runs`\*\*: one row a run: (.*?)\.\n", text, flags=re.DOTALL)
    assert runs is not None
    assert re.findall(r"`(\w+)`", runs.group(1)) == RUNS.fieldNames()
    published = re.search(r"shareable/published`\*\* \(.*?\): (.*?)\.\n", text, flags=re.DOTALL)
    assert published is not None
    assert re.findall(r"`(\w+)`", published.group(1)) == PUBLISHED.fieldNames()
    ledger = re.search(r"see \[below\]\(#what-was-spent-so-far\): (.*?)\.\n", text, flags=re.DOTALL)
    assert ledger is not None
    assert re.findall(r"`(\w+)`", ledger.group(1)) == LEDGER.fieldNames()
    metrics = re.search(r"restricted/metrics`\*\*: (.*?):", text, flags=re.DOTALL)
    assert metrics is not None
    assert re.findall(r"`(\w+)`", metrics.group(1)) == METRICS.fieldNames()


def newest(section: str) -> dict[str, Any]:
    """A section of the newest full record that holds it."""
    files = sorted((README.parent / "benchmarks" / "records").glob("*.json"))
    records = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    measured = [r for r in records if section in r["sections"] and r["sizes"]["name"] == "full"]
    if not measured:
        pytest.skip(f"no full record holds the section `{section}` yet")
    found: dict[str, Any] = max(measured, key=lambda record: record["date"])["sections"][section]
    return found


def test_its_gains_are_those_of_the_newest_record() -> None:
    assert markdown(newest("calibration")["facts"]["gains"]) in README.read_text(encoding="utf-8")


def test_what_audits_find_in_the_files_of_settings_is_that_of_the_newest_record() -> None:
    table = side_by_side(newest("settings")["grids"][0]["rows"])
    assert table in README.read_text(encoding="utf-8")


def test_the_page_on_scale_is_worked_out_from_the_newest_record() -> None:
    page = (README.parent / "docs" / "scale.md").read_text(encoding="utf-8")
    rows = newest("scale")["grids"][0]["rows"]
    for master, words, _, cost, rate, _, worker in rows:
        assert f"| {master} | {words:,} | {cost:.0f} | {rate:.1f} | {worker:.0f} MB |" in page
    cost, words = rows[-1][3], 1e13 / 5.86
    seconds = words * cost * 1e-9
    assert f"words \N{MULTIPLICATION SIGN} {cost:.0f} core-ns | {seconds / 3600:.0f} core-hours |" in page
    assert f"core-hours / 1,600 cores | {seconds / 1600 / 60:.1f} minutes |" in page
    assert f"58,600, of {seconds / 58_600:.0f} s each" in page


def test_it_names_no_machine_and_no_registry() -> None:
    text = README.read_text(encoding="utf-8")
    assert not re.search(r"/(?:work|root|home)/|pypi\.org|maven\.org", text)


def test_its_pictures_are_there_and_small() -> None:
    pictures = re.findall(r"!\[[^\]]{20,}\]\((docs/[^)]+)\)", README.read_text(encoding="utf-8"))
    assert pictures == ["docs/report.png"]
    for picture in pictures:
        assert (README.parent / picture).stat().st_size < 150_000
