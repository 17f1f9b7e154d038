"""Which rows of a micro-batch go on, where nothing is read: the decision alone. No session."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from dptext_spark.model.target_checks import Commit
from dptext_spark.spark import stream


@pytest.mark.parametrize(("handling", "dropped"), [("refuse", 0), ("accept", None)])
def test_a_micro_batch_that_committed_says_the_same_of_duplicates_as_one_that_is_new(
    handling: str, dropped: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_refuse_null", lambda df, name, field: (3, 3))
    config = SimpleNamespace(row_key="id", record_key=None, stream=SimpleNamespace(duplicates=handling))
    setup: Any = SimpleNamespace(config=config, df="rows", run_id="s.0", kept=["id"])
    committed = [Commit(0, metadata=json.dumps({"dptext_run": "s.0"}))]
    for commits in ([], committed):
        assert stream.deduplicate(setup, commits).dropped == dropped
