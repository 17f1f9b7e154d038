"""Of a wide table only the text columns and the identities cross to Python; the others stay in the JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dptext_spark import spark as dps
from dptext_spark.randomness import RunKey

WIDTH = 200
KEY = RunKey.insecure(6)


@pytest.fixture
def narrow(spark) -> DataFrame:
    return spark.range(2_000, numPartitions=1).selectExpr("id", "concat('so what time is it, ', id) AS body")


def nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for i in range(children.length()):
        yield from nodes(children.apply(i))


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
