"""`input.where` in Spark: every type, operator and value selects the rows that plain Python selects."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import reduce
from pathlib import Path as Folder
from typing import Any

import pytest
from pyspark.sql import functions as F

from dptext_spark.config.condition import parse_condition, typed_condition
from dptext_spark.errors import SettingsError
from dptext_spark.spark.nested_columns import Path, _tests, schema_of, selected

# By type: the values of a column, and spellings of values as settings have them, with what they stand for.
NOON, EAST = datetime(2024, 2, 29, 12, 30, 15, 250_000, timezone.utc), timezone(timedelta(hours=5))
VALUES: dict[str, tuple[list[Any], dict[Any, Any]]] = {
    "boolean": ([True, False], {True: True, False: False}),
    "tinyint": ([-128, 0, 127], {-128: -128, 0: 0, 5: 5}),
    "int": ([-7, 0, 2**31 - 1], {0: 0, 2**31 - 1: 2**31 - 1}),
    "bigint": ([-(2**63), 12, 2**62], {-(2**63): -(2**63), 12: 12, 2**62: 2**62}),
    "float": ([-1.5, 0.25, math.nan, math.inf], {0.25: 0.25, -2: -2.0, 1e30: 1e30}),
    "double": ([0.1, -0.0, 3.0, math.nan, -math.inf], {0.1: 0.1, 0: 0.0, 3: 3.0}),
    "decimal(10,2)": (
        [Decimal("0.10"), Decimal("12.00"), Decimal("-99999999.99")],
        {0.1: Decimal("0.1"), 12: Decimal(12), "-99999999.99": Decimal("-99999999.99")},
    ),
    "date": (
        [date(1500, 1, 1), date(2024, 2, 29), date(2024, 3, 1)],
        {"2024-02-29": date(2024, 2, 29), "0001-01-01": date(1, 1, 1)},
    ),
    "timestamp": (
        [datetime(1969, 12, 31, 23, 59, 59, tzinfo=timezone.utc), datetime(2024, 2, 29, tzinfo=timezone.utc), NOON],
        {
            "2024-02-29": datetime(2024, 2, 29, tzinfo=timezone.utc),
            "2024-02-29T12:30:15.25Z": NOON,
            "2024-02-29 17:30:15.250+05:00": NOON.astimezone(EAST),
        },
    ),
    "timestamp_ntz": (
        [datetime(2024, 3, 10, 2, 30), datetime(2024, 2, 29), datetime(1999, 1, 1)],
        {"2024-03-10 02:30": datetime(2024, 3, 10, 2, 30), "2024-02-29": datetime(2024, 2, 29)},
    ),
    "string": (
        ["", "DE", "de", "10", "9", "it's $x\\n 😀", "Über", "\uffff", "today"],
        {text: text for text in ("DE", "10", "it's $x\\n 😀", "", "\uffff", "today")},
    ),
}  # fmt: skip


def rank(value: Any) -> Any:
    """Order values as Spark does: NaN is the greatest number, and a text goes by its bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def cases() -> Iterator[tuple[str, Any, Callable[[Any], bool]]]:
    """Yield the type, what settings hold, and whether plain Python selects a value that is not None."""
    for kind, (_, spelt) in VALUES.items():
        for spelling, value in spelt.items():
            yield kind, spelling, lambda cell, value=value: rank(cell) == rank(value)
            for name in ("ne", "lt", "le", "gt", "ge"):
                compare = getattr(operator, name)
                yield (
                    kind,
                    {name: spelling},
                    lambda cell, value=value, compare=compare: compare(rank(cell), rank(value)),
                )
        several = [rank(value) for value in spelt.values()]
        yield kind, list(spelt), lambda cell, several=several: rank(cell) in several
        low, high = sorted(spelt, key=lambda spelling: rank(spelt[spelling]))[:: len(spelt) - 1]
        bounds = (rank(spelt[low]), rank(spelt[high]))
        yield (kind, {"ge": low, "lt": high}, lambda cell, bounds=bounds: bounds[0] <= rank(cell) < bounds[1])
        yield kind, {"ne": low, "null": False}, lambda cell, bounds=bounds: rank(cell) != bounds[0]


@pytest.mark.long
def test_every_type_operator_and_value_in_one_job(spark) -> None:
    """In a session that is not at UTC; NULL meets only `{null: true}`."""
    table = list(cases())
    columns = {kind: f"c{number}" for number, kind in enumerate(VALUES)}
    length = max(len(values) for values, _ in VALUES.values()) + 1
    cells = {kind: values + [None] * (length - len(values)) for kind, (values, _) in VALUES.items()}
    df = spark.createDataFrame(
        list(zip(range(length), *cells.values(), strict=True)),
        "place int, " + ", ".join(f"{column} {kind}" for kind, column in columns.items()),
    )
    schema = schema_of(df.schema)

    def met(kind: str, test: Any) -> Any:
        typed = typed_condition(parse_condition({columns[kind]: test}), schema)
        return reduce(operator.and_, _tests(Path(columns[kind]).text, typed[columns[kind]], kind))

    asked = [(kind, test) for kind, test, _ in table]
    asked += [(kind, {"null": is_null}) for kind in VALUES for is_null in (True, False)]
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        rows = df.select("place", F.array(*(met(*test) for test in asked)).alias("met")).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    differ = []
    for row in rows:
        by_python = [
            (cell := cells[kind][row["place"]]) is not None and decide(cell) for kind, _, decide in table
        ]
        by_python += [
            (cells[kind][row["place"]] is None) is test["null"] for kind, test in asked[len(table) :]
        ]
        differ += [
            (*test, cells[test[0]][row["place"]], expected)
            for test, by_spark, expected in zip(asked, row["met"], by_python, strict=True)
            if bool(by_spark) is not expected
        ]
    assert len(asked) > 200
    assert differ == []
    for_null = [number for number, test in enumerate(asked) if test[1] == {"null": True}]
    assert all(any(row["met"][number] for row in rows) for number in for_null)


def test_a_condition_selects_rows(spark) -> None:
    df = spark.createDataFrame(
        [
            (1, "x", ("en", 1), ["a"]),
            (2, "y", ("de", None), None),
            (3, None, (None, 3), []),
            (4, "x", None, []),
        ],
        "id long, `a.b` string, meta struct<lang: string, `n o`: int>, tags array<string>",
    )
    ids = {
        "all": (None, [1, 2, 3, 4]),
        "dots": ({"a.b": "x"}, [1, 4]),
        "field": ({"META.lang": ["de", "en"]}, [1, 2]),
        "field of a struct that is NULL": ({"meta.`n o`": {"null": True}}, [2, 4]),
        "list": ({"tags": {"null": False}, "a.b": {"ne": "y"}}, [1, 4]),
        "none": ({"id": {"gt": 1, "lt": 2}}, []),
    }
    for name, (where, expected) in ids.items():
        found = selected(df, parse_condition(where)).orderBy("id").collect()
        assert [row["id"] for row in found] == expected, name
    with pytest.raises(SettingsError, match=r"^input\.where\.id: 'x' is not valid"):
        selected(df, {"id": "x"})


@pytest.mark.long
@pytest.mark.parametrize("form", ["delta", "parquet"])
def test_partitions_are_pruned(spark, tmp_path: Folder, form: str) -> None:
    first = F.lit("2026-01-01").cast("date")
    df = spark.range(4).withColumn("day", F.date_add(first, F.col("id").cast("int")))
    df.write.format(form).partitionBy("day").save(str(tmp_path / form))
    read = spark.read.format(form).load(str(tmp_path / form))
    found = selected(read, {"day": {"ge": "2026-01-02", "lt": "2026-01-04"}, "id": {"ge": 1}})
    assert sorted(row["id"] for row in found.collect()) == [1, 2]
    plan = str(found._jdf.queryExecution().executedPlan().toString())
    filters = plan.split("PartitionFilters: [")[1].split("]")[0]
    assert ">= 2026-01-02" in filters
    assert "< 2026-01-04" in filters
    assert "GreaterThanOrEqual(id,1)" in plan.split("PushedFilters: [")[1].split("]")[0]
