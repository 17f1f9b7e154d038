"""Figures over a lexicon: against plain loops over laws and draws."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dptext_spark.audit.deniability import STANDARD, check_epsilons, measure
from dptext_spark.audit.word_figures import DistinctOutputs, SmallestSet, StayRate
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC, CusText, Diffractor, Sampler, SanText
from tests.core.names import scattered

WORDS = 90
EVERY = np.arange(WORDS, dtype=np.int32)


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(WORDS, 4, 5)


def plain(sampler: Sampler, word: int) -> tuple[float, int, float]:
    """N_w, S_w(0.05) and S_w[100] of one word, from its law."""
    law = sampler.law(word)
    assert law is not None
    descending = sorted(law.probability.tolist(), reverse=True)
    size = next(s for s in range(1, len(descending) + 1) if math.fsum(descending[:s]) >= 0.95 - 1e-12)
    unchanged = dict(zip(law.ids.tolist(), law.probability.tolist(), strict=True)).get(word, 0.0)
    return unchanged, size, math.fsum(1 - (1 - p) ** 100 for p in descending)


@pytest.mark.parametrize(
    "mechanism",
    [CusText(k=7, epsilon=3.0), SanText(epsilon=2.0), SanText(sensitive=0.3, p=1.0), Diffractor(lists=2)],
    ids=["custext", "santext", "santext+", "diffractor"],
)
def test_a_lexicon_is_measured_as_word_by_word(mechanism: CusText, lexicon: Lexicon) -> None:
    sampler = mechanism.compile(lexicon)
    told: list[tuple[int, int]] = []
    figures = (StayRate(), SmallestSet(), DistinctOutputs(100))
    found = measure(sampler, EVERY, WORDS, figures, progress=lambda *of: told.append(of))
    assert told[-1] == (WORDS, WORDS)
    wanted = [plain(sampler, word) for word in range(WORDS)]
    for number, one in enumerate(found):
        assert (one.exact, one.draws, one.confidence) == (True, None, None)
        assert one.words.tolist() == list(range(WORDS))
        assert one.of.values == pytest.approx([row[number] for row in wanted], rel=1e-9, abs=1e-12)
    worst = sorted(range(WORDS), key=lambda w: (-wanted[w][0], w))[:10]
    assert [word for word, _ in found[0].worst()] == worst
    fewest = sorted(range(WORDS), key=lambda w: (wanted[w][1], w))[:3]
    assert [word for word, _ in found[1].worst(3)] == fewest
    shown = json.loads(json.dumps([one.as_dict() for one in found], allow_nan=False))
    assert [one["name"] for one in shown] == ["N_w", "S_w", "S_w[100]"]
    assert all(sum(one["histogram"]["counts"]) == WORDS == one["words_in_lexicon"] for one in shown)
    values = sorted(row[0] for row in wanted)
    assert shown[0]["min_entropy"]["approximation"] == "-ln N_w"
    assert shown[0]["min_entropy"]["min"] == pytest.approx(-math.log(values[-1]))
    # A word that never comes out as itself has no logarithm.
    assert (shown[0]["min_entropy"]["max"] is None) == (values[0] == 0.0)
    assert shown[1]["max_entropy"]["max"] == pytest.approx(math.log(max(row[1] for row in wanted)))
    assert "min_entropy" not in shown[2]
    assert "lower" not in shown[0]


def test_the_standard_figures_of_a_mechanism_without_a_law(lexicon: Lexicon) -> None:
    sampler = MVC(epsilon=4.0).compile(lexicon)
    words = np.array([3, 88, 41], np.int32)
    found = measure(sampler, words, WORDS, draws=1000, confidence=0.999)
    assert [one.figure.name for one in found] == ["N_w", "S_w", "S_w[100]", "S_w[1000]"]
    for one in found:
        assert (one.exact, one.draws, one.confidence) == (False, 1000, 0.999)
        assert (one.of.lower <= one.of.values).all()
        assert (one.of.values <= one.of.upper).all()
        shown = one.as_dict()
        assert shown["estimate"]
        assert not shown["exact"]
        assert shown["lower"]["max"] <= shown["max"] <= shown["upper"]["max"]
    # All words at once: each one's bounds are wider than at 0.999 alone.
    alone = measure(sampler, words[:1], WORDS, STANDARD[:1], draws=1000, confidence=0.999)
    assert alone[0].of.upper[0] < found[0].of.upper[0]
    assert alone[0].of.values[0] == found[0].of.values[0]


def test_it_says_whether_all_words_were_looked_at(lexicon: Lexicon) -> None:
    lawless = MVC(epsilon=3.0).compile(lexicon)
    (every,) = measure(lawless, EVERY, WORDS, STANDARD[:1], draws=5)
    (some,) = measure(lawless, EVERY[:3], WORDS, STANDARD[:1], draws=5)
    assert every.as_dict()["words_chosen"] == "every word of the lexicon"
    assert some.as_dict()["words_chosen"] == "the named words"


@pytest.mark.parametrize("grid", [[], [1.0, 1.0], [2.0, 1.0], [-1.0], [math.nan], [math.inf], ["1"], [True]])
def test_a_grid_that_is_none(grid: list[float]) -> None:
    with pytest.raises(SettingsError, match=r"^epsilons: .* is not valid"):
        check_epsilons("epsilons", grid)


def test_what_cannot_be_measured(lexicon: Lexicon) -> None:
    sampler = MVC(epsilon=3.0).compile(lexicon)
    for field, many, more in (("draws: 999", 2, {"draws": 999}), ("words: none given", 0, {})):
        with pytest.raises(SettingsError, match=f"^{field}"):
            measure(sampler, np.arange(many, dtype=np.int32), WORDS, **more)
