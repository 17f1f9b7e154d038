"""A client of Spark Connect, a process of its own: functions, a chain, rows that are looked at; results in FOLDER/sql.json."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dptext_spark import spark as dps
from dptext_spark.errors import DPTextError
from dptext_spark.model.artifact import open_model
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.spark.job.entries import entries_of

ROWS = [(1, "good news zanzibarmarker"), (2, ""), (3, None), (4, "the people of the day, NOW?")]


def failing(what: Callable[[], Any]) -> str:
    """Return what an error of ours, or of a query, says."""
    try:
        what()
    except DPTextError as error:
        return str(error)
    except Exception as error:  # the client's own, which is what a user sees
        return f"{type(error).__name__}: {error}"
    return "nothing"


def looked_at(spark: SparkSession, model: Privatizer) -> dict[str, Any]:
    """Preview rows of the table, and set what a function made of them beside them."""
    rows = spark.table("t").orderBy("id")
    shown = dps.preview(rows, ["body"], model, rows=3)
    made = rows.selectExpr("body", "dptext(body, id) AS drawn").toPandas()
    compared = dps.compare_rows(made["body"], made["drawn"])
    raising = rows.selectExpr("CAST(raise_error(body) AS string) AS body")
    return {
        "preview": [shown.columns["body"].before, shown.columns["body"].after],
        "preview_repr": repr(shown),
        "compared": [compared.before, compared.after],
        "preview_raising": failing(lambda: dps.preview(raising, ["body"], model)),
        "preview_nowhere": failing(lambda: dps.preview(spark.table("nowhere"), ["body"], model)),
        "preview_number": failing(lambda: dps.preview(rows, ["id"], model)),
        "compared_frames": failing(lambda: dps.compare_rows(rows, rows)),  # type: ignore[arg-type]
        "compared_columns": failing(lambda: dps.compare_rows(rows.body, rows.body)),  # type: ignore[arg-type]
    }


def main(remote: str, folder: Path) -> None:
    """Register, select and transform."""
    warned: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: warned.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("dptext_spark").addHandler(handler)
    spark = SparkSession.builder.remote(remote).getOrCreate()
    model, key = open_model(folder / "model"), RunKey.from_file(folder / "run.key", deliver="executors")
    frame = spark.createDataFrame(ROWS, "id long, body string").repartition(2)
    frame.write.format("delta").save(str(folder / "in"))
    spark.read.format("delta").load(str(folder / "in")).createOrReplaceTempView("t")
    counted = {"ledger": str(folder / "ledger"), "input": {"path": str(folder / "in")}, "row_key": "id"}

    def selected(call: str) -> list[Any]:
        return [tuple(row) for row in spark.sql(f"SELECT id, {call} FROM t ORDER BY id").collect()]

    def register(name: str, with_key: RunKey, **more: Any) -> dps.Registration:
        return dps.register(spark, name, model, column="body", run_id="first", key=with_key, **more)

    said: list[str] = []
    made = register("dptext", key, progress=said.append, **counted)
    found: dict[str, Any] = {"dptext": selected("dptext(body, id)"), "notes": list(made.notes), "said": said}
    found["warned_of_executors"] = list(warned)
    travels = register("travels", RunKey.from_file(folder / "run.key"))
    found |= {"travels": selected("travels(body, id)"), "travel_notes": list(travels.notes)}
    found["warned"] = list(warned)
    found["entries"] = [(one.status, one.output) for one in entries_of(spark, str(folder / "ledger")).entries]
    for call in ("dptext(body)", "dptext(body, NULL)", "dptext(body, id, 1)"):
        found[call] = failing(lambda call=call: selected(call))
    found["taken"] = failing(lambda: register("dptext", RunKey.generate()))
    for name in ("concat", "nvl", "mask"):
        found[name] = failing(lambda name=name: register(name, key, replace=name))
    found |= looked_at(spark, model)
    rows = spark.table("t").transform(dps.privatize, ["body"], model, row_key="id", run_id="first", key=key)
    found["transformed"] = [row["body"] for row in rows.orderBy("id").collect()]
    spark.stop()
    found["stopped"] = failing(lambda: register("late", key))
    found["preview_stopped"] = failing(lambda: dps.preview(frame, ["body"], model))
    (folder / "sql.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
