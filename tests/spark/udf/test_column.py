"""The column function: what travels in its closure and to it, how a batch is counted, and what leaves a failed one."""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, functions
from pyspark.sql import functions as F

from dptext_spark import spark as dps
from dptext_spark.errors import SettingsError
from dptext_spark.importance.levels import Importance
from dptext_spark.model.artifact import save_model
from dptext_spark.model.record import with_importance
from dptext_spark.randomness import RunKey
from dptext_spark.spark.column_function import (
    ORDINAL_BITS,
    UdfSpec,
    applied,
    batches,
    build,
    key_column,
    replaced,
    sanitize,
)
from dptext_spark.spark.ship import Shipped
from dptext_spark.spark.spark_errors import TaskError
from tests.cluster.traces import spellings

SECRET = hashlib.sha256(b"the key of these tests").digest()
KEY = RunKey(SECRET)
MARKER = "zanzibarmarker"


@pytest.fixture
def folder(privatizer, tmp_path: Path) -> Path:
    save_model(privatizer, tmp_path / "model")
    return tmp_path / "model"


def job(folder: Path | str = "", columns: tuple[str, ...] = ("body",), **more: bool) -> UdfSpec:
    ids = {"has_row_id": True, "has_record_id": False} | more
    return UdfSpec(columns, Shipped(str(folder), ""), KEY, "r", **ids)


def nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for i in range(children.length()):
        yield from nodes(children.apply(i))


def python_functions(df: DataFrame) -> Iterator[bytes]:
    """The pickled commands of the Python functions in a plan, as Spark sends them to its workers."""
    for plan in nodes(df._jdf.queryExecution().analyzed()):
        found = plan.expressions()
        for i in range(found.length()):
            for expression in nodes(found.apply(i)):
                if expression.getClass().getSimpleName() == "PythonUDF":
                    command = expression.func().command()
                    yield bytes(command.apply(j) & 0xFF for j in range(command.length()))


class TestTheClosure:
    @pytest.mark.parametrize("udf", ["auto", "pandas"])
    def test_is_small_and_the_only_place_of_the_key(self, spark, privatizer, udf: str, capsys) -> None:
        df = spark.createDataFrame([(1, "the day")], "id long, body string")
        out = dps.privatize(df, ["body"], privatizer, row_key="id", key=KEY, udf=udf)
        (command,) = python_functions(out)
        assert SECRET in command  # else the needles below prove nothing
        assert len(command) < 100_000
        plan = out._jdf.queryExecution()
        out.explain(True)
        plans = [plan.analyzed(), plan.optimizedPlan(), plan.executedPlan()]
        shown = [capsys.readouterr().out, plan.toString(), *(part.toJSON() for part in plans)]
        shown += [repr(out), repr(job())]
        for needle in spellings(SECRET).values():
            assert not [text for text in shown if needle in text.encode("latin-1", "replace")]


class TestABatch:
    def test_invalid_utf8_is_counted(self, privatizer) -> None:
        texts, ids = pa.array([b"the", b"\xff the", b"the \xc3"], pa.binary()), pa.array([1, 2, 3])
        with pytest.raises(TaskError, match=r"INVALID_UTF8\].*rows=2"):
            sanitize((texts, ids), job(), privatizer, ids)


class TestATask:
    def test_ordinals_run_on_over_batches(self, folder: Path, privatizer) -> None:
        whole = pa.array([f"the time of the day {i}" for i in range(20)])
        lazy = job(folder, has_row_id=False)
        split = [whole.slice(0, 3), whole.slice(3, 0), whole.slice(3, 17)]
        given = [text for part in batches(lazy, iter(split)) for text in part.field("text_0").to_pylist()]
        ids = pa.array(np.arange(20))  # outside of a task the partition is 0
        expected, _ = privatizer.privatize(whole, column="body", row_ids=ids, key=KEY, run_id="r")
        assert given == expected.to_pylist()

    def test_ordinals_differ_by_partition(self, spark, folder: Path, privatizer) -> None:
        texts = spark.range(8, numPartitions=2).selectExpr("'the time of the day' AS body")
        made = job(folder, has_row_id=False)
        out = replaced(applied(texts, made, "auto", None, None), made, ["body"])
        ids = pa.array([(p << ORDINAL_BITS) + i for p in (0, 1) for i in range(4)])
        same = pa.array(["the time of the day"] * 8)
        expected, _ = privatizer.privatize(same, column="body", row_ids=ids, key=KEY, run_id="r")
        assert [row["body"] for row in out.collect()] == expected.to_pylist()

    def test_a_filter_stays_above_a_function_of_ordinals(self, spark, folder: Path) -> None:
        rows = spark.range(40, numPartitions=2).selectExpr("id", "'the time of the day' AS body")
        made = job(folder, has_row_id=False)
        out = replaced(applied(rows, made, "auto", None, None), made, ["id", "body"])
        whole = {row["id"]: row["body"] for row in out.collect()}
        some = {row["id"]: row["body"] for row in out.where("id % 3 = 1").collect()}
        assert some == {i: text for i, text in whole.items() if i % 3 == 1}

    @pytest.mark.parametrize(
        ("bad", "code"),
        [
            ((pa.array([MARKER]), pa.array([1.5])), "DPText_DataError"),
            ((pa.array([7]), pa.array([1])), "DPText_DataError"),
            ((pa.array([MARKER]),), "IndexError"),
            ((pa.array([MARKER]), pa.array([None], pa.int64())), "NULL_KEY"),
        ],
    )  # fmt: skip
    def test_that_fails_says_where_and_nothing_of_the_text(self, folder: Path, bad: tuple, code: str) -> None:
        good = (pa.array(["the", MARKER]), pa.array([1, 2]))
        with pytest.raises(TaskError) as caught:
            list(batches(job(folder), iter([good, bad])))
        assert str(caught.value).startswith(f"DPTEXT[{code}] partition=0 batch=1 rows=")
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
        assert MARKER not in "".join(traceback.format_exception(caught.value))

    def test_without_its_model_fails_as_one(self, tmp_path: Path) -> None:
        with pytest.raises(TaskError, match=r"DPTEXT\[DPText_DataError\] partition=0 batch=0"):
            list(batches(job(tmp_path), iter([])))


class TestLongTexts:
    @pytest.mark.parametrize("udf", ["auto", "pandas"])
    def test_three_megabytes_among_short_ones(self, spark, privatizer, udf: str) -> None:
        long = "the time of the day " * 150_000
        bodies = [long if i == 7 else f"the day {i}" for i in range(20)]
        body = "IF(id = 7, repeat('the time of the day ', 150000), concat('the day ', id)) AS body"
        df = spark.range(20, numPartitions=2).selectExpr("id", body)
        out = dps.privatize(df, ["body"], privatizer, row_key="id", key=KEY, run_id="r", udf=udf)
        ids = pa.array(range(20))
        expected, _ = privatizer.privatize(pa.array(bodies), column="body", row_ids=ids, key=KEY, run_id="r")
        given = spark.createDataFrame(list(enumerate(expected.to_pylist())), "id long, body string")
        found = [df.selectExpr("id", "sha2(body, 256) AS digest").collect() for df in (out, given)]
        digests = [{row["id"]: row["digest"] for row in rows} for rows in found]
        assert digests[0] == digests[1]


class TestBuild:
    def test_a_spark_without_arrow_functions(self, monkeypatch: pytest.MonkeyPatch, spark) -> None:
        monkeypatch.delattr(functions, "arrow_udf", raising=False)
        with pytest.raises(SettingsError, match=r"'arrow' needs Spark 4\.1"):
            build(job(), "arrow")
        assert build(job(), "auto").func.__name__ == "over_pandas"

    @pytest.mark.parametrize("kind", ["auto", "pandas"])
    def test_only_a_key_column_makes_it_deterministic(self, spark, kind) -> None:
        assert build(job(), kind).deterministic
        assert not build(job(has_row_id=False), kind).deterministic


class TestKeyColumns:
    def ids(self, df: DataFrame) -> list:
        return [row[0] for row in df.select(key_column(df, "key", "row_key")).collect()]

    @pytest.mark.parametrize("kind", ["tinyint", "smallint", "int", "bigint"])
    def test_integers_of_any_width_are_one_identity(self, spark, kind: str) -> None:
        df = spark.range(3).select((F.col("id") - 1).cast(kind).alias("key"))
        assert df.select(key_column(df, "key", "row_key")).dtypes[0][1] == "bigint"
        assert self.ids(df) == [-1, 0, 1]

    @pytest.mark.parametrize(
        ("sql", "expected"),
        [("DATE'2024-02-29'", "2024-02-29"), ("1.50BD", "1.50"), ("'a'", "a"), ("X'00FF'", b"\x00\xff"),
         ("TIMESTAMP_NTZ'2024-10-27 02:30:00.000001'", "2024-10-27 02:30:00.000001")],
    )  # fmt: skip
    def test_other_types_as_text_or_bytes(self, spark, sql: str, expected: object) -> None:
        assert self.ids(spark.sql(f"SELECT {sql} AS key")) == [expected]

    def test_two_instants_stay_two_when_the_clocks_go_back(self, spark) -> None:
        """Also in a session of another time zone, where their text differs."""
        seconds = [1729989000, 1729992600]  # 02:30 in Berlin, twice in that night
        df = spark.createDataFrame([(s,) for s in seconds], "s long")
        df = df.selectExpr("timestamp_seconds(s) AS key")
        for zone in ("Europe/Berlin", "Asia/Tokyo"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            assert self.ids(df) == [s * 1_000_000 for s in seconds]

    @pytest.mark.parametrize("sql", ["1.5D", "true", "array(1)", "named_struct('a', 1)", "map(1, 2)"])
    def test_types_that_do_not_identify(self, spark, sql: str) -> None:
        df = spark.sql(f"SELECT {sql} AS key")
        with pytest.raises(SettingsError, match=r"record_key: column 'key' is of type .*Choose an integer"):
            key_column(df, "key", "record_key")


def test_importance_refuses_records_of_several_rows(privatizer_at, tmp_path: Path) -> None:
    model = with_importance(privatizer_at("record"), Importance(provider="random", percent=20))
    save_model(model, tmp_path / "model")
    ids, customers = pa.array([1, 2]), pa.array(["a", "a"])
    arrays = (pa.array(["good day", "time"]), pa.array([["good", None, "good people"], None]))
    two = job(tmp_path / "model", ("body", "tags"))
    result = sanitize((*arrays, ids), two, model, ids)
    wrong = replace(two, has_record_id=True)
    assert sanitize((*arrays, ids, ids), wrong, model, ids).equals(result)  # a record_key that is the row
    with pytest.raises(TaskError, match="DataError"):
        list(batches(wrong, iter([(*arrays, ids, customers)])))


WIDTH = 200


@pytest.fixture
def narrow(spark) -> DataFrame:
    return spark.range(2_000, numPartitions=1).selectExpr("id", "concat('so what time is it, ', id) AS body")


def evaluation(out: DataFrame) -> Any:
    (node,) = [n for n in nodes(out._jdf.queryExecution().executedPlan()) if "EvalPython" in n.nodeName()]
    return node


def sent(out: DataFrame) -> int:
    out.collect()
    return int(evaluation(out).metrics().apply("pythonDataSent").value())


def test_two_hundred_columns_send_what_two_send(narrow: DataFrame, privatizer) -> None:
    more = [F.repeat(F.lit(f"secret {i} "), 20).alias(f"c{i}") for i in range(WIDTH - 2)]
    wide = narrow.select("*", *more)

    def privatized(df: DataFrame) -> DataFrame:
        return dps.privatize(df, ["body"], privatizer, row_key="id", key=KEY, run_id="r")

    out = privatized(wide)
    bytes_of_two, bytes_of_many = sent(privatized(narrow)), sent(out)
    assert bytes_of_many == bytes_of_two > 2_000 * 20
    assert len(out.columns) == WIDTH
    assert out.select("c7").first()[0] == "secret 7 " * 20


def test_of_nested_columns_the_texts_alone(narrow: DataFrame, privatizer) -> None:
    """Not the fields beside them, and of maps the values without the keys."""

    def privatized(extra: str) -> DataFrame:
        column = f"array(named_struct('text', body, 'other', {extra})) AS comments"
        nested = narrow.selectExpr("id", column, f"map({extra}, body) AS attributes")
        columns = ["comments.text", "attributes"]
        return dps.privatize(nested, columns, privatizer, row_key="id", key=KEY, run_id="r")

    assert sent(privatized("repeat('secret ', 200)")) == sent(privatized("'x'")) > 2_000 * 40
