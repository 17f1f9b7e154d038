"""`dptext doctor` on a real session: what works is ok and leaves nothing behind, what does not is named with its cure."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from pyspark import cloudpickle

from dptext_spark.cli.app import main
from dptext_spark.errors import SettingsError
from dptext_spark.runtime.environment import container_memory
from dptext_spark.spark.diagnostics import doctor, probe
from dptext_spark.spark.session import places
from dptext_spark.spark.session.places import check_folder, check_name
from dptext_spark.spark.udf.ship import Shipped


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
def test_what_works_is_ok_and_leaves_nothing(
    settings: dict[str, Any], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUN_KEY", hashlib.sha256(b"the key of these tests").hexdigest())
    code, found = examined({**settings, "key": {"env": "RUN_KEY"}}, tmp_path, capsys)
    wanted = {
        "Spark",
        "Java",
        "executors",
        "Python",
        "dptext_spark",
        "libraries",
        "text engine",
        "Arrow",
        "code cache",
        "matrix products",
    }
    wanted |= {
        "free space",
        "clocks",
        "key",
        "input",
        "output.path",
        "audit.shareable",
        "audit.restricted",
        "ledger.path or ledger.table",
    }
    assert code == 0
    assert found.keys() == wanted
    # A processor's kernels and a disk that is nearly full are the machine's, not ours.
    assert {name for name, one in found.items() if one["status"] != "ok"} <= {"matrix products", "free space"}
    assert "RUN_KEY" in os.environ
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in", "settings.yaml"]


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
    assert "/proc cannot be written" in found["output.path"]["message"]
    assert "right to write" in found["output.path"]["hint"]
    assert found["key"]["message"].startswith("key.file:")
    assert found["text engine"]["status"] == "ok"


@pytest.mark.cluster
def test_memory_of_workers_with_a_classifier(
    spark: Any, settings: dict[str, Any], tmp_path: Path, capsys: Any
) -> None:
    """Each worker opens the settings' classifier, reads a full window with it, and says what it holds."""
    pytest.importorskip("onnx", reason="the extra [encoder] is not installed")
    from tests.core.encoder.tiny_classifier import make_tiny_classifier

    folder = make_tiny_classifier(tmp_path / "classifier")
    names = {"names": {"model": str(folder)}}
    code, found = examined({**settings, "policy": names}, tmp_path, capsys)
    assert found["memory"]["status"] in ("ok", "warn")  # as the machine is
    told = re.fullmatch(
        r"(\d+) workers? of ([\d,]+) MiB with the classifier of names, ([\d,]+) MiB for Java, in ([\d,]+) MiB \(on .+\)",
        found["memory"]["message"],
    )
    assert told is not None
    workers, held, heap, room = (int(one.replace(",", "")) for one in told.groups())
    assert workers == probe.slots_of(spark)
    assert 20 < held < 2000
    assert heap == probe.heap_of(spark) >> 20
    assert room == pytest.approx((container_memory()[1] or 0) / (1 << 20), abs=1)
    assert found["text engine"]["status"] == "ok"
    assert code == 0
    (folder / "config.json").unlink()
    code, found = examined({**settings, "policy": names}, tmp_path, capsys)
    assert code == 4
    assert {name for name, one in found.items() if one["status"] == "fail"} == {"classifier"}
    assert "policy.names.model" in found["classifier"]["message"]
    assert "memory" not in found


@pytest.mark.parametrize(
    ("master", "given", "heap"),
    [
        ("local[2]", {"spark.driver.memory": "2g", "spark.executor.memory": "9g"}, 2 << 30),
        ("yarn", {"spark.executor.memory": "512m"}, 512 << 20),
        ("yarn", {"spark.executor.memory": "3072"}, 3 << 30),
        ("yarn", {"spark.executor.memory": "4GB"}, 4 << 30),
        ("yarn", {}, 1 << 30),
        ("yarn", {"spark.executor.memory": "much"}, 0),
    ],
)
def test_memory_that_java_may_take(master: str, given: dict[str, str], heap: int) -> None:
    conf = SimpleNamespace(get=lambda name, default: {"spark.master": master, **given}.get(name, default))
    session: Any = SimpleNamespace(conf=conf)
    assert probe.heap_of(session) == heap


def test_a_model_that_an_executor_does_not_see_is_reported_by_it(spark: Any, tmp_path: Path) -> None:
    (one,) = probe.worker_facts(spark, Shipped(str(tmp_path / "elsewhere"), ""), 1)
    assert one.model_error == "DataError"
    assert not one.drawn
    assert one.executable == sys.executable


def test_an_executor_without_the_package_says_so() -> None:
    """The function reaches a process that cannot import the package, and answers."""
    program = (
        "import sys; sys.modules['dptext_spark'] = None\n"
        "from pyspark import cloudpickle; print(cloudpickle.loads(bytes.fromhex(sys.argv[1]))(0))"
    )
    sent = cloudpickle.dumps(probe._asker(b"never opened")).hex()
    told = subprocess.run([sys.executable, "-c", program, sent], capture_output=True, text=True, check=True)
    assert json.loads(told.stdout)["missing"].startswith("dptext_spark")


def test_a_catalog_is_written_beside_the_table(spark: Any) -> None:
    before = {table.name for table in spark.catalog.listTables()}
    assert check_name(spark, "output.table", "default.out").status == "ok"
    assert {table.name for table in spark.catalog.listTables()} == before
    found = check_name(spark, "output.table", "no_such_schema.out")
    assert found.status == "fail"
    assert "CREATE TABLE" in found.hint


def test_a_table_that_exists_is_probed_inside(spark: Any, tmp_path: Path) -> None:
    spark.range(2).write.format("delta").save(str(tmp_path / "out"))
    found = check_folder(spark, "output.path", str(tmp_path / "out"))
    assert found.status == "ok"
    assert "to be made" not in found.message
    assert spark.read.format("delta").load(str(tmp_path / "out")).count() == 2
    assert not list((tmp_path / "out").glob("*doctor*"))


def test_a_folder_that_nodes_do_not_share(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = places._file_system

    class Elsewhere:
        """A file system in which the driver finds no file of a task."""

        def __init__(self, system: Any) -> None:
            self.delete, self.exists = (
                system.delete,
                lambda path: "part-" not in str(path) and system.exists(path),
            )

    def seen(session: Any, path: str) -> tuple[Any, Any]:
        system, kind = real(session, path)  # type: ignore[misc]
        return Elsewhere(system), kind

    monkeypatch.setattr(places, "_file_system", seen)
    found = check_folder(spark, "output.path", str(tmp_path / "out"))
    assert found.status == "fail"
    assert "the driver sees 0" in found.message
    assert "share" in found.hint
    assert not list(tmp_path.iterdir())


def test_arrow_is_asked_with_a_batch(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe.arrow_slots(spark, 2) == 2
    monkeypatch.setattr(doctor, "arrow_slots", lambda *_: 1)
    found = doctor._arrow(spark, 2)
    assert found.status == "fail"
    assert found.message.startswith("batches came through it in 1 of 2")

    def fails(*_: Any) -> None:
        raise RuntimeError("private")

    monkeypatch.setattr(doctor, "arrow_slots", fails)
    found = doctor._arrow(spark, 2)
    assert found.status == "fail"
    assert "no batch came through" in found.message
    assert "private" not in found.message


def test_without_a_session_that_is_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise SettingsError("Java: Spark needs version 17 or newer, and none was found.")

    monkeypatch.setattr(doctor, "spark_session", refused)
    (found,) = doctor.doctor()
    assert found.status == "fail"
    assert "Java" in found.message


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("[PYTHON_VERSION_MISMATCH] Python in worker has ...", "another Python than the driver"),
        ('java.io.IOException: Cannot run program "/no/python"', "lack the interpreter"),
        ("anything", "stderr says more"),
    ],
)
def test_a_probe_that_fails_says_where_to_look(
    message: str, hint: str, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr(doctor, "worker_facts", fails)
    found = doctor.doctor(spark=spark)[-1]
    assert found.check == "executors"
    assert found.status == "fail"
    assert hint in found.hint
