"""Each supported pair of features in one run or another, and some in frames, judged by the oracle, which finds faults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.model.compile import prepare
from dptext_spark.randomness import RunKey
from tests.spark.pairs.faults import FAULTS
from tests.spark.pairs.oracle import CORPUS, frame_of, judge
from tests.spark.pairs.plain import Reference
from tests.spark.pairs.table import ROWS, SECRET, marked, settings_of, tagged_rows

HERE = {name: entry for name, entry in ROWS.items() if "connect" not in entry.features}


@pytest.mark.parametrize("name", marked(HERE))
def test_it_holds(spark, folder: Path, tmp_path: Path, name: str) -> None:
    judge(spark, HERE[name], folder, tmp_path)


FOUND_BY = dict.fromkeys(FAULTS, "plain") | {"a missing flag of the statement": "levels of importance"}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_found(spark, folder: Path, tmp_path: Path, monkeypatch, fault: str) -> None:
    monkeypatch.setattr(*FAULTS[fault])
    with pytest.raises(Exception) as caught:  # noqa: PT011  (what is not equal, or what the run itself refuses)
        judge(spark, ROWS[FOUND_BY[fault]], folder, tmp_path)
    assert type(caught.value).__name__ in ("AssertionError", "DataFramesNotEqualError", "CountMismatchError")


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "udf"),
    [
        ("names in records", "auto"),
        ("fluent with lists", "pandas"),
        ("record budget with names", "pandas"),
        ("important by a column", "auto"),
    ],
)
def test_a_frame_is_as_the_rules_say(spark, folder: Path, tmp_path: Path, name: str, udf: str) -> None:
    # By one mechanism: what a law draws is judged where runs are.
    more = {key: value for key, value in ROWS[name].more.items() if key != "mechanism"}
    entry = replace(ROWS[name], more=more)
    settings = settings_of(entry, folder, tmp_path)
    config = parse_config(settings)
    model = prepare(config)[0]
    reference = Reference(entry, model, "pairs", CORPUS)
    weights = () if config.importance is None else config.importance.weights
    weighed = entry.columns[: len(weights)]
    rows = [
        row | {f"weights_{name}": reference.weights(row, name) for name in weighed} for row in tagged_rows()
    ]
    lists = {name: lines for name, lines in settings["policy"].items() if name in ("mask", "keep")}
    out = dps.privatize(
        frame_of(spark, rows).repartition(3), list(entry.columns), model, row_key="id", record_key=entry.record_key,
        key=RunKey(SECRET), run_id="pairs", udf=udf, weights=weights, **lists,
    )  # fmt: skip
    released = [tuple(row) for row in out.select("id", *entry.columns).orderBy("id").collect()]
    expected = [(row["id"], reference.row(row)) for row in rows]
    assert released == [(number, *(drawn[column] for column in entry.columns)) for number, drawn in expected]
