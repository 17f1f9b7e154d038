"""The benchmarks that start Spark, small: that they measure every figure, in a process of their own as `make bench` does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.settings import SETTINGS

pytestmark = pytest.mark.cluster
CHECKOUT = Path(__file__).resolve().parent.parent.parent
FIGURES = {
    "spark": {"read, privatize, observe, write", "the whole run", "the whole run, fluent draws"},
    "run_phases": {
        "dptext run, Spark's start included",
        "the next run of a session",
        "two rounds of commits",
        "Spark jobs of a run",
    },
    "increment": {"new rows, with ledger and account"},
    "shapes": {
        "memory that one long text adds to a worker",
        "memory of a worker, one partition of 100,000 words",
        "one partition of 500 words, `calibrated`, 2 cores, run.partitions: auto",
        "a table of 2 columns, one of them text",
        "a table of 200 columns, one of them text",
        "a value of another column that passes Python by",
    },
    "keys": {"the check of 500,000 keys", "what the check shuffles"},
    "faults": set(),
    "huge": set(),
    "ledger": {"a reservation in a ledger of 1,000 entries"},
    "scale": {
        f"{master}: {figure} at 4 x"
        for master in ("local[1]", "local[2]", "standalone, 2 workers")
        for figure in ("cost of a word", "memory of a worker")
    },
}
SMALL = """
import sys
from dataclasses import replace
from pathlib import Path
from rich.console import Console
from benchmarks.__main__ import measured
from benchmarks.sizes import QUICK
sizes = replace(QUICK, spark_rows=2_000, scale_rows=4_000, long_bytes=200_000, long_rounds=1)
measured(sys.argv[1:2], sizes, "", Path(sys.argv[2]), Console())
"""


@pytest.mark.parametrize("section", FIGURES)
def test_a_section_measures_its_figures(tmp_path: Path, section: str) -> None:
    record = tmp_path / "record.json"
    command = [sys.executable, "-c", SMALL, section, str(record)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    measured = json.loads(record.read_text(encoding="utf-8"))["sections"][section]
    assert measured["skipped"] == []
    assert {figure["name"] for figure in measured["figures"]} == FIGURES[section]
    assert len(measured["grids"]) == (section in ("scale", "faults", "huge", "run_phases"))
    assert all(figure["value"]["median"] == figure["value"]["median"] for figure in measured["figures"])


def test_the_files_of_settings_are_run_and_audited(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    command = [sys.executable, "-c", SMALL, "settings", str(record)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    section = json.loads(record.read_text(encoding="utf-8"))["sections"]["settings"]
    audits = section["facts"]["audits"]
    assert {name: one["status"] for name, one in audits.items()} == dict.fromkeys(SETTINGS, "succeeded")
    (grid,) = section["grids"]
    rows = {row[0]: dict(zip(grid["headings"], row, strict=True)) for row in grid["rows"]}
    assert {
        "original_share_all",
        "bayes_success",
        "context_success",
        "cosine",
        "accuracy_private_private",
    } <= set(rows)
    assert (
        rows["original_share_all"]["strict"] < 0.2 < rows["original_share_all"]["balanced"] < 0.8
    )  # stop words
    assert rows["bayes_success"]["strict"] < rows["bayes_success"]["balanced"] < 1.0
    assert rows["cosine"]["strict"] < rows["cosine"]["balanced"] < rows["cosine"]["no noise"] == 1.0
