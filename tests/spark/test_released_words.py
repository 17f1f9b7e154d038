"""Words released in place of drawn ones, and draws that depend on released ones: in tables, whatever the batches, and streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.spark.runner import run
from dptext_spark.spark.tables.paths import Elements
from tests.core.mechanisms.fluent_toys import with_pairs
from tests.core.names import beginning

KEY = RunKey.insecure(11)
BODIES = [
    "Good people like new music. Many people work!",
    "time for world news",
    None,
    "The school year, the first day of school",
    "x@y.zz wrote: money and time and money",
    "",
    "world world world world",
]
TAGS = [["time", "new world"], None, [], ["money", None], ["news"], ["people like music"], ["day"]]
SCHEMA = "id long, body string, tags array<string>"
Row = tuple[int, str | None, list[str | None] | None]


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 600 commonest words, with word pairs."""
    folder = tmp_path_factory.mktemp("released") / "lexicon"
    with_pairs(beginning(Lexicon.default(), 600)).save(folder)
    return folder


@pytest.fixture(params=["remap", "fluent"])
def settings(request: pytest.FixtureRequest, lexicon: Path, tmp_path: Path) -> dict[str, Any]:
    """Two text columns, one of them a list; token level."""
    choice = {"remap": {"remap": "bayes"}, "fluent": {"fluent": True}}[request.param]
    return {
        "input": {"path": str(tmp_path / "in")},
        "columns": ["body", "tags"],
        "row_key": "id",
        "lexicon": {"source": str(lexicon)},
        "mechanism": {"name": "custext", "epsilon": 2.0, "k": 10, **choice},
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
        "audit": {"consistency_scopes": 0},
    }


def rows(first: int = 0) -> list[Row]:
    return [(first + i, body, tags) for i, (body, tags) in enumerate(zip(BODIES, TAGS, strict=True))]


def read(df: Any) -> dict[int, tuple[Any, Any]]:
    return {row["id"]: (row["body"], row["tags"]) for row in df.collect()}


def drawn_here(model: Privatizer, some: list[Row], run_id: str) -> dict[int, tuple[Any, Any]]:
    """The rows as the model alone draws them, in one batch."""
    ids = pa.array([row[0] for row in some])
    bodies = pa.array([row[1] for row in some], pa.string())
    elements = Elements.of(pa.array([row[2] for row in some], pa.list_(pa.string())))
    body, _ = model.privatize(bodies, column="body", row_ids=ids, key=KEY, run_id=run_id)
    tags, _ = model.privatize(
        elements.texts, column="tags", row_ids=elements.identities(ids), key=KEY, run_id=run_id
    )
    pairs = zip(body.to_pylist(), elements.whole(tags).to_pylist(), strict=True)
    return dict(zip(ids.to_pylist(), pairs, strict=True))


def model_of(config: RunConfig) -> Privatizer:
    model = prepare(config)[0]
    drawn = drawn_here(model, rows(), "r")
    assert sum(drawn[i][0] != body for i, body in enumerate(BODIES)) >= 4
    return model


def test_a_frame_has_the_same_words_whatever_the_batches(spark, settings: dict[str, Any]) -> None:
    model = model_of(parse_config(settings))
    expected = drawn_here(model, rows(), "r")
    frame = spark.createDataFrame(rows(), SCHEMA)
    options: dict[str, Any] = {"row_key": "id", "key": KEY, "run_id": "r"}
    for parts, udf in ((1, "auto"), (4, "auto"), (3, "pandas")):
        some = dps.privatize(frame.repartition(parts), ["body", "tags"], model, udf=udf, **options)
        assert read(some) == expected


@pytest.mark.cluster
def test_a_run_says_what_its_law_is_and_a_second_start_changes_nothing(
    spark, settings: dict[str, Any]
) -> None:
    config = parse_config({**settings, "run": {"id": "one", "batch_rows": 2}})
    spark.createDataFrame(rows(), SCHEMA).repartition(3).write.format("delta").save(settings["input"]["path"])
    facts = run(config, spark, key=KEY).facts
    assert facts["status"] == "succeeded"
    assert facts["certificate"]["sentence"].startswith("Confirmed")
    expected = drawn_here(model_of(config), rows(), "one")
    assert read(spark.read.format("delta").load(settings["output"]["path"])) == expected
    assert run(config, spark, key=KEY).status == "unchanged"
    assert read(spark.read.format("delta").load(settings["output"]["path"])) == expected


@pytest.mark.cluster
def test_a_stream_goes_on_with_what_is_new(spark, settings: dict[str, Any]) -> None:
    config = parse_config({**settings, "mode": "incremental"})
    model, source = model_of(config), settings["input"]["path"]
    expected: dict[int, tuple[Any, Any]] = {}
    for number, first in enumerate((0, len(BODIES))):
        new = rows(first)
        spark.createDataFrame(new, SCHEMA).coalesce(1).write.format("delta").mode("append").save(source)
        facts = run(config, spark, key=KEY).facts
        assert (facts["rows"], facts["problems"]) == (len(new), [])
        expected |= drawn_here(model, new, f"{facts['run_id']}.{number}")
        assert read(spark.read.format("delta").load(settings["output"]["path"])) == expected
