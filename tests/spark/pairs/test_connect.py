"""The rows of the table that a session of Spark Connect runs, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.connect.conftest import Server, run_client, server  # noqa: F401  (a fixture)
from tests.spark.pairs.table import REFUSED, ROWS

pytestmark = pytest.mark.long
ON_CONNECT = [name for name, entry in ROWS.items() if "connect" in entry.features]


@pytest.fixture(scope="module")
def found(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, float]]:  # noqa: F811
    folder = tmp_path_factory.mktemp("connected")
    done = run_client("tests.spark.pairs.connect_client", server, folder)
    results = Path(folder / "found.json")
    assert results.exists(), f"{done.stderr[-4000:]}\n{server.printed()[-2000:]}"
    return json.loads(results.read_text("utf-8"))


@pytest.mark.parametrize("name", ON_CONNECT)
def test_it_holds(found: dict[str, tuple[str, float]], name: str) -> None:
    assert found[name][0] == ""


def test_a_stream_is_refused(found: dict[str, tuple[str, float]]) -> None:
    assert found["a stream on Connect"][0] == REFUSED["a stream on Connect"].field
