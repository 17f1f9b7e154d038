"""The loss along lists and within groups, against a plain search over all pairs and outputs."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText, Diffractor
from dptext_spark.mechanisms.custext import MAPPINGS
from dptext_spark.mechanisms.privacy_loss import by_steps, within_groups
from dptext_spark.mechanisms.samplers.ordering import OrderingSampler
from dptext_spark.mechanisms.samplers.table import TableSampler, TableSummary
from dptext_spark.model.certificate import verdict
from tests.core.names import scattered

WORDS = 40


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(WORDS, 3, 5)


def plain(sampler: OrderingSampler) -> float:
    logs = np.array([np.log(sampler.law(w).weight.astype(np.float64)) for w in range(WORDS)])
    worst = 0.0
    for w in range(WORDS):
        for v in range(w):
            gap = int(np.abs(sampler.place[w].astype(int) - sampler.place[v]).max())
            worst = max(worst, float(np.abs(logs[w] - logs[v]).max()) / gap)
    return worst


@pytest.mark.parametrize("form", ["geometric", "tem"])
@pytest.mark.parametrize("lists", [1, 3])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_the_bound_covers_every_pair(lexicon: Lexicon, form: str, lists: int, epsilon: float) -> None:
    sampler = Diffractor(epsilon=epsilon, form=form, lists=lists).compile(lexicon)  # type: ignore[arg-type]
    worst, found = plain(sampler), by_steps(sampler)
    assert worst <= found.value * (1 + 1e-12)
    assert found.value <= epsilon
    assert found.attained <= worst * (1 + 1e-9)
    assert found.pairs == found.total == WORDS * (WORDS - 1) // 2
    if lists == 1:
        assert found.value == pytest.approx(worst, rel=1e-6)
        assert found.attained == pytest.approx(worst, rel=1e-6)


def test_a_sample_of_steps(lexicon: Lexicon) -> None:
    sampler = Diffractor(epsilon=1.0, form="tem").compile(lexicon)
    found, whole = by_steps(sampler, sample=8), by_steps(sampler)
    assert (found.pairs, found.total) == (8, WORDS * (WORDS - 1) // 2)
    assert found.value <= whole.value
    assert verdict(sampler.guarantee, found) == "not refuted"
    assert verdict(sampler.guarantee, whole) == "confirmed"
    # Every step of the geometric law is known from its one window.
    assert by_steps(Diffractor(epsilon=1.0).compile(lexicon), sample=8).pairs == whole.pairs


WITHIN = Guarantee("epsilon_dp_within_group", 1.0)


def every_group(sampler: TableSampler, words: int) -> tuple[float, int]:
    """Every pair with the same outputs, every output, in exact integers until the last logarithm."""
    laws = [{int(u): int(p) for u, p in zip(law.ids, law.weight)} for law in map(sampler.law, range(words))]  # noqa: B905
    worst, pairs = 0.0, 0
    for w, v in combinations(range(words), 2):
        if laws[w].keys() == laws[v].keys():
            pairs += 1
            worst = max(worst, *(abs(math.log(laws[w][u] / laws[v][u])) for u in laws[w]))
    return worst, pairs


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 4.0])
def test_custext(mapping: str, epsilon: float) -> None:
    lexicon = scattered(70, 5, 3)
    sampler = CusText(epsilon=epsilon, k=6, mapping=mapping).compile(lexicon)  # type: ignore[arg-type]
    worst, pairs = every_group(sampler, 70)
    found = within_groups(sampler, 70)
    assert (found.pairs, found.total) == (pairs, pairs)
    assert found.attained <= worst + 1e-13
    assert worst <= found.value <= worst + 1e-12
    assert found.value <= epsilon + 1e-12
    if found.worst and epsilon:
        first, second = (sampler.law(word).probability for word in found.worst)
        assert np.log(first / second).max() == pytest.approx(worst, abs=1e-12)


def test_a_planted_loss_is_found() -> None:
    ids = np.array([[0, 1], [0, 1], [0, 2]], np.int32)
    sampler = TableSampler.of(ids, np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]), WITHIN, TableSummary())
    found = within_groups(sampler, 3)
    assert found.attained == pytest.approx(math.log(9))
    assert found.pairs == 1
    assert found.worst in ((0, 1), (1, 0))


def test_words_alone_have_no_pair_and_progress_ends_at_the_last_word() -> None:
    told: list[tuple[int, int]] = []
    sampler = TableSampler.of(np.array([[0], [1]], np.int32), np.ones((2, 1)), WITHIN, TableSummary())
    found = within_groups(sampler, 2, lambda done, whole: told.append((done, whole)))
    assert (found.value, found.attained, found.pairs, found.worst) == (0.0, 0.0, 0, None)
    assert told[-1] == (2, 2)
