"""A client of Spark Connect gets what a classic session gets, byte for byte, and no private word in what it prints."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from dptext_spark import spark as dps
from dptext_spark.importance.budget import Budget
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.artifact import open_model, save_model
from dptext_spark.model.compile import compile, prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.spark.diagnostics import PLAN_LOGGERS
from dptext_spark.spark.job.entries import read
from dptext_spark.text.policy import Policy
from tests.cluster.traces import spellings, traces
from tests.connect.client import (
    CLASSIFIED,
    COLUMNS,
    FINDERS,
    KEY,
    LOGGED,
    PROVIDED,
    RAISING,
    RELEASING,
    SECRET,
    TOY,
    UNSENT,
    UNSENT_MODULE,
    config_of,
    failing,
    lists_of,
    names_of,
    provided_by,
)
from tests.connect.conftest import CHECKOUT, Server, run_client
from tests.core.encoder.tiny_classifier import (
    LABELS,
    VOCABULARY,
    logits_table,
    make_tiny_classifier,
    tiny_graph,
)
from tests.core.mechanisms.fluent_toys import with_pairs
from tests.core.names import beginning
from tests.core.toy_providers import write, write_wrong

pytestmark = pytest.mark.cluster

ROWS = 60
MARKER = "zanzibarmarker"
SHOWN_TO_PROVIDERS = "quetzalmarker"
PATTERN = "friend|Hello there|day"  # what the toy provider finds
SCHEMA = (
    "id long, customer string, body string, tags array<string>, "
    "comments array<struct<text:string,by:string>>, attributes map<string,string>"
)


@dataclass(frozen=True)
class Client:
    spark: Any
    folder: Path
    found: dict[str, Any]
    printed: str
    server: Server

    def privatized(
        self, model: str, key: RunKey = KEY, *, providers: tuple[str, ...] = (), **lists: Any
    ) -> list[Any]:
        """Return the rows of the input as a classic session replaces them under a model of the folder."""
        df = self.spark.read.format("delta").load(str(self.folder / "in"))
        opened = open_model(self.folder / model, providers=providers)
        record = "customer" if opened.budget is None else None
        keys = {"row_key": "id", "record_key": record, "key": key}
        out = dps.privatize(df, COLUMNS, opened, run_id="r", **keys, **lists)
        return rows_of(out)

    def run(self, out: str, key: RunKey = KEY, **changes: Any) -> dict[str, Any]:
        return dps.run(config_of(self.folder, out, **changes), self.spark, key=key).as_dict(internal=True)

    def contents(self, table: str) -> list[dict[str, Any]]:
        return rows_of(self.spark.read.format("delta").load(str(self.folder / table)))

    def finished(self, name: str) -> dict[str, Any]:
        """Return the facts of a run of the client, which succeeded and whose consistency was confirmed."""
        facts: dict[str, Any] = self.found[name]
        assert facts["status"] == "succeeded"
        assert facts["consistency_audit"]["passed"] is True
        return facts


def rows_of(frame: Any) -> list[dict[str, Any]]:
    return [json.loads(row[0]) for row in frame.orderBy("id").selectExpr("to_json(struct(*))").collect()]


@pytest.fixture(scope="module")
def client(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    from pyspark.sql import SparkSession

    from dptext_spark.spark.session import spark_session

    folder = tmp_path_factory.mktemp("client")
    before = SparkSession.getActiveSession()
    spark = spark_session(
        master="local[2]", warehouse=folder / "warehouse",
        settings={"spark.sql.shuffle.partitions": 2, "spark.executorEnv.PYTHONPATH": str(CHECKOUT)},
    )  # fmt: skip
    try:
        _tables(spark, folder)
        _providers(spark, folder)
        _model(folder)
        done = run_client("tests.connect.client", server, folder)
        results = folder / "results.json"
        assert results.exists(), f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}\n{server.printed()[-2000:]}"
        yield Client(spark, folder, json.loads(results.read_text("utf-8")), done.stdout + done.stderr, server)
    finally:
        sys.path[:] = [path for path in sys.path if path != str(folder / FINDERS)]
        if before is None:
            spark.stop()


def _providers(spark: Any, folder: Path) -> None:
    """Write the modules of providers, for client and classic session, which bring them to their workers as a user would."""
    finders = folder / FINDERS
    finders.mkdir()
    for module in (TOY, UNSENT_MODULE):
        write(finders, module, pattern=PATTERN)
    write_wrong(finders, RAISING, "raises")
    sys.path.insert(0, str(finders))
    spark.addArtifact(str(finders / f"{TOY}.py"), pyfile=True)
    secret = spark.createDataFrame([(1, f"a secret {SHOWN_TO_PROVIDERS}")], "id long, body string")
    secret.write.format("delta").save(str(folder / "secret"))


def _tables(spark: Any, folder: Path) -> None:
    rows = [
        (
            i, f"c{i // 4}", f"Hello there friend {i}, so what time?" if i % 7 else None, ["the time", None, f"day {i}"][: i % 4],
            None if i % 9 == 0 else [("the house of the friend", "Ann"), None], {"a": "the time", "b": None},
        )
        for i in range(ROWS)
    ]  # fmt: skip
    spark.createDataFrame(rows, SCHEMA).repartition(3, "id").write.format("delta").save(str(folder / "in"))
    marker = MARKER.encode().hex()
    bad = f"(1, X'{marker}'), (2, X'{marker}'), (3, X'FF{marker}')"
    marked = spark.sql(f"SELECT col1 AS id, CAST(col2 AS STRING) AS body FROM VALUES {bad}")
    marked.write.format("delta").save(str(folder / "marked"))
    counted = spark.createDataFrame([(1, "the house")], "id long, body string")
    counted.write.format("delta").save(str(folder / "counted/in"))
    place = f"delta.`{folder / 'constrained'}`"
    spark.sql(f"CREATE TABLE {place} (id INT, body STRING) USING delta")
    spark.sql(f"ALTER TABLE {place} ADD CONSTRAINT short CHECK (id < 0 AND body <> '{MARKER}')")


def _model(folder: Path) -> None:
    words = beginning(Lexicon.default(), 600)
    sampler = CusText(epsilon=1.0, k=10).compile(words)
    save_model(Privatizer(words, sampler, Policy(stop_words="draw", oov="mask"), "record"), folder / "model")
    remapped = CusText(epsilon=2.0, k=10, remap="bayes")
    fluent = CusText(epsilon=2.0, k=10, fluent=True)
    save_model(compile(remapped, words, consistency="record"), folder / RELEASING[0])
    save_model(compile(fluent, with_pairs(words)), folder / RELEASING[1])
    bounded = compile(CusText(epsilon=2.0, k=10), words, budget=Budget(record=1.0, delta=0.01))
    save_model(bounded, folder / RELEASING[2])
    # A word that begins with an f is a place, one with an h a surname.
    table = logits_table()
    for letter, label in (("f", "B-CITY"), ("h", "B-SURNAME")):
        table[VOCABULARY.index(letter)] = -40.0
        table[VOCABULARY.index(letter), LABELS.index(label)] = 6.0
    make_tiny_classifier(folder / "classifier", tiny_graph(table=table))
    policy = Policy(names=names_of(folder)["names"])  # type: ignore[arg-type]
    save_model(compile(CusText(epsilon=2.0, k=10), words, policy, "record"), folder / CLASSIFIED)
    provided = Policy(providers=(f"{TOY}:Toy",))
    save_model(compile(CusText(epsilon=2.0, k=10), words, provided, "record"), folder / PROVIDED)


def test_the_session_is_taken_as_it_is(client: Client) -> None:
    assert client.found["same_session"] is True


def test_a_worker_has_the_machine_code_that_the_client_made(client: Client) -> None:
    """The client found the loops in its cache, so making it took seconds; the server may be far away."""
    assert client.found["given"] > 8


@pytest.mark.parametrize(
    ("found", "model"),
    [("auto", "model"), ("pandas", "model"), *((name, name) for name in (*RELEASING, CLASSIFIED))],
)
def test_a_frame_comes_out_as_on_a_classic_session(client: Client, found: str, model: str) -> None:
    assert client.found[found] == client.privatized(model) != client.contents("in")


def test_a_classifier_of_names_reads_as_on_a_classic_session_and_as_in_one_batch(client: Client) -> None:
    here, there = client.run("named_here", policy=names_of(client.folder)), client.finished("named_facts")
    written, source = client.contents("named"), client.contents("in")
    assert written == client.contents("named_here")
    model = prepare(config_of(client.folder, "named_here", policy=names_of(client.folder)))[0]
    drawn, counters = model.privatize(
        pa.array([row.get("body") for row in source]), column="body", row_ids=pa.array([row["id"] for row in source]),
        record_ids=pa.array([row["customer"] for row in source]), key=KEY, run_id="one",
    )  # fmt: skip
    assert [row.get("body") for row in written] == drawn.to_pylist()
    totals = counters.totals()
    assert totals["persons_found"] > 0
    assert totals["locations_found"] > ROWS / 2
    assert there["restricted"]["locations_found"] == here["restricted"]["locations_found"]
    frame = json.dumps(client.found[CLASSIFIED])
    assert frame.count("[LOCATION]") > ROWS / 2
    assert "friend" not in frame


def test_a_provider_finds_what_it_finds_on_a_classic_session(client: Client) -> None:
    """Its module is sent along (`addArtifact`); it is installed nowhere."""
    path = f"{TOY}:Toy"
    assert client.found["provided"] == client.privatized(PROVIDED, providers=(path,))
    here = client.run("provided_here", policy=provided_by(path), run={"id": "provided"})
    there = client.finished("provided_facts")
    source, *written = (client.contents(name) for name in ("in", "provided_there", "provided_here"))
    assert written[0] == written[1]
    for frame in (client.found["provided"], written[0]):
        shown, given = (
            json.dumps([{**row, "id": 0, "customer": ""} for row in some]) for some in (frame, source)
        )
        assert not re.search(PATTERN, shown)
        assert shown.count("[TICKET]") == len(re.findall(PATTERN, given)) > ROWS
    found = there["restricted"]["identifiers_provided"]
    assert found == here["restricted"]["identifiers_provided"] == len(re.findall(PATTERN, json.dumps(source)))
    assert f"toy, version 1 ({TOY}:Toy) for ticket, animal" in str(there["disclosure"])


@pytest.mark.parametrize(
    ("name", "code", "hint"),
    [
        ("raising", "PROVIDER_FAILED", "may hold private text and is not shown"),
        ("unsent", "PROVIDER_MISSING", "spark.addArtifact(FILE, pyfile=True)"),
    ],
)
def test_a_provider_that_raises_or_is_not_sent_ends_the_run_by_a_code(client, name, code, hint: str) -> None:
    found = client.found[f"provided_{name}"]
    assert found["kind"] == "RunError"
    assert found["said"].startswith("policy.providers[0]: in ")
    assert f"({code})" in found["said"]
    assert hint in found["said"]
    assert not list(client.folder.glob(f"provided_{name}/_delta_log/*.json"))
    # The module is missed before anything is written.
    for place in (f"provided_{name}", f"provided_{name}_audit"):
        assert (client.folder / place).exists() == (name == "raising")
    for text in (found["said"], client.printed, client.server.printed()):
        assert SHOWN_TO_PROVIDERS not in text


def test_lists_of_names_are_looked_for_as_on_a_classic_session(client: Client) -> None:
    lists = lists_of(client.spark, client.folder)
    assert client.found["listed"] == client.privatized("model", **lists)
    bodies = [row.get("body") or "" for row in client.found["listed"]]
    assert sum(body.startswith("[NAME] ") for body in bodies) > ROWS / 2
    assert "friend" not in json.dumps(client.found["listed"])
    here, there = client.run("listed_here", policy=lists), client.finished("listed_facts")
    counted = ("names_masked", "names_kept", "drawn", "words")
    assert {name: there["restricted"][name] for name in counted} == {
        name: here["restricted"][name] for name in counted
    }
    assert there["restricted"]["names_masked"] > 0
    assert there["restricted"]["names_kept"] > 0


def test_a_run_comes_out_as_on_a_classic_session(client: Client) -> None:
    here, there = client.run("classic"), client.finished("facts")
    written = rows_of(client.spark.read.format("delta").load(client.found["place"]))
    assert written == client.contents("classic") != client.contents("in")
    assert len(written) == ROWS
    assert here["status"] == "succeeded"
    counted = set(there["restricted"]) - {"tokens_per_second"}
    assert {name: there["restricted"][name] for name in counted} == {
        name: here["restricted"][name] for name in counted
    }
    assert there["rows"] == ROWS
    assert there["text_bytes"] == here["text_bytes"]
    same = ("guarantee", "identity", "other_columns", "consistency_audit", "input_version", "certificate")
    assert {name: there[name] for name in same} == {name: here[name] for name in same}


def test_a_run_id_that_committed_changes_nothing(client: Client) -> None:
    assert client.found["again"] == "unchanged"


def test_a_second_target_counts_in_the_ledger_beside_the_input(client: Client) -> None:
    """No setting names a ledger: it is the nearest in a parent folder of the input."""
    place = str(client.folder / "_dptext_ledger")
    assert [ledger["ledger"] for ledger in client.found["counted"]] == [place, place]
    assert [ledger["columns"][0]["total"] for ledger in client.found["counted"]] == [1.0, 2.0]
    source = str(client.folder / "counted/in")
    (balance,) = (balance for balance in read(place, client.spark) if balance.input == source)
    assert (balance.columns[0].total, balance.unfinished) == (2.0, 0)


def test_a_place_in_a_scan_is_refused(client: Client) -> None:
    """The client sees no plan, so it cannot tell a bare scan; nothing is written."""
    assert client.found["ordinal"]["kind"] == "SettingsError"
    assert "row_key: none given" in client.found["ordinal"]["said"]
    assert not (client.folder / "none").exists()


def test_errors_say_what_to_do_and_no_private_word(client: Client) -> None:
    names = [name for name, _ in failing(client.folder)]
    said = {name: client.found[name]["said"] for name in names}
    assert "1 rows hold invalid UTF-8" in said["utf8"]
    assert "Spark failed with DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" in said["constraint"]
    assert "succeeded" not in said.values()
    for text in (*said.values(), client.printed):
        assert MARKER not in text
        assert MARKER.encode().hex() not in text
    assert any(MARKER.encode() in file.read_bytes() for file in (client.folder / "marked").glob("*.parquet"))


def test_the_key_is_in_nothing_that_client_and_server_wrote(client: Client) -> None:
    """The key travels in the plan that the client sends: no log, event log, table or left-over file of the server has it."""
    (client.folder / "printed").write_text(client.printed, encoding="utf-8")
    folders = (client.folder, client.server.log.parent)
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    events = [file for file in files if client.server.events in file.parents]
    assert sum(file.stat().st_size for file in events) > 100_000
    assert client.server.log in files
    files.remove(client.folder / "unsent.key")
    assert traces(files, [SECRET, UNSENT]) == []
    assert traces([file for file in files if file != client.server.log], [LOGGED]) == []
    assert "Executing plan" in client.printed  # the client's logger was on
    # Of the text Spark tells only what the user's own constraint holds (docs/security).
    lines = [line for file in events for line in file.read_bytes().splitlines() if MARKER.encode() in line]
    assert lines
    assert all(b"DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" in line for line in lines)


def test_a_server_at_debug_logs_the_key_of_a_closure_by_the_loggers_that_are_named(client: Client) -> None:
    """So the search above finds what there is, and the loggers of the doctor and of docs/security are the right ones."""
    assert traces([client.server.log], [LOGGED])
    spelt = spellings(LOGGED)["octal, as Java writes it"].decode()
    loud, logger = set(), ""
    for line in client.server.printed().splitlines():
        found = re.match(r"\S+ \S+ (?:TRACE|DEBUG|INFO|WARN|ERROR) (\w+): ", line)
        logger = found[1] if found else logger
        if spelt in line:
            loud.add(logger)
    assert loud == {"SessionHolder"}
    assert PLAN_LOGGERS[0].endswith(".SessionHolder")
    assert "NettyServerHandler: [" in client.server.printed()
    assert PLAN_LOGGERS[1].endswith(".NettyServerHandler")
    assert client.found["levels"] == dict.fromkeys(PLAN_LOGGERS, "ERROR")
    assert client.found["levels_debug"] == dict.fromkeys(PLAN_LOGGERS, "DEBUG")


def test_a_key_that_each_worker_reads_draws_as_on_a_classic_session(client: Client) -> None:
    key = RunKey(UNSENT)
    assert client.found["executors"] == client.privatized("model", key) != client.found["auto"]
    here = client.run("classic_unsent", key, run={"id": "unsent"})
    there = client.finished("executors_facts")
    assert client.contents("unsent") == client.contents("classic_unsent")
    assert len(client.contents("unsent")) == ROWS
    assert there["consistency_audit"] == here["consistency_audit"]
    assert there["key_kind"] == "file"


def test_a_key_file_that_others_may_read_is_refused(client: Client) -> None:
    assert client.found["unsafe"]["kind"] == "KeyUnavailableError"
    assert "mode 640" in client.found["unsafe"]["said"]
