"""Runs and streams in another language: they end before anything is written, unless it is allowed; others go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from dptext_spark.config.load import parse_config
from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.progress import silent
from dptext_spark.spark.job import sample as sampling
from dptext_spark.spark.job.plan import SAMPLE_ROWS
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.job.sample import MOST_FILES, few, sample_of_files, sampled
from dptext_spark.spark.runner import run
from dptext_spark.spark.tables.tables import Target, history
from tests.core.names import beginning

KEY = RunKey.insecure(3)
FOREIGN = "wurbel flimsch drotzen gnaffelig schnurpf blomkert zwirbelt"
ENGLISH = "please call my good friend about the money and the time"
ROWS = 40


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("words") / "lexicon"
    beginning(Lexicon.default(), 600).save(folder)
    return str(folder)


@pytest.fixture
def settings(tmp_path: Path, lexicon: str) -> dict[str, Any]:
    return {
        "input": {"path": str(tmp_path / "in")},
        "columns": ["body"],
        "row_key": "id",
        "lexicon": {"source": lexicon},
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
        "run": {"id": "r"},
    }


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Callable[..., DataFrame]:
    """Write a table of texts by id, in some files."""

    def written(
        texts: list[Any], kind: str = "string", files: int = 2, name: str = "in", **options: str
    ) -> None:
        frame = spark.createDataFrame(list(enumerate(texts)), f"id long, body {kind}")
        frame.repartition(files).write.format("delta").options(**options).mode("append").save(
            str(tmp_path / name)
        )

    return written


def refused(settings: dict[str, Any], spark: SparkSession, **more: Any) -> str:
    with pytest.raises(DataError) as found:
        run(parse_config(settings), spark, key=KEY, **more)
    assert found.value.exit_code == 3
    assert found.value.__cause__ is None
    said = str(found.value)
    assert said.startswith("policy.allow_unknown: ")
    assert not any(word in said for text in (FOREIGN, "friend money time") for word in text.split())
    return said


def allowing(settings: dict[str, Any]) -> dict[str, Any]:
    return {**settings, "policy": {**settings.get("policy", {}), "allow_unknown": True}}


@pytest.mark.long
def test_another_language_leaves_nothing_and_may_be_allowed(
    spark: SparkSession, settings: dict[str, Any], table: Callable[..., None], tmp_path: Path
) -> None:
    table([FOREIGN] * ROWS)
    steps: list[str] = []
    said = refused(settings, spark, progress=steps.append)
    assert f"90 to 100 % of the words of a sample of {ROWS} rows are not in the lexicon" in said
    assert "looking at 1,000 rows for words that the lexicon does not hold" in steps
    assert {file.name for file in tmp_path.iterdir()} == {"in"}  # neither target nor account nor ledger
    done = run(parse_config(allowing(settings)), spark, key=KEY)
    assert done.status == "succeeded"
    out = spark.read.format("delta").load(str(tmp_path / "out")).collect()
    assert {row["body"] for row in out} == {" ".join(["[OOV]"] * 7)}
    assert "MOST WORDS MAY BE UNKNOWN (policy.allow_unknown: true)" in str(done.facts["disclosure"])
    # It committed: what is allowed now is no part of what it is bound to, and nothing is looked at again.
    steps.clear()
    for again in (settings, allowing(settings)):
        assert run(parse_config(again), spark, key=KEY, progress=steps.append).status == "unchanged"
    assert not any("looking at" in step for step in steps)
    assert len(history(spark, Target(path=str(tmp_path / "out")))) == 1


@pytest.mark.long
def test_a_few_odd_texts_end_nothing(
    spark: SparkSession, settings: dict[str, Any], table: Callable[..., None]
) -> None:
    table([ENGLISH] * ROWS + [" ".join([FOREIGN] * 400)])
    assert run(parse_config(settings), spark, key=KEY).status == "succeeded"


@pytest.mark.long
def test_little_text_ends_nothing(
    spark: SparkSession, settings: dict[str, Any], table: Callable[..., None]
) -> None:
    table([FOREIGN] * 9 + [None, "", "17 18"])
    assert run(parse_config(settings), spark, key=KEY).status == "succeeded"


@pytest.mark.cluster
def test_only_the_rows_that_are_read_are_looked_at(
    spark: SparkSession, settings: dict[str, Any], table: Callable[..., None]
) -> None:
    table([ENGLISH] * 400 + [FOREIGN] * ROWS)
    run(parse_config(settings), spark, key=KEY)
    settings = {
        **settings,
        "output": {"path": settings["output"]["path"] + "2", "other_columns": "keep"},
        "run": {"id": "r2"},
    }
    settings["input"] = {**settings["input"], "where": {"id": {"ge": 400}}}
    assert f"a sample of {ROWS} rows" in refused(settings, spark)


@pytest.mark.cluster
def test_lists_of_texts_and_several_columns_count_together(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path
) -> None:
    schema = "id long, body string, notes array<string>, meta struct<said: string>"
    foreign = [(i, None, [FOREIGN, None, FOREIGN] if i % 2 else None, (FOREIGN,)) for i in range(ROWS)]
    english = [(i, ENGLISH, [ENGLISH, None], (FOREIGN,)) for i in range(ROWS)]
    settings = {**settings, "columns": ["body", "notes", "meta.said"]}
    for name, rows in (("foreign", foreign), ("english", english)):
        spark.createDataFrame(rows, schema).write.format("delta").save(str(tmp_path / name))
        given = {
            **settings,
            "input": {"path": str(tmp_path / name)},
            "output": {"path": str(tmp_path / f"{name}_out")},
            "run": {"id": name},
        }
        if name == "foreign":
            refused(given, spark)
        else:  # 7 words of 29 are unknown in each row
            assert run(parse_config(given), spark, key=KEY).status == "succeeded"


@pytest.mark.cluster
def test_names_that_a_list_holds_are_no_unknown_words(
    spark: SparkSession, settings: dict[str, Any], table: Callable[..., None], tmp_path: Path
) -> None:
    table([f"{ENGLISH.split()[1]} {FOREIGN}"] * ROWS)
    (tmp_path / "names.txt").write_text("\n".join(FOREIGN.split()))
    refused(settings, spark)
    settings["policy"] = {"mask": [{"file": str(tmp_path / "names.txt")}]}
    # 40 words are left, which say nothing; all of them are known.
    assert run(parse_config(settings), spark, key=KEY).status == "succeeded"


@pytest.mark.parametrize(("level", "oov"), [("record", "draw"), ("dataset", "keep")])
def test_it_is_looked_at_whatever_becomes_of_unknown_words(
    spark: SparkSession, settings: dict[str, Any], table: Callable[..., None], level: str, oov: str
) -> None:
    table([FOREIGN] * ROWS)
    refused({**settings, "consistency": level, "policy": {"oov": oov, "stop_words": "draw"}}, spark)


def as_sets(sample: sampling.Sample) -> set[bytes]:
    return {text for text in sample.texts() if text is not None}


@pytest.mark.cluster
@pytest.mark.parametrize("row_key", ["id", None])
@pytest.mark.parametrize("form", ["delta", "parquet", "csv"])
def test_the_sample_does_not_depend_on_partitions(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path, form: str, row_key: str | None
) -> None:
    files = 3 * MOST_FILES
    frame = spark.createDataFrame([(i, f"{ENGLISH} {i}") for i in range(6_000)], "id long, body string")
    writer = frame.repartition(files).write.format(form)
    (writer.option("header", "true") if form == "csv" else writer).save(str(tmp_path / "in"))
    config = parse_config(
        {**settings, "row_key": row_key, "input": {"path": str(tmp_path / "in"), "format": form}}
    )
    found = []
    for most, cost in (("128m", "4m"), ("1k", "1"), ("20k", "0")):
        spark.conf.set("spark.sql.files.maxPartitionBytes", most)
        spark.conf.set("spark.sql.files.openCostInBytes", cost)
        plan = prepare_run(spark, config, KEY, silent)
        few_files = sample_of_files(plan)
        assert few_files is not None
        found.append((as_sets(few_files), as_sets(sampled(plan.df, plan))))
    assert found[0] == found[1] == found[2]
    chosen = set(few(plan.df.inputFiles()))
    assert len(chosen) == MOST_FILES
    held = spark.read.format(form).option("header", "true").load(str(tmp_path / "in"))
    there = held.selectExpr("body", "_metadata.file_name AS file").collect()
    names = {name.rsplit("/", 1)[1] for name in chosen}
    of_files = {row["body"].encode() for row in there if row["file"] in names}
    assert len(found[0][0]) == SAMPLE_ROWS
    assert found[0][0] < of_files
    assert len(found[0][1]) == SAMPLE_ROWS
    assert not found[0][1] <= of_files


def test_of_a_large_input_only_the_least_hashes_are_taken(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 30 * SAMPLE_ROWS
    large = spark.range(rows).selectExpr("id", f"concat('{ENGLISH} ', id) AS body")
    large.write.format("delta").save(str(tmp_path / "in"))
    plan = prepare_run(spark, parse_config({**settings, "row_key": "id"}), KEY, silent)
    assert plan.rows == rows
    frames: list[DataFrame] = []
    taken = sampling._of_least_hash
    monkeypatch.setattr(sampling, "_of_least_hash", lambda df, names: frames.append(df) or taken(df, names))
    found = as_sets(sampled(plan.df, plan))
    (read,) = frames
    assert SAMPLE_ROWS < read.count() < 3 * SAMPLE_ROWS
    assert len(found) == SAMPLE_ROWS
    # Where the number of rows is not known all hashes are looked at, and where it is wrong as well.
    for known in (None, 1_000 * rows):
        assert as_sets(sampled(plan.df, replace(plan, rows=known))) == found
        assert frames[-1].count() == rows


def test_without_a_key_equal_texts_count_once(
    spark: SparkSession, settings: dict[str, Any], table: Callable[..., None]
) -> None:
    table([FOREIGN] * 3_000 + [f"{ENGLISH} {i}" for i in range(60)])
    config = parse_config({**settings, "row_key": None})
    plan = prepare_run(spark, config, KEY, silent)
    assert plan.identity.row is None
    assert len(sampled(plan.df, plan).texts()) == 61
    assert sampled(plan.df.where("id < 0"), plan).texts() == []
    assert sampling.check_language(plan, silent)


def test_few_files_are_evenly_spaced() -> None:
    assert few([]) == few([str(i) for i in range(MOST_FILES)]) == []
    files = [f"{i:03}" for i in range(200)]
    assert few(list(reversed(files)) + files) == [f"{i:03}" for i in range(10, 200, 20)]


def files_read(df: DataFrame) -> int:
    """How many files a frame's plan reads."""
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
def test_only_ten_files_are_read(
    spark: SparkSession,
    settings: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    partitioned: bool,
) -> None:
    place = str(tmp_path / "a b%20c=d" / "in")
    rows = [(i, f"p {i % 2}%", f"{ENGLISH} {i}") for i in range(3_000)]
    frame = spark.createDataFrame(rows, "id long, part string, body string")
    writer = frame.repartition(2 * MOST_FILES).write.format(form)
    (writer.partitionBy("part") if partitioned else writer).save(place)
    config = parse_config(
        {
            **settings,
            "input": {"path": place, "format": form, "where": {"part": {"ne": "x"}, "id": {"ge": 10}}},
        }
    )
    plan = prepare_run(spark, config, KEY, silent)
    frames: list[DataFrame] = []
    whole = sampling.sampled
    monkeypatch.setattr(sampling, "sampled", lambda df, plan: frames.append(df) or whole(df, plan))
    found = sample_of_files(plan)
    assert found is not None
    assert len(found.texts()) > 100
    (read,) = frames
    assert files_read(read.select("body")) == MOST_FILES
    chosen = {name.rsplit("/", 1)[1] for name in few(plan.df.inputFiles())}
    there = plan.df.selectExpr("body", "_metadata.file_name AS file").collect()
    assert as_sets(found) <= {row["body"].encode() for row in there if row["file"] in chosen}


@pytest.mark.cluster
def test_deleted_rows_are_not_looked_at(
    spark: SparkSession, settings: dict[str, Any], table: Callable[..., None], tmp_path: Path
) -> None:
    place = tmp_path / "in"
    spark.sql(
        f"CREATE TABLE delta.`{place}` (id LONG, body STRING) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    table([ENGLISH, FOREIGN] * 500, files=2 * MOST_FILES)
    spark.sql(f"DELETE FROM delta.`{place}` WHERE body LIKE 'wurbel%'")
    for row_key in ("id", None):
        plan = prepare_run(spark, parse_config({**settings, "row_key": row_key}), KEY, silent)
        found = sample_of_files(plan)
        assert found is not None
        assert as_sets(found) == {ENGLISH.encode()}


@pytest.mark.cluster
def test_views_and_joins_are_looked_at(
    spark: SparkSession, settings: dict[str, Any], table: Callable[..., None], tmp_path: Path
) -> None:
    table([FOREIGN] * 200, files=2 * MOST_FILES)
    there = spark.read.format("delta").load(str(tmp_path / "in"))
    there.join(there.select("id"), "id").createOrReplaceTempView("joined")
    there.where("id % 2 = 0").createOrReplaceTempView("some")
    audit = {"shareable": str(tmp_path / "s"), "restricted": str(tmp_path / "r")}
    for name, rows in (("joined", 200), ("some", 100)):
        given = {**settings, "input": {"table": name}, "audit": audit}
        plan = prepare_run(spark, parse_config(given), KEY, silent)
        assert len(sampled(plan.df, plan).texts()) == rows
        refused(given, spark)


@pytest.mark.long
def test_a_csv_in_another_encoding_is_refused_unless_one_is_named(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path
) -> None:
    """A reader of CSV puts U+FFFD in the place of bytes that do not fit, and says nothing."""
    lines = ["id,body", *(f"{i},{ENGLISH} café" for i in range(ROWS))]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "part.csv").write_bytes("\n".join(lines).encode("latin-1"))
    given = {**settings, "input": {"path": str(tmp_path / "in"), "format": "csv"}, "columns": ["body"]}
    options = {"header": True}
    for one in (given, allowing(given)):
        with pytest.raises(
            DataError, match=r"^input.options: no encoding given.*valid: files in UTF-8, input.options: "
        ) as found:
            run(parse_config({**one, "input": {**one["input"], "options": options}}), spark, key=KEY)
        assert "caf" not in str(found.value)
        assert {file.name for file in tmp_path.iterdir()} == {"in"}
    for number, encoding in enumerate(("ISO-8859-1", "UTF-8")):
        named = {**given["input"], "options": {**options, "encoding": encoding}}
        out = str(tmp_path / f"out{number}")
        one = {
            **given,
            "input": named,
            "output": {"path": out, "other_columns": "keep"},
            "policy": {"oov": "keep"},
        }
        assert run(parse_config(one), spark, key=KEY).facts["rows"] == ROWS
        held = {row["body"].rsplit(" ", 1)[1] for row in spark.read.format("delta").load(out).collect()}
        assert held == {"café" if number == 0 else "caf\N{REPLACEMENT CHARACTER}"}


def test_text_that_is_no_utf_8_breaks_nothing(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path
) -> None:
    rows = [(i, bytearray(b"wurbel \xff flimsch " * 9)) for i in range(ROWS)]
    frame = spark.createDataFrame(rows, "id long, raw binary").selectExpr("id", "CAST(raw AS STRING) AS body")
    frame.write.format("parquet").save(str(tmp_path / "in"))
    settings["input"]["format"] = "parquet"
    plan = prepare_run(spark, parse_config(settings), KEY, silent)
    assert sampled(plan.df, plan).count(plan.privatizer.engine).words == 0
    assert sampling.check_language(plan, silent) is False


@pytest.mark.cluster
def test_a_stream_is_looked_at_at_its_start_only(
    spark: SparkSession, settings: dict[str, Any], table: Callable[..., None], tmp_path: Path
) -> None:
    stream = {**settings, "mode": "incremental", "stream": {"duplicates": "accept"}}
    table([FOREIGN] * ROWS)
    refused(stream, spark)
    assert {file.name for file in tmp_path.iterdir()} == {"in"}
    other = {**stream, "input": {"path": str(tmp_path / "in2")}}
    table([ENGLISH] * ROWS, name="in2")
    steps: list[str] = []
    assert run(parse_config(other), spark, key=KEY, progress=steps.append).status == "succeeded"
    assert sum("looking at" in step for step in steps) == 1
    table([FOREIGN] * ROWS, name="in2")
    assert run(parse_config(other), spark, key=KEY, progress=steps.append).status == "succeeded"
    assert sum("looking at" in step for step in steps) == 1


@pytest.mark.cluster
def test_a_stream_that_begins_empty_is_looked_at_with_its_first_micro_batch(
    spark: SparkSession, settings: dict[str, Any], table: Callable[..., None], tmp_path: Path
) -> None:
    stream = {**settings, "mode": "incremental", "stream": {"starting_version": 1, "duplicates": "accept"}}
    table([ENGLISH] * ROWS)
    table([FOREIGN] * ROWS)
    said = refused(stream, spark)
    assert "It was micro-batch 0 of the stream." in said
    assert not history(spark, Target(path=str(tmp_path / "out")))
    done = run(parse_config(allowing(stream)), spark, key=KEY)
    assert done.status == "succeeded"
    assert done.facts["rows"] == ROWS
