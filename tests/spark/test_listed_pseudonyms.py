"""Pseudonyms for one's own lists of names in Spark: batches, frames and runs, retries, another version of public lists."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.errors import DPTextError, RunError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.compile import compile
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.progress import silent
from dptext_spark.spark.job import job as job_module
from dptext_spark.spark.job.beside import Effect
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.runner import run
from dptext_spark.spark.tables.paths import Elements
from dptext_spark.text.names import compiled_lists
from dptext_spark.text.names.name_table import compile_names, name_key
from dptext_spark.text.names.names import Names
from dptext_spark.text.names.word_list import WordList
from tests.core.names import beginning

# Fixed: a pseudonym is drawn from lists that hold these names, so another key may draw one of them.
KEY = RunKey(hashlib.sha256(b"names").digest())
SCHEMA = "id long, body string, notes array<string>, customer string, sites array<string>"
Row = tuple[int, str | None, list[str | None] | None, str | None, list[str] | None]
MASK, NAMED = ["Qwxyz Zorblax", "time"], ["Ada Lovelace", "Abraham van Helsing"]
ROWS: list[Row] = [
    (0, "Ada Lovelace, time to see ADA", ["Lovelace, A.", None, "Dr. Brzezinski of Oslo"], "Jan Brzezinski", ["Oslo"]),
    (1, "Dr. Lovelace likes Abraham van Helsing", [], "Brzezinski", None),
    (2, "Zorblax, Qwxyz; J. BRZEZINSKI in new york", ["Brzezinski, Jan"], "Jan Brzezinski", ["New York", "Oslo"]),
    (3, None, None, None, None),
    (4, "", ["", "people"], "", []),
]  # fmt: skip
TEXTS = ["body", "notes"]
PERSONS, PLACES = ({"kind": kind, "replace": "pseudonym"} for kind in ("person", "location"))
OTHER_VERSION = (
    r"policy\.mask \(public lists of version 1 then, public lists of version 2 now\)\. It did not finish"
)
PRIVATE = ("Qwxyz", "Zorblax", "Brzezinski", "Lovelace", "Helsing")


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    beginning(Lexicon.default(), 300).save(tmp_path / "lexicon")
    (tmp_path / "mask.txt").write_text("\n".join(MASK))
    (tmp_path / "named.txt").write_text("\n".join(NAMED))
    return {
        "input": {"path": str(tmp_path / "in")},
        "columns": TEXTS,
        "row_key": "id",
        "consistency": "record",
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "mechanism": {"name": "custext", "epsilon": 2.0, "k": 5},
        "policy": {
            "mask": [
                {"column": "customer", **PERSONS}, {"file": str(tmp_path / "named.txt"), **PERSONS},
                {"file": str(tmp_path / "mask.txt")}, {"column": "sites", **PLACES},
            ]
        },
        "output": {"path": str(tmp_path / "out"), "other_columns": ["id"]},
        "run": {"id": "one", "batch_rows": 2},
    }  # fmt: skip


def model_of(level: Any) -> Privatizer:
    return compile(CusText(epsilon=2.0, k=5), beginning(Lexicon.default(), 300), None, level)


def alone(model: Privatizer, rows: list[Row], run_id: str) -> dict[int, tuple[Any, Any]]:
    """The rows as the model draws them one by one, each with its lists put together by hand."""
    found: dict[int, tuple[Any, Any]] = {}
    for number, body, notes, customer, sites in rows:
        entries = [
            (NAMED, "person"),
            (MASK, None),
            ([customer] if customer else [], "person"),
            (sites or [], "location"),
        ]
        lists = [(WordList.of("a", [one.encode() for one in some]), kind) for some, kind in entries if some]
        table = compile_names([one for one, _ in lists], name_key(KEY, "any"))
        made = model.with_names(Names(table, len(lists), kinds=tuple(kind for _, kind in lists)))
        ids = pa.array([number])
        drawn, _ = made.privatize(
            pa.array([body], pa.string()), column="body", row_ids=ids, key=KEY, run_id=run_id
        )
        held = Elements.of(pa.array([notes], pa.list_(pa.string())))
        elements, _ = made.privatize(
            held.texts, column="notes", row_ids=held.identities(ids), key=KEY, run_id=run_id,
            record_ids=ids.take(pa.array(held.rows)),
        )  # fmt: skip
        found[number] = (drawn.to_pylist()[0], held.whole(elements).to_pylist()[0])
    return found


def read(df: Any) -> dict[int, tuple[Any, Any]]:
    return {row["id"]: (row["body"], row["notes"]) for row in df.collect()}


@pytest.mark.cluster
def test_runs_and_frames_replace_names_and_a_retry_wants_the_version(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = parse_config(settings)
    frame = spark.createDataFrame(ROWS, SCHEMA)
    frame.repartition(3).write.format("delta").save(settings["input"]["path"])
    expected = alone(model_of("record"), ROWS, "one")

    def stop(effect: object) -> None:
        if effect == Effect.DATA_COMMIT.before:
            raise RuntimeError("stopped by a test")

    with pytest.raises((RuntimeError, DPTextError)):
        job_module.run_once(lambda: prepare_run(spark, config, KEY, silent), config, silent, stop)
    with monkeypatch.context() as patch:
        patch.setattr(compiled_lists, "VERSION", "2")
        with pytest.raises(RunError, match=OTHER_VERSION):
            run(config, spark, key=KEY)
    facts = run(config, spark, key=KEY).facts  # finished with the version that it was begun with
    assert (facts["status"], facts["second_release"]) == ("succeeded", False)
    out = spark.read.format("delta").load(settings["output"]["path"])
    assert read(out) == expected
    assert facts["consistency_audit"]["passed"] is True
    counted = facts["restricted"]
    assert counted["names_masked"] == 16
    said = str(facts["disclosure"])
    assert "For each word of a name of a person that a list holds" in said
    assert "For each place that a list holds" in said
    (table,) = [path for path in tmp_path.rglob("runs") if path.is_dir()]
    row = spark.read.format("delta").load(str(table)).first()
    shown = json.loads(row["config"])["policy"]["mask"]
    assert [one.get("version") for one in shown] == ["1", "1", None, "1"]
    for word in PRIVATE:
        assert word.lower() not in (str(facts) + str(row)).lower()
    audited = dps.audit(settings["output"]["path"], against=settings["input"]["path"], config=config)
    found = {one.name: one.value for one in audited.figures if one.column is None}
    assert found["rows_not_aligned"] == 0
    assert found["words"] == counted["words"]
    assert found["original_share"] == pytest.approx(counted["original_share"])
    assert run(config, spark, key=KEY).status == "unchanged"
    for udf in ("auto", "pandas"):
        made = dps.privatize(
            frame.repartition(2), TEXTS, model_of("record"), row_key="id", key=KEY, run_id="one", udf=udf,
            mask=settings["policy"]["mask"],
        )  # fmt: skip
        assert read(made) == expected


@pytest.mark.cluster
def test_a_stream_keeps_a_pseudonym_from_micro_batch_to_micro_batch(
    spark: SparkSession, settings: dict[str, Any]
) -> None:
    config = parse_config({**settings, "mode": "incremental", "consistency": "dataset", "run": {}})
    for part in (ROWS[:2], [(9, "ADA LOVELACE", ["Lovelace, Ada"], None, None)]):
        spark.createDataFrame(part, SCHEMA).coalesce(1).write.format("delta").mode("append").save(
            settings["input"]["path"]
        )
        assert run(config, spark, key=KEY).facts["rows"] == len(part)
    out = read(spark.read.format("delta").load(settings["output"]["path"]))
    given, surname = out[0][0].split(",")[0].split(" ")
    assert out[9] == (f"{given} {surname}".upper(), [f"{surname}, {given}"])
    assert out[1][0].split(" ")[1] == surname
