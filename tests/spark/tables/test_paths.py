"""Text in nested columns: found by its path, replaced as flat text with the same identities, all else left as it was."""

from __future__ import annotations

import json
from pathlib import Path as Folder
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark import spark as dps
from dptext_spark.audit.audit_plan import AuditPlan
from dptext_spark.audit.options import AuditOptions
from dptext_spark.config.load import parse_config
from dptext_spark.config.locations import parts_of, spelled
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model import table_schema
from dptext_spark.randomness import RunKey
from dptext_spark.spark.audit_job import audit_table
from dptext_spark.spark.nested_columns import Elements, schema_of
from dptext_spark.spark.runner import run

KEY = RunKey.insecure(3)
SCHEMA = (
    "id long, customer string, body string, `a.b` string, "
    "meta struct<note:string, author:string, deep:struct<text:string, n:int>>, "
    "tags array<string>, comments array<struct<text:string, by:string, more:struct<title:string>>>, "
    "attributes map<string,string>, threads map<int,struct<text:string, by:string>>, "
    "box struct<list:array<struct<text:string, `by whom`:string>>>"
)
NESTED = (
    "meta.note", "meta.deep.text", "tags", "comments.text", "comments.more.title", "attributes", "threads.text", "box.list.text",
)  # fmt: skip
TEXT = "the time of the day"
ROWS: list[tuple[Any, ...]] = [
    (
        1, "a", TEXT, "x", ("so what time", "Ann", ("how about the house", 1)), ["the time", None, "", "the time"],
        [("the time of day", "Bob", ("the house",)), None, (None, "Cid", None), ("the house", None, (None,))],
        {"x": "the day", "y": None, "z": "the day"}, {1: ("the man", "Dan"), 2: None, 3: (None, "Eve")},
        ([("the men said", "Flo"), None],),
    ),
    (2, "a", None, None, None, None, None, None, None, None),
    (3, "b", "", "", (None, "Gus", None), [], [], {}, {}, ([],)),
    (4, "b", TEXT, "y", ("so what time", None, (None, 2)), [None], [None], {"": ""}, {0: ("", None)}, (None,)),
    (5, "a", TEXT, "y", ("so what", "Hal", (TEXT, 2)), ["the day"] * 40, [("the day", "Ian", ("",))] * 3, {"k": TEXT}, {}, None),
]  # fmt: skip


@pytest.fixture
def df(spark) -> DataFrame:
    return spark.createDataFrame(ROWS, SCHEMA)


def texts_of(row: Any, path: str) -> list[str | None] | str | None:
    def each(values: Any, *names: str) -> list[str | None] | None:
        if values is None:
            return None
        found = [values[k] for k in sorted(values)] if isinstance(values, dict) else list(values)
        for name in names:
            found = [None if value is None else value[name] for value in found]
        return found

    many = {
        "tags": lambda: each(row.tags),
        "comments.text": lambda: each(row.comments, "text"),
        "comments.more.title": lambda: each(row.comments, "more", "title"),
        "attributes": lambda: each(row.attributes),
        "threads.text": lambda: each(row.threads, "text"),
        "box.list.text": lambda: each(row.box and row.box.list, "text"),
        "meta.note": lambda: row.meta and row.meta.note,
        "meta.deep.text": lambda: row.meta and row.meta.deep and row.meta.deep.text,
    }
    return many[path]()


def flat(privatizer, path: str, rows: list[Any], level: str) -> dict[int, Any]:
    """What the core draws for the same texts as flat columns: each element a row, its id the row's and its number."""
    found: dict[int, Any] = {}
    for row in rows:
        value = texts_of(row, path)
        several = isinstance(value, list)
        texts = pa.array(value if several else [value], pa.string())
        ids = pa.array([row.id])
        if several:
            numbers = [row.id.to_bytes(8, "little") + i.to_bytes(8, "little") for i in range(len(value))]
            ids = pa.array(numbers, pa.binary())
        records = pa.array([row.customer] * len(texts), pa.string())
        keys = {"row_ids": ids, "record_ids": records, "key": KEY, "run_id": "r"}
        drawn, _ = privatizer.privatize(texts, column=path, **keys)
        found[row.id] = drawn.to_pylist() if several else drawn.to_pylist()[0]
    return found


def without_texts(value: Any, name: str = "") -> Any:
    """A row with its texts blanked where they are not NULL; order, other fields and NULLs stay."""
    if isinstance(value, T.Row):
        return {n: without_texts(v, n) for n, v in value.asDict().items()}
    if isinstance(value, list):
        return [without_texts(v, name) for v in value]
    if isinstance(value, dict):
        return {k: without_texts(v, name) for k, v in value.items()}
    texts = ("note", "text", "title", "tags", "attributes")
    return value and "*" if name in texts else value


class TestTheText:
    @pytest.mark.long
    @pytest.mark.parametrize(("level", "udf"), [("token", "pandas"), ("record", "auto"), ("dataset", "auto")])
    def test_is_that_of_flat_columns(self, df: DataFrame, privatizer_at, level: str, udf: str) -> None:
        model = privatizer_at(level)
        keys = {"row_key": "id", "record_key": "customer", "key": KEY, "run_id": "r"}
        out = dps.privatize(df, NESTED, model, udf=udf, **keys)
        before, after = df.orderBy("id").collect(), out.orderBy("id").collect()
        for path in NESTED:
            assert {row.id: texts_of(row, path) for row in after} == flat(model, path, before, level), path
        assert [without_texts(row) for row in after] == [without_texts(row) for row in before]
        assert [row.body for row in after] == [row.body for row in before]
        assert out.dtypes == df.dtypes

    @pytest.mark.long
    def test_a_string_key_and_large_types(self, spark, df: DataFrame, privatizer) -> None:
        model = privatizer
        typed = df.withColumn("id", F.concat(F.lit("row "), F.col("id")))
        usual = dps.privatize(typed, ["tags", "comments.text"], model, row_key="id", key=KEY, run_id="r")
        first = usual.orderBy("id").collect()
        spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
        assert usual.orderBy("id").collect() == first
        ids = pa.array([b"row 1" + i.to_bytes(8, "little") for i in range(4)], pa.binary())
        drawn, _ = model.privatize(pa.array(ROWS[0][5]), column="tags", row_ids=ids, key=KEY, run_id="r")
        assert first[0].tags == drawn.to_pylist()

    def test_is_evaluated_once(self, df: DataFrame, privatizer) -> None:
        out = dps.privatize(df, NESTED, privatizer, row_key="id")
        some = out.selectExpr("size(comments)", "comments.text", "meta")
        for frame in (out, out.select("comments", "threads"), some):
            assert str(frame._jdf.queryExecution().executedPlan().toString()).count("ArrowEvalPython") == 1

    def test_comments_on_fields_are_not_carried_over(self, spark, privatizer) -> None:
        noted = T.StructType().add("note", T.StringType(), True, {"comment": "of Ann"})
        other = T.StructType().add("x", T.IntegerType(), True, {"comment": "of Bob"})
        schema = T.StructType().add("id", "long").add("meta", noted).add("other", T.ArrayType(other))
        df = spark.createDataFrame([(1, ("the day",), [(1,)])], schema)
        assert "Ann" in df.schema.json()
        assert "Bob" in df.schema.json()
        out = dps.privatize(df, ["meta.note"], privatizer, row_key="id")
        assert "Ann" not in out.schema.json()
        assert "Bob" not in out.schema.json()
        assert out.first().other == [(1,)]


class TestElements:
    def test_of_a_slice(self) -> None:
        lists = pa.array([["x"], ["a", None], None, [], ["b"], ["y"]], pa.list_(pa.string())).slice(1, 4)
        found = Elements.of(lists)
        assert found.texts.to_pylist() == ["a", None, "b"]
        assert found.rows.tolist() == [0, 0, 3]
        assert found.whole(found.texts).equals(lists)
        assert found.sums(np.array([3, 4, 5])).tolist() == [7, 0, 0, 5]

    @pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.large_string(), pa.binary()])
    def test_identities_differ_where_row_or_number_does(self, kind: pa.DataType) -> None:
        """Also where the bytes of one key begin with those of another and its number."""
        keys: list[Any] = [1, -1, 256, 1 << 40] if kind == pa.int64() else ["", "a", "a" + "\0" * 8, "\0" * 8]
        keys = [key.encode() for key in keys] if kind == pa.binary() else keys
        found = Elements.of(pa.array([["t"] * 300] * len(keys))).identities(pa.array(keys, kind))
        assert len(set(found.to_pylist())) == 300 * len(keys)
        assert found.null_count == 0


class TestNames:
    @pytest.mark.parametrize(
        ("name", "parts"),
        [("a", ("a",)), ("a.b", ("a", "b")), ("`a.b`.c d", ("a.b", "c d")), ("`a``b`", ("a`b",)), ("`a`.`b`", ("a", "b"))],
    )  # fmt: skip
    def test_are_split_and_spelled(self, name: str, parts: tuple[str, ...]) -> None:
        assert parts_of(name) == parts
        assert parts_of(spelled(parts)) == parts

    @pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "`a", "a`b", "``"])
    def test_that_are_no_path(self, name: str) -> None:
        assert parts_of(name) is None

    def test_every_text_is_found_under_its_name(self, df: DataFrame) -> None:
        found = [path.name for path in table_schema.texts_of(schema_of(df.schema))]
        assert {*NESTED, "body", "`a.b`"} < set(found)
        assert [table_schema.resolve(schema_of(df.schema), name, exact=True).name for name in found] == found
        assert table_schema.resolve(schema_of(df.schema), "a.b").name == "`a.b`"

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("meta", r"'meta' is of type struct.* input: customer, body, `a\.b`, meta\.note"),
            ("meta.deep.n", "is of type int"),
            ("attributes.x", "'attributes.x' is not in the input"),
            ("tags.x", "'tags.x' is not in the input"),
            ("id.x", "'id.x' is of type bigint"),
        ],
    )
    def test_that_lead_nowhere(self, df: DataFrame, privatizer, name: str, said: str) -> None:
        with pytest.raises(DataError, match=said):
            dps.privatize(df, [name], privatizer, row_key="id")

    def test_a_list_of_lists(self, spark, privatizer) -> None:
        for kind in ("array<array<string>>", "map<int,array<string>>", "array<struct<a:array<string>>>"):
            df = spark.createDataFrame([], f"id long, x {kind}")
            with pytest.raises(DataError, match="at most one array or map"):
                dps.privatize(df, ["x.a" if "struct" in kind else "x"], privatizer, row_key="id")

    def test_a_name_that_could_mean_two(self, spark, privatizer) -> None:
        schema = "id long, `a.b` string, a struct<b:string>"
        df = spark.createDataFrame([(1, "the day", ("the day",))], schema)
        with pytest.raises(DataError, match=r"`a\.b` for the column, or `a`\.b for the field"):
            dps.privatize(df, ["a.b"], privatizer, row_key="id")
        with pytest.raises(DataError, match="named twice"):
            dps.privatize(df, ["`a`.b", "a.`b`"], privatizer, row_key="id")
        with pytest.raises(SettingsError, match="named twice"):
            parse_config({"input": {"path": "/i"}, "output": {"path": "/o"}, "columns": ["x.b", "`x`.B"]})
        # A run id of its own would draw anew each time, and equal words now and then.
        both = dps.privatize(df, ["`a.b`", "`a`.b"], privatizer, row_key="id", key=KEY, run_id="r").first()
        assert both["a.b"] != both.a.b  # draws of their own


@pytest.mark.cluster
class TestTheJob:
    def config(self, tmp_path: Folder, **changes: Any) -> RunConfig:
        settings = {
            "input": {"path": str(tmp_path / "in")}, "columns": ["body", *NESTED], "row_key": "id", "record_key": "customer",
            "consistency": "record", "output": {"path": str(tmp_path / "out"), "other_columns": "keep"}, "run": {"id": "r"},
        }  # fmt: skip
        return parse_config(settings | changes)

    def source(self, df: DataFrame, tmp_path: Folder) -> DataFrame:
        df = df.drop("a.b")
        mapped = df.write.format("delta").option("delta.columnMapping.mode", "name")
        mapped.save(str(tmp_path / "in"))  # else no name may hold a space
        return df

    @pytest.mark.parametrize(
        ("other", "left", "others"),
        [
            ("keep", ("note author deep", "text by more", "text by whom"),
             ["id", "customer", "meta.author", "meta.deep.n", "comments.by", "threads.by", "box.list.by whom",
              "attributes (its keys)", "threads (its keys)"]),
            ("drop", ("note", "text", "text"), ["id", "attributes (its keys)"]),
            (["customer", "comments.by", "box"], ("note", "text by", "text by whom"),
             ["id", "customer", "comments.by", "box.list.by whom", "attributes (its keys)"]),
        ],
    )  # fmt: skip
    def test_fields_beside_texts_stay_or_are_dropped(self, spark, df, tmp_path, other, left, others) -> None:
        source = self.source(df, tmp_path)
        out = {"path": str(tmp_path / "out"), "other_columns": other}
        some = ["meta.note", "comments.text", "attributes", "box.list.text"]
        columns = ["body", *NESTED] if other == "keep" else some
        facts = run(self.config(tmp_path, columns=columns, output=out), spark, key=KEY).facts
        assert facts["other_columns"] == others
        assert "comments.by" in json.dumps(facts["disclosure"]) or other == "drop"
        written = spark.read.format("delta").load(str(tmp_path / "out"))
        listed = [written.schema["comments"].dataType, written.schema["box"].dataType["list"].dataType]
        kinds = [written.schema["meta"].dataType, *(kind.elementType for kind in listed)]
        assert [" ".join(kind.fieldNames()) for kind in kinds] == list(left)
        assert written.where("box IS NULL").count() == 2
        assert written.where("comments IS NULL").count() == 1
        if other == "keep":
            places = [str(tmp_path / name) for name in ("out", "in")]
            audited = ["tags", "comments.text", "meta.note"]
            options = AuditOptions(columns=audited, row_key="id", out=str(tmp_path / "metrics"))
            plan = AuditPlan.of(*places, None, options)
            found = audit_table(plan, spark).figures
            figures = {(figure.column, figure.name): figure.value for figure in found}
            assert (figures[None, "rows_not_aligned"], figures[None, "missing_in_table"]) == (0, 0)
            assert figures["tags", "words"] == 84
            every = [texts_of(row, name) for row in source.collect() for name in NESTED]
            texts = [text for value in every for text in _flat(value)]
            texts += [row.body for row in source.collect() if row.body]
            assert facts["restricted"]["words"] == sum(len(text.split()) for text in texts)

    def test_a_condition_on_nested_text_is_hidden(self, spark, df: DataFrame, tmp_path: Folder) -> None:
        self.source(df, tmp_path)
        where = {"meta.author": {"ne": "zanzibar"}}
        given = {"path": str(tmp_path / "in"), "where": where}
        config = self.config(tmp_path, input=given, columns=["meta.note"])
        run(config, spark, key=KEY)
        row = spark.read.format("delta").load(str(tmp_path / "out_audit/shareable/runs")).first()
        assert "zanzibar" not in row["config"]
        assert "hidden" in row["config"]


def _flat(value: Any) -> list[str]:
    return [t for t in (value if isinstance(value, list) else [value]) if t]
