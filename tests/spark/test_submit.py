"""The entry points of jobs/ under the real spark-submit: an artifact is prepared, and a table sanitized with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from dptext_spark.model.artifact import open_model
from tests.core.unstyled import UNSTYLED

CHECKOUT = Path(__file__).resolve().parents[2]


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    return kept | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(CHECKOUT)}


def _submit(job: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    from dptext_spark.spark.session.session import spark_session

    jars = spark_session().sparkContext.getConf().get("spark.jars", "") or ""
    home = Path(pyspark.__file__).parent
    command = [
        str(home / "bin" / "spark-submit"),
        "--master", "local[2]",
        "--jars", jars,
        "--conf", "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
        "--conf", "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "--conf", "spark.ui.enabled=false",
        "--conf", "spark.driver.host=127.0.0.1",
        "--conf", "spark.sql.shuffle.partitions=2",
        "--conf", "spark.databricks.delta.snapshotPartitions=1",
        str(CHECKOUT / "jobs" / job),
        *arguments,
    ]  # fmt: skip
    environment = _environment() | {"SPARK_HOME": str(home)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=400)


@pytest.fixture
def settings(spark, tmp_path: Path) -> Path:
    rows = [(i, f"Please call me about order {i}, my name is Martin.") for i in range(40)]
    spark.createDataFrame(rows, "id long, body string").write.format("delta").save(str(tmp_path / "in"))
    file = tmp_path / "settings.yaml"
    file.write_text(
        json.dumps(
            {
                **UNSTYLED,
                "input": {"path": str(tmp_path / "in")},
                "columns": ["body"],
                "row_key": "id",
                "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
            }
        ),
        encoding="utf-8",
    )
    return file


def _python(job: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHECKOUT / "jobs" / job), *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=400,  # machine code is made, too
    )


@pytest.mark.cluster
def test_prepare_then_privatize(spark, settings: Path, tmp_path: Path) -> None:
    prepared = _python(
        "prepare.py", str(settings), str(tmp_path / "model"), folder=tmp_path
    )  # no Spark in it
    assert prepared.returncode == 0, prepared.stderr[-2000:]
    fingerprint = prepared.stdout.split()[-1]
    assert re.fullmatch(r"[0-9a-f]{64}\+[0-9a-f]{64}", fingerprint)  # of the model, and of its machine code
    done = _submit(
        "privatize.py",
        str(settings),
        "--set",
        f"run.artifact={tmp_path / 'model'}",
        "--set",
        f"run.artifact_fingerprint={fingerprint}",
        "--json",
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # Spark's launcher puts both streams of a Python application on stdout: progress comes before the document.
    assert json.loads(done.stdout[done.stdout.index("{\n") :])["rows"] == 40
    out = spark.read.format("delta").load(str(tmp_path / "out"))
    assert out.count() == 40
    assert out.where("body LIKE '%Please%Martin%'").count() < 10
    runs = spark.read.format("delta").load(str(tmp_path / "out_audit" / "shareable" / "runs")).collect()
    assert [(row["status"], row["artifact"]) for row in runs] == [
        ("succeeded", open_model(tmp_path / "model").fingerprint)
    ]


def test_wrong_settings_end_the_job_before_spark_starts(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("columns: [body]\nrow_key: id\nmechanism: {k: 1}\n", encoding="utf-8")
    done = _python("privatize.py", str(file), folder=tmp_path)
    assert done.returncode == 2
    assert "mechanism.k" in done.stderr
    assert "spark" not in done.stderr.lower()
