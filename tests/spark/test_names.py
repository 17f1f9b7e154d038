"""Private lists of names in Spark: runs and streams mask, keep and rename what they hold, and show no entry of them.

What frames and runs release by a list that masks or keeps is judged by the table of tests/spark/pairs.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.errors import DataError, DPTextError, RunError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.compile import compile, prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import silent
from dptext_spark.spark import run_lists as shipping
from dptext_spark.spark.job import job as job_module
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.nested_columns import Elements
from dptext_spark.spark.runner import run
from dptext_spark.text.names import name_lists
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_table import NameTable, WordList
from tests.core.names import beginning
from tests.spark.effects import Effect, observed

# Fixed: a pseudonym is drawn from lists that hold these names, so another key may draw one of them.
KEY = RunKey(hashlib.sha256(b"names").digest())
SCHEMA = (
    "id long, body string, notes array<string>, customer string, sites array<string>, others array<string>"
)
MASK, NAMED, KEEP = ["Qwxyz Zorblax", "time"], ["Ada Lovelace", "Abraham van Helsing"], ["new music"]
PRIVATE = ("Qwxyz", "Zorblax", "Brzezinski", "Lovelace", "Helsing")
Row = tuple[int, str | None, list[str | None] | None, str | None, list[str] | None, list[str] | None]
ROWS: list[Row] = [
    (0, "Ada Lovelace, time to see ADA", ["Lovelace, A.", None, "Dr. Brzezinski of Oslo"], "Jan Brzezinski", ["Oslo"], None),
    (1, "Dr. Lovelace likes Abraham van Helsing", ["new music"], "Brzezinski", None, ["people", "time"]),
    (2, "Zorblax, Qwxyz; J. BRZEZINSKI in new york", ["Brzezinski, Jan"], "Jan Brzezinski", ["New York", "Oslo"], []),
    (3, None, None, None, None, None),
    (4, "", ["", "people"], "", [], ["people"]),
]  # fmt: skip
TEXTS = ["body", "notes"]
pytestmark = pytest.mark.usefixtures("small_batches")
PERSONS, PLACES = ({"kind": kind, "replace": "pseudonym"} for kind in ("person", "location"))


@pytest.fixture
def settings(tmp_path: Path, spark: SparkSession) -> Iterator[dict[str, Any]]:
    beginning(Lexicon.default(), 300).save(tmp_path / "lexicon")
    (tmp_path / "mask.txt").write_text("\n".join(MASK))
    (tmp_path / "named.txt").write_text("\n".join(NAMED))
    spark.createDataFrame([(word,) for word in KEEP], "word string").createOrReplaceTempView("kept_words")
    yield {
        "input": {"path": str(tmp_path / "in")},
        "columns": TEXTS,
        "row_key": "id",
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "mechanism": {"name": "custext", "epsilon": 2.0, "k": 5},
        "policy": {
            "mask": [
                {"file": str(tmp_path / "mask.txt")}, {"column": "CUSTOMER", **PERSONS},
                {"file": str(tmp_path / "named.txt"), **PERSONS}, {"column": "sites", **PLACES},
            ],
            "keep": [{"table": "kept_words", "column": "word"}, {"column": "others"}],
        },
        "output": {"path": str(tmp_path / "out"), "other_columns": ["id"]},
        "run": {"id": "one"},
    }  # fmt: skip
    spark.catalog.dropTempView("kept_words")


def model_of(level: Any = "token") -> Privatizer:
    return compile(CusText(epsilon=2.0, k=5), beginning(Lexicon.default(), 300), None, level)


def drawn_here(
    model: Privatizer,
    body: str | None,
    notes: list[str | None] | None,
    *,
    ids: Any,
    records: Any,
    run_id: str,
) -> tuple[Any, Any]:
    keys = {"row_ids": ids, "record_ids": records, "key": KEY, "run_id": run_id}
    drawn, _ = model.privatize(pa.array([body], pa.string()), column="body", **keys)
    held = Elements.of(pa.array([notes], pa.list_(pa.string())))
    elements, _ = model.privatize(
        held.texts, column="notes", row_ids=held.identities(ids), record_ids=records.take(pa.array(held.rows)),
        key=KEY, run_id=run_id,
    )  # fmt: skip
    return drawn.to_pylist()[0], held.whole(elements).to_pylist()[0]


def alone(model: Privatizer, rows: list[Row], run_id: str) -> dict[int, tuple[Any, Any]]:
    """The rows as the model draws them one by one, each with its lists put together by hand."""
    released: dict[int, tuple[Any, Any]] = {}
    for number, body, notes, customer, sites, others in rows:
        entries = [
            (MASK, "mask"), (NAMED, "person"), ([customer] if customer else [], "person"), (sites or [], "location"),
            (KEEP, "keep"), (others or [], "keep"),
        ]  # fmt: skip
        lists = [WordList.of("a", [word.encode() for word in words]) for words, _ in entries if words]
        names = NameMatcher(NameTable.of(lists, [use for words, use in entries if words]))
        ids = pa.array([number])
        named = model.with_names(names)
        released[number] = drawn_here(named, body, notes, ids=ids, records=ids, run_id=run_id)
    return released


def read(df: Any) -> dict[int, tuple[Any, Any]]:
    return {row["id"]: (row["body"], row["notes"]) for row in df.collect()}


def give(spark: SparkSession, settings: dict[str, Any], rows: list[Any], schema: str = SCHEMA) -> None:
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    frame.write.format("delta").mode("append").save(settings["input"]["path"])


def rows_of_runs(spark: SparkSession, folder: Path) -> list[Any]:
    (table,) = [path for path in folder.rglob("runs") if path.is_dir()]
    return spark.read.format("delta").load(str(table)).orderBy("run_id").collect()


@pytest.mark.long
def test_a_run_replaces_and_keeps_and_shows_no_entry(spark, settings, tmp_path, caplog) -> None:
    files: list[Path] = []
    settings["consistency"] = "record"
    config = parse_config(settings)
    model = prepare(config)[0]
    assert model.fingerprint == model_of("record").fingerprint
    spark.createDataFrame(ROWS, SCHEMA).repartition(3).write.format("delta").save(settings["input"]["path"])
    with pytest.MonkeyPatch.context() as patch:
        first = shipping.PrivateFile.__init__

        def noted(self: Any, *given: Any) -> None:
            first(self, *given)
            files.append(self.path)
            assert stat.S_IMODE(self.path.stat().st_mode) == 0o600
            assert stat.S_IMODE(self.path.parent.stat().st_mode) == 0o700
            content = self.path.read_bytes().lower()
            assert not any(word.lower().encode() in content for word in PRIVATE)

        patch.setattr(shipping.PrivateFile, "__init__", noted)
        facts = run(config, spark, key=KEY).facts
    assert facts["status"] == "succeeded"
    assert [file.stat().st_size for file in files] == [0]
    out = spark.read.format("delta").load(settings["output"]["path"])
    assert out.columns == ["id", *TEXTS]
    expected = alone(model, ROWS, "one")
    assert read(out) == expected
    assert facts["consistency_audit"]["passed"] is True
    (row,) = rows_of_runs(spark, tmp_path)
    shown = json.loads(row["config"])["policy"]
    assert shown["mask"][0].keys() == {"file", "entries", "digest"}
    assert [entry.get("version") for entry in shown["mask"]] == [None, "1", "1", "1"]
    assert (shown["mask"][0]["entries"], shown["keep"][0]["entries"]) == (2, 1)
    assert all(words in str(facts["disclosure"]) for words in ("[NAME]", "policy.keep", "policy.mask"))
    beside = [
        file.read_text(errors="replace")  # Parquet files in their text parts included
        for file in tmp_path.rglob("*")
        if file.is_file() and "/in/" not in str(file) and file.suffix != ".txt"
    ]
    everything = "\n".join([*beside, str(facts), str(row), caplog.text]).lower()
    assert [word for word in PRIVATE if word.lower() in everything] == []
    audited = dps.audit(settings["output"]["path"], against=settings["input"]["path"], config=config)
    figures = {figure.name: figure.value for figure in audited.figures if figure.column is None}
    counted = facts["restricted"]
    assert counted["names_masked"] == 16
    assert figures["rows_not_aligned"] == 0
    assert figures["words"] == counted["words"]  # what a list holds is none, on either side
    assert figures["original_share"] == pytest.approx(counted["original_share"])
    assert run(config, spark, key=KEY).status == "unchanged"
    with pytest.raises(RunError, match=r"committed with another policy"):
        run(parse_config({**settings, "policy": {}}), spark, key=KEY)
    lists = settings["policy"]
    for udf in ("auto", "pandas"):
        released = dps.privatize(
            spark.createDataFrame(ROWS, SCHEMA).repartition(2), TEXTS, model, row_key="id", key=KEY, run_id="one",
            udf=udf, **lists,
        )  # fmt: skip
        assert read(released) == expected


class StoppedError(Exception):
    """Ends a run in a test."""


@pytest.mark.cluster
@pytest.mark.parametrize("committed", [False, True])
def test_an_unfinished_run_wants_its_lists(spark, settings, tmp_path, committed: bool) -> None:
    config = parse_config(settings)
    give(spark, settings, ROWS)
    point = Effect.DATA_COMMIT.after if committed else Effect.DATA_COMMIT.before

    def stop(effect: object) -> None:
        if effect == point:
            raise StoppedError

    with pytest.raises((StoppedError, DPTextError)), observed(stop):
        job_module.run_once(lambda: prepare_run(spark, config, KEY, silent), config, silent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(name_lists, "VERSION", "2")
        with pytest.raises(RunError, match=r"policy\.mask \(public lists of version 1 then, .* 2 now\)"):
            run(config, spark, key=KEY)
    (tmp_path / "mask.txt").write_text("\n".join([*MASK, "Vladimirova"]))
    with pytest.raises(RunError, match=r"policy\.mask \(4 entries then, 5 entries now\)") as told:
        run(config, spark, key=KEY)
    assert "Vladimirova" not in str(told.value)
    accepting = parse_config({**settings, "run": {"id": "one", "second_release": "accept"}})
    if committed:
        with pytest.raises(RunError, match="committed, but was not accounted for"):
            run(accepting, spark, key=KEY)
        (tmp_path / "mask.txt").write_text("\n".join(reversed(MASK)))  # the same list in another order
        assert run(config, spark, key=KEY).status == "recovered"
    else:
        facts = run(accepting, spark, key=KEY).facts
        assert (facts["status"], facts["second_release"]) == ("succeeded", True)


@pytest.mark.cluster
def test_a_stream_takes_a_new_list_from_its_next_micro_batch_on(spark, settings, tmp_path) -> None:
    del settings["run"]
    config = parse_config({**settings, "mode": "incremental", "stream": {"max_files": 1}})
    give(spark, settings, ROWS[:1])
    assert run(config, spark, key=KEY).facts["rows"] == 1
    (tmp_path / "mask.txt").write_text("music")
    give(spark, settings, [(5, "Time for new music and music", None, None, None, None)])
    assert run(config, spark, key=KEY).facts["rows"] == 1
    body = read(spark.read.format("delta").load(settings["output"]["path"]))[5][0]
    assert body.endswith("new music and [NAME]") or (" new music " in body and body.endswith(" [NAME]"))
    assert not body.startswith("[NAME]")
    batches = [row for row in rows_of_runs(spark, tmp_path) if "." in row["run_id"]]
    lists = [json.loads(row["config"])["policy"]["mask"][0] for row in batches]
    assert [entry["entries"] for entry in lists] == [2, 1]
    assert lists[0]["digest"] != lists[1]["digest"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"mask": [{"file": "/nowhere/list.txt"}]}, r"policy\.mask\[0\]: '/nowhere/list\.txt' cannot be read"),
        ({"mask": [{"column": "nobody"}]}, r"policy\.mask\[0\]\.column: 'nobody' is not in the input"),
        ({"keep": [{"column": "id"}]}, r"policy\.keep\[0\]\.column: column 'id' is of type bigint"),
        ({"mask": [{"table": "no_such", "column": "a"}]}, r"policy\.mask\[0\]\.table: 'no_such' cannot be read"),
        ({"mask": [{"table": "kept_words", "column": "a"}]}, r"policy\.mask\[0\]\.column: 'a' is not .* word"),
    ],
)  # fmt: skip
def test_lists_that_cannot_be_read_are_refused_before_anything_is_written(spark, settings, policy, said):
    give(spark, settings, ROWS)
    with pytest.raises(DataError, match=said):
        run(parse_config({**settings, "policy": policy}), spark, key=KEY)
    assert not Path(settings["output"]["path"]).exists()
    with pytest.raises((DataError, SettingsError), match=said):
        dps.privatize(spark.createDataFrame(ROWS, SCHEMA), ["body"], model_of(), row_key="id", **policy)


@pytest.mark.long
def test_a_name_in_a_row_that_cannot_be_looked_for_ends_the_run(spark, settings: dict[str, Any]) -> None:
    give(spark, settings, [*ROWS, (6, "a text", None, "X", None, None)])
    with pytest.raises(DataError, match="none of a single letter"):
        run(parse_config(settings), spark, key=KEY)
    assert not list(Path(settings["output"]["path"]).rglob("_delta_log/*.json"))
