"""Providers by import path on a cluster of processes: how their modules come to executors, and what is said where none came."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from tests.cluster.standalone import Cluster
from tests.core.names import beginning
from tests.core.presidio import installed_model, people
from tests.core.toy_providers import plain, write, write_wrong

pytestmark = pytest.mark.cluster

JOBS = Path(__file__).with_name("providing_jobs.py")
SECRET = "quetzalmarker"
# Words that the lexicon lacks are kept, so that a plain reading says all of what comes out.
TEXTS = [f"xyzzy T-{i} é zebras-T-77\nzebraé {'secret ' + SECRET if i == 7 else ''}" for i in range(40)]


@pytest.fixture(scope="module")
def found(cluster: Cluster, base: Path) -> dict[str, Any]:
    folders = {name: base / name for name in ("sent", "installed", "driver_only")}
    for folder in folders.values():
        folder.mkdir()
    write(folders["sent"], "sent_finder")
    write_wrong(folders["sent"], "raising_finder", "raises")
    write(folders["installed"], "installed_finder")
    write(folders["driver_only"], "driver_only_finder")
    with zipfile.ZipFile(base / "sent_package.zip", "w") as packed:
        packed.writestr("sent_package/__init__.py", "")
        packed.write(folders["sent"] / "sent_finder.py", "sent_package/finders.py")
    beginning(Lexicon.default(), 300).save(base / "lexicon")
    table = pa.table({"id": pa.array(range(len(TEXTS)), pa.int64()), "body": TEXTS})
    pq.write_table(table, base / "in.parquet")
    finders = [folders["sent"] / f"{name}_finder.py" for name in ("sent", "raising")]
    files = [*finders, base / "sent_package.zip"]
    application = cluster.submit(
        JOBS, str(base), name="providers", py_files=files,
        conf={"spark.executorEnv.PYTHONPATH": f"{cluster.installed}:{folders['installed']}"},
    )  # fmt: skip
    assert application.wait() == 0, application.said[-3000:]
    assert SECRET not in application.said
    return dict(json.loads((base / "found.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("way", ["file", "package", "installed"])
def test_a_module_comes_to_the_executors(cluster: Cluster, base: Path, found, way: str) -> None:
    """By `--py-files`, a file or a ZIP with a package, or by the PYTHONPATH of the executors."""
    assert found[way]["ended"] == "succeeded"
    assert found[way]["written"] == {str(i): plain(text) for i, text in enumerate(TEXTS)}
    ends = {
        "file": f"{cluster.folder / 'work'}/.*/sent_finder.py",
        "package": r"\S*/sent_package.zip/sent_package/finders.py",
        "installed": f"{base}/installed/installed_finder.py",
    }
    assert found[f"{way}_from"]
    assert all(re.fullmatch(ends[way], one) for one in found[f"{way}_from"])


def test_a_module_that_executors_lack_is_named_before_anything_is_written(found: dict[str, Any]) -> None:
    ended, left = found["driver_only"]["ended"], found["driver_only"]["left"]
    before = r"RunError policy\.providers\[0\]: in a worker, before anything was read or written"
    assert re.match(before, ended)
    assert "--py-files FILE" in ended
    assert ended.endswith("(PROVIDER_MISSING).")
    assert left == []
    (told,) = found["doctor"]
    assert told.startswith("fail: ")
    assert "ProviderImportError" in told


def test_one_that_raises_ends_by_a_code_without_its_message(cluster: Cluster, found: dict[str, Any]) -> None:
    ended = found["raises"]["ended"]
    assert re.match(
        r"RunError policy\.providers\[0\]: in partition \d+, batch \d+ of its partition the provider raised",
        ended,
    )
    assert "(PROVIDER_FAILED). The run failed before its commit." in ended
    assert found["raises"]["written"] == {}
    folders = [cluster.folder / part for part in ("work", "logs", "events")]
    logs = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    assert any(file.name == "stderr" for file in logs)
    assert all(SECRET.encode() not in file.read_bytes() for file in logs)


@pytest.mark.filterwarnings("ignore")
def test_presidio_looks_for_names_on_executors(cluster: Cluster, base: Path) -> None:
    """By the class of the guide, sent by `--py-files`; Presidio and its model are where the executors' Python has them."""
    own = base / "presidio"
    own.mkdir()
    path = people(own, "people_finder", installed_model())
    beginning(Lexicon.default(), 300).save(own / "lexicon")
    names = ["Mary Robinson", "Barack Obama", "Angela Merkel"]
    texts = [f"it is {names[i % 3]} of Paris" if i % 4 else "not me" for i in range(40)]
    table = pa.table({"id": pa.array(range(len(texts)), pa.int64()), "body": texts})
    pq.write_table(table, own / "in.parquet")
    files = [own / "people_finder.py"]
    application = cluster.submit(JOBS, str(own), path, name="presidio", conf={}, py_files=files)
    assert application.wait() == 0, application.said[-3000:]
    found = json.loads((own / "found.json").read_text(encoding="utf-8"))["named"]
    assert found["ended"] == "succeeded"
    assert set(found["written"]) == {str(i) for i in range(len(texts))}
    written = [found["written"][str(i)] for i in range(len(texts))]
    assert [one.count("[PERSON]") for one in written] == [1 if i % 4 else 0 for i in range(len(texts))]
    assert all(name.split()[1] not in one for one in written for name in names)
