"""`privatize` on frames: the text is what the core draws for each row, whatever Spark does; all else stays as it was."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dptext_spark import spark as dps
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.randomness import RunKey
from dptext_spark.spark.spark_errors import reduced, suppress_sensitive_logs

KEY = RunKey.insecure(1)
BODIES = (
    "The time of the day", "", None, "  said: \u201chow\u201d?\r\n\tWhat, NOW ", "so what \U0001f642", "zanzibar 12",
)  # fmt: skip
NOTES = (None, "the time of the day", "", "no\u00a0more")
ROWS = [(i, f"c{i % 5}", BODIES[i % 6], NOTES[i % 4]) for i in range(48)]


@pytest.fixture
def df(spark) -> DataFrame:
    return spark.createDataFrame(ROWS, "id long, customer string, body string, note string")


def by_the_core(privatizer) -> dict[int, tuple[str | None, str | None]]:
    ids = pa.array([row[0] for row in ROWS])
    columns = [
        privatizer.privatize(pa.array([row[at] for row in ROWS]), column=name, row_ids=ids, key=KEY, run_id="r")[0]
        for name, at in (("body", 2), ("note", 3))
    ]  # fmt: skip
    return {i: pair for i, pair in enumerate(zip(*(c.to_pylist() for c in columns), strict=True))}


def texts(out: DataFrame) -> dict[int, tuple[str | None, str | None]]:
    return {row["id"]: (row["body"], row["note"]) for row in out.collect()}


def python_evaluations(out: DataFrame) -> int:
    return str(out._jdf.queryExecution().executedPlan().toString()).count("ArrowEvalPython")


class TestTheText:
    @pytest.mark.long
    @pytest.mark.parametrize(
        ("udf", "batch", "partitions"),
        [("arrow", 7, 3), ("pandas", 1, 5), ("auto", 0, 2)],
    )  # fmt: skip
    def test_is_what_the_core_draws_in_any_layout(self, spark, df, privatizer, udf, batch, partitions):
        if udf == "arrow" and not hasattr(F, "arrow_udf"):
            pytest.skip("this Spark has no arrow_udf")
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(batch))
        out = df.repartition(partitions, "customer").transform(
            dps.privatize, ["body", "note"], privatizer, row_key="id", key=KEY, run_id="r", udf=udf
        )
        assert texts(out) == by_the_core(privatizer)

    def test_large_arrow_types_change_nothing(self, spark, df: DataFrame, privatizer) -> None:
        spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
        out = dps.privatize(df, ["body", "note"], privatizer, row_key="id", key=KEY, run_id="r")
        assert texts(out) == by_the_core(privatizer)

    def test_each_evaluation_of_a_frame_draws_the_same(self, df: DataFrame, privatizer) -> None:
        out = dps.privatize(df, ["body", "note"], privatizer, row_key="id")
        assert texts(out) == texts(out.repartition(3))

    @pytest.mark.parametrize(
        ("udf", "kind"), [("auto", "string"), ("pandas", "string"), ("pandas", "binary"), ("pandas", "int")]
    )
    def test_empty_partitions_pass(self, df: DataFrame, privatizer, udf: str, kind: str) -> None:
        typed = df.withColumn("id", F.col("id").cast("string").cast(kind))
        few = typed.where("customer = 'c0'").repartition(4, "customer")
        out = dps.privatize(few, ["body"], privatizer, row_key="id", record_key="customer", udf=udf)
        assert out.count() == few.count() == len([row for row in ROWS if row[1] == "c0"])
        none = typed.where("customer = 'none'")
        assert dps.privatize(none, ["body"], privatizer, row_key="id", udf=udf).collect() == []


class TestTheRest:
    @pytest.fixture
    def wide(self, spark) -> DataFrame:
        price = Decimal("12345678901234567890.123456789")
        rows = [
            (price, "the day", {"the": [1, None]}, i, {"a": {"b": "the"}}, bytearray(b"\xff\x00"), "kept") for i in range(6)
        ]  # fmt: skip
        made = spark.createDataFrame(
            rows,
            "price decimal(38,9), body string, counts map<string,array<int>>, `the id` long, "
            "nested struct<a:struct<b:string>>, raw binary, `dotted.name` string",
        )
        return made.selectExpr(
            "*", "TIMESTAMP'2024-01-31 23:59:59.123456' AS at", "DATE'1582-10-01' AS day",
            "TIMESTAMP_NTZ'2024-03-31 02:30:00' AS local", "INTERVAL '3' DAY AS span", "CAST('NaN' AS DOUBLE) AS score",
            "CAST(NULL AS BOOLEAN) AS unknown", "ARRAY(NAMED_STRUCT('x', 1Y)) AS list",
        )  # fmt: skip

    def test_columns_types_and_order_stay(self, wide: DataFrame, privatizer) -> None:
        out = dps.privatize(wide, ["body"], privatizer, row_key="the id", key=KEY)
        assert out.columns == wide.columns
        assert [f.dataType for f in out.schema] == [f.dataType for f in wide.schema]
        assert_df_equality(out.drop("body"), wide.drop("body"), allow_nan_equality=True)
        assert {row["body"] for row in out.collect()} != {"the day"}

    def test_a_column_with_dots_or_ticks_in_its_name(self, wide: DataFrame, privatizer) -> None:
        odd = wide.select("the id", F.col("body").alias("a.b`c"))
        out = dps.privatize(odd, ["a.b`c"], privatizer, row_key="the id", key=KEY)
        assert out.columns == ["the id", "a.b`c"]
        assert {row["a.b`c"] for row in out.collect()} != {"the day"}

    def test_metadata_of_columns_is_not_carried_over(self, spark, privatizer) -> None:
        """A comment may quote the text; a VARCHAR's length would not fit the replacement."""
        spark.sql("CREATE TABLE limited (id BIGINT COMMENT 'of Martin', body VARCHAR(7)) USING parquet")
        spark.sql("INSERT INTO limited VALUES (1, 'the day')")
        out = dps.privatize(spark.table("limited"), ["body"], privatizer, row_key="id")
        assert [field.metadata for field in out.schema] == [{}, {}]
        assert out.count() == 1


class TestThePlan:
    @pytest.fixture
    def out(self, df: DataFrame, privatizer) -> DataFrame:
        return dps.privatize(df, ["body", "note"], privatizer, row_key="id", key=KEY, run_id="r")

    @pytest.mark.parametrize(
        ("select", "times"),
        [(["*"], 1), (["body", "note"], 1), (["note"], 1), (["upper(body)", "length(body)", "note"], 1), (["id"], 0)],
    )  # fmt: skip
    def test_the_struct_is_evaluated_once(self, out: DataFrame, select: list[str], times: int) -> None:
        assert python_evaluations(out.selectExpr(*select)) == times

    def test_a_field_of_the_struct_that_is_nested_again(self, out: DataFrame) -> None:
        nested = out.select("id", F.struct("body", F.struct("note").alias("inner")).alias("texts"))
        assert python_evaluations(nested.select("id", "texts.inner.note", "texts.body")) == 1

    def test_a_later_filter_is_pushed_below_and_moves_no_draw(self, out: DataFrame, privatizer) -> None:
        filtered = out.where("customer = 'c3'")
        plan = filtered._jdf.queryExecution().optimizedPlan().toString()
        assert plan.index("ArrowEvalPython") < plan.index("Filter")
        expected = by_the_core(privatizer)
        assert texts(filtered) == {i: expected[i] for i, customer, *_ in ROWS if customer == "c3"}

    @pytest.mark.long
    def test_a_filter_on_the_output_sees_the_output(self, out: DataFrame, privatizer) -> None:
        expected = {i: pair for i, pair in by_the_core(privatizer).items() if "a" in (pair[0] or "")}
        assert texts(out.where("body LIKE '%a%'")) == expected
        assert 0 < len(expected) < len(ROWS)


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("columns", "more", "kind", "said"),
        [
            ("body", {}, SettingsError, "columns: no list of text columns"),
            ([], {}, SettingsError, "columns: no list of text columns"),
            (["boddy"], {}, DataError, "columns: 'boddy' is not in the input. Text columns of the input: customer, body, note"),
            (["id"], {}, DataError, "columns: 'id' is of type bigint"),
            (["body"], {"row_key": "nope"}, DataError, "row_key: 'nope' is not in the input"),
            (["body"], {"record_key": "nope"}, DataError, "record_key: 'nope' is not in the input"),
            (["body"], {"row_key": None}, SettingsError, "row_key: none given"),
            (["body"], {"row_key": "half"}, SettingsError, "row_key: column 'half' is of type double"),
            (["body"], {"udf": "scala"}, SettingsError, "run.udf: 'scala' is not valid. Choose auto, arrow or pandas"),
        ],
    )  # fmt: skip
    def test_at_once(self, df: DataFrame, privatizer, columns, more: dict, kind, said: str) -> None:
        frame = df.withColumn("half", F.col("id") / 2)
        with pytest.raises(kind, match=said):
            dps.privatize(frame, columns, privatizer, **{"row_key": "id", **more})

    def test_a_column_of_the_result_s_name(self, df: DataFrame, privatizer) -> None:
        with pytest.raises(DataError, match="'__DPText' is reserved"):
            dps.privatize(df.withColumnRenamed("note", "__DPText"), ["body"], privatizer, row_key="id")

    @pytest.mark.parametrize("udf", ["auto", "pandas"])
    @pytest.mark.parametrize(("field", "kind"), [("row_key", "long"), ("record_key", "string")])
    def test_a_null_key_in_the_worker(self, df, privatizer, udf: str, field: str, kind: str) -> None:
        holes = df.withColumn("hole", F.expr(f"CAST(nullif(id, 7) AS {kind})"))
        keys = {"row_key": "id", field: "hole"}
        with suppress_sensitive_logs(), pytest.raises(Exception, match="NULL_KEY") as caught:
            dps.privatize(holes, ["body"], privatizer, udf=udf, **keys).collect()
        assert "1 rows have a NULL key" in str(reduced(caught.value, ["body"]))
        assert "zanzibar" not in str(caught.value)
