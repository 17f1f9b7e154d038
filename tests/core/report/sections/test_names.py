"""Names in a report: how they were looked for is for all to see, how many there were only for those inside, or with noise."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")


from dptext_spark.report.blocks import Listed, Section, Table, Text
from dptext_spark.report.facts import ReportFacts, gathered
from dptext_spark.report.page import page
from dptext_spark.report.sections.model_figures import Model
from dptext_spark.report.sections.names import NOT_LOOKED_FOR, names, tile
from tests.core.report.accounts import METRICS, row, small_model

LISTS = {
    "mask": [{"file": "/lists/staff.txt", "entries": 1234, "digest": "ab"}, {"column": "customer"}],
    "keep": [{"table": "crm.products", "column": "name", "entries": 5, "digest": "cd"}],
}
COUNTS: list[tuple[str | None, str, float | None]] = [
    (None, "persons_found", 1205.0), (None, "names_masked", 31.0), (None, "audit_names_kept", 0.0213),
    ("body", "audit_names_kept", 0.99),
]  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Model:
    return small_model(words=60)


def facts_of(model: Model, policy: dict[str, Any] | None = None, **more: Any) -> ReportFacts:
    record = row(model)
    settings = json.loads(record.config)
    settings["policy"] |= policy or {}
    return gathered(replace(record, config=json.dumps(settings)), model=None, missing="x", **more)


def said(section: Section) -> str:
    found: list[str] = []
    for block in section.blocks:
        match block:
            case Text(text):
                found.append(text)
            case Listed(heading, sentences):
                found += [heading, *sentences]
            case Table():
                found += [" | ".join(cells) for cells in (block.head, *block.rows)]
    return "\n".join(found)


def test_a_run_that_looks_for_none_says_so(model: Model) -> None:
    facts = facts_of(model)
    (found,) = tile(facts)
    assert (found.figure, found.said) == ("not looked for", NOT_LOOKED_FOR)
    assert said(names(facts)).startswith("The run looked for no names")
    assert not names(facts).restricted


def test_it_says_which_lists_and_models_looked(model: Model) -> None:
    search = {
        "lists": True,
        "person": "pseudonym",
        "location": "keep",
        "model": "some-package",
        "threshold": 0.25,
    }
    facts = facts_of(model, {"names": search, **LISTS})
    (found,) = tile(facts)
    assert found.figure == "looked for"
    assert found.said.startswith("by public lists (version 1), a classifier, own lists; no guarantee")
    text = said(names(facts))
    for line in (
        "public lists and rules | version 1: given names", "classifier | some-package, from a score of 0.25 on",
        "names of persons | replaced by pseudonyms", "names of places | not looked for",
        "list (policy.mask) | file /lists/staff.txt, 1,234 entries; replaced by [NAME]",
        "list (policy.mask) | column customer of the input, of each row; replaced by [NAME]",
        "list (policy.keep) | column name of crm.products, 5 entries; stay in clear",
    ):  # fmt: skip
        assert line in text
    named = {"kind": "person", "replace": "pseudonym", "version": "1"}
    facts = facts_of(model, {"mask": [one | named for one in LISTS["mask"]]}, metrics=[*METRICS, *COUNTS])
    text = said(names(facts))
    for line in (
        "list (policy.mask) | file /lists/staff.txt, 1,234 entries; names of kind person, replaced by pseudonyms of the public "
        "lists (version 1)",
        "column customer of the input, of each row; names of kind person, replaced by pseudonyms",
        "31 masked or replaced by pseudonyms, 0 kept in clear",
    ):
        assert line in text
    masked = facts_of(model, {"names": {"lists": True}})
    assert "names of persons | replaced by [PERSON]" in said(names(masked))


def test_counts_are_for_those_inside(model: Model) -> None:
    policy = {"names": {"lists": True}}
    outside, inside = facts_of(model, policy), facts_of(model, policy, metrics=[*METRICS, *COUNTS])
    assert "--internal" in said(names(outside))
    assert names(inside).restricted
    text = said(names(inside))
    for line in (
        "1,205 of persons, 0 of places replaced; by public lists and rules", "31 masked, 0 kept in clear",
        "words of names that public lists find | 2.1",
    ):  # fmt: skip
        assert line in text
    for figure in ("1,205", "31 masked", "2.13"):
        assert figure not in page(outside)


STAYED: list[tuple[str | None, str, float | None]] = [
    (None, f"{kind}{what}", value)
    for kind, counts in {
        "person_words": (1500, 1497, 3),
        "listed_words": (40, 0, 40),
    }.items()
    for what, value in zip(
        ("", "_replaced", "_kept", "_kept_share"), (*counts, counts[2] / counts[0]), strict=True
    )
]


def test_what_stayed_is_for_those_inside(model: Model) -> None:
    policy = {"names": {"lists": True}}
    outside, inside = facts_of(model, policy), facts_of(model, policy, metrics=[*METRICS, *STAYED])
    (shown,), (hidden,) = tile(inside), tile(outside)
    assert shown.figure == "43 of 1,540 words"
    assert shown.said.startswith(
        "of names found stayed; looked for by public lists (version 1); no guarantee"
    )
    assert hidden.figure == "looked for"
    text = said(names(inside))
    for line in (
        "By public lists (version 1): what they missed", "names of persons | 1,500 words, 1,497 replaced, 3 stayed (0.2",
        "entries of lists | 40 words, 0 replaced, 40 stayed (100",
    ):  # fmt: skip
        assert line in text
    assert (
        text.count("names of places") == 1
    )  # how they are replaced: none was found, and no figure says that none stayed
    for figure in ("1,540", "1,497"):
        assert figure not in page(outside)


def test_where_nothing_looked_there_is_no_count_of_names_that_stayed(model: Model) -> None:
    facts = facts_of(model, metrics=METRICS)
    (found,) = tile(facts)
    assert (found.figure, found.said) == ("not looked for", NOT_LOOKED_FOR)
    text = said(names(facts))
    assert "entries of lists" not in text
