"""The wheel on a cluster: installed, shipped by --py-files, and in a packed folder by --archives, under the real spark-submit.

The shipped copies have versions of their own: an executor that took another copy of the package would be seen by the doctor.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest

from dptext_spark.model.artifact import open_model
from tests.core.unstyled import UNSTYLED
from tests.wheels import build_wheel

pytestmark = pytest.mark.cluster

CHECKOUT = Path(__file__).resolve().parents[2]
DRIVER = """
import sys
from dptext_spark.cli.app import main
sys.exit(main(["doctor", "--json"]) or (main(["run", sys.argv[1], "--json"]) if sys.argv[1:] else 0))
"""
VERSION_MODULE = "dptext_spark/_version.py"
Submit = Callable[..., str]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def unpacked(wheel: Path, folder: Path, version: str = "") -> Path:
    """Put the wheel into a folder as `pip install --no-deps --target` does; `version` takes the place of its own."""
    target = ["--target", str(folder), str(wheel)]
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", *target]
    subprocess.run(command, check=True, capture_output=True)
    if version:
        module = folder / VERSION_MODULE
        module.write_bytes(renamed(module.read_bytes(), version))
    return folder


def renamed(module: bytes, version: str) -> bytes:
    found, times = re.subn(rb'(?m)^__version__ = ".*"$', f'__version__ = "{version}"'.encode(), module)
    assert times == 1
    return found


@pytest.fixture
def submit(session: Any, tmp_path: Path) -> Submit:
    """Run spark-submit in a process without this checkout on its path; return what it printed."""
    jars = session.sparkContext.getConf().get("spark.jars", "") or ""
    home = Path(pyspark.__file__).parent
    rows = [(i, f"Please call me about order {i}, my name is Martin.") for i in range(20)]
    session.createDataFrame(rows, "id long, body string").write.format("delta").save(str(tmp_path / "in"))
    words = ("please", "call", "order", "name", "house", "garden", "street", "city", "water", "bread")
    vectors = "".join(f"{word} {number} {number**2} 1\n" for number, word in enumerate(words))
    (tmp_path / "words.txt").write_text(vectors, encoding="utf-8")
    settings = {
        **UNSTYLED, "input": {"path": str(tmp_path / "in")}, "columns": ["body"], "row_key": "id", "mechanism": {"k": 4},
        "lexicon": {"source": str(tmp_path / "words.txt")}, "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
    }  # fmt: skip
    (tmp_path / "reviews.yaml").write_text(json.dumps(settings), encoding="utf-8")
    (tmp_path / "driver.py").write_text(DRIVER)

    def run(*options: str, master: str, **environment: str) -> str:
        command = [
            str(home / "bin" / "spark-submit"), "--master", master, "--jars", jars,
            "--conf", "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
            "--conf", "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1",
            "--conf", "spark.sql.shuffle.partitions=1", "--conf", "spark.databricks.delta.snapshotPartitions=1",
            "--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "--conf", "spark.executor.memory=600m", *options,
        ]  # fmt: skip
        unset = ("PYSPARK_", "SPARK_", "PYTHONPATH", "NUMBA_CACHE_DIR", "DPTEXT_CACHE", "XDG_CACHE_HOME")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
        kept |= {
            "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(tmp_path / "work"),
            "DPTEXT_CACHE": str(tmp_path / "cache"), **environment,
        }  # fmt: skip
        kept = {name: value for name, value in kept.items() if value}
        done = subprocess.run(command, cwd=tmp_path, env=kept, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
        return done.stdout

    return run


def documents(said: str) -> list[dict[str, Any]]:
    """Return the JSON documents among what was printed: Spark's launcher puts progress on stdout, too."""
    found, rest = [], said
    while (start := re.search(r"^\{$", rest, re.MULTILINE)) is not None:
        document, end = json.JSONDecoder().raw_decode(rest[start.start() :])
        found.append(document)
        rest = rest[start.start() + end :]
    return found


def checks(document: dict[str, Any]) -> dict[str, str]:
    return {found["check"]: found["message"] for found in document["checks"]}


def test_an_installed_wheel_shows_its_jobs(session: Any, wheel: Path, submit: Submit, tmp_path: Path) -> None:
    """A model is prepared, and then `spark-submit $(dptext jobs privatize) reviews.yaml`, with the wheel's own files."""
    site = unpacked(wheel, tmp_path / "site")
    environment = {**os.environ, "PYTHONPATH": str(site)}

    def python(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()  # fmt: skip

    def dptext(*arguments: str) -> str:
        return python("-m", "dptext_spark.cli.app", *arguments)

    job = dptext("jobs", "privatize")
    assert job == str(site / "dptext_spark" / "jobs" / "privatize.py")
    assert (Path(dptext("jobs", "conf")) / "databricks" / "databricks.yml").is_file()
    defaults = Path(dptext("jobs", "conf")) / "spark-defaults.conf"
    fingerprint = python(dptext("jobs", "prepare"), "reviews.yaml", "model").split()[-1]  # no Spark in it
    assert re.fullmatch(r"[0-9a-f]{64}\+[0-9a-f]{64}", fingerprint)  # of the model, and of its machine code
    said = submit(
        "--properties-file", str(defaults), job, "reviews.yaml", "--set", f"run.artifact={tmp_path / 'model'}",
        "--set", f"run.artifact_fingerprint={fingerprint}", "--json", master="local[1]", PYTHONPATH=str(site),
    )  # fmt: skip
    assert documents(said)[-1]["rows"] == 20
    runs = session.read.format("delta").load(str(tmp_path / "out_audit" / "shareable" / "runs"))
    (row,) = runs.collect()
    assert (row["status"], row["artifact"]) == ("succeeded", open_model(tmp_path / "model").fingerprint)


def test_the_wheel_as_py_files(wheel: Path, submit: Submit, tmp_path: Path) -> None:
    """On executors without a home that can be written: unpacked into a temporary folder, and compiled there."""
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(tmp_path / "dptext_spark.zip", "w") as shipped:
        for name in whole.namelist():
            content = whole.read(name)
            shipped.writestr(name, renamed(content, "0.1.0+zip") if name == VERSION_MODULE else content)
    (tmp_path / "tmp").mkdir()
    settings = dict.fromkeys(("HOME", "DPTEXT_CACHE", "XDG_CACHE_HOME"), "/proc/none")
    settings["TMPDIR"] = str(tmp_path / "tmp")
    named = [f"spark.executorEnv.{name}={value}" for name, value in settings.items()]
    options = [part for setting in named for part in ("--conf", setting)]
    said = submit(
        "--py-files", "dptext_spark.zip", *options, "driver.py", "reviews.yaml", master="local-cluster[1,1,600]"
    )  # fmt: skip
    checkup, report = documents(said)
    assert re.fullmatch(r"0\.1\.0\+zip \(build \w{8}\) everywhere", checks(checkup)["dptext_spark"])
    assert report["rows"] == 20
    assert report["status"] == "succeeded"


def test_a_packed_folder_as_archive(wheel: Path, submit: Submit, tmp_path: Path) -> None:
    site = unpacked(wheel, tmp_path / "environment", "0.1.0+tar")
    with tarfile.open(tmp_path / "environment.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(site, ".")
    said = submit(
        "--archives", "environment.tar.gz#environment", "--conf", "spark.executorEnv.PYTHONPATH=./environment",
        "driver.py", master="local-cluster[1,1,600]", PYTHONPATH=str(site),
    )  # fmt: skip
    (checkup,) = documents(said)
    assert re.fullmatch(r"0\.1\.0\+tar \(build \w{8}\) everywhere", checks(checkup)["dptext_spark"])
    assert checks(checkup)["shared model"].endswith(" everywhere")


def test_a_packed_environment_as_archive(wheel: Path, submit: Submit, tmp_path: Path) -> None:
    """The executors' interpreter and packages come out of the archive: a whole run."""
    environment = tmp_path / "packed"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    unpacked(wheel, packages, "0.1.0+env")
    # The large packages are not copied: of them it is enough that they are found.
    (packages / "others.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n", encoding="utf-8")
    with tarfile.open(tmp_path / "environment.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(environment, ".")
    site = unpacked(wheel, tmp_path / "site", "0.1.0+env")
    said = submit(
        "--archives", "environment.tar.gz#environment", "--conf", "spark.pyspark.python=./environment/bin/python",
        "--conf", f"spark.pyspark.driver.python={sys.executable}",
        "driver.py", "reviews.yaml", master="local-cluster[1,1,600]", PYTHONPATH=str(site), PYSPARK_PYTHON="",
    )  # fmt: skip
    checkup, report = documents(said)
    assert re.fullmatch(r"0\.1\.0\+env \(build \w{8}\) everywhere", checks(checkup)["dptext_spark"])
    assert report["rows"] == 20
    assert report["status"] == "succeeded"
