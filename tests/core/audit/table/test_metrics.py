"""The figures of a written table, from counts."""

from __future__ import annotations

from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.table.metrics import (
    COUNTS,
    listed_figures,
    row_figures,
    text_figures,
)


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
    assert {name for name, value in found.items() if value is None} == {
        name for name in found if "share" in name or "kept" in name
    }


def test_a_list_that_is_given() -> None:
    assert values(listed_figures({"listed": 4, "listed_same": 1})) == {"listed_found": 4, "listed_kept": 0.25}
    assert values(listed_figures({"listed": 0, "listed_same": 0})) == {"listed_found": 0, "listed_kept": None}


def test_rows() -> None:
    assert values(row_figures(rows=8, in_table=9, in_source=10, unchanged=2, with_words=5)) == {
        "rows": 8, "missing_in_table": 2, "missing_in_source": 1, "unchanged_rows": 2, "unchanged_rows_share": 0.4,
    }  # fmt: skip
