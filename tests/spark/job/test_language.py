"""Runs and streams in another language: they end before anything is written, unless it is allowed; others go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from dptext_spark.config.load import parse_config
from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import silent
from dptext_spark.spark.job import prepare as sampling
from dptext_spark.spark.job.planned_run import SAMPLE_ROWS, RunPlan
from dptext_spark.spark.job.prepare import (
    MOST_FILES,
    check_language,
    few,
    prepare_run,
    sample_of_files,
    sampled,
)
from dptext_spark.spark.runner import run
from dptext_spark.spark.tables import Target, history
from tests.core.names import beginning

KEY = RunKey.insecure(3)
FOREIGN = "wurbel flimsch drotzen gnaffelig schnurpf blomkert zwirbelt"
ENGLISH = "please call my good friend about the money and the time"
ROWS = 40
ALLOWED = {"policy": {"allow_unknown": True}}


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("words") / "lexicon"
    beginning(Lexicon.default(), 600).save(folder)
    return str(folder)


@dataclass
class Look:
    """Inputs in a folder, and runs of them: most go no further than to look at the texts."""

    spark: SparkSession
    folder: Path
    settings: dict[str, Any]

    def write(self, texts: list[Any], files: int = 2, name: str = "in") -> None:
        frame = self.spark.createDataFrame(list(enumerate(texts)), "id long, body string")
        frame.repartition(files).write.format("delta").mode("append").save(str(self.folder / name))

    def source(self, name: str = "in", **more: Any) -> dict[str, Any]:
        return {"input": {"path": str(self.folder / name), **more}}

    def plan(self, **changes: Any) -> RunPlan:
        return prepare_run(self.spark, parse_config({**self.settings, **changes}), KEY, silent)

    def check(self, **changes: Any) -> bool:
        return check_language(self.plan(**changes), silent)

    def run(self, steps: list[str] | None = None, **changes: Any) -> Any:
        say = silent if steps is None else steps.append
        return run(parse_config({**self.settings, **changes}), self.spark, key=KEY, progress=say)

    def refused(self, by: Callable[..., Any] | None = None, **changes: Any) -> str:
        with pytest.raises(DataError) as caught:
            (by or self.check)(**changes)
        assert caught.value.exit_code == 3
        assert caught.value.__cause__ is None
        message = str(caught.value)
        assert message.startswith("policy.allow_unknown: ")
        assert not any(word in message for text in (FOREIGN, "friend money time") for word in text.split())
        return message

    def is_untouched(self) -> bool:
        return {file.name for file in self.folder.iterdir()} == {"in"}


@pytest.fixture
def look(spark: SparkSession, tmp_path: Path, lexicon: str) -> Look:
    settings = {
        "input": {"path": str(tmp_path / "in")}, "columns": ["body"], "row_key": "id", "lexicon": {"source": lexicon},
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"}, "run": {"id": "r"},
    }  # fmt: skip
    return Look(spark, tmp_path, settings)


@pytest.mark.long
def test_another_language_leaves_nothing_and_may_be_allowed(look: Look) -> None:
    look.write([FOREIGN] * ROWS)
    steps: list[str] = []
    assert f"90 to 100 % of the words of a sample of {ROWS} rows" in look.refused(look.run, steps=steps)
    assert "checking 1,000 rows for unknown words" in steps
    assert look.is_untouched()
    done = look.run(**ALLOWED)
    assert done.status == "succeeded"
    out = look.spark.read.format("delta").load(str(look.folder / "out")).collect()
    assert {row["body"] for row in out} == {" ".join(["[OOV]"] * 7)}
    assert "MOST WORDS MAY BE UNKNOWN (policy.allow_unknown: true)" in str(done.facts["disclosure"])
    # It committed: what is allowed now is no part of what it is bound to, and nothing is looked at again.
    steps.clear()
    for again in ({}, ALLOWED):
        assert look.run(steps, **again).status == "unchanged"
    assert not any("rows for" in step for step in steps)
    assert len(history(look.spark, Target(path=str(look.folder / "out")))) == 1


NAMES = [f"{ENGLISH.split()[1]} {FOREIGN}"] * ROWS
LONG, CLUSTER = pytest.mark.long, pytest.mark.cluster


@pytest.mark.long
@pytest.mark.parametrize(
    ("texts", "changes", "expected"),
    [
        pytest.param(
            [ENGLISH] * ROWS + [" ".join([FOREIGN] * 400)], {}, "enough", id="one odd text", marks=LONG
        ),
        pytest.param([FOREIGN] * 9 + [None, "", "17 18"], {}, "too few", id="little text", marks=LONG),
        pytest.param(NAMES, {}, "refused", id="names", marks=CLUSTER),
        # 40 words are left, all of them known.
        pytest.param(NAMES, {"policy": {"mask": [{"file": "NAMES"}]}}, "too few", id="a list", marks=CLUSTER),
        ([FOREIGN] * ROWS, {"consistency": "record", "policy": {"oov": "draw"}}, "refused"),
        ([FOREIGN] * ROWS, {"consistency": "dataset", "policy": {"oov": "keep"}}, "refused"),
    ],
)
def test_most_words_of_most_rows_count(look: Look, texts: list[Any], changes, expected: str) -> None:
    look.write(texts)
    if "mask" in changes.get("policy", {}):
        (look.folder / "names.txt").write_text("\n".join(FOREIGN.split()))
        changes = {"policy": {"mask": [{"file": str(look.folder / "names.txt")}]}}
    if expected == "refused":
        look.refused(**changes)
    else:
        assert look.check(**changes) == (expected == "enough")


@pytest.mark.cluster
def test_only_the_rows_that_are_read_are_looked_at(look: Look) -> None:
    look.write([ENGLISH] * 400 + [FOREIGN] * ROWS)
    assert look.check()
    assert f"a sample of {ROWS} rows" in look.refused(**look.source(where={"id": {"ge": 400}}))


@pytest.mark.cluster
def test_lists_of_texts_and_several_columns_count_together(look: Look) -> None:
    schema = "id long, body string, notes array<string>, meta struct<said: string>"
    foreign = [(i, None, [FOREIGN, None, FOREIGN] if i % 2 else None, (FOREIGN,)) for i in range(ROWS)]
    english = [(i, ENGLISH, [ENGLISH, None], (FOREIGN,)) for i in range(ROWS)]
    for name, rows in (("foreign", foreign), ("english", english)):
        look.spark.createDataFrame(rows, schema).write.format("delta").save(str(look.folder / name))
    columns = ["body", "notes", "meta.said"]
    look.refused(**look.source("foreign"), columns=columns)
    assert look.check(**look.source("english"), columns=columns)  # 7 words of 29 are unknown in each row


def as_sets(sample: sampling.Sample) -> set[bytes]:
    return {text for text in sample.texts() if text is not None}


@pytest.mark.cluster
@pytest.mark.parametrize("row_key", ["id", None])
@pytest.mark.parametrize("form", ["delta", "parquet", "csv"])
def test_the_sample_does_not_depend_on_partitions(look: Look, form: str, row_key: str | None) -> None:
    spark, place = look.spark, str(look.folder / "in")
    frame = spark.createDataFrame([(i, f"{ENGLISH} {i}") for i in range(6_000)], "id long, body string")
    frame.repartition(3 * MOST_FILES).write.format(form).option("header", "true").save(place)
    samples = []
    for most, cost in (("128m", "4m"), ("1k", "1"), ("20k", "0")):
        spark.conf.set("spark.sql.files.maxPartitionBytes", most)
        spark.conf.set("spark.sql.files.openCostInBytes", cost)
        plan = look.plan(**look.source(format=form), row_key=row_key)
        few_files = sample_of_files(plan)
        samples.append((as_sets(few_files), as_sets(sampled(plan.df, plan))))
    assert samples[0] == samples[1] == samples[2]
    of_few, of_all = samples[0]
    of_files = texts_of(plan.df, few(plan.df.inputFiles()))
    assert len(of_few) == len(of_all) == SAMPLE_ROWS
    assert of_few < of_files
    assert not of_all <= of_files


def texts_of(df: DataFrame, files: list[str]) -> set[bytes]:
    assert len(set(files)) == MOST_FILES
    names = {name.rsplit("/", 1)[1] for name in files}
    rows = df.selectExpr("body", "_metadata.file_name AS file").collect()
    return {row["body"].encode() for row in rows if row["file"] in names}


@pytest.mark.long
def test_of_a_large_input_only_the_least_hashes_are_taken(look: Look, monkeypatch) -> None:
    rows = 30 * SAMPLE_ROWS
    large = look.spark.range(rows).selectExpr("id", f"concat('{ENGLISH} ', id) AS body")
    large.write.format("delta").save(str(look.folder / "in"))
    plan = look.plan()
    assert plan.rows == rows
    frames: list[DataFrame] = []
    taken = sampling._of_least_hash
    monkeypatch.setattr(sampling, "_of_least_hash", lambda df, names: frames.append(df) or taken(df, names))
    sample = as_sets(sampled(plan.df, plan))
    (read,) = frames
    assert SAMPLE_ROWS < read.count() < 3 * SAMPLE_ROWS
    assert len(sample) == SAMPLE_ROWS
    # Where the number of rows is not known all hashes are looked at, and where it is wrong as well.
    for known in (None, 1_000 * rows):
        assert as_sets(sampled(plan.df, replace(plan, rows=known))) == sample
        assert frames[-1].count() == rows


@pytest.mark.long
def test_without_a_key_equal_texts_count_once(look: Look) -> None:
    look.write([FOREIGN] * 3_000 + [f"{ENGLISH} {i}" for i in range(60)])
    plan = look.plan(row_key=None)
    assert plan.identity.row is None
    assert len(sampled(plan.df, plan).texts()) == 61
    assert sampled(plan.df.where("id < 0"), plan).texts() == []
    assert check_language(plan, silent)


def test_few_files_are_evenly_spaced() -> None:
    assert few([]) == few([str(i) for i in range(MOST_FILES)]) == []
    files = [f"{i:03}" for i in range(200)]
    assert few(list(reversed(files)) + files) == [f"{i:03}" for i in range(10, 200, 20)]


def files_read(df: DataFrame) -> int:
    plan: Any = df._jdf.queryExecution().executedPlan()
    plan.executeCollect()

    def below(node: Any) -> int:
        metrics, children = node.metrics(), node.children()
        here = metrics.apply("numFiles").value() if metrics.contains("numFiles") else 0
        return int(here) + sum(below(children.apply(i)) for i in range(children.size()))

    return below(plan)


@pytest.mark.cluster
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("form", ["delta", "parquet"])
def test_only_ten_files_are_read(look: Look, monkeypatch, form: str, partitioned: bool) -> None:
    name = "a b%20c=d/in"
    rows = [(i, f"p {i % 2}%", f"{ENGLISH} {i}") for i in range(3_000)]
    frame = look.spark.createDataFrame(rows, "id long, part string, body string")
    writer = frame.repartition(2 * MOST_FILES).write.format(form)
    (writer.partitionBy("part") if partitioned else writer).save(str(look.folder / name))
    plan = look.plan(**look.source(name, format=form, where={"part": {"ne": "x"}, "id": {"ge": 10}}))
    frames: list[DataFrame] = []
    whole = sampling.sampled
    monkeypatch.setattr(sampling, "sampled", lambda df, plan: frames.append(df) or whole(df, plan))
    sample = sample_of_files(plan)
    assert len(sample.texts()) > 100
    (read,) = frames
    assert files_read(read.select("body")) == MOST_FILES
    assert as_sets(sample) <= texts_of(plan.df, few(plan.df.inputFiles()))


@pytest.mark.cluster
def test_deleted_rows_are_not_looked_at(look: Look) -> None:
    table = f"delta.`{look.folder / 'in'}`"
    vectors = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    look.spark.sql(f"CREATE TABLE {table} (id LONG, body STRING) USING delta {vectors}")
    look.write([ENGLISH, FOREIGN] * 500, files=2 * MOST_FILES)
    look.spark.sql(f"DELETE FROM {table} WHERE body LIKE 'wurbel%'")
    for row_key in ("id", None):
        sample = sample_of_files(look.plan(row_key=row_key))
        assert as_sets(sample) == {ENGLISH.encode()}


@pytest.mark.cluster
def test_views_and_joins_are_looked_at(look: Look) -> None:
    look.write([FOREIGN] * 200, files=2 * MOST_FILES)
    table = look.spark.read.format("delta").load(str(look.folder / "in"))
    table.join(table.select("id"), "id").createOrReplaceTempView("joined")
    table.where("id % 2 = 0").createOrReplaceTempView("some")
    audit = {"shareable": str(look.folder / "s"), "restricted": str(look.folder / "r")}
    for name, rows in (("joined", 200), ("some", 100)):
        view = {"input": {"table": name}, "audit": audit}
        plan = look.plan(**view)
        assert len(sampled(plan.df, plan).texts()) == rows
        look.refused(**view)


@pytest.mark.long
def test_a_csv_in_another_encoding_is_refused_unless_one_is_named(look: Look) -> None:
    """A reader of CSV puts U+FFFD in the place of bytes that do not fit, and says nothing."""
    lines = ["id,body", *(f"{i},{ENGLISH} café" for i in range(ROWS))]
    (look.folder / "in").mkdir()
    (look.folder / "in" / "part.csv").write_bytes("\n".join(lines).encode("latin-1"))

    def source(**options: Any) -> dict[str, Any]:
        return look.source(format="csv", options={"header": True, **options})

    for policy in ({}, ALLOWED):
        with pytest.raises(DataError, match=r"^input.options: no encoding given") as caught:
            look.run(**source(), **policy)
        assert "caf" not in str(caught.value)
        assert look.is_untouched()
    for encoding, word in (("ISO-8859-1", "café"), ("UTF-8", "caf\N{REPLACEMENT CHARACTER}")):
        plan = look.plan(**source(encoding=encoding))
        assert check_language(plan, silent)
        assert {row["body"].rsplit(" ", 1)[1] for row in plan.df.collect()} == {word}


@pytest.mark.long
def test_text_that_is_no_utf_8_breaks_nothing(look: Look) -> None:
    rows = [(i, bytearray(b"wurbel \xff flimsch " * 9)) for i in range(ROWS)]
    frame = look.spark.createDataFrame(rows, "id long, raw binary")
    frame.selectExpr("id", "CAST(raw AS STRING) AS body").write.parquet(str(look.folder / "in"))
    plan = look.plan(**look.source(format="parquet"))
    assert sampled(plan.df, plan).count(plan.privatizer.engine).words == 0
    assert check_language(plan, silent) is False


@pytest.mark.cluster
def test_a_stream_is_looked_at_at_its_start_only(look: Look) -> None:
    stream = {"mode": "incremental", "stream": {"duplicates": "accept"}}
    look.write([FOREIGN] * ROWS)
    look.refused(look.run, **stream)
    assert look.is_untouched()
    steps: list[str] = []
    for text in (ENGLISH, FOREIGN):
        look.write([text] * ROWS, name="in2")
        assert look.run(steps, **stream, **look.source("in2")).status == "succeeded"
        assert sum("rows for" in step for step in steps) == 1


@pytest.mark.cluster
def test_a_stream_that_begins_empty_is_looked_at_with_its_first_micro_batch(look: Look) -> None:
    stream = {"mode": "incremental", "stream": {"starting_version": 1, "duplicates": "accept"}}
    look.write([ENGLISH] * ROWS)
    look.write([FOREIGN] * ROWS)
    assert "It was micro-batch 0 of the stream." in look.refused(look.run, **stream)
    assert not history(look.spark, Target(path=str(look.folder / "out")))
    done = look.run(**stream, **ALLOWED)
    assert (done.status, done.facts["rows"]) == ("succeeded", ROWS)
