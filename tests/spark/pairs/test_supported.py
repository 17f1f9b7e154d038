"""Each supported pair of features in one run or another, judged by the oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.pairs.oracle import judge
from tests.spark.pairs.table import ROWS, marked

HERE = {name: entry for name, entry in ROWS.items() if "connect" not in entry.features}


@pytest.mark.parametrize("name", marked(HERE))
def test_it_holds(spark, folder: Path, tmp_path: Path, name: str) -> None:
    judge(spark, HERE[name], folder, tmp_path)
