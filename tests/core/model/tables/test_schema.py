"""The schema that rules are checked on: the same whether Spark or Arrow has it."""

from __future__ import annotations

import pyarrow as pa

from dptext_spark.model.table_schema import Field, ListOf, MapOf, Plain, Struct, of_arrow, without

NOTE = Struct((Field("text", Plain("string")), Field("by", Plain("string"))))
SCHEMA = Struct(
    (
        Field("id", Plain("bigint")),
        Field("body", Plain("string"), "varchar(20)"),
        Field("notes", ListOf(NOTE)),
        Field("attributes", MapOf(Plain("string"), NOTE)),
    )
)


def test_files_without_sparks_schema() -> None:
    note = pa.struct([("text", pa.string()), ("by", pa.large_string())])
    found = of_arrow(
        pa.schema(
            [
                ("id", pa.int64()), ("notes", pa.list_(note)), ("attributes", pa.map_(pa.string(), note)),
                ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("day", pa.date32()),
                ("cost", pa.decimal128(9, 2)), ("kind", pa.dictionary(pa.int32(), pa.string())),
                ("small", pa.uint16()), ("raw", pa.binary()),
            ]
        )
    )  # fmt: skip
    assert {field.name: str(field.kind) for field in found.fields} == {
        "id": "bigint", "notes": str(ListOf(NOTE)), "attributes": str(MapOf(Plain("string"), NOTE)), "at": "timestamp",
        "local": "timestamp_ntz", "day": "date", "cost": "decimal(9,2)", "kind": "string", "small": "int", "raw": "binary",
    }  # fmt: skip


def test_what_is_written_lacks_what_is_left_out() -> None:
    left = frozenset({("notes", "by"), ("attributes", "by")})
    assert str(without(SCHEMA, ["notes", "attributes", "body"], left)) == (
        "struct<notes:array<struct<text:string>>,attributes:map<string,struct<text:string>>,body:string>"
    )
    assert without(SCHEMA, SCHEMA.names, frozenset()) == SCHEMA
