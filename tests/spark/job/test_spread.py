"""Skewed partitions are dealt out, and the output is what it would have been."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.errors import SettingsError
from dptext_spark.randomness import RunKey
from dptext_spark.spark.job import writing
from dptext_spark.spark.job.planned_run import SAMPLE_ROWS, TextSizes
from dptext_spark.spark.runner import run

ROWS = 400


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of one row group, which no scan cuts, and a small one."""
    folder = tmp_path_factory.mktemp("spread") / "in"
    folder.mkdir()
    for name, first, last in (("large", 0, ROWS - 20), ("small", ROWS - 20, ROWS)):
        texts = [f"please call the office about the order {i}" for i in range(first, last)]
        table = pa.table({"id": pa.array(range(first, last), pa.int64()), "body": texts})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=ROWS)
    return folder


def written(spark: Any, source: Path, out: Path, **more: Any) -> tuple[list[Any], int, list[str]]:
    settings: dict[str, Any] = {
        "input": {"path": str(source), "format": "parquet"},
        "columns": ["body"],
        "output": {"path": str(out), "other_columns": "keep"},
        "run": {"id": "the-run"},
    }
    said: list[str] = []
    config = parse_config(settings | more)
    report = run(config, spark, key=RunKey.insecure(5), progress=said.append)
    assert report.facts["rows"] == ROWS
    frame = spark.read.format("delta").load(str(out))
    return sorted(map(tuple, frame.collect())), len(frame.inputFiles()), said


@pytest.mark.long
@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="known by file and row", marks=pytest.mark.cluster),
        pytest.param({"row_key": "id"}, id="row_key"),
    ],
)
def test_a_skewed_input_is_dealt_out_and_nothing_else_changes(spark, source, tmp_path, monkeypatch, more):
    as_it_is = {"id": "the-run", "partitions": "keep"}
    kept, few, _ = written(spark, source, tmp_path / "kept", run=as_it_is, **more)
    monkeypatch.setattr(writing, "LEAST_BYTES", 0)
    monkeypatch.setattr(writing, "CORES_A_TASK", 1)
    monkeypatch.setattr(writing, "SKEWED", 1.2)  # of two cores, one holds nearly everything
    dealt, many, said = written(spark, source, tmp_path / "dealt", **more)
    assert dealt == kept
    assert few <= 2
    assert many == 6
    assert "distributing the rows over 6 partitions" in said


def test_rows_are_not_counted_by_partition_where_all_of_them_are_few() -> None:
    uncounted = SimpleNamespace(groupBy=lambda *_: pytest.fail("the rows were counted"))
    sizes = TextSizes(SAMPLE_ROWS, writing.LEAST_BYTES / 3_000, 1.0)
    cores = SimpleNamespace(_sc=SimpleNamespace(defaultParallelism=8))
    known = {"spark": cores, "df": uncounted, "sizes": sizes}
    plan: Any = SimpleNamespace(**known, rows=2_999, privatizer=SimpleNamespace(samplers=()))
    assert writing._needed(plan) is None
    for rows in (None, 3_001):
        plan.rows = rows
        with pytest.raises(pytest.fail.Exception, match="were counted"):
            writing._needed(plan)
    # Of two or three cores no partition can hold more than one and a half times what a task is to have.
    for cores in (2, 3):
        plan.spark = SimpleNamespace(_sc=SimpleNamespace(defaultParallelism=cores))
        assert writing._needed(plan) is None


@pytest.mark.cluster
def test_rows_that_are_known_by_their_place_are_not_moved(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("please call me\n" * 10, encoding="utf-8")
    settings = {
        "input": {"path": str(tmp_path / "in"), "format": "text"},
        "columns": ["value"],
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
        "run": {"partitions": 4},
    }
    with pytest.raises(SettingsError, match=r"^run\.partitions: 4 .*row_key"):
        run(parse_config(settings), spark, key=RunKey.insecure(5))
    assert not list(tmp_path.glob("out/*.parquet"))


@pytest.mark.parametrize("given", [0, -1, True, "many", 2.5])
def test_bad_numbers_of_partitions(given: object) -> None:
    with pytest.raises(SettingsError, match=r"run\.partitions.*auto, keep"):
        parse_config(
            {
                "input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}, "run": {"partitions": given},
            }
        )  # fmt: skip
