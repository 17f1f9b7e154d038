"""The section of a report on what the text is still good for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dptext_spark.report.blocks import Section, Text
from dptext_spark.report.sections.measured import measured


def utility(facts: Mapping[str, Any]) -> Section:
    """Write what the text is still good for, as far as it was measured."""
    found = facts["utility"]
    if not found:
        return Section("utility", "Utility", (Text(facts["utility_missing"], quiet=True),))
    blocks = [block for place, one in enumerate(found) for block in measured(one, f"use{place}")]
    return Section("utility", "Utility", tuple(blocks), restricted=any(one["restricted"] for one in found))
