"""The table finds faults: each is put into the package, and the row that must find it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.pairs.faults import FAULTS
from tests.spark.pairs.oracle import judge
from tests.spark.pairs.table import ROWS

pytestmark = pytest.mark.long

FOUND_BY = dict.fromkeys(FAULTS, "plain") | {"a missing flag of the statement": "levels of importance"}


@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_found(spark, folder: Path, tmp_path: Path, monkeypatch, fault: str) -> None:
    monkeypatch.setattr(*FAULTS[fault])
    with pytest.raises(Exception) as caught:  # noqa: PT011  (what is not equal, or what the run itself refuses)
        judge(spark, ROWS[FOUND_BY[fault]], folder, tmp_path)
    assert type(caught.value).__name__ in ("AssertionError", "DataFramesNotEqualError", "CountMismatchError")
