"""The examples of the public names run; those that need Spark are run in tests/spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.core.examples import DOORS, HEADING, documented, failures

SETTINGS = """
input: {path: /data/reviews}
columns: [body]
row_key: id
mechanism: {name: custext, epsilon: 2.0}
output: {path: /data/reviews_sanitized}
"""


@pytest.mark.parametrize("door", DOORS)
def test_each_public_name_has_an_example(door: str) -> None:
    if door == "dps":
        pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
    without = [name for name, text in documented(door) if not HEADING.search(text) or ">>> " not in text]
    assert without == []


@pytest.mark.long
def test_the_examples_without_spark_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reviews.yaml").write_text(SETTINGS, encoding="utf-8")
    names: dict[str, Any] = {}  # the first example of each door imports it
    assert failures("dp", names) == ""
    assert failures("audit", names) == ""
