"""The disclosure statement of a run alone, as a person or a program wants it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dptext_spark.disclosure.statement import Statement

STATEMENTS = ("md", "html", "json")


def rendered(statement: Mapping[str, Any], form: str) -> str:
    """Return a statement, as :meth:`Statement.as_dict` wrote it, as `md`, `html` or `json`."""
    if form == "json":
        return json.dumps(dict(statement), indent=2, ensure_ascii=False)
    found = Statement.of(statement)
    return found.html() if form == "html" else found.markdown().rstrip()
