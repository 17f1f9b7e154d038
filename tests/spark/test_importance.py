"""Words that importance chooses, through the whole job: counted by Spark or weighed by the user, at levels, audited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.importance.idf import Frequencies
from dptext_spark.importance.selection import Importance
from dptext_spark.model.budget import with_importance
from dptext_spark.model.compile import prepare
from dptext_spark.randomness.draws import RunKey
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.job.releases import release_of, source_of
from dptext_spark.spark.runner import run
from dptext_spark.spark.tables.paths import Elements
from dptext_spark.text.selection import Texts

KEY = RunKey.insecure(7)
BODIES = [
    "money and time and money",
    "time for people",
    None,
    "people like money",
    "world news for money",
    "",
]
TAGS = [["time", "world"], None, [], ["money", None], ["news"], ["people people"]]


def texts(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.string())


def test_levels_of_words_that_spark_counts(spark, privatizer, tmp_path: Path) -> None:
    privatizer.lexicon.save(tmp_path / "lexicon")
    rows = [(i, f"c{i // 2}", body, tags) for i, (body, tags) in enumerate(zip(BODIES, TAGS, strict=True))]
    frame = spark.createDataFrame(rows, "id long, customer string, body string, tags array<string>")
    frame.repartition(3, "id").write.format("delta").save(str(tmp_path / "in"))
    settings: dict[str, Any] = {
        "input": {"path": str(tmp_path / "in")},
        "columns": ["body", "tags"],
        "row_key": "id",
        "record_key": "id",
        "consistency": "record",
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "policy": {"stop_words": "draw"},
        "importance": {"levels": [{"share": 40, "epsilon": 0.5}, {"share": 20, "epsilon": 2}]},
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
    }
    config = parse_config(settings)
    facts = run(config, spark, key=KEY).facts
    assert facts["status"] == "succeeded"
    assert "every group of equal words has one replacement" in facts["consistency_audit"]["said"]
    assert facts["certificate"]["sentence"].startswith("Level 1: Confirmed")
    assert "about 100 % of the records" in facts["consistency_audit"]["said"]
    assert facts["guarantee"]["unit"] == "all occurrences of a word in a record"
    assert "of each record the most important" in facts["guarantee"]["sentence"]
    assert facts["ledger"]["columns"][0]["total"] is None
    assert facts["record_epsilon"]["basis"].startswith(
        "the sum over the levels of importance of the level's ε times its"
    )
    assert "at most" not in facts["record_epsilon"]["basis"]  # a word of several texts counts once
    # The model that the workers had draws the same here, and its counts are those of all texts.
    model = choosing_here(config)
    written = {row["id"]: row for row in spark.read.format("delta").load(str(tmp_path / "out")).collect()}
    rows, units = chosen_here(model)
    assert [(written[i]["body"], written[i]["tags"]) for i in range(len(BODIES))] == rows
    assert [row[0] for row in rows] != BODIES
    restricted, one = facts["restricted"], model.units.of_one.epsilon
    assert restricted["not_chosen"] > 0
    assert restricted["record_epsilon"]["max"] == max(units) * one > 0
    row = spark.read.format("delta").load(str(tmp_path / "out_audit/shareable/runs")).first()
    assert "WORDS ARE RELEASED IN CLEAR (importance)" in row["disclosure"]
    assert json.loads(row["config"])["importance"]["levels"][1]["epsilon"] == 2


def chosen_here(model: Any) -> tuple[list[tuple[Any, Any]], list[int]]:
    """The rows as the privatizer alone draws them, all texts of a row chosen in together; and what each comes to."""
    ids = pa.array(range(len(BODIES)))
    elements = Elements.of(pa.array(TAGS, pa.list_(pa.string())))
    columns = [Texts(texts(BODIES)), Texts(elements.texts, elements.rows)]
    body, tags = model.choose(columns)
    out, counted = model.privatize(texts(BODIES), column="body", row_ids=ids, key=KEY, chosen=body)
    listed, also = model.privatize(
        elements.texts, column="tags", row_ids=elements.identities(ids), record_ids=ids.take(pa.array(elements.rows)),
        key=KEY, chosen=tags,
    )  # fmt: skip
    rows = list(zip(out.to_pylist(), elements.whole(listed).to_pylist(), strict=True))
    return rows, (counted.units + elements.sums(also.units)).tolist()


@pytest.fixture
def settings(spark, privatizer, tmp_path: Path) -> dict[str, Any]:
    """A table of two text columns, one of them a list, and words that are chosen by chance."""
    privatizer.lexicon.save(tmp_path / "lexicon")
    rows = [(i, f"c{i // 2}", body, tags) for i, (body, tags) in enumerate(zip(BODIES, TAGS, strict=True))]
    frame = spark.createDataFrame(rows, "id long, customer string, body string, tags array<string>")
    frame.coalesce(1).write.format("delta").save(str(tmp_path / "in"))
    return {
        "input": {"path": str(tmp_path / "in")},
        "columns": ["body", "tags"],
        "row_key": "id",
        "consistency": "record",
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "policy": {"stop_words": "draw"},
        "importance": {"provider": "random", "percent": 30},
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
    }


def read(df: Any) -> dict[int, tuple[Any, Any]]:
    return {row["id"]: (row["body"], row["tags"]) for row in df.collect()}


def test_a_frame_chooses_in_whole_rows(spark, settings: dict[str, Any]) -> None:
    model = prepare(parse_config(settings))[0]
    expected = dict(enumerate(chosen_here(model)[0]))
    options: dict[str, Any] = {"row_key": "id", "key": KEY}
    source = spark.read.format("delta").load(settings["input"]["path"])
    for more in ({"record_key": "id"}, {"udf": "pandas"}):
        assert read(dps.privatize(source, ["body", "tags"], model, **options, **more)) == expected
    # A record of several rows is refused before anything is read.
    with pytest.raises(SettingsError, match=r"record_key: 'customer' given with importance"):
        dps.privatize(source, ["body", "tags"], model, record_key="customer", **options)
    with pytest.raises(SettingsError, match=r"record_key: 'customer' given with importance"):
        parse_config({**settings, "record_key": "customer"})
    assert (
        parse_config({**settings, "record_key": "customer", "consistency": "token"}).record_key == "customer"
    )
    # The same words chosen among other texts are other draws, for the ledger too.
    setups = [
        prepare_run(spark, parse_config({**settings, "columns": columns}), KEY, print)
        for columns in (["body"], ["body", "tags"])
    ]
    assert len({release_of(one, source_of(one), "body", "r") for one in setups}) == 2


def choosing_here(config: RunConfig) -> Any:
    """The model of a run whose texts are counted here."""
    base, _ = prepare(config)
    every = [*BODIES, *(tag for tags in TAGS for tag in tags or ())]
    return prepare(config, frequencies=Frequencies.of(base.engine, texts(every)))[0]


@pytest.mark.cluster
def test_weights_of_the_user_and_counts_of_a_frame(spark, privatizer, tmp_path: Path) -> None:
    rows = [
        (1, "time for people", [0.1, 0.2, 0.9]),
        (2, None, None),
        (3, "world world", [2.0, 1.0]),
    ]
    frame = spark.createDataFrame(rows, "id long, body string, w array<double>")
    own = with_importance(privatizer, Importance(provider="column", percent=30, weights=("w",)))
    expected, _ = own.privatize(
        texts([row[1] for row in rows]), column="body", row_ids=pa.array([1, 2, 3]), key=KEY, run_id="r",
        weights=pa.array([row[2] for row in rows]),
    )  # fmt: skip
    options: dict[str, Any] = {"row_key": "id", "key": KEY, "run_id": "r"}
    for udf in ("arrow", "pandas") if hasattr(F, "arrow_udf") else ("pandas",):
        out = dps.privatize(frame, ["body"], own, weights=["w"], udf=udf, **options)
        assert out.columns == ["id", "body"]
        assert [row["body"] for row in out.orderBy("id").collect()] == expected.to_pylist()
    assert expected[0].as_py().startswith("time for ")
    assert expected[2].as_py().endswith(" world")
    broken = frame.withColumn("w", F.slice("w", 1, 1))
    broken.write.format("delta").save(str(tmp_path / "broken"))
    settings: dict[str, Any] = {
        "columns": ["body"],
        "row_key": "id",
        "importance": {"provider": "column", "percent": 30, "weights": "w"},
    }
    wrong = {
        "input": {"path": str(tmp_path / "broken")},
        "output": {"path": str(tmp_path / "none"), "other_columns": "keep"},
    }
    with pytest.raises(DataError, match=r"importance: [12] texts or weights in partition"):
        run(parse_config({**settings, **wrong}), spark, key=KEY)
    with pytest.raises(DataError, match=r"importance.weights: column 'id' is of type bigint"):
        dps.privatize(frame, ["body"], own, weights=["id"], **options)
    with pytest.raises(SettingsError, match=r"weights: .* one for each text column"):
        dps.privatize(frame, ["body"], own, **options)
    with pytest.raises(SettingsError, match="document frequencies that were not counted"):
        dps.privatize(frame, ["body"], with_importance(privatizer, Importance(percent=30)), **options)
    found = dps.document_frequencies(frame, ["body"], privatizer)
    here = Frequencies.of(privatizer.engine, texts([row[1] for row in rows]))
    assert found.digest == here.digest
    assert found.documents == 2
