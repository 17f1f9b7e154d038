"""The search for names in Spark: runs, frames, streams and audits replace what public lists and classifiers find.

What masks come to at every level is judged by the table of tests/spark/pairs; here are pseudonyms and classifiers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.errors import RunError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.spark.runner import run
from tests.core.names import beginning
from tests.spark.test_names import KEY, TEXTS, drawn_here, give, read, rows_of_runs

pytestmark = pytest.mark.usefixtures("small_batches")
SCHEMA = "id long, body string, notes array<string>, customer string"
Row = tuple[int, str | None, list[str | None] | None, str]
ROWS: list[Row] = [
    (0, "Mrs. Ada Lovelace called.\nRegards,\nMary Ann", ["in paris", None, "A. Lovelace"], "c1"),
    (1, "time for Dr. Lovelace to see New York", [], "c1"),
    (2, "ada@example.org or Robert?", ["ADA LOVELACE", "robert"], "c2"),
    (3, None, None, "c2"),
    (4, "", ["", "people like the music"], "c3"),
]
PSEUDONYMS = {"lists": True, "person": "pseudonym", "location": "pseudonym"}


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
        "policy": {"names": PSEUDONYMS},
        "output": {"path": str(tmp_path / "out"), "other_columns": ["id", "customer"]},
        "run": {"id": "one"},
    }


@pytest.fixture
def classifier(tmp_path: Path) -> str:
    pytest.importorskip("onnx", reason="the extra [encoder] is not installed")
    from tests.core.encoder.tiny_classifier import make_tiny_classifier

    return str(make_tiny_classifier(tmp_path / "classifier"))


def alone(model: Privatizer, *, of_customers: bool) -> dict[int, tuple[Any, Any]]:
    return {
        number: drawn_here(
            model, body, notes, ids=pa.array([number]), records=pa.array([customer if of_customers else number]),
            run_id="one",
        )
        for number, body, notes, customer in ROWS
    }  # fmt: skip


def checked_by_an_audit(settings: dict[str, Any], config: Any, counted: dict[str, Any]) -> None:
    """Audit what a run wrote: names that were found are none of the words, on either side."""
    audited = dps.audit(settings["output"]["path"], against=settings["input"]["path"], config=config)
    figures = {figure.name: figure.value for figure in audited.figures if figure.column is None}
    assert figures["rows_not_aligned"] == 0
    assert figures["words"] == counted["words"]
    assert figures["original_share"] == pytest.approx(counted["original_share"])


@pytest.mark.long
def test_a_run_replaces_names_and_its_audit_agrees(spark, settings: dict[str, Any], tmp_path: Path) -> None:
    settings |= {"record_key": "customer", "consistency": "record"}
    config = parse_config(settings)
    facts = run(config, spark, key=KEY).facts
    assert facts["status"] == "succeeded"
    out = read(spark.read.format("delta").load(settings["output"]["path"]))
    assert out == alone(prepare(config)[0], of_customers=True)
    counts = facts["restricted"]
    assert (counts["persons_found"], counts["locations_found"]) == (11, 2)
    # Word by word: of both columns and all elements, the two of New York, and an initial.
    assert (counts["person_words"], counts["location_words"]) == (11, 3)
    assert counts["person_words_replaced"] == 11 - counts["person_words_kept"]
    assert "listed_words" not in counts
    assert facts["consistency_audit"]["passed"] is True
    # One surname for all Lovelaces of a record.
    assert out[0][0].lower().count(out[0][1][2].split(" ")[-1].lower()) == 1
    (row,) = rows_of_runs(spark, tmp_path)
    assert json.loads(row["config"])["policy"]["names"] == {**PSEUDONYMS, "version": "1"}
    checked_by_an_audit(settings, config, counts)
    assert run(config, spark, key=KEY).status == "unchanged"
    with pytest.raises(RunError, match=r"committed with another policy"):
        run(parse_config({**settings, "policy": {}}), spark, key=KEY)


@pytest.mark.long
def test_a_run_with_a_classifier_needs_no_folder_on_its_workers(spark, settings, classifier: str) -> None:
    """Its files travel as all files of a model do, however it is shipped."""
    give(spark, settings, [(7, "Anna Keller and Ada Lovelace", ["in Oslo", "José Müller"], "c4")], SCHEMA)
    names = {"model": classifier, "lists": True, "person": "pseudonym"}
    config = parse_config({**settings, "policy": {"names": names}, "consistency": "record"})
    model = prepare(config)[0]
    facts = run(config, spark, key=KEY).facts
    assert facts["status"] == "succeeded"
    out = read(spark.read.format("delta").load(settings["output"]["path"]))
    expected = alone(model, of_customers=False)
    assert {number: out[number] for number in expected} == expected
    written = json.dumps(list(out.values()), ensure_ascii=False).lower()
    assert not any(name in written for name in ("keller", "müller", "lovelace", "oslo"))
    assert model.classifier.digest[:16] in str(facts["disclosure"])
    counts = facts["restricted"]
    # The tiny classifier takes "music" for a surname by its first sub-word, that of Müller.
    assert (counts["persons_found"], counts["locations_found"]) == (11 + 7, 2 + 1)
    assert facts["consistency_audit"]["passed"] is True
    checked_by_an_audit(settings, config, counts)
    assert run(config, spark, key=KEY).status == "unchanged"


@pytest.mark.cluster
def test_a_stream_is_bound_to_its_search(spark, settings: dict[str, Any], tmp_path: Path) -> None:
    streaming = {**settings, "mode": "incremental", "run": {}, "consistency": "dataset"}
    assert run(parse_config(streaming), spark, key=KEY).facts["rows"] == len(ROWS)
    give(spark, settings, [(9, "Ada Lovelace", ["Mr. Lovelace"], "c9")], SCHEMA)
    assert run(parse_config(streaming), spark, key=KEY).facts["rows"] == 1
    out = read(spark.read.format("delta").load(settings["output"]["path"]))
    # What the stream counted in all: the words of its micro-batches, by column and together.
    (place,) = [path for path in tmp_path.rglob("metrics") if path.is_dir()]
    rows = spark.read.format("delta").load(str(place)).collect()
    figures = {(row["run_id"], row["column"], row["metric"]): row["value"] for row in rows}
    (stream,) = {run_id for run_id, *_ in figures if not run_id.rpartition(".")[2].isdigit()}
    for column, words in (("body", 6 + 2), ("notes", 5 + 1), (None, 11 + 3)):
        assert figures[stream, column, "person_words"] == words
        unchanged = figures[stream, column, "person_words_kept"]
        assert figures[stream, column, "person_words_replaced"] == words - unchanged
        assert figures[stream, column, "person_words_kept_share"] == unchanged / words
    surname = out[9][0].split(" ")[-1]
    assert out[9][1][0].endswith(f" {surname}")
    assert out[0][1][2].endswith(f" {surname}")
    assert out[2][1][0].endswith(f" {surname.upper()}")
    with pytest.raises((RunError, SettingsError)):
        run(parse_config({**streaming, "policy": {"names": {"lists": True}}}), spark, key=KEY)
