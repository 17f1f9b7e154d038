"""`dptext doctor` on a real session: what works is ok and leaves nothing behind, what does not is named with its cure."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from dptext_spark.cli.app import main
from dptext_spark.errors import SettingsError
from dptext_spark.spark import diagnostics
from dptext_spark.spark.diagnostics import check_folder, check_name
from dptext_spark.spark.ship import Shipped


@pytest.fixture
def settings(spark: Any, tmp_path: Path) -> dict[str, Any]:
    spark.range(3).selectExpr("id", "'a text' AS body").write.parquet(str(tmp_path / "in"))
    return {
        "input": {"path": str(tmp_path / "in"), "format": "parquet"}, "columns": ["body"], "row_key": "id",
        "output": {"path": str(tmp_path / "new" / "out"), "other_columns": "keep"},
    }  # fmt: skip


def examined(settings: dict[str, Any], folder: Path, capsys: Any) -> tuple[int, dict[str, dict[str, str]]]:
    file = folder / "settings.yaml"
    file.write_text(json.dumps(settings), encoding="utf-8")
    code = main(["doctor", str(file), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["failed"] == (code != 0)
    return code, {found["check"]: found for found in told["checks"]}


@pytest.mark.long
def test_what_works_is_ok_and_leaves_nothing(settings: dict[str, Any], tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("RUN_KEY", hashlib.sha256(b"the key of these tests").hexdigest())
    code, found = examined({**settings, "key": {"env": "RUN_KEY"}}, tmp_path, capsys)
    assert code == 0
    assert list(found) == [
        "Spark", "Java", "executors", "Python", "dptext_spark", "libraries", "shared model", "key", "input", "output.path",
        "audit.shareable", "audit.restricted", "ledger.path or ledger.table",
    ]  # fmt: skip
    assert {entry["status"] for entry in found.values()} == {"ok"}
    assert "RUN_KEY" in os.environ
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in", "settings.yaml"]


@pytest.mark.long
def test_what_does_not_work_is_named(settings: dict[str, Any], tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "file").write_text("no folder")
    wrong = {
        "input": {**settings["input"], "path": str(tmp_path / "none")}, "columns": ["body"], "row_key": "id",
        "key": {"file": str(tmp_path / "none.key")}, "output": {"path": "/proc/dptext/out"},
        "audit": {"shareable": str(tmp_path / "file" / "below"), "restricted": str(tmp_path / "r")},
        "run": {"artifact": str(tmp_path / "no-model")},
    }  # fmt: skip
    code, found = examined(wrong, tmp_path, capsys)
    assert code == 4
    failed = {name for name, one in found.items() if one["status"] == "fail"}
    assert failed == {"shared model", "key", "input", "output.path", "audit.shareable"}
    assert "no-model" in found["shared model"]["message"]
    assert "jobs/prepare.py" in found["shared model"]["hint"]
    assert "/proc: writing failed" in found["output.path"]["message"]
    assert "write and delete" in found["output.path"]["hint"]
    assert found["key"]["message"].startswith("key.file:")
    assert found["libraries"]["status"] == "ok"


@pytest.mark.long
def test_each_worker_opens_the_settings_classifier(settings: dict[str, Any], tmp_path: Path, capsys) -> None:
    pytest.importorskip("onnx", reason="the extra [encoder] is not installed")
    from tests.core.encoder.tiny_classifier import make_tiny_classifier

    folder = make_tiny_classifier(tmp_path / "classifier")
    names = {"names": {"model": str(folder)}}
    code, found = examined({**settings, "policy": names}, tmp_path, capsys)
    assert code == 0
    assert found["shared model"]["status"] == "ok"
    (folder / "config.json").unlink()
    code, found = examined({**settings, "policy": names}, tmp_path, capsys)
    assert code == 4
    assert {name for name, entry in found.items() if entry["status"] == "fail"} == {"shared model"}
    assert "policy.names.model" in found["shared model"]["message"]


def test_a_model_that_an_executor_does_not_see_is_reported_by_it(spark: Any, tmp_path: Path) -> None:
    (one,) = diagnostics.worker_facts(spark, Shipped(str(tmp_path / "elsewhere"), ""), 1)
    assert one.model_error == "DataError"
    assert not one.drawn
    assert one.executable == sys.executable


def test_an_executor_without_the_package_says_so() -> None:
    """The function reaches a process that cannot import the package, and answers."""
    program = (
        "import sys; sys.modules['dptext_spark'] = None\n"
        "from pyspark import cloudpickle; print(cloudpickle.loads(bytes.fromhex(sys.argv[1]))(0))"
    )
    sent = cloudpickle.dumps(diagnostics._asker(b"never opened")).hex()
    told = subprocess.run([sys.executable, "-c", program, sent], capture_output=True, text=True, check=True)
    assert json.loads(told.stdout)["missing"].startswith("dptext_spark")


def test_a_catalog_is_written_beside_the_table(spark: Any) -> None:
    before = {table.name for table in spark.catalog.listTables()}
    assert check_name(spark, "output.table", "default.out").status == "ok"
    assert {table.name for table in spark.catalog.listTables()} == before
    found = check_name(spark, "output.table", "no_such_schema.out")
    assert found.status == "fail"
    assert "CREATE TABLE" in found.hint


@pytest.mark.long
def test_a_table_that_exists_is_probed_inside(spark: Any, tmp_path: Path) -> None:
    spark.range(2).write.format("delta").save(str(tmp_path / "out"))
    found = check_folder(spark, "output.path", str(tmp_path / "out"))
    assert found.status == "ok"
    assert "a new folder" not in found.message
    assert spark.read.format("delta").load(str(tmp_path / "out")).count() == 2
    assert not list((tmp_path / "out").glob("*doctor*"))


def test_a_folder_that_nodes_do_not_share(spark: Any, tmp_path: Path, monkeypatch) -> None:
    real = diagnostics._file_system

    class Elsewhere:
        def __init__(self, system: Any) -> None:
            self.delete = system.delete
            self.exists = lambda path: "part-" not in str(path) and system.exists(path)

    def seen(session: Any, path: str) -> tuple[Any, Any]:
        system, kind = real(session, path)  # type: ignore[misc]
        return Elsewhere(system), kind

    monkeypatch.setattr(diagnostics, "_file_system", seen)
    found = check_folder(spark, "output.path", str(tmp_path / "out"))
    assert found.status == "fail"
    assert "the driver sees 0" in found.message
    assert "share" in found.hint
    assert not list(tmp_path.iterdir())


def test_without_a_session_that_is_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise SettingsError("Java: Spark needs version 17 or newer, and none was found.")

    monkeypatch.setattr(diagnostics, "spark_session", refused)
    (found,) = diagnostics.doctor()
    assert found.status == "fail"
    assert "Java" in found.message


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("[PYTHON_VERSION_MISMATCH] Python in worker has ...", "another Python"),
        ('java.io.IOException: Cannot run program "/no/python"', "lack the interpreter"),
        ("anything", "the executors' stderr"),
    ],
)
def test_a_probe_that_fails_says_where_to_look(message: str, hint: str, monkeypatch, spark: Any) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr(diagnostics, "worker_facts", fails)
    found = diagnostics.doctor(spark=spark)[-1]
    assert found.check == "executors"
    assert found.status == "fail"
    assert hint in found.hint
