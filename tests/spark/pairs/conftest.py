"""What all rows of the table read, written once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.pairs.oracle import prepared, write_input
from tests.spark.pairs.table import tagged_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def folder(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lexicon, the lists, the key and the input."""
    place = tmp_path_factory.mktemp("pairs")
    prepared(place)
    write_input(session, place / "in", tagged_rows(), 3)
    return place
