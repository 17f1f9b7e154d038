"""No word of the text and no key in anything that lies around, whether a job succeeds, fails in any stage, or is killed.

The jobs run on a cluster with event logging and with Spark's own encryption of what it puts on disk. Its pages are fetched
while they run, and in the end driver and executors are killed, so that nothing is tidied up before it is searched.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dptext_spark.runtime.paths import user_cache
from tests.cluster.standalone import Application, Cluster, eventually, fetched
from tests.cluster.traces import PART, contents, octal, spellings, traces

pytestmark = pytest.mark.cluster

WORDS = (b"zanzibarmarker", b"quetzalmarker")
ROW = b"rowmarker"  # in every row's key: it identifies a person, and stays in the target's clear column only
KEY = hashlib.sha256(b"the key of these tests").digest()
LINE = f"please tell {WORDS[0].decode()} that {WORDS[1].decode()} has called"
# How each job ends: one of the parts is in what it says.
STAGES = {
    "good": "good succeeded",
    "delta": "delta succeeded",  # whose log holds the least and the greatest text, which Delta informs of
    "stream": "stream succeeded",
    "names": "names succeeded",  # whose list holds the words that are looked for
    "environment": "environment succeeded",
    "limit": "RunError ledger.limit: the run would pass 1.5",
    "broken": "CountMismatchError",  # what the audit of consistency found, too
    "unreadable": "Nothing was written|The run failed before its commit",
    "null_key": "DataError row_key: column 'id' is NULL in 1 of 2 rows",
    "repeated_key": "DataError row_key: column 'id' has 1 distinct values in 2 rows",
    "invalid_text": "DataError columns value: 1 rows hold invalid UTF-8",
    "constraint": "RunError Spark failed with",
    "conflict": "RunError Spark failed with DELTA_METADATA_CHANGED",
    "account": "RecordingError",
}
JOBS = Path(__file__).with_name("leaking_jobs.py")
DRIVER_PAGES = (
    "jobs/", "stages/", "storage/", "environment/", "executors/", "SQL/", "executors/threadDump/?executorId=driver",
    "metrics/json/",
)  # fmt: skip
STAGES_REST, SQL_REST = "stages?details=true", "sql?details=true&length=1000"
REST = ("jobs", STAGES_REST, "allexecutors", "environment", "storage/rdd", SQL_REST)


def _keys(rows: int) -> list[str | None]:
    return [f"{ROW.decode()}{i}" for i in range(rows)]


def _write_inputs(folder: Path) -> None:
    """Write the jobs' inputs: each fails in another stage."""
    folder.mkdir()

    def write(name: str, keys: list[str | None], texts: list[str] | pa.Array) -> Path:
        file = folder / f"{name}.parquet"
        table = pa.table({"id": pa.array(keys, pa.string()), "value": texts})
        pq.write_table(table, file, compression="none", use_dictionary=False)
        return file

    for name, rows in (("good", 50), ("constraint", 1), ("conflict", 1_500), ("account", 2)):
        write(name, _keys(rows), [LINE] * rows)
    (folder / "names.txt").write_bytes(b"\n".join(WORDS))
    write("null_key", [*_keys(1), None], [LINE] * 2)
    write("repeated_key", [f"{ROW.decode()}0"] * 2, [LINE] * 2)
    invalid = pa.array([LINE.encode(), LINE.encode() + b" \xff"]).view(pa.string())
    write("invalid_text", _keys(2), invalid)
    broken = write("unreadable", _keys(2_000), [LINE] * 2_000)
    content = bytearray(broken.read_bytes())
    middle = len(content) // 2
    content[middle - 20_000 : middle + 20_000] = WORDS[0] * 3_000  # lengths that are words, inside of a page
    broken.write_bytes(content)


def _is_code(file: Path) -> bool:
    """Whether it is a JAR: hundreds of megabytes of copies of what Spark was started with."""
    with file.open("rb") as opened:
        head = opened.read(200)
    return head[:4] == b"PK\x03\x04" and b"META-INF/" in head


def listed(address: str) -> list[dict[str, Any]]:
    """Return what the driver lists; nothing while it says, in plain words, that it is still starting."""
    page = fetched(address) or b"[]"
    found: list[dict[str, Any]] = [] if page.startswith(b"Spark is starting up") else json.loads(page)
    return found


class Visitor:
    """Fetches every page of the driver, master and workers, again and again, into files."""

    def __init__(self, cluster: Cluster, application: Application, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.driver = f"http://127.0.0.1:{application.ui}"
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._visit, daemon=True)
        folder.mkdir()
        self.thread.start()

    def end(self) -> None:
        self.over.set()
        self.thread.join(120)

    def _visit(self) -> None:
        while not self.over.wait(1.0):
            self.round()

    def round(self) -> None:
        """Fetch everything once; a later copy stands beside an earlier one."""
        for address in self._addresses():
            page = fetched(address)
            if page is not None:
                name = "".join(c if c.isalnum() else "_" for c in address.split("//")[1])
                (self.folder / f"{name}-{time.monotonic_ns()}").write_bytes(page)

    def _addresses(self) -> Iterator[str]:
        yield from (f"{self.driver}/{page}" for page in DRIVER_PAGES)
        rest = f"{self.driver}/api/v1/applications"
        for one in listed(rest):
            yield from (f"{rest}/{one['id']}/{part}" for part in REST)
            yield from (f"{page}/app/?appId={one['id']}" for page in self.cluster.pages[:1])
            for query in listed(f"{rest}/{one['id']}/sql?details=false&length=1000")[-5:]:
                yield f"{self.driver}/SQL/execution/?id={query['id']}"
            for page in self.cluster.pages[1:]:
                yield from (
                    f"{page}/logPage/?appId={one['id']}&executorId={n}&logType=stderr&byteLength=200000"
                    for n in (0, 1)
                )
        for page in self.cluster.pages:
            yield from (f"{page}/", f"{page}/json/")


@dataclass(frozen=True)
class Left:
    """What is there after everything was killed."""

    base: Path
    said: str
    files: list[Path]
    on_disk: list[Path]  # Spark's own: shuffles, spills, broadcasts


@pytest.fixture(scope="module")
def left(cluster: Cluster, base: Path) -> Iterator[Left]:
    began = time.time()
    _write_inputs(base / "in")
    key = base / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    conf = {
        "spark.io.encryption.enabled": "true",
        "spark.task.maxFailures": "1",
        "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # quicker, for so few rows
        # What is not encrypted would be found: nothing is compressed.
        "spark.shuffle.compress": "false", "spark.shuffle.spill.compress": "false", "spark.broadcast.compress": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",  # the audit's join goes over the disk, as that of a large table
    }  # fmt: skip
    application = cluster.submit(JOBS, str(base), conf=conf, name="leaks")
    visitor = Visitor(cluster, application, base / "pages")
    eventually(lambda: "ALL ENDED" in application.said or not application.runs, 900, 0.3)
    said = application.said
    visitor.end()
    assert "ALL ENDED" in said, said[-3000:]
    visitor.round()
    with cluster.power_cut(application):
        local = [file for file in (cluster.folder / "local").rglob("*") if file.is_file()]
        files = [file for folder in (base, cluster.folder) for file in folder.rglob("*") if file.is_file()]
        own = [file for file in files if not _is_code(file)]
        cached = [f for f in user_cache().rglob("*") if f.is_file() and f.stat().st_mtime > began]
        searched = [f for f in own if (base / "in") not in f.parents and f != key] + cached
        yield Left(base, said, searched, local)


def test_every_job_ended_in_the_stage_it_was_made_for(left: Left) -> None:
    ended = {line.split()[1]: line for line in left.said.splitlines() if line.startswith("ENDED ")}
    assert set(ended) == set(STAGES)
    for name, said in STAGES.items():
        assert any(part in ended[name] for part in said.split("|")), ended[name]


def test_nothing_private_lies_around(left: Left) -> None:
    assert traces(left.files, [*WORDS, KEY]) == []


def test_a_row_key_stands_in_its_column_only(left: Left) -> None:
    """Spark's encryption covers it in shuffles; beside the data files it is nowhere."""
    data = [f for f in left.files if any(f.is_relative_to(left.base / "out" / name) for name in STAGES)]
    found = traces([f for f in left.files if f not in set(data)], [ROW])
    assert found == []
    assert traces([f for f in data if f.suffix == ".parquet"], [ROW])  # it is looked for in the right way


def test_what_was_searched_is_what_there_is(left: Left) -> None:
    """The search covers logs, event logs, stderr of executors, pages, tables and Spark's own files, none of them empty."""

    def size(*parts: str) -> int:
        return sum(f.stat().st_size for f in left.files if all(part in str(f) for part in parts))

    for parts in (
        ("events", "eventlog"), ("work", "stderr"), ("logs", "leaks.log"), ("logs", "master.log"), ("out", "_delta_log"),
        ("pages", "environment"), ("pages", "SQL_execution"), ("pages", "api_v1", "stages"), ("pages", "logPage"),
        ("shareable", "runs"),
    ):  # fmt: skip
        assert size(*parts) > 1_000, parts
    assert sum(file.stat().st_size for file in left.on_disk if "shuffle" in file.name) > 10_000


def test_workers_have_as_many_threads_as_a_task_has_cores(cluster: Cluster, left: Left) -> None:
    told = json.loads((left.base / "workers.json").read_text(encoding="utf-8"))
    assert told["workers"]
    assert {worker["omp"] for worker in told["workers"]} == {told["cpus"]}
    assert {n for worker in told["workers"] for n in worker["pools"].values()} == {int(told["cpus"])}
    assert {"blas", "openmp"} <= set(told["workers"][0]["pools"])
    # And what they all run is the wheel.
    assert {worker["package"] for worker in told["workers"]} == {told["driver"]}
    assert Path(told["driver"]).is_relative_to(cluster.installed)


@pytest.mark.parametrize("offset", range(3))
@pytest.mark.parametrize("how", sorted(spellings(KEY)))
def test_a_planted_trace_is_found(tmp_path: Path, how: str, offset: int) -> None:
    secret = KEY
    around = b"abc"[:offset] + secret + b"and more"
    planted = spellings(secret)[how]
    if how.startswith("base64"):
        import base64

        coder = base64.urlsafe_b64encode if "addresses" in how else base64.b64encode
        planted = coder(around)
    (tmp_path / "log").write_bytes(b"something " + planted + b" else")
    assert traces([tmp_path / "log"], [secret, b"another secret"]), how
    assert {secret for _, _, secret in traces([tmp_path / "log"], [secret, b"another"])} == {secret}


@pytest.mark.parametrize("form", ["protobuf", "JSON"])
def test_a_part_of_a_key_is_found_in_protobufs_text(tmp_path: Path, form: str) -> None:
    """Spark cuts long bytes, and a key stands amid others: whatever the cut and the neighbours, eight bytes are a trace."""
    for secret in (KEY, b"a\\b\"c'\n\x07\x00\xff1\x011 7"):
        for start in range(len(secret) - PART + 1):
            around = b"\\" + b"\x00" * 3 + secret[start : start + PART] + b"7[truncated]"
            for named in (b"nrt\"'\\", b"abfnrtv\"'\\"):
                text = octal(around, named).decode()
                planted = text if form == "protobuf" else json.dumps({"plan": text})
                (tmp_path / "log").write_bytes(b"common { function: " + planted.encode() + b" }")
                (found,) = traces([tmp_path / "log"], [secret])
                assert found == (str(tmp_path / "log"), "octal, in part", secret)
                assert traces([tmp_path / "log"], [secret[::-1]]) == []


def test_the_octal_spelling_is_protobufs_own() -> None:
    text_format = pytest.importorskip("google.protobuf.text_format")
    from google.protobuf.wrappers_pb2 import BytesValue

    for secret in (KEY, bytes(range(256))):
        printed = text_format.MessageToString(BytesValue(value=secret), as_one_line=True)
        assert printed.encode() == b'value: "' + octal(secret) + b'"'


def test_a_planted_trace_is_found_in_a_compressed_table(tmp_path: Path) -> None:
    texts = [f"{word} {WORDS[0].decode()} {word}" for word in ("a", "b") for _ in range(500)]
    pq.write_table(pa.table({"t": texts}), tmp_path / "t.parquet", compression="zstd")
    file = tmp_path / "t.parquet"
    assert WORDS[0] not in file.read_bytes() or len(list(contents(file))) == 2
    assert traces([file], WORDS) == [(str(file), "plain", WORDS[0])]
