"""The search for names in Spark: runs, frames, streams and audits replace what public lists find, at every level."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.errors import RunError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.spark.runner import run
from dptext_spark.spark.tables.paths import Elements
from tests.core.names import beginning

# Fixed: a pseudonym is drawn from lists that hold these names, so another key may draw one of them.
KEY = RunKey(hashlib.sha256(b"names").digest())
SCHEMA = "id long, body string, notes array<string>, customer string"
ROWS: list[tuple[int, str | None, list[str | None] | None, str]] = [
    (0, "Mrs. Ada Lovelace called.\nRegards,\nMary Ann", ["in paris", None, "A. Lovelace"], "c1"),
    (1, "time for Dr. Lovelace to see New York", [], "c1"),
    (2, "ada@example.org or Robert?", ["ADA LOVELACE", "robert"], "c2"),
    (3, None, None, "c2"),
    (4, "", ["", "people like the music"], "c3"),
]
TEXTS = ["body", "notes"]
NAMES = ("lovelace", "ada", "robert", "paris", "york", "mary")
SEARCHES: dict[str, dict[str, Any]] = {
    "mask": {"lists": True},
    "pseudonym": {"lists": True, "person": "pseudonym", "location": "pseudonym"},
}


@pytest.fixture
def settings(tmp_path: Path, spark: SparkSession) -> dict[str, Any]:
    beginning(Lexicon.default(), 300).save(tmp_path / "lexicon")
    spark.createDataFrame(ROWS, SCHEMA).repartition(3).write.format("delta").save(str(tmp_path / "in"))
    return {
        "input": {"path": str(tmp_path / "in")},
        "columns": TEXTS,
        "row_key": "id",
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "mechanism": {"name": "custext", "epsilon": 2.0, "k": 5},
        "policy": {"names": SEARCHES["mask"]},
        "output": {"path": str(tmp_path / "out"), "other_columns": ["id", "customer"]},
        "run": {"id": "one", "batch_rows": 2},
    }


def alone(model: Privatizer, run_id: str, *, of_customers: bool) -> dict[int, tuple[Any, Any]]:
    """The rows as the model draws them one by one."""
    found: dict[int, tuple[Any, Any]] = {}
    for number, body, notes, customer in ROWS:
        ids, record = pa.array([number]), pa.array([customer])
        drawn, _ = model.privatize(
            pa.array([body], pa.string()), column="body", row_ids=ids, key=KEY, run_id=run_id,
            record_ids=record if of_customers else None,
        )  # fmt: skip
        held = Elements.of(pa.array([notes], pa.list_(pa.string())))
        records = record if of_customers else ids
        elements, _ = model.privatize(
            held.texts, column="notes", row_ids=held.identities(ids), key=KEY, run_id=run_id,
            record_ids=records.take(pa.array(held.rows)),
        )  # fmt: skip
        found[number] = (drawn.to_pylist()[0], held.whole(elements).to_pylist()[0])
    return found


def read(df: Any) -> dict[int, tuple[Any, Any]]:
    return {row["id"]: (row["body"], row["notes"]) for row in df.collect()}


@pytest.mark.parametrize(
    ("level", "action"),
    [("record", "pseudonym"), pytest.param("dataset", "mask", marks=pytest.mark.cluster)],
)
def test_a_run_replaces_names_and_its_audit_agrees(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path, level: str, action: str
) -> None:
    by_customer = {"record_key": "customer"} if level == "record" else {}
    config = parse_config(
        {**settings, **by_customer, "consistency": level, "policy": {"names": SEARCHES[action]}}
    )
    model = prepare(config)[0]
    facts = run(config, spark, key=KEY).facts
    assert facts["status"] == "succeeded"
    out = read(spark.read.format("delta").load(settings["output"]["path"]))
    assert out == alone(model, "one", of_customers=bool(by_customer))
    written = json.dumps(list(out.values())).lower()
    if action == "mask":
        assert written.count("[person]") == 7
        assert written.count("[location]") == 2
        assert not any(name in written for name in NAMES)
    counts = facts["restricted"]
    assert counts["persons_found"] == (7 if action == "mask" else 11)
    assert counts["locations_found"] == 2
    # Word by word: of both columns and all elements, the two of New York, and an initial.
    assert (counts["person_words"], counts["location_words"]) == (11, 3)
    kept = counts["person_words_kept"] + counts["location_words_kept"]
    assert kept == 0 or action == "pseudonym"
    assert counts["person_words_replaced"] == 11 - counts["person_words_kept"]
    assert "listed_words" not in counts
    assert facts["consistency_audit"]["passed"] is True
    if action == "pseudonym":  # one surname for all Lovelaces of a record
        assert out[0][0].lower().count(out[0][1][2].split(" ")[-1].lower()) == 1
    (table,) = [path for path in tmp_path.rglob("runs") if path.is_dir()]
    shown = json.loads(spark.read.format("delta").load(str(table)).first()["config"])["policy"]["names"]
    assert shown == {"person": "mask", "location": "mask", **SEARCHES[action], "version": "1"}
    (tmp_path / "names.txt").write_text("Ada Lovelace\npeople")
    audited = dps.audit(
        settings["output"]["path"], against=settings["input"]["path"], config=config, names=str(tmp_path / "names.txt"),
        require=["listed_kept <= 0.9"],
    )  # fmt: skip
    found = {one.name: one.value for one in audited.figures if one.column is None}
    assert found["rows_not_aligned"] == 0
    assert found["words"] == counts["words"]  # names that were found are none, on either side
    assert found["original_share"] == pytest.approx(counts["original_share"])
    if action == "mask":
        assert found["names_found"] > 0
        assert found["listed_found"] == 5  # four Lovelaces, one of them in two ways, and people
        assert found["listed_kept"] in (0.0, 0.2)
        assert audited.broken == []
        assert found["names_kept"] == found["persons_kept_whole"] == found["locations_kept_whole"] == 0
    assert run(config, spark, key=KEY).status == "unchanged"
    with pytest.raises(RunError, match=r"committed with another policy"):
        run(parse_config({**settings, **by_customer, "consistency": level, "policy": {}}), spark, key=KEY)


@pytest.mark.cluster
@pytest.mark.parametrize("ship", ["artifact", "path", "broadcast"])
def test_a_run_with_a_classifier_needs_no_folder_on_its_workers(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path, ship: str
) -> None:
    pytest.importorskip("onnx", reason="the extra [encoder] is not installed")
    from tests.core.encoder.tiny_classifier import make_tiny_classifier

    more = [(7, "Anna Keller and Ada Lovelace", ["in Oslo", "José Müller"], "c4")]
    spark.createDataFrame(more, SCHEMA).write.format("delta").mode("append").save(settings["input"]["path"])
    folder = make_tiny_classifier(tmp_path / "classifier")
    names = {"model": str(folder), "lists": True, "person": "pseudonym"}
    config = parse_config({
        **settings, "policy": {"names": names}, "consistency": "record", "run": {**settings["run"], "ship": ship},
    })  # fmt: skip
    model = prepare(config)[0]
    facts = run(config, spark, key=KEY).facts
    assert facts["status"] == "succeeded"
    out = read(spark.read.format("delta").load(settings["output"]["path"]))
    expected = alone(model, "one", of_customers=False)
    assert {number: out[number] for number in expected} == expected
    written = json.dumps(list(out.values()), ensure_ascii=False).lower()
    assert not any(name in written for name in ("keller", "müller", "lovelace", "oslo"))
    assert model.classifier is not None
    assert model.classifier.digest[:16] in str(facts["disclosure"])
    counts = facts["restricted"]
    assert counts["persons_found"] == 11 + 6
    assert counts["locations_found"] == 2 + 1
    assert facts["consistency_audit"]["passed"] is True
    audited = dps.audit(settings["output"]["path"], against=settings["input"]["path"], config=config)
    found = {one.name: one.value for one in audited.figures if one.column is None}
    assert found["rows_not_aligned"] == 0
    assert found["words"] == counts["words"]
    assert run(config, spark, key=KEY).status == "unchanged"


# Of these the tiny classifier knows Anna, Keller, Müller and Oslo; the first stands after a capital, the others are candidates.
CLASSIFIED: list[tuple[int, str | None, list[str | None] | None, str]] = [
    (10, "People met Anna Keller", ["in oslo", "people like the music"], "c1"),
    (11, "anna", None, "c2"),
    (12, None, ["José Müller", None, ""], "c2"),
    (13, "Keller wrote to keller@example.org", [], "c3"),
]


def in_one_batch(
    model: Privatizer,
    rows: list[tuple[int, str | None, list[str | None] | None, str]],
    run_id: str,
    by_customer: bool,
) -> dict[int, tuple[Any, Any]]:
    """The rows as the model draws them in one batch of each column."""
    ids = pa.array([row[0] for row in rows])
    records = pa.array([row[3] for row in rows]) if by_customer else ids
    bodies, _ = model.privatize(
        pa.array([row[1] for row in rows]),
        column="body",
        row_ids=ids,
        record_ids=records,
        key=KEY,
        run_id=run_id,
    )
    held = Elements.of(pa.array([row[2] for row in rows], pa.list_(pa.string())))
    elements, _ = model.privatize(
        held.texts, column="notes", row_ids=held.identities(ids), key=KEY, run_id=run_id,
        record_ids=records.take(pa.array(held.rows)),
    )  # fmt: skip
    pairs = zip(bodies.to_pylist(), held.whole(elements).to_pylist(), strict=True)
    return dict(zip(ids.to_pylist(), pairs, strict=True))


@pytest.mark.parametrize(("level", "udf"), [("token", "arrow"), ("record", "pandas")])
def test_a_frame_of_a_model_with_a_classifier_equals_one_batch(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path, level: str, udf: str
) -> None:
    pytest.importorskip("onnx", reason="the extra [encoder] is not installed")
    from tests.core.encoder.tiny_classifier import make_tiny_classifier

    if udf == "arrow" and not hasattr(functions, "arrow_udf"):
        pytest.skip("this Spark has no arrow_udf")
    names = {"model": str(make_tiny_classifier(tmp_path / "classifier")), "person": "pseudonym"}
    model = prepare(parse_config({**settings, "policy": {"names": names}, "consistency": level}))[0]
    frame = spark.createDataFrame([*ROWS, *CLASSIFIED], SCHEMA).repartition(3, "customer")
    record = "customer" if level == "record" else None
    out = dps.privatize(frame, TEXTS, model, row_key="id", record_key=record, key=KEY, run_id="r", udf=udf)
    found = read(out)
    assert found == in_one_batch(model, [*ROWS, *CLASSIFIED], "r", by_customer=record is not None)
    assert found[10][1][0] == "in [LOCATION]"  # oslo, in a text without a capital
    written = json.dumps([found[row[0]] for row in CLASSIFIED], ensure_ascii=False).lower()
    assert not {"anna", "keller", "müller", "oslo"} & set(re.findall(r"\w+", written))


@pytest.mark.cluster
def test_a_stream_reads_by_its_classifier_and_no_other(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path
) -> None:
    pytest.importorskip("onnx", reason="the extra [encoder] is not installed")
    from tests.core.encoder.tiny_classifier import make_tiny_classifier, tiny_graph

    folder = make_tiny_classifier(tmp_path / "classifier")
    names = {"model": str(folder), "person": "pseudonym"}
    streaming = {
        **settings, "mode": "incremental", "policy": {"names": names}, "run": {"batch_rows": 2}, "consistency": "dataset",
    }  # fmt: skip
    model = prepare(parse_config(streaming))[0]
    assert run(parse_config(streaming), spark, key=KEY).facts["rows"] == len(ROWS)
    spark.createDataFrame(CLASSIFIED, SCHEMA).write.format("delta").mode("append").save(
        settings["input"]["path"]
    )
    assert run(parse_config(streaming), spark, key=KEY).facts["rows"] == len(CLASSIFIED)
    out = read(spark.read.format("delta").load(settings["output"]["path"]))
    assert out == in_one_batch(model, [*ROWS, *CLASSIFIED], "", by_customer=False)
    assert out[10][1][0] == "in [LOCATION]"
    assert run(parse_config(streaming), spark, key=KEY).facts["rows"] == 0
    make_tiny_classifier(folder, tiny_graph(mixed=0.2))
    with pytest.raises((RunError, SettingsError)):
        run(parse_config(streaming), spark, key=KEY)


@pytest.mark.cluster
def test_a_stream_is_bound_to_its_search(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path
) -> None:
    streaming = {**settings, "mode": "incremental", "policy": {"names": SEARCHES["pseudonym"]}, "run": {}}
    streaming["consistency"] = "dataset"
    assert run(parse_config(streaming), spark, key=KEY).facts["rows"] == len(ROWS)
    more = [(9, "Ada Lovelace", ["Mr. Lovelace"], "c9")]
    spark.createDataFrame(more, SCHEMA).write.format("delta").mode("append").save(settings["input"]["path"])
    assert run(parse_config(streaming), spark, key=KEY).facts["rows"] == 1
    out = read(spark.read.format("delta").load(settings["output"]["path"]))
    # What the stream counted in all: the words of its micro-batches, by column and together.
    (place,) = [path for path in tmp_path.rglob("metrics") if path.is_dir()]
    rows = spark.read.format("delta").load(str(place)).collect()
    found = {(row["run_id"], row["column"], row["metric"]): row["value"] for row in rows}
    streams = {run_id for run_id, *_ in found if not run_id.rpartition(".")[2].isdigit()}
    (stream,) = streams
    for column, words in (("body", 6 + 2), ("notes", 5 + 1), (None, 11 + 3)):
        assert found[stream, column, "person_words"] == words
        kept = found[stream, column, "person_words_kept"]
        assert found[stream, column, "person_words_replaced"] == words - kept
        assert found[stream, column, "person_words_kept_share"] == kept / words
    surname = out[9][0].split(" ")[-1]
    assert out[9][1][0].endswith(f" {surname}")
    assert out[0][1][2].endswith(f" {surname}")
    assert out[2][1][0].endswith(f" {surname.upper()}")
    with pytest.raises((RunError, SettingsError)):
        run(parse_config({**streaming, "policy": {"names": SEARCHES["mask"]}}), spark, key=KEY)
