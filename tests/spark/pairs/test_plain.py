"""What a worker makes of a batch, without Spark: that of the plain reference, for the settings of every row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.model.compile import prepare
from dptext_spark.randomness import RunKey
from dptext_spark.spark.column_function import UdfSpec, sanitize
from dptext_spark.spark.run_lists import NO_LISTS, ShippedLists
from dptext_spark.spark.ship import Shipped
from tests.spark.pairs.oracle import CORPUS, prepared, untagged
from tests.spark.pairs.plain import COUNTED, Reference
from tests.spark.pairs.table import KEEP, MASK, ROWS, SECRET, merged, settings_of, tagged_rows

NAMES = ShippedLists(columns=("masked", "kept"), column_uses=("mask", "keep"))
TEXT = pa.string()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("plain")
    prepared(place)
    return place


def values_of(rows: list[dict[str, Any]], column: str) -> list[Any]:
    values = [untagged(row[column.split(".")[0]]) for row in rows]
    if column != "comments.text":
        return values
    return [None if value is None else [part[0] for part in value] for value in values]


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_a_batch_comes_out_as_the_rules_say(place: Path, tmp_path: Path, name: str) -> None:
    entry, rows = ROWS[name], tagged_rows()
    config = parse_config(merged(settings_of(entry, place, tmp_path), {"mode": "batch"}))
    model = prepare(config)[0]
    reference = Reference(entry, model, "pairs", CORPUS)
    expected = [{**row, **reference.row(row)} for row in rows]
    assert ("[BGT]" in str(expected)) == ("budget" in entry.features)
    kinds = {column: TEXT if column in ("body", "note") else pa.list_(TEXT) for column in entry.columns}
    arrays = [pa.array(values_of(rows, column), kind) for column, kind in kinds.items()]
    weights = () if config.importance is None else config.importance.weights
    numbers = [[reference.weights(row, name) for row in rows] for name in entry.columns[: len(weights)]]
    arrays += [pa.array(values, pa.list_(pa.float32())) for values in numbers]
    if "lists" in entry.features:
        masked = [[*MASK, *([row["owner"]] if row["owner"] else [])] for row in rows]
        arrays += [pa.array(masked, pa.list_(TEXT)), pa.array([KEEP] * len(rows), pa.list_(TEXT))]
    ids = pa.array([row["id"] for row in rows])
    records = [] if entry.record_key is None else [pa.array([row[entry.record_key] for row in rows])]
    spec = UdfSpec(
        entry.columns, Shipped("", ""), RunKey(SECRET), "pairs", has_row_id=True, has_record_id=bool(records),
        weights=tuple(weights), names=NAMES if "lists" in entry.features else NO_LISTS,
    )  # fmt: skip
    result = sanitize((*arrays, ids, *records), spec, model, ids)
    for number, column in enumerate(entry.columns):
        assert result.field(f"text_{number}").to_pylist() == values_of(expected, column)
    counted = {
        name: sum(sum(result.field(f"{name}_{number}").to_pylist()) for number in range(len(entry.columns)))
        for name in COUNTED
    }
    assert counted == {name: reference.counts[name] for name in COUNTED}
    units = result.field("units").to_pylist()
    assert sum(units) > 0
    assert [unit > 0 for unit in units] == [unit > 0 for unit in reference.units]
    if not entry.features & {"importance", "budget"}:  # by which a word counts as several
        assert units == reference.units
    assert sum(result.field("unknown_rows").to_pylist()) == reference.counts["unknown_rows"] > 0
