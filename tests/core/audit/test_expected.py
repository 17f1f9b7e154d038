"""What a law alone lets expect to change, against exact laws read word by word, many draws, and every choice of levels."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dptext_spark.audit import deniability
from dptext_spark.audit.deniability import ENDS, expected_change
from dptext_spark.audit.word_figures import outcomes
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.budget import Budget, BudgetSelector
from dptext_spark.importance.levels import Importance, Level
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import Prior
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import MECHANISMS, CusText, Laplace, SanText
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.samplers.table import TableSampler, TableSummary
from dptext_spark.model.compile import compile
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import drawn_words
from tests.core.mechanisms.fluent_toys import with_pairs
from tests.core.names import beginning

SLACK = 1e-9  # sums of floats, in another order
LAW = CusText(epsilon=3.0, k=4)
LEVELS = (Level(30, epsilon=0.5), Level(30), Level(None, epsilon=9.0))
PROVIDERS = ("random", "column")


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return beginning(Lexicon.default(), 120)


@pytest.fixture(scope="module")
def few() -> Lexicon:
    return beginning(Lexicon.default(), 6)


def walked(shares: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Sort (change, weight), and walk up to 5 % and 95 % of the weight: (low, high, mean)."""
    whole, ends = sum(weight for _, weight in shares), []
    for end in ENDS:
        passed = 0.0
        for change, weight in sorted(shares):
            passed += weight / whole
            if passed >= end:
                ends.append(change)
                break
    return ends[0], ends[1], sum(change * weight for change, weight in shares) / whole


def changes(model: Privatizer, sampler: Sampler) -> list[float]:
    """1 - P(w|w) of each drawn word, read off its law."""
    found = []
    for word in np.flatnonzero(drawn_words(model.engine)[: len(model.vocabulary)]).tolist():
        law = sampler.law(word)
        assert law is not None
        weight = dict(zip(law.ids.tolist(), law.weight.tolist(), strict=True))
        found.append(1.0 - weight.get(word, 0) / sum(weight.values()))
    return found


def prior_of(model: Privatizer) -> list[float]:
    drawn = drawn_words(model.engine)[: len(model.vocabulary)]
    return [float(one) for one in model.prior.words[drawn]]


def by_hand(model: Privatizer) -> tuple[float, float]:
    low, high, mean = walked(list(zip(changes(model, model.sampler), prior_of(model), strict=True)))
    return min(low, mean), max(high, mean)


@pytest.mark.parametrize("stop_words", ["keep", "draw"])
@pytest.mark.parametrize("name", ["custext", "santext", "tem", "diffractor"])
def test_it_is_that_of_the_laws(lexicon: Lexicon, name: str, stop_words: Any) -> None:
    mechanism = MECHANISMS[name](epsilon=3.0)
    model = Privatizer(lexicon, mechanism.compile(lexicon), Policy(stop_words=stop_words))
    assert expected_change(model) == pytest.approx(by_hand(model), rel=1e-6)


def test_a_mean_beyond_the_quantiles_is_in_the_band() -> None:
    """Only the rarest of four words changes, half of the time; it is 4 % of all, and the mean lies above both quantiles."""
    outputs = np.array([[0, 0], [1, 1], [2, 2], [3, 0]], np.int32)
    sampler = TableSampler.of(outputs, np.ones((4, 2)) / 2, Guarantee("epsilon_dp", 1.0), TableSummary())
    public = Prior("counts", np.array([0.5, 0.3, 0.16, 0.04]))
    words = Vocabulary.of(["aa", "bb", "cc", "dd"])
    model = Privatizer(words, sampler, Policy(stop_words="draw"), public=public)
    assert expected_change(model) == (0.0, pytest.approx(0.02))


@pytest.mark.parametrize("stop_words", ["keep", "draw"])
@pytest.mark.parametrize("consistency", ["token", "record"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_band_holds_at_levels(lexicon: Lexicon, provider: Any, consistency: Any, stop_words: Any) -> None:
    """Each word has one of the levels, by itself: all choices where there are few words, and many where there are more."""
    chosen = Importance(provider=provider, levels=LEVELS, weights=("w",) if provider == "column" else ())
    random = np.random.default_rng(1)
    for size in (6, 40):
        some = beginning(lexicon, size)
        model = compile(LAW, some, Policy(stop_words=stop_words), consistency, chosen)
        drawn = prior_of(model)
        if not drawn:
            assert expected_change(model) == deniability.NOT_DRAWN
            continue
        by_level = np.array([changes(model, sampler) for sampler in model.samplers])
        low, high = expected_change(model)
        every: Any = itertools.product(range(len(LEVELS)), repeat=len(drawn))
        if size > 6:
            many = random.integers(0, len(LEVELS), (300, len(drawn)))
            every = [*many, by_level.argmin(0), by_level.argmax(0)]
        found = []
        for levels in every:
            shares = list(zip(by_level[list(levels), range(len(drawn))].tolist(), drawn, strict=True))
            found.append(walked(shares))
        assert low - SLACK <= min(map(min, found))
        assert max(map(max, found)) <= high + SLACK
        # And no further than that: some choice of levels has each end.
        assert low == pytest.approx(min(map(min, found)), abs=1e-6)
        assert high == pytest.approx(max(map(max, found)), abs=1e-6)


@pytest.mark.parametrize("stop_words", ["keep", "draw"])
@pytest.mark.parametrize(
    ("provider", "consistency"), [("column", "token"), *((p, "record") for p in PROVIDERS)]
)
def test_where_importance_leaves_words_in_clear_the_band_holds_for_any_choice(
    lexicon: Lexicon, provider: Any, consistency: Any, stop_words: Any
) -> None:
    """Whichever words are drawn, and however often: a text of one word alone has the ends."""
    weights = ("w",) if provider == "column" else ()
    for share in ({"percent": 20}, {"levels": (Level(10, epsilon=0.5), Level(20, epsilon=9.0))}):
        chosen = Importance(provider=provider, weights=weights, **share)
        model = compile(LAW, lexicon, Policy(stop_words=stop_words), consistency, chosen)
        single = [one for sampler in model.samplers for one in changes(model, sampler)]
        assert expected_change(model) == pytest.approx((min(single), max(single)), abs=1e-6)


def test_places_that_no_word_decides_are_a_sample_like_any(lexicon: Lexicon) -> None:
    whole, some = expected_change(compile(LAW, lexicon)), Importance(provider="random", percent=20)
    assert expected_change(compile(LAW, lexicon, importance=some)) == whole
    assert expected_change(compile(LAW, lexicon, None, "record", some)) != whole


@pytest.mark.parametrize("distance", [0.1, 1.0, 4.0])
def test_of_two_words_on_a_line_the_band_of_noise_holds_the_formula(distance: float) -> None:
    """Laplace noise of scale 2C/ε = 1 leaves the half-line of a word with probability exp(-distance/2)/2; vectors are clipped."""
    vectors = np.array([[0.0], [distance]], np.float32)
    lexicon = Lexicon(Vocabulary.of(["aa", "bb"]), vectors)
    model = Privatizer(lexicon, Laplace(epsilon=2.0).compile(lexicon), Policy(stop_words="draw"))
    exact = math.exp(-min(distance, 1.0) / 2) / 2
    low, high = expected_change(model)
    assert low <= exact <= high
    assert high - low < 0.4


@pytest.mark.parametrize("stop_words", ["keep", "draw"])
@pytest.mark.parametrize("epsilon", [5.0, 40.0, 100.0])
def test_the_band_of_noise_holds_what_draws_show(lexicon: Lexicon, epsilon: float, stop_words: Any) -> None:
    model = Privatizer(lexicon, Laplace(epsilon=epsilon).compile(lexicon), Policy(stop_words=stop_words))
    words = np.flatnonzero(drawn_words(model.engine)[: len(lexicon)]).astype(np.int32)
    shown = outcomes(model.sampler, words, 500, bytes(range(32)))
    rows = [shown.row(place) for place in range(len(words))]
    found = [1.0 - float(share[ids == word].sum()) for (ids, share), word in zip(rows, words, strict=True)]
    low, high = expected_change(model)
    error = 4 * 0.5 / math.sqrt(500)
    least, most, mean = walked(list(zip(found, prior_of(model), strict=True)))
    assert low - error <= min(least, mean)
    assert max(most, mean) <= high + error
    assert expected_change(model) == (low, high)  # its draws are fixed


def test_where_a_law_takes_whole_rows_some_words_stand_for_all(lexicon: Lexicon) -> None:
    model = compile(SanText(epsilon=3.0, remap="bayes"), lexicon)
    assert model.sampler.before is not None
    low, high = expected_change(model)
    least, most = by_hand(model)
    single = changes(model, model.sampler)
    assert min(single) - SLACK <= low <= least + SLACK
    assert most - SLACK <= high <= max(single) + SLACK


def test_noise_at_one_level_of_several(lexicon: Lexicon) -> None:
    levels = (Level(50), Level(None, epsilon=100.0))
    both = compile(Laplace(epsilon=5.0), lexicon, importance=Importance(provider="random", levels=levels))
    alone = [expected_change(Privatizer(lexicon, sampler)) for sampler in both.samplers]
    low, high = expected_change(both)
    assert low <= min(map(min, alone))
    assert max(map(max, alone)) <= high
    assert low < high


def test_without_a_law_a_reason_is(lexicon: Lexicon, few: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = Laplace(epsilon=20.0)
    law = CusText(epsilon=2.0, k=3).compile(few)
    of_record = Privatizer(few, law, selector=BudgetSelector(Budget(record=1.0), np.array([9])))
    of_context = compile(CusText(epsilon=2.0, k=3, fluent=True), with_pairs(few))
    not_all = compile(noise, lexicon, importance=Importance(provider="idf", percent=30))
    reasons = ((of_record, "OF_RECORD"), (of_context, "OF_CONTEXT"), (not_all, "NOT_ALL"))
    for model, reason in reasons:
        assert expected_change(model) == getattr(deniability, reason)
    monkeypatch.setattr(deniability, "WORK", 1 << 16)
    assert expected_change(compile(noise, lexicon)) == deniability.NOT_QUICK
    quick = compile(CusText(epsilon=2.0), lexicon)
    assert expected_change(quick) == pytest.approx(by_hand(quick), rel=1e-6)
