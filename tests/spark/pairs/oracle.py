"""Judge a run: its rows, the same rows again, what it counted, what its ledger holds, and what its statement says."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.compile import prepare
from dptext_spark.spark.runner import run
from tests.core.mechanisms.fluent_toys import with_pairs
from tests.core.names import beginning
from tests.spark.pairs.plain import COUNTED, Reference
from tests.spark.pairs.table import (
    KEEP,
    MASK,
    SCHEMA,
    SECRET,
    WORDS,
    Row,
    merged,
    settings_of,
    shown,
    tagged_rows,
)

CORPUS = [
    "the people of the city",
    "people and music",
    "the old house in the city",
    "river river",
    "war and school",
]
NAMES = [part.split()[0] for part in SCHEMA.split(", ")]
OF_RUN = (
    "run_id", "status", "rows", "key_kind", "identity", "second_release", "guarantee", "cumulative", "disclosure"
)  # fmt: skip
OF_LEDGER = ("column", "status", "release", "epsilon", "entry")
# What a statement must say where a feature is in use, and must not say where it is not: (heading, words).
FLAGS = {
    "dataset": ("Warnings", "substitution cipher"),
    "importance": ("Warnings", "WORDS ARE RELEASED IN CLEAR (importance)"),
    "lists": ("Released in clear", "(policy.mask: "),
    "names": ("Released in clear", "[PERSON]"),
    "budget": ("Protected", "drawn words alone chooses its law"),
    "fluent": ("Assumptions", "word pairs"),
    "remap": ("Protected", "Bayes remap"),
    "stream": ("Stream", ""),
}


def prepared(folder: Path) -> None:
    """Write what all rows read beside the input: lexicon, lists, corpus, key."""
    with_pairs(beginning(Lexicon.default(), WORDS)).save(folder / "lexicon")
    for name, lines in (("mask", MASK), ("keep", KEEP), ("corpus", CORPUS)):
        (folder / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    (folder / "run.key").write_bytes(SECRET)
    (folder / "run.key").chmod(0o600)


def frame_of(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    """Return rows as the input holds them."""
    values = [tuple(untagged(row.get(name)) for name in NAMES) for row in rows]
    return spark.createDataFrame(values, SCHEMA)


def write_input(spark: SparkSession, place: Path, rows: list[dict[str, Any]], files: int) -> None:
    """Append rows to a Delta table, in so many files."""
    frame_of(spark, rows).repartition(files).write.format("delta").mode("append").save(str(place))


def untagged(value: Any) -> Any:
    """Return a value of a row as the input holds it."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, list | tuple):
        return type(value)(map(untagged, value))
    return value


def judge(spark: SparkSession, entry: Row, folder: Path, own: Path) -> None:
    """Run the settings of a row and assert all that must hold."""
    rows = tagged_rows()
    parts = [rows[: len(rows) // 2], rows[len(rows) // 2 :]] if "stream" in entry.features else [rows]
    config = parse_config(settings_of(entry, folder, own))
    model = prepare(config)[0]
    whole = Reference(entry, model, "", CORPUS)
    if config.importance is not None and config.importance.weights:
        for row in rows:
            row |= {f"weights_{name}": whole.weights(row, name) for name in entry.columns}
        write_input(spark, own / "in", rows, 3)
        config = parse_config(settings_of(entry, folder, own))
    expected: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()  # of a stream: since it began
    for number, part in enumerate(parts):
        if "stream" in entry.features:
            write_input(spark, own / "in", part, 3)
            config = parse_config(settings_of(entry, folder, own))
        facts = run(config, spark).facts
        assert (facts["status"], facts["problems"], facts["rows"]) == ("succeeded", [], len(part))
        run_id = f"pairs.{number}" if "stream" in entry.features else "pairs"
        reference = Reference(entry, model, run_id, CORPUS)
        expected += [{**row, **reference.row(row)} for row in part]
        counted = {name: facts["restricted"][name] for name in (*COUNTED, "unknown_rows")}
        counts += reference.counts
        assert counted == {name: counts[name] for name in counted}
    out = output(spark, config)
    schema = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in out.schema)
    wanted = spark.createDataFrame([tuple(row[name] for name in out.columns) for row in expected], schema)
    same(out, wanted)
    check_account(spark, entry, config, len(rows), releases=1)
    repeated(spark, entry, folder, own, parts, out)
    if entry.fresh:
        again = merged(settings_of(entry, folder, own, out="fresh"), {"run": {"id": "fresh"}})
        run(parse_config(again), spark)
        releases = 2 if entry.level == "token" else 1
        check_account(spark, entry, parse_config(again), len(rows), releases=releases)


def output(spark: SparkSession, config: RunConfig) -> DataFrame:
    """Return what was written."""
    return spark.read.format("delta").load(str(config.output.path))


def same(one: DataFrame, other: DataFrame) -> None:
    """Compare two frames row by row."""
    ordered = (frame.coalesce(1).sortWithinPartitions("id") for frame in (one, other))
    assert_df_equality(*ordered, ignore_nullable=True)


def repeated(
    spark: SparkSession,
    entry: Row,
    folder: Path,
    own: Path,
    parts: list[list[dict[str, Any]]],
    first: DataFrame,
) -> None:
    """Run again under the same key and id, into another place, of an input that is cut otherwise: the bytes are the same."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5")
    other: dict[str, Any] = {"run": {"partitions": 3, "udf": "pandas"}}
    stream = "stream" in entry.features
    if stream:
        for part in parts:
            write_input(spark, own / "copy", part, 1)
        other["stream"] = {"max_files": 1, "starting_version": 0}  # one start that makes both micro-batches
    config = parse_config(merged(settings_of(entry, folder, own, "copy" if stream else "in", "again"), other))
    run(config, spark)
    same(output(spark, config), first)
    assert len(output(spark, config).inputFiles()) == len(parts) * config.run.partitions
    check_account(spark, entry, config, sum(map(len, parts)), releases=1)


def check_account(spark: SparkSession, entry: Row, config: RunConfig, rows: int, *, releases: int) -> None:
    """Compare the row of `runs`, the ledger and the statement with what follows from the settings."""
    table = spark.read.format("delta").load(f"{config.shareable}/runs").select(*OF_RUN)
    (row,) = (one.asDict() for one in table.collect() if one["run_id"] == config.run.id)
    found = (row["status"], row["rows"], row["key_kind"], row["identity"])
    assert found == ("succeeded", rows, "file", "row_key")
    assert row["second_release"] is False
    guarantee = json.loads(row["guarantee"])
    assert guarantee["epsilon"] == entry.epsilon
    ledger = spark.read.format("delta").load(str(config.ledger.path)).select(*OF_LEDGER).collect()
    # What is spent: ε of each release that was not declared void; equal draws are one release, and so are a stream's new rows.
    for column in entry.columns:
        counted = [one for one in ledger if one["column"] == column and one["status"] != "void"]
        spends = {one["release"]: one["epsilon"] for one in counted}
        assert len(spends) == releases
        total = sum(spends.values())
        assert total == entry.epsilon * releases
        (spent,) = (one for one in json.loads(row["cumulative"])["columns"] if one["column"] == column)
        assert spent["total"] == total
    assert not [one for one in ledger if one["status"] == "reserved" and not _settled(one, ledger)]
    check_statement(entry, json.loads(row["disclosure"]), row["cumulative"], guarantee["sentence"])


def _settled(one: Any, ledger: list[Any]) -> bool:
    return any(other["entry"] == one["entry"] and other["status"] == "spent" for other in ledger)


def check_statement(entry: Row, statement: dict[str, Any], cumulative: str, guarantee: str) -> None:
    """Check that a statement names what is in use, and nothing else."""
    under = {part["heading"]: " ".join(part["sentences"]) for part in statement["sections"]}
    for feature, (heading, words) in FLAGS.items():
        said = heading in under and words in under[heading]
        assert said == (feature in entry.features), (feature, heading, under.get(heading))
    assert f"Drawn words in {', '.join(entry.columns)}:" in under["Protected"]
    assert guarantee in under["Protected"]
    assert json.loads(cumulative)["sentence"] in under["Across runs"]
    assert "The key comes from a file" in under["Assumptions"]
