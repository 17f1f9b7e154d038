"""The rows of the table on Spark Connect, a process of its own: `python -m tests.spark.pairs.connect_client REMOTE FOLDER`."""

from __future__ import annotations

import json
import sys
import time
import traceback
from pathlib import Path

from pyspark.sql import SparkSession

from dptext_spark.config.load import parse_config
from dptext_spark.errors import SettingsError
from dptext_spark.spark.runner import run
from tests.spark.pairs.oracle import judge, prepared, write_input
from tests.spark.pairs.table import ROWS, Row, settings_of, tagged_rows


def main(remote: str, folder: Path) -> None:
    """Judge each row that the folder names, and write what is wrong with it and how many seconds it took."""
    spark = SparkSession.builder.remote(remote).getOrCreate()
    prepared(folder)
    write_input(spark, folder / "in", tagged_rows(), 3)
    found: dict[str, tuple[str, float]] = {}
    for number, name in enumerate(json.loads((folder / "names.json").read_text("utf-8"))):
        own, began = folder / f"row{number}", time.perf_counter()
        own.mkdir()
        try:
            judge(spark, ROWS[name], folder, own)
            wrong = ""
        except Exception:
            wrong = traceback.format_exc()
        found[name] = (wrong, time.perf_counter() - began)
    try:
        run(parse_config(settings_of(Row(frozenset({"token", "stream"})), folder, folder)), spark)
        field = ""
    except SettingsError as error:
        field = str(error).split(":")[0]
    found["a stream on Connect"] = (field, 0.0)
    (folder / "found.json").write_text(json.dumps(found), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
