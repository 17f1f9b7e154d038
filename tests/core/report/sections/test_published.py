"""Counts with noise: what is asked for, how far they lie from the truth, and what the statement says they cost."""

from __future__ import annotations

import math
import sys

import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.report.sections.published import Published, publish, published_section, wanted


@pytest.mark.parametrize(
    ("options", "said"),
    [
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
