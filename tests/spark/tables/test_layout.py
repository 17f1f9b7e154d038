"""Tables as they are met: catalog names, partitions, mapped column names, deletion vectors."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame

from dptext_spark.config.load import load_config, parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DataError, DPTextError
from dptext_spark.randomness import RunKey
from dptext_spark.spark.runner import run
from tests.core.unstyled import UNSTYLED

pytestmark = pytest.mark.cluster

CHECKOUT = Path(__file__).resolve().parents[3]
KEY = RunKey.insecure(5)
ROWS = 40


def rows(spark) -> DataFrame:
    return spark.range(ROWS).selectExpr(
        "id", "concat('c', id % 4) AS customer", "date_add(DATE'2024-01-01', CAST(id % 3 AS INT)) AS day",
        "concat('Hello friend, so what time is it, ', id) AS body",
    )  # fmt: skip


def config(**changes: Any) -> RunConfig:
    settings = {"columns": ["body"], "row_key": "id", "consistency": "record"}
    return parse_config(settings | changes)


def texts(spark, place: str, column: str = "body") -> dict[int, str]:
    frame = spark.read.format("delta").load(place) if "/" in place else spark.table(place)
    return {row["id"]: row[column] for row in frame.collect()}


def partitions(spark, table: str) -> list[str]:
    return list(spark.sql(f"DESCRIBE DETAIL {table}").first()["partitionColumns"])


class TestPartitions:
    @pytest.fixture
    def source(self, spark, tmp_path: Path) -> str:
        rows(spark).write.format("delta").partitionBy("customer").save(str(tmp_path / "in"))
        return str(tmp_path / "in")

    def run(self, spark, source: str, out: Path, **output: Any) -> dict[str, Any]:
        made = config(input={"path": source}, output={"path": str(out), "other_columns": "keep", **output})
        return run(made, spark, key=KEY).facts

    def test_of_the_target_are_those_of_the_settings(self, spark, source: str, tmp_path: Path) -> None:
        facts = self.run(spark, source, tmp_path / "plain")
        split = self.run(spark, source, tmp_path / "split", partition_by=["day", "customer"])
        assert partitions(spark, f"delta.`{tmp_path / 'plain'}`") == []
        assert texts(spark, str(tmp_path / "split")) == texts(spark, str(tmp_path / "plain"))
        assert split["restricted"]["words"] == facts["restricted"]["words"]
        again = {"mode": "append"}
        assert self.run(spark, source, tmp_path / "split", **again)["status"] == "succeeded"
        assert partitions(spark, f"delta.`{tmp_path / 'split'}`") == ["day", "customer"]
        with pytest.raises(DataError, match=r"\['day'\] differs from .*\['day', 'customer'\]"):
            self.run(spark, source, tmp_path / "split", **again, partition_by=["day"])

    @pytest.mark.parametrize(
        ("output", "said"),
        [
            ({"partition_by": ["body"]}, "partition_by: 'body' is a text column"),
            ({"partition_by": ["day", "DAY"]}, "partition_by: 'DAY' is named twice"),
            ({"partition_by": ["day"], "other_columns": "drop"}, r"'day' is not valid.*: id\."),
        ],
    )
    def test_that_cannot_be_made(self, spark, source: str, tmp_path: Path, output: dict, said: str) -> None:
        with pytest.raises(DPTextError, match=said):
            self.run(spark, source, tmp_path / "out", **output)
        assert not (tmp_path / "out").exists()


class TestMappedNames:
    def test_with_spaces_renamed_and_dropped(self, spark, tmp_path: Path) -> None:
        place = f"delta.`{tmp_path / 'in'}`"
        texts_twice = ("body AS `the text (unrenamed)`", "body AS withdrawncolumn")
        named = rows(spark).selectExpr("id", *texts_twice, "named_struct('a b', id) AS `x;y`")
        named.write.format("delta").option("delta.columnMapping.mode", "name").save(str(tmp_path / "in"))
        spark.sql(f"ALTER TABLE {place} RENAME COLUMN `the text (unrenamed)` TO `the text`")
        spark.sql(f"ALTER TABLE {place} DROP COLUMN withdrawncolumn")
        made = config(
            input={"path": str(tmp_path / "in")}, columns=["the text"],
            output={"path": str(tmp_path / "out"), "other_columns": "keep"},
        )  # fmt: skip
        assert run(made, spark, key=KEY).facts["restricted"]["words"] > 0
        out = spark.read.format("delta").load(str(tmp_path / "out"))
        assert out.columns == ["id", "the text", "x;y"]
        assert out.count() == ROWS
        written = b"".join(file.read_bytes() for file in (tmp_path / "out").rglob("*") if file.is_file())
        assert b"withdrawncolumn" not in written
        assert b"unrenamed" not in written
        again = {"path": str(tmp_path / "out"), "other_columns": "keep", "mode": "append"}
        more = config(input={"path": str(tmp_path / "in")}, columns=["the text"], output=again)
        assert run(more, spark, key=KEY).status == "succeeded"
        named_target = config(
            input={"path": str(tmp_path / "in")}, columns=["the text"], output={"table": "mapped", "other_columns": "keep"},
            audit={"shareable": str(tmp_path / "s"), "restricted": str(tmp_path / "r")},
        )  # fmt: skip
        run(named_target, spark, key=KEY)
        assert texts(spark, "mapped", "the text") == {row["id"]: row["the text"] for row in out.collect()}


class TestDeletionVectors:
    def test_of_a_target(self, spark, tmp_path: Path) -> None:
        source, target = str(tmp_path / "in"), str(tmp_path / "out")
        rows(spark).write.format("delta").save(source)
        output = {"path": target, "other_columns": "keep"}
        run(config(input={"path": source, "where": {"id": {"lt": 20}}}, output=output), spark, key=KEY)
        spark.sql(f"ALTER TABLE delta.`{target}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
        spark.sql(f"DELETE FROM delta.`{target}` WHERE id = 7")
        more = {"output": output | {"mode": "append"}}
        facts = run(config(input={"path": source, "where": {"id": {"ge": 20}}}, **more), spark, key=KEY).facts
        assert facts["rows"] == 20
        assert facts["consistency_audit"]["passed"] is True
        assert set(texts(spark, target)) == set(range(ROWS)) - {7}


def test_the_bundles_notebook_shows_the_last_run(spark, tmp_path: Path) -> None:
    """What the bundle for Databricks runs last, with the platform's widgets in its place."""
    rows(spark).write.format("delta").save(str(tmp_path / "in"))
    settings = {
        **UNSTYLED, "input": {"path": str(tmp_path / "in")}, "columns": ["body"], "row_key": "id",
        "output": {"table": "default.looked", "other_columns": "keep"},
        "audit": {"shareable": str(tmp_path / "a"), "restricted": str(tmp_path / "b")},
    }  # fmt: skip
    (tmp_path / "settings.yaml").write_text(json.dumps(settings), encoding="utf-8")
    facts = run(load_config(tmp_path / "settings.yaml"), spark, key=KEY).facts
    widgets = SimpleNamespace(get={"settings": str(tmp_path / "settings.yaml")}.__getitem__)
    names: dict[str, Any] = {"dbutils": SimpleNamespace(widgets=widgets)}
    notebook = json.loads((CHECKOUT / "conf/databricks/notebooks/look.ipynb").read_text(encoding="utf-8"))
    shown = []
    for source in ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"):
        *body, last = ast.parse(source).body
        exec(compile(ast.Module(body, []), "look", "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), "look", "eval"), names))
        else:
            exec(compile(ast.Module([last], []), "look", "exec"), names)
    (sentence, *of_the_run), disclosure, lines = shown
    assert sentence == facts["guarantee"]["sentence"]
    assert of_the_run == ["succeeded", ROWS, "insecure"]
    assert any("stop words" in line.lower() for line in disclosure)
    assert len(lines) == 5
    assert all(row["body"] in texts(spark, "default.looked").values() for row in lines)
