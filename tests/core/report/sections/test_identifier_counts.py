"""Identifiers by type, in the summary and the report of those who may see figures of the private text."""

from __future__ import annotations

from dataclasses import replace

from dptext_spark.disclosure.facts import Restricted
from dptext_spark.report.sections.names import listed_names
from dptext_spark.report.sections.run import by_type, identifiers_by_type, in_words
from dptext_spark.report.terminal.summary import summary
from dptext_spark.text.names.search import ListSource, ListSources
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


def test_names_of_lists_are_counted_and_what_is_missing_is_none() -> None:
    assert listed_names({"names_masked": 1205.0, "names_kept": 2.0}) == "1,205 masked, 2 kept in clear"
    assert listed_names({"words": 3.0}) == "0 masked, 0 kept in clear"


def test_the_summary_counts_names_where_lists_were_given_and_only_on_request() -> None:
    listing = replace(
        FACTS,
        config=FACTS.config.model_copy(update={"lists": ListSources(mask=(ListSource(file="/names.txt"),))}),
        restricted=Restricted({**FIGURES, "names_masked": 7.0}),
    )
    said = "names                  7 masked, 0 kept in clear; by lists, no guarantee"
    assert said in summary(listing, internal=True)
    assert " masked" not in summary(listing)
    assert " masked" not in summary(FACTS, internal=True)
