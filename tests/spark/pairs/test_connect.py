"""The rows of the table that a session of Spark Connect runs, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyspark
import pytest

from tests.connect.conftest import Server, run_client, server  # noqa: F401  (a fixture)
from tests.spark.pairs.table import REFUSED, ROWS, marked

ON_CONNECT = {name: entry for name, entry in ROWS.items() if "connect" in entry.features}
Found = dict[str, tuple[str, float]]


@pytest.fixture(scope="module")
def judged(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Found]:  # noqa: F811
    """Give what is wrong with the quick rows, or with the others; each of the two is run once, where it is asked for."""

    @cache
    def of(quick: bool) -> Found:
        folder = tmp_path_factory.mktemp("connected")
        (folder / "names.json").write_text(
            json.dumps([name for name in ON_CONNECT if ON_CONNECT[name].quick == quick])
        )
        done = run_client("tests.spark.pairs.connect_client", server, folder)
        results = Path(folder / "found.json")
        assert results.exists(), f"{done.stderr[-4000:]}\n{server.printed()[-2000:]}"
        return json.loads(results.read_text("utf-8"))

    return of


@pytest.mark.skipif(pyspark.__version__.startswith("4.0."), reason="its client brings no counts of a write")
@pytest.mark.parametrize("name", marked(ON_CONNECT))
def test_it_holds(judged: Callable[[bool], Found], name: str) -> None:
    assert judged(ON_CONNECT[name].quick)[name][0] == ""


def test_a_stream_is_refused(judged: Callable[[bool], Found]) -> None:
    assert judged(True)["a stream on Connect"][0] == REFUSED["a stream on Connect"].field
