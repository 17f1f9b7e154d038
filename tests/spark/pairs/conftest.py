"""What all rows of the table read, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.pairs.oracle import prepared, write_input
from tests.spark.pairs.table import tagged_rows


@pytest.fixture(scope="session")
def folder(session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pairs")
    prepared(place)
    write_input(session, place / "in", tagged_rows(), 3)
    return place
