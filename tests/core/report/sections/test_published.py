"""Counts with noise: what is asked for, how far they lie from the truth, and what the statement says they cost."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from itertools import product

import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.report.sections.published import Published, publish, published_section, wanted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["names_fund=1"], "Did you mean 'names_found'?"),
        (["changed_words"], "publish: 'changed_words' given; valid: metric=epsilon"),
        (["chnged_words=1"], "Did you mean 'changed_words'?"),
        (["changed_words=0"], "valid: an ε above 0"),
        (["changed_words=inf"], "valid: an ε above 0"),
        (["changed_words=x"], "valid: an ε above 0"),
        (["changed_words=1", "changed_words=2"], "named twice"),
    ],
)
def test_what_cannot_be_published_is_refused(options: list[str], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        wanted(options)
    assert said in str(caught.value)


def test_options_are_read() -> None:
    assert wanted(["changed_words=0.5", "drawn_words=2"]) == {"changed_words": 0.5, "drawn_words": 2.0}
    assert wanted([]) == {}


def test_the_noise_is_discrete_laplace_of_the_stated_scale() -> None:
    pytest.importorskip("opendp", reason="the extra [audit] is not installed")
    epsilon, most, count, draws = 0.5, 10, 1000, 4000
    found = [publish("drawn_words", count, epsilon, most, "now") for _ in range(draws)]
    away = [abs(one.value - count) for one in found]
    # P(|X| >= t) = 2·a^t/(1 + a) with a = e^(-ε/N); Hoeffding: off by more than 0.05 with probability 2·e^(-20) of 4,000 draws.
    decay = math.exp(-epsilon / most)
    for reach in (1, 10, 30, 60):
        share = sum(value >= reach for value in away) / draws
        assert abs(share - 2 * decay**reach / (1 + decay)) < 0.05
    assert all(0.5 <= one.epsilon < 0.5000001 and one.most_words == most for one in found)
    beside = sum(value > found[0].accuracy for value in away) / draws
    assert beside < 0.05 + 0.05
    assert len({one.value for one in found}) > 20  # no seed


def neighbours(records: tuple[tuple[int, ...], ...]) -> list[tuple[tuple[int, ...], ...]]:
    """Every dataset that differs in one record: without one, with another in its place, with one more."""
    every = [rows for size in range(3) for rows in product(range(4), repeat=size)]
    found = [records[:i] + records[i + 1 :] for i in range(len(records))]
    found += [(*records[:i], one, *records[i + 1 :]) for i in range(len(records)) for one in every]
    return [*found, *((*records, one) for one in every)]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_capped_counts_of_neighbours_are_as_far_apart_as_the_cap_and_their_laws_lose_epsilon(
    most: int,
) -> None:
    def capped(records: tuple[tuple[int, ...], ...]) -> int:
        return sum(min(sum(rows), most) for rows in records)  # a record of several rows has one cap

    apart = 0
    for size in range(3):
        for records in product([(), (1,), (0, 3), (2, 2)], repeat=size):
            apart = max(apart, *(abs(capped(records) - capped(other)) for other in neighbours(records)))
    assert apart == most
    # P(x) = (1 - a)/(1 + a)·a^|x - S| with a = e^(-ε/N), here e^ε = 2 to the power of N: exact fractions.
    decay = Fraction(1, 2)
    law = {x: (1 - decay) / (1 + decay) * decay ** abs(x) for x in range(-40, 41)}
    ratios = [law[x] / law[x - shift] for shift in range(apart + 1) for x in range(-20, 21)]
    assert max(ratios) == 2**most  # e^ε, attained and not passed
    assert min(ratios) == Fraction(1, 2**most)


def test_a_count_of_names_has_the_stated_noise() -> None:
    pytest.importorskip("opendp", reason="the extra [audit] is not installed")
    found = [publish("names_kept", 50, 1.0, 5, "now") for _ in range(2000)]
    decay = math.exp(-1 / 5)
    for reach in (1, 5, 12):
        share = sum(abs(one.value - 50) >= reach for one in found) / len(found)
        assert abs(share - 2 * decay**reach / (1 + decay)) < 0.07  # Hoeffding: 2·e^(-19)
    assert {(one.unit, one.most_words, one.is_capped) for one in found} == {("a record", 5, True)}
    with pytest.raises(SettingsError, match="most_names: 0 given"):
        publish("names_kept", 5, 1.0, 0, "now")


def test_the_statement_says_that_names_are_capped() -> None:
    names = Published("names_kept", 7, 0.5, 10, 60.2, "now")
    _, *sentences = published_section([names])
    assert (
        "About 7 words of names that public lists find, and that are in the table as they were (names_kept)"
        in sentences[0]
    )
    assert (
        "ε = 0.5 for a record (sensitivity 10: at most 10 words of names of each record count" in sentences[0]
    )
    assert sentences[-1].startswith("Together ε = 0.5 for a record, on top")
    assert "published once" in sentences[-1]
    assert "spends its ε again" not in sentences[-1]
    both = published_section([names, Published("changed_words", 1, 0.25, 100, 1.0, "now")])
    assert both[-1].startswith("Together ε = 0.75 for a record of at most 100 words,")
    assert "published once" in both[-1]
    assert "spends its ε again" in both[-1]


def test_a_record_has_some_word() -> None:
    with pytest.raises(SettingsError, match="most_words: 0 given"):
        publish("drawn_words", 5, 1.0, 0, "now")


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(SettingsError, match=r"pip install 'dptext-spark\[audit\]'"):
        publish("drawn_words", 5, 1.0, 10, "now")


def test_the_statement_says_unit_sensitivity_and_total() -> None:
    one = Published("changed_words", 1234, 0.5, 100, 600.2, "now")
    two = Published("drawn_words", -3, 0.25, 50, 1199.0, "now")
    heading, *sentences = published_section([one, two])
    assert heading == "What was published with noise"
    assert "About 1,234 words that are not as before" in sentences[0]
    assert "ε = 0.5 for a record" in sentences[0]
    assert "at most 100 words (sensitivity 100" in sentences[0]
    assert sentences[-1].startswith("Together ε = 0.75 for a record of at most 50 words,")
    assert "spends its ε again" in sentences[-1]
