"""The figures of a written table, from counts, with limits on them; and names of a source that stand in it as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.audit.table_audit import (
    COUNTS,
    MEANING,
    NAME_COUNTS,
    FoundNames,
    kept_words,
    listed_counts,
    listed_figures,
    name_counts,
    row_figures,
    text_figures,
)
from dptext_spark.config.requirements import Metric, judge, named_requirement
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.randomness import RunKey, hash_keys
from dptext_spark.text.engine import Engine
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_table import NameTable, WordList
from dptext_spark.text.pair_tokens import pair
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import Words, words_of
from dptext_spark.text.word_table import WordTable


def values(figures: list[Metric]) -> dict[str, float | None]:
    return {figure.name: figure.value for figure in figures}


def test_shares_and_what_they_are_of() -> None:
    counts = {
        "rows": 10, "rows_not_aligned": 2, "words": 80, "words_not_aligned": 20, "same": 36, "drawn": 50, "drawn_same": 10,
        "unknown": 8, "unknown_same": 2, "numbers": 4, "numbers_same": 1,
        "persons": 12, "persons_same": 3, "persons_whole": 8, "persons_whole_same": 1,
        "locations": 4, "locations_same": 1, "locations_whole": 4, "locations_whole_same": 0, "listed": 4, "listed_same": 1,
    }  # fmt: skip
    assert set(counts) == set(COUNTS)
    assert values(text_figures(counts)) == {
        "rows_not_aligned": 2, "words": 80, "aligned_share": 0.8, "original_share": 0.2, "original_share_all": 0.45,
        "changed_share": 0.55, "oov_share": 0.1, "oov_kept_share": 0.25, "numbers_kept_share": 0.25,
        "names_found": 16, "names_kept": 0.25, "persons_kept": 0.25, "persons_kept_whole": 0.125,
        "locations_kept": 0.25, "locations_kept_whole": 0.0,
    }  # fmt: skip


def test_shares_of_nothing_are_none() -> None:
    found = values(text_figures(dict.fromkeys(COUNTS, 0), column="body"))
    shares = {name for name in found if "share" in name or "kept" in name}
    assert {name for name, value in found.items() if value is None} == shares


def test_a_list_that_is_given() -> None:
    assert values(listed_figures({"listed": 4, "listed_same": 1})) == {"listed_found": 4, "listed_kept": 0.25}
    assert values(listed_figures({"listed": 0, "listed_same": 0})) == {"listed_found": 0, "listed_kept": None}


def test_rows() -> None:
    assert values(row_figures(rows=8, in_table=9, in_source=10, unchanged=2, with_words=5)) == {
        "rows": 8, "missing_in_table": 2, "missing_in_source": 1, "unchanged_rows": 2, "unchanged_rows_share": 0.4,
    }  # fmt: skip


FIGURES = (
    Metric("original_share", 0.5),
    Metric("bayes_success", 0.5, 0.4, 0.6),
    Metric("oov_kept_share", None),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("original_share < 0.5", False),
        ("original_share>=.5", True),
        ("original_share > 0.5", False),
        ("  original_share  <=  5e-1 ", True),
        # An estimate by its bound on the cautious side.
        ("bayes_success >= 0.45", False),
        ("bayes_success >= 0.4", True),
        # What could not be counted.
        ("oov_kept_share >= 0", False),
    ],
)
def test_holds_or_not(text: str, expected: bool) -> None:
    limit = named_requirement(text, MEANING, "this audit")
    assert judge(limit, FIGURES).holds is expected
    assert named_requirement(str(limit), MEANING, "this audit") == limit


@pytest.mark.parametrize(
    "text", ["", "original_share", "original_share 0.5", "original_share == 1", "original_share <= x", "<= 1",
             "original_share <= nan", "original_share <= inf", "N_w max <= 0.5", "orignal_share <= 1"],
)  # fmt: skip
def test_another_form_and_a_figure_that_there_is_not_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^require: ") as refused:
        named_requirement(text, MEANING, "this audit")
    assert ("Did you mean 'original_share'" in str(refused.value)) == text.startswith("orignal")


KEYS = hash_keys(RunKey.insecure(2).derive("audit", length=16))
PLAIN = Policy()
WORDS = Vocabulary.of(["ada", "mary", "john", "london", "paris", "dog", "cat"])


def paired(
    source: list[str | None], table: list[str | None], policy: Policy = PLAIN
) -> tuple[pa.Array, Words, np.ndarray, np.ndarray]:
    """The texts of a source, their words, which are aligned with the table's, and which stand there as they were."""
    engine = Engine(WordTable.build(WORDS, policy.stop_list()), policy)
    texts = pa.array(source, pa.string())
    before, after = (words_of(engine, side, KEYS) for side in (texts, pa.array(table, pa.string())))
    partner = pair(before, after).partner
    same = np.zeros(len(partner), np.bool_)
    at = partner >= 0
    same[at] = (before.form[at] == after.form[partner[at]]).all(axis=1)
    return texts, before, at, same


def counted(
    source: list[str | None],
    table: list[str | None],
    policy: Policy | None = None,
    names: NameMatcher | None = None,
) -> dict[str, int]:
    texts, *pairing = paired(source, table, policy or Policy())
    if names is not None:
        return listed_counts(names, texts, *pairing)
    return {name: value for name, value in name_counts(FoundNames.of(texts), *pairing).items() if value}


SEARCH: Any = {"lists": True}
CASES: list[tuple[str, str, dict[str, int]]] = [
    ("I met Ada Lovelace in London", "I met Ada Lovelace in Paris",
     {"persons": 2, "persons_same": 2, "persons_whole": 1, "persons_whole_same": 1, "locations": 1, "locations_whole": 1}),
    ("I met Ada Lovelace in London", "I met Ada [OOV] in london",
     {"persons": 2, "persons_same": 1, "persons_whole": 1, "locations": 1, "locations_same": 1, "locations_whole": 1,
      "locations_whole_same": 1}),
    ("Dr. van Helsing and Ada", "Dr. van Helsing and Mary",  # "van Helsing" is one part, of two words
     {"persons": 2, "persons_same": 1, "persons_whole": 2, "persons_whole_same": 1}),
    ("Dr. van Helsing and Ada", "Dr. de Helsing and Ada",
     {"persons": 2, "persons_same": 1, "persons_whole": 2, "persons_whole_same": 1}),
    ("Ada Lovelace met", "Ada met", {}),  # it has another number of pieces
    ("no name here", "no dog here", {}),
    ("New York is far", "New York is far",
     {"locations": 1, "locations_same": 1, "locations_whole": 1, "locations_whole_same": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("source", "table", "expected"), CASES)
def test_names_are_counted_by_words_and_as_wholes(source: str, table: str, expected: dict[str, int]) -> None:
    assert counted([source], [table]) == expected


def test_a_batch_is_the_sum_of_its_rows() -> None:
    sources, tables = ([case[i] for case in CASES] for i in range(2))
    total: dict[str, int] = {}
    for _, _, expected in CASES:
        for name, value in expected.items():
            total[name] = total.get(name, 0) + value
    assert counted([*sources, None, ""], [*tables, None, ""]) == total
    assert set(total) <= set(NAME_COUNTS)


def test_what_the_policy_replaces_whole_is_no_kept_name() -> None:
    for names in (SEARCH, SEARCH | {"person": "pseudonym", "location": "pseudonym"}):
        policy = Policy(names=names)
        masked = counted(["I met Ada Lovelace in London"], ["I met [PERSON] in [LOCATION]"], policy)
        assert not any(name.endswith("_same") for name in masked)
    policy = Policy(names=SEARCH)
    found = counted(["I met Ada Lovelace in London"], ["I met [PERSON] in London"], policy)
    assert found == {
        "persons": 2, "persons_whole": 1, "locations": 1, "locations_same": 1, "locations_whole": 1, "locations_whole_same": 1,
    }  # fmt: skip


def test_no_names_at_all() -> None:
    assert counted([], []) == counted([None], [None]) == {}


@pytest.mark.long
def test_entries_of_a_list_are_counted_as_wholes() -> None:
    entries = WordList.of("names", [b"Acme Dog", b"cat"])
    names = NameMatcher(NameTable.of([entries]))
    sources = ["the Acme Dog barks", "acme dog and cat", "A. Dog, cat", None, "the Acme Dog barks"]
    tables = ["the Acme cat barks", "acme dog and dog", "A. Dog, cat", None, "the dog"]
    # The last row is not aligned; of the others three of five stay.
    assert counted(sources, tables, names=names) == {"listed": 5, "listed_same": 3}
    assert counted(["no"], ["no"], names=names) == {"listed": 0, "listed_same": 0}


def test_words_that_stayed_are_those_of_names() -> None:
    sources = [
        "met Ada Lovelace in London",
        "so ada met ZORBLAX. Mary-Ann",
        "the Ada",
        "Dr. van Helsing",
        None,
    ]
    tables = ["met Ada cat in Paris", "so ada met zorblax. Mary-Ann", "the", "Dr. van Helsing", None]
    texts, *pairing = paired(sources, tables)
    words, n = kept_words(FoundNames.of(texts), *pairing)
    # "ada" is found in lower case, "Mary" though it begins a sentence; "van Helsing" is one part.
    assert dict(zip(words.to_pylist(), n.to_pylist(), strict=True)) == {
        "ada": 2, "mary": 1, "ann": 1, "van helsing": 1,
    }  # fmt: skip
    texts, *pairing = paired(["the dog"], ["the dog"])
    none, _ = kept_words(FoundNames.of(texts), *pairing)
    assert none.to_pylist() == []
