"""Identifiers by type, in the summary and the report of those who may see figures of the private text."""

from __future__ import annotations

from dataclasses import replace

from dptext_spark.disclosure.facts import Restricted
from dptext_spark.report.sections.run import by_type, identifiers_by_type, in_words
from dptext_spark.report.terminal.summary import summary
from tests.core.report.terminal.test_summary import FACTS, FIGURES

COUNTS = {
    "words": 10.0, "identifiers": 1_205.0, "identifiers_email": 5.0, "identifiers_ip": 0.0, "identifiers_card": None,
    "identifiers_phone": 1_200.0,
}  # fmt: skip


def test_types_that_occurred_most_frequent_first() -> None:
    assert by_type(COUNTS) == [("phone", 1_200), ("email", 5)]
    assert in_words(COUNTS) == "1,205 (phone 1,200, email 5)"
    assert in_words({"identifiers": 0.0}) == "0"
    assert in_words({"words": 3.0}) is None
    assert list(identifiers_by_type({"words": 3.0})) == []
    assert len(list(identifiers_by_type(COUNTS))) == 2


def test_only_those_inside_see_them() -> None:
    facts = replace(FACTS, restricted=Restricted({**FIGURES, **COUNTS}))
    assert "1,205 (phone 1,200, email 5); by rules, no guarantee" in summary(facts, internal=True)
    assert "1,205" not in summary(facts)
