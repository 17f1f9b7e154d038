"""What decides the ε of a record, against brute force over small laws; and that no record passes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from dptext_spark.arrays import F64
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS, CusText, Diffractor, SanText
from dptext_spark.mechanisms.base import TOTAL, Sampler
from dptext_spark.mechanisms.privacy_loss import RecordLoss, record_loss
from dptext_spark.mechanisms.privacy_loss.accountant import (
    ORDERS,
    bounds,
    quarter_power,
    record_bound,
    rounded_up,
)
from dptext_spark.mechanisms.samplers.table import TableSampler, TableSummary
from tests.core.names import beginning

WITHIN = Guarantee("epsilon_dp_within_group", 1.2)
WORDS = 400


@cache
def small() -> Lexicon:
    return beginning(Lexicon.default(), WORDS)


def table(probability: Sequence[Sequence[float]], sets: Sequence[Sequence[int]]) -> TableSampler:
    """Words with stated laws over stated outputs."""
    laws = np.array(probability, np.float64)
    return TableSampler.of(np.array(sets, np.int32), laws, WITHIN, TableSummary())


# Two sets of outputs, three and two words.
LAWS = ((0.5, 0.3, 0.2), (0.3, 0.35, 0.35), (0.4, 0.2, 0.4), (0.6, 0.3, 0.1), (0.45, 0.35, 0.2))
SETS = ((0, 1, 2), (0, 1, 2), (0, 1, 2), (2, 3, 4), (2, 3, 4))


def logs_of(sampler: Sampler, words: int) -> dict[tuple[int, ...], list[F64]]:
    """ln P of the words of each output set, by the integers that are sampled."""
    found: dict[tuple[int, ...], list[F64]] = {}
    for word in range(words):
        law = sampler.law(word)
        logs = np.array([math.log(int(weight)) - math.log(TOTAL) for weight in law.weight])
        found.setdefault(tuple(law.ids.tolist()), []).append(logs)
    return found


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        (table(LAWS, SETS), 5),
        (CusText(epsilon=2.0, k=6).compile(small()), WORDS),
        (CusText(epsilon=1.5, k=8, mapping="conservative", remainder="own").compile(small()), WORDS),
        (CusText(epsilon=1.5, k=6, calibration="exact", mapping="aggressive").compile(small()), WORDS),
    ],
    ids=["stated laws", "balanced", "conservative", "aggressive, tight"],
)
def test_figures_are_those_of_every_pair_of_every_set(sampler: Sampler, words: int) -> None:
    found = record_loss(sampler, words)
    spread, loss, sums = 0.0, 0.0, np.ones(len(ORDERS))
    for laws in logs_of(sampler, words).values():
        for one, other in product(laws, laws):
            ratio, p = one - other, np.exp(one)
            spread, loss = max(spread, ratio.max() - ratio.min()), max(loss, abs(ratio).max())
            sums = np.maximum(sums, (p * np.exp(np.outer(ORDERS, ratio))).sum(axis=1))
    assert spread <= found.spread <= spread + 1e-11
    assert loss <= found.epsilon <= loss + 1e-11
    exact = np.log(sums) / ORDERS
    assert (np.array(found.divergences) >= exact - 1e-12).all()
    assert np.array(found.divergences) == pytest.approx(exact, abs=1e-6)
    assert (found.why, found.by_distance, found.adapts, found.delta) == ("", False, False, 0.0)


def test_the_published_law_has_the_range_that_its_formula_says() -> None:
    found = record_loss(CusText(epsilon=2.0, k=6).compile(small()), WORDS)
    assert found.spread == pytest.approx(2.0, abs=1e-9)
    tight = record_loss(CusText(epsilon=2.0, k=6, calibration="exact").compile(small()), WORDS)
    assert tight.spread > 2.5  # that of the internal ε
    assert tight.epsilon <= 2.0


def test_large_sets_have_a_range_by_a_bound_that_is_not_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = CusText(epsilon=2.0, k=12, mapping="conservative").compile(small())
    exact = record_loss(sampler, WORDS)
    module = "dptext_spark.mechanisms.privacy_loss.log_ratios"
    monkeypatch.setattr(f"{module}.MOST_PAIRS", 0)
    monkeypatch.setattr(f"{module}.MOST_EXACT", 0)
    found = record_loss(sampler, WORDS)
    assert exact.spread <= found.spread + 1e-12 <= 2.0 + 1e-9
    assert found.epsilon == pytest.approx(exact.epsilon, abs=1e-11)
    assert found.divergences == ()


def test_words_that_lead_elsewhere_have_no_figure() -> None:
    class Merged(TableSampler):
        """As where outputs are merged after the draw: the groups are those of the law before."""

        def groups(self) -> Any:
            return np.zeros(len(self.cells), np.int32)

    made = table(LAWS, SETS)
    found = record_loss(Merged(made.cells, made.guarantee), 5)
    assert found.why.startswith("A word can become what another of its output set cannot")
    assert record_bound(found, 3, 1.0) is None


class TestByDistance:
    """R for each unit of distance, and a figure only where a distance is stated."""

    @pytest.mark.parametrize("calibration", ["published", "exact"])
    @pytest.mark.parametrize("form", ["geometric", "tem"])
    def test_along_lists(self, form: str, calibration: str) -> None:
        lexicon = beginning(Lexicon.default(), 40)
        sampler = Diffractor(epsilon=0.7, form=form, calibration=calibration).compile(lexicon)  # type: ignore[arg-type]
        found = record_loss(sampler, 40)
        laws = {word: np.log(sampler.law(word).weight.astype(np.float64)) for word in range(40)}
        worst = 0.0
        for one, other in product(range(40), range(40)):
            places = abs(int(sampler.place[one, 0]) - int(sampler.place[other, 0]))
            if places:
                gap = laws[one] - laws[other]
                worst = max(worst, (gap.max() - gap.min()) / places)
        assert worst <= found.spread <= worst + 1e-6
        assert found.by_distance
        assert record_bound(found, 10, 0.7) is None

    def test_of_several_lists_that_of_one_counts_though_the_average_has_more(self) -> None:
        lexicon = beginning(Lexicon.default(), 40)
        one, three = (
            record_loss(Diffractor(epsilon=0.7, form="tem", lists=lists).compile(lexicon), 40)
            for lists in (1, 3)
        )
        assert one.spread == pytest.approx(three.spread, abs=1e-9)

    def test_over_the_whole_lexicon(self) -> None:
        sampler = SanText(epsilon=3.0, calibration="exact").compile(small())
        found = record_loss(sampler, WORDS)
        assert found.spread == pytest.approx(sampler.summary.internal_epsilon)

    def test_a_word_that_is_revealed_has_none_and_says_why(self) -> None:
        for p, why in ((0.2, "revealed"), (1.0, "")):
            found = record_loss(SanText(epsilon=3.0, sensitive=0.5, p=p).compile(small()), WORDS)
            assert (why in found.why) is True
            assert bool(found.why) is bool(why)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_mechanism_says_whether_a_record_has_a_figure(name: str) -> None:
    epsilon = {"truncated_gumbel": 120.0, "mvc": 12.0}.get(name, 2.0)
    more = {"m": 8} if name == "projection" else {}
    sampler = MECHANISMS[name](epsilon=epsilon, **more).compile(small())
    found, promised = record_loss(sampler, WORDS), sampler.guarantee
    bound = record_bound(found, 25, epsilon)
    if promised.kind == "metric_dp" or promised.status == "refuted":
        assert bound is None
        assert found.by_distance or found.why
        return
    assert bound.epsilon <= bound.total == 25 * epsilon
    assert bound.delta >= min(1.0, 25 * promised.delta)


def enumerated(sampler: Sampler, words: int, draws: int, g: float, adapt: bool) -> float:
    """The largest δ at ε = g over all pairs of records of so many words; `adapt`: each pair chosen by what came out before."""
    pairs = [
        (np.exp(one), np.exp(other))
        for laws in logs_of(sampler, words).values()
        for one, other in product(laws, laws)
    ]

    def best(left: int, g: float) -> float:
        if not left:
            return max(0.0, 1.0 - math.exp(g))
        return max(
            sum(p * best(left - 1, g - math.log(p / q)) for p, q in zip(one, other, strict=True))
            for one, other in pairs
        )

    if adapt:
        return best(draws, g)
    worst = 0.0
    for chosen in product(pairs, repeat=draws):
        first, second = np.ones(1), np.ones(1)
        for one, other in chosen:
            first, second = np.outer(first, one).reshape(-1), np.outer(second, other).reshape(-1)
        worst = max(worst, float(np.maximum(first - math.exp(g) * second, 0.0).sum()))
    return worst


@pytest.mark.parametrize("draws", [1, 2, 3])
@pytest.mark.parametrize("delta", [1e-1, 1e-2, 1e-3])
def test_no_bound_is_below_enumeration(draws: int, delta: float) -> None:
    sampler = table(LAWS, SETS)
    found = record_loss(sampler, 5)
    seen = set()
    for by, epsilon in bounds(found, draws, 1.2, delta):
        seen.add(by)
        adapt = by in ("any ε-DP law", "adaptive bounded range")
        assert enumerated(sampler, 5, draws, epsilon, adapt) <= delta * (1 + 1e-9), by
    assert seen == {"any ε-DP law", "adaptive bounded range", "bounded range", "Rényi divergences"}


@pytest.mark.parametrize(
    ("loss", "draws", "each", "delta", "by", "epsilon", "stated"),
    [
        (RecordLoss(2.0, spread=2.0), 25, 2.0, 1e-6, "bounded range", 32.56, 1e-6),
        (RecordLoss(2.0), 1, 2.0, 1e-6, "sum", 2.0, 0.0),  # few draws are their sum without a δ
        (RecordLoss(2.0, spread=2.0), 25, 2.0, 0.0, "sum", 50.0, 0.0),
    ],
)
def test_the_least_is_named_and_rounded_up(
    loss: RecordLoss, draws: int, each: float, delta: float, by: str, epsilon: float, stated: float
) -> None:
    bound = record_bound(loss, draws, each, delta)
    assert (bound.by, bound.epsilon, bound.total, bound.delta) == (by, epsilon, draws * each, stated)
    assert str(bound).startswith(f"ε = {epsilon:g} ")
    assert (f"δ = {stated:g}" in str(bound)) == bool(stated)


def test_the_deltas_of_the_draws_are_added() -> None:
    bound = record_bound(RecordLoss(0.1, delta=1e-4), 400, 0.1)
    assert (bound.by, bound.delta) == ("any ε-DP law", 0.04001)
    assert bound.epsilon < 40.0
    assert record_bound(RecordLoss(0.1, delta=1e-2), 100, 0.1) is None  # δ of 1


def test_more_words_never_cost_less() -> None:
    figures = [record_bound(RecordLoss(2.0, spread=2.0), draws, 2.0) for draws in range(0, 200, 7)]
    epsilons = [one.epsilon for one in figures if one is not None]
    assert epsilons == sorted(epsilons)
    assert epsilons[0] == 0.0


def test_rounding() -> None:
    assert rounded_up(1.23401) == 1.235
    assert [quarter_power(n) for n in (0, 1, 2, 7, 9, 12, 13, 64, 65)] == [0, 1, 2, 7, 10, 12, 14, 64, 77]
    assert all(n <= quarter_power(n) <= n * 1.19 + 1 for n in range(1, 3_000))
