"""Each supported pair of features in one run or another, judged by the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.pairs.oracle import judge
from tests.spark.pairs.table import ROWS, marked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = {name: entry for name, entry in ROWS.items() if "connect" not in entry.features}


@pytest.mark.parametrize("name", marked(HERE))
def test_it_holds(spark: SparkSession, folder: Path, tmp_path: Path, name: str) -> None:
    judge(spark, HERE[name], folder, tmp_path)
