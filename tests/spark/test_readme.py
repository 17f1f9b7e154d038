"""The README's notebook lines run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parents[2] / "README.md"


def test_its_notebook_lines_run(spark, tmp_path: Path) -> None:
    block = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert block is not None
    assert block.group(1).count("/data/reviews") == 1
    df = spark.createDataFrame([(1, "a", "Good morning, my friend")], "id long, customer string, body string")
    df.write.format("delta").save(str(tmp_path / "reviews"))
    names: dict[str, Any] = {}
    exec(compile(block.group(1).replace("/data/reviews", str(tmp_path / "reviews")), "README", "exec"), names)
    rows = names["sanitized"].collect()
    assert names["sanitized"].columns == ["id", "customer", "body"]
    assert len(rows) == 1
    assert ", my " in rows[0]["body"]
