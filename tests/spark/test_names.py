"""Private lists of names in Spark: frames, runs and streams mask and keep what they hold, and show no entry of them."""

from __future__ import annotations

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
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.progress import silent
from dptext_spark.spark.job import job as job_module
from dptext_spark.spark.job.beside import Effect
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.runner import run
from dptext_spark.spark.tables.paths import Elements
from dptext_spark.spark.udf import names as shipping
from dptext_spark.text.names.name_table import compile_names, name_key
from dptext_spark.text.names.names import Names
from dptext_spark.text.names.word_list import WordList
from tests.core.names import beginning

KEY = RunKey.generate()
SCHEMA = "id long, body string, notes array<string>, customer string, others array<string>"
Row = tuple[int, str | None, list[str | None] | None, str | None, list[str] | None]
MASK = ["Qwxyz Zorblax", "time"]
KEEP = ["new music", "people"]
PRIVATE = ("Qwxyz", "Zorblax", "Vladimirova", "Brzezinski")
ROWS: list[Row] = [
    (
        0,
        "Time to see QWXYZ Zorblax's people",
        ["new music", None, "Zorblax, Q. at Time"],
        "Vladimirova",
        None,
    ),
    (1, "Dr. Vladimirova likes new music", [], "Jean Brzezinski", ["people", "music"]),
    (
        2,
        "J. Brzezinski met Vladimirova",
        ["Brzezinski, Jean and people", "vladimirova"],
        "Jean Brzezinski",
        [],
    ),
    (3, None, None, None, None),
    (4, "", ["", "people people"], "", ["people"]),
]
TEXTS = ["body", "notes"]


@pytest.fixture
def settings(tmp_path: Path, spark: SparkSession) -> Iterator[dict[str, Any]]:
    beginning(Lexicon.default(), 300).save(tmp_path / "lexicon")
    (tmp_path / "mask.txt").write_text("\n".join(MASK))
    spark.createDataFrame([(one,) for one in KEEP], "word string").createOrReplaceTempView("kept_words")
    yield {
        "input": {"path": str(tmp_path / "in")},
        "columns": TEXTS,
        "row_key": "id",
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "mechanism": {"name": "custext", "epsilon": 2.0, "k": 5},
        "policy": {
            "mask": [{"file": str(tmp_path / "mask.txt")}, {"column": "CUSTOMER"}],
            "keep": [{"table": "kept_words", "column": "word"}],
        },
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
    }
    spark.catalog.dropTempView("kept_words")


def model_of(level: Any = "token") -> Privatizer:
    return compile(CusText(epsilon=2.0, k=5), beginning(Lexicon.default(), 300), None, level)


def alone(
    model: Privatizer, rows: list[Row], run_id: str, *, others: bool = False
) -> dict[int, tuple[Any, Any]]:
    """The rows as the model draws them one by one, each with its lists put together by hand."""
    found: dict[int, tuple[Any, Any]] = {}
    for number, body, notes, customer, own in rows:
        lists = [WordList.of("a", [one.encode() for one in MASK])]
        if customer:
            lists.append(WordList.of("b", [customer.encode()]))
        masking = len(lists)
        lists.append(WordList.of("c", [one.encode() for one in KEEP]))
        if others and own:
            lists.append(WordList.of("d", [one.encode() for one in own]))
        made = model.with_names(Names(compile_names(lists, name_key(KEY, "any")), masking))
        ids = pa.array([number])
        drawn = [
            made.privatize(pa.array([body], pa.string()), column="body", row_ids=ids, key=KEY, run_id=run_id)
        ]
        held = Elements.of(pa.array([notes], pa.list_(pa.string())))
        drawn.append(
            made.privatize(
                held.texts, column="notes", row_ids=held.identities(ids), key=KEY, run_id=run_id,
                record_ids=ids.take(pa.array(held.rows)),
            )
        )  # fmt: skip
        found[number] = (drawn[0][0].to_pylist()[0], held.whole(drawn[1][0]).to_pylist()[0])
    return found


def read(df: Any) -> dict[int, tuple[Any, Any]]:
    return {row["id"]: (row["body"], row["notes"]) for row in df.collect()}


def test_a_frame_has_the_lists_of_all_rows_and_of_each(spark: SparkSession, settings: dict[str, Any]) -> None:
    model = model_of("record")
    expected = alone(model, ROWS, "r", others=True)
    frame = spark.createDataFrame(ROWS, SCHEMA)
    lists = {"mask": settings["policy"]["mask"], "keep": [*settings["policy"]["keep"], {"column": "others"}]}
    for parts, udf in ((1, "auto"), (3, "pandas")):
        made = dps.privatize(
            frame.repartition(parts), TEXTS, model, row_key="id", key=KEY, run_id="r", udf=udf, **lists
        )
        assert made.columns == frame.columns
        assert read(made) == expected
    assert read(made.select("id", "body", "notes")) == expected


def test_a_run_masks_and_keeps_and_shows_no_entry(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[Path] = []
    settings = {**settings, "consistency": "record", "run": {"id": "one", "batch_rows": 2}}
    settings["output"] = {**settings["output"], "other_columns": ["id"]}
    config = parse_config(settings)
    model = prepare(config)[0]
    assert model.fingerprint == model_of("record").fingerprint
    spark.createDataFrame(ROWS, SCHEMA).repartition(3).write.format("delta").save(settings["input"]["path"])
    with pytest.MonkeyPatch.context() as patch:
        first = shipping.NamesFile.__init__

        def noted(self: Any, *given: Any) -> None:
            first(self, *given)
            made.append(self.path)
            assert stat.S_IMODE(self.path.stat().st_mode) == 0o600
            assert stat.S_IMODE(self.path.parent.stat().st_mode) == 0o700
            held = self.path.read_bytes().lower()
            assert not any(word.lower().encode() in held for word in PRIVATE)

        patch.setattr(shipping.NamesFile, "__init__", noted)
        facts = run(config, spark, key=KEY).facts
    assert facts["status"] == "succeeded"
    assert len(made) == 1
    assert made[0].stat().st_size == 0
    out = spark.read.format("delta").load(settings["output"]["path"])
    assert out.columns == ["id", *TEXTS]
    assert read(out) == alone(model, ROWS, "one")
    assert facts["consistency_audit"]["passed"] is True
    shown = json.loads(runs_row(spark, tmp_path)["config"])["policy"]
    assert shown["mask"][0].keys() == {"file", "entries", "digest"}
    assert shown["mask"][0]["entries"] == 2
    assert shown["mask"][1] == {"column": "customer"}
    assert shown["keep"][0]["entries"] == 2
    said = str(facts["disclosure"])
    assert "[NAME]" in said
    assert "policy.keep" in said
    everything = "\n".join(file.read_text(errors="replace") for file in shareable(tmp_path))
    for word in PRIVATE:
        assert word.lower() not in (everything + str(facts) + caplog.text).lower()
    audited = dps.audit(settings["output"]["path"], against=settings["input"]["path"], config=config)
    found = {one.name: one.value for one in audited.figures if one.column is None}
    assert found["rows_not_aligned"] == 0
    counted = facts["restricted"]
    assert found["words"] == counted["words"]  # what a list holds is none, on either side
    assert found["original_share"] == pytest.approx(counted["original_share"])
    assert run(config, spark, key=KEY).status == "unchanged"
    without = {**settings, "policy": {}}
    with pytest.raises(RunError, match=r"committed with another policy"):
        run(parse_config(without), spark, key=KEY)


def shareable(folder: Path) -> list[Path]:
    """What a run leaves beside the target, Parquet files in their text parts included."""
    return [
        file
        for file in folder.rglob("*")
        if file.is_file() and "/in/" not in str(file) and file.suffix != ".txt"
    ]


def runs_row(spark: SparkSession, folder: Path) -> Any:
    (table,) = [path for path in folder.rglob("runs") if path.is_dir()]
    return spark.read.format("delta").load(str(table)).first()


class StoppedError(Exception):
    """Ends a run in a test."""


@pytest.mark.cluster
@pytest.mark.parametrize("committed", [False, True])
def test_an_unfinished_run_wants_its_lists(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path, committed: bool
) -> None:
    settings = {**settings, "run": {"id": "one"}}
    config = parse_config(settings)
    spark.createDataFrame(ROWS, SCHEMA).write.format("delta").save(settings["input"]["path"])
    point = Effect.DATA_COMMIT.after if committed else Effect.DATA_COMMIT.before

    def stop(effect: object) -> None:
        if effect == point:
            raise StoppedError

    with pytest.raises((StoppedError, DPTextError)):
        job_module.run_once(lambda: prepare_run(spark, config, KEY, silent), config, silent, stop)
    (tmp_path / "mask.txt").write_text("\n".join([*MASK, "Vladimirova"]))
    with pytest.raises(
        RunError, match=r"other lists of names: policy\.mask \(2 entries then, 3 entries now\)"
    ) as told:
        run(config, spark, key=KEY)
    assert "Vladimirova" not in str(told.value)
    accepting = parse_config({**settings, "run": {"id": "one", "second_release": "accept"}})
    if committed:
        with pytest.raises(RunError, match="committed, and was not accounted for"):
            run(accepting, spark, key=KEY)
        (tmp_path / "mask.txt").write_text("\n".join(reversed(MASK)))  # the same list in another order
        assert run(config, spark, key=KEY).status == "recovered"
    else:
        facts = run(accepting, spark, key=KEY).facts
        assert (facts["status"], facts["second_release"]) == ("succeeded", True)


@pytest.mark.cluster
def test_a_stream_takes_a_new_list_from_its_next_micro_batch_on(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path
) -> None:
    config = parse_config({**settings, "mode": "incremental", "stream": {"max_files": 1}})
    source = settings["input"]["path"]
    spark.createDataFrame(ROWS[:1], SCHEMA).coalesce(1).write.format("delta").save(source)
    assert run(config, spark, key=KEY).facts["rows"] == 1
    (tmp_path / "mask.txt").write_text("music")
    again = [(5, "Time for new music and music", None, None, None)]
    spark.createDataFrame(again, SCHEMA).coalesce(1).write.format("delta").mode("append").save(source)
    facts = run(config, spark, key=KEY).facts
    assert facts["rows"] == 1
    body = read(spark.read.format("delta").load(settings["output"]["path"]))[5][0]
    assert body.endswith("new music and [NAME]") or (" new music " in body and body.endswith(" [NAME]"))
    assert not body.startswith("[NAME]")
    (table,) = [path for path in tmp_path.rglob("runs") if path.is_dir()]
    rows = spark.read.format("delta").load(str(table)).where("run_id like '%.%'").orderBy("run_id").collect()
    given = [json.loads(row["config"])["policy"]["mask"][0] for row in rows]
    assert [one["entries"] for one in given] == [2, 1]
    assert given[0]["digest"] != given[1]["digest"]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"mask": [{"file": "/nowhere/list.txt"}]}, r"policy\.mask\[0\]: /nowhere/list\.txt cannot be read"),
        ({"mask": [{"column": "nobody"}]}, r"policy\.mask\[0\]\.column: 'nobody' is not there"),
        ({"keep": [{"column": "id"}]}, r"policy\.keep\[0\]\.column: column 'id' is of type bigint; valid: string or"),
        ({"mask": [{"table": "no_such", "column": "a"}]}, r"policy\.mask\[0\]\.table: 'no_such' cannot be read"),
        ({"mask": [{"table": "kept_words", "column": "a"}]}, r"policy\.mask\[0\]\.column: 'a' is not there; .* word\."),
    ],
)  # fmt: skip
def test_lists_that_cannot_be_read_are_refused_before_anything_is_written(
    spark: SparkSession, settings: dict[str, Any], policy: dict[str, Any], said: str
) -> None:
    spark.createDataFrame(ROWS, SCHEMA).write.format("delta").save(settings["input"]["path"])
    with pytest.raises(DataError, match=said):
        run(parse_config({**settings, "policy": policy}), spark, key=KEY)
    assert not Path(settings["output"]["path"]).exists()
    with pytest.raises((DataError, SettingsError), match=said):
        dps.privatize(spark.createDataFrame(ROWS, SCHEMA), ["body"], model_of(), row_key="id", **policy)


def test_a_name_in_a_row_that_cannot_be_looked_for_ends_the_run(
    spark: SparkSession, settings: dict[str, Any]
) -> None:
    rows = [*ROWS, (6, "a text", None, "X", None)]
    spark.createDataFrame(rows, SCHEMA).write.format("delta").save(settings["input"]["path"])
    with pytest.raises(DataError, match="none of a single letter"):
        run(parse_config(settings), spark, key=KEY)
    assert not list(Path(settings["output"]["path"]).rglob("_delta_log/*.json"))
