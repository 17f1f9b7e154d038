"""Laws as sparse rows: those of the mechanisms where they have one, counts of draws with bounds where they have none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dptext_spark.audit.deniability.word_figures import DRAWS, SUBKEY, Outcomes, blocks, interval, outcomes
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS, MVC, CusText, Sampler, SanText
from dptext_spark.mechanisms.samplers import ExponentialSampler, TableSampler
from dptext_spark.mechanisms.samplers.table import TableSummary
from dptext_spark.randomness.draws import Draws
from tests.core.mechanisms.lawless import Lawless
from tests.core.names import lexicon_at, scattered

WORDS = 80
SETTINGS: dict[str, list[dict[str, object]]] = {
    "custext": [
        {"k": 7},
        {"k": 7, "epsilon": 400.0},
        {"k": 16, "mapping": "conservative", "remainder": "own"},
    ],
    "santext": [{}, {"sensitive": 0.5}],
    "tem": [{"epsilon": 9.0}],
    "diffractor": [{"lists": 3}, {"form": "tem"}],
    "projection": [{"epsilon": 5.0, "m": 3}],
    "truncated_gumbel": [{"epsilon": 900.0}],
}
CASES = [(name, one) for name in MECHANISMS for one in SETTINGS.get(name, [{"epsilon": 5.0}])]


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    vectors = scattered(WORDS, 4, 5).vectors.copy()
    vectors[7] = vectors[3]  # two words that share a vector
    vectors[20] = vectors[3] * 0.5  # and one whose cosine to them is 1
    return lexicon_at(vectors)


def compiled(name: str, settings: dict[str, object], lexicon: Lexicon) -> Sampler:
    if name == "truncated_gumbel":  # refuses words that share a vector
        lexicon = scattered(WORDS, 4, 5)
    made: Sampler = MECHANISMS[name](**settings).compile(lexicon)
    return made


def rows_of(found: Outcomes) -> list[tuple[list[int], list[float]]]:
    return [(ids.tolist(), share.tolist()) for ids, share in map(found.row, range(len(found.words)))]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_it_is_the_law_or_the_draws(name: str, settings: dict[str, object], lexicon: Lexicon) -> None:
    sampler = compiled(name, settings, lexicon)
    words = np.array([5, 3, 79, 0, 41, 3], np.int32)  # in any order, and one of them twice
    found = outcomes(sampler, words, draws=50)
    assert (found.words == words).all()
    assert (found.starts[0], found.starts[-1]) == (0, len(found.ids))
    assert (found.ids.dtype, found.starts.dtype, found.probability.dtype) == (np.int32, np.int64, float)
    assert found.exact == (sampler.law(0) is not None)
    for word, (ids, share) in zip(words.tolist(), rows_of(found), strict=True):
        law = sampler.law(word)
        if law is not None:
            assert ids == law.ids.tolist()
            assert share == law.probability.tolist()
            continue
        numbers = np.array([[number, word] for number in range(50)], np.uint64)
        drawn = sampler.sample(np.full(50, word, np.int32), Draws(SUBKEY, numbers)).tolist()
        assert ids == sorted(set(drawn))
        assert share == [drawn.count(u) / 50 for u in ids]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_blocks_are_the_whole_in_parts(name: str, settings: dict[str, object], lexicon: Lexicon) -> None:
    sampler = compiled(name, settings, lexicon)
    words = np.arange(WORDS, dtype=np.int32)
    whole = outcomes(sampler, words, draws=20)
    parts = list(blocks(sampler, words, draws=20, most_bytes=12_000))
    assert len(parts) > 1
    assert np.concatenate([part.words for part in parts]).tolist() == words.tolist()
    assert [row for part in parts for row in rows_of(part)] == rows_of(whole)
    assert np.abs(np.bincount(whole.rows, weights=whole.probability) - 1.0).max() < 1e-12


def test_a_row_that_holds_a_weight_of_nothing() -> None:
    """An outcome whose weight is zero cannot come out, and is no entry."""
    ids = np.array([[0, 1, 2], [2, 1, 0]], np.int32)
    made = TableSampler.of(
        ids,
        np.array([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]]),
        Guarantee("epsilon_dp_within_group", 1.0),
        TableSummary(),
    )
    found = outcomes(made, np.array([0, 1], np.int32))
    assert rows_of(found) == [([0, 1], [0.25, 0.75]), ([2], [1.0])]


@pytest.mark.parametrize("epsilon", [0.05, 2.0, 9.0])
@pytest.mark.parametrize("sensitive", [None, 50])
def test_laws_with_a_tail(lexicon: Lexicon, epsilon: float, sensitive: int | None) -> None:
    """Rows too short for the lexicon: heads and tails of some words together, to the bit those of each alone."""
    outputs = None if sensitive is None else np.arange(sensitive, dtype=np.int32)
    sampler = ExponentialSampler.of(lexicon.vectors, epsilon, outputs=outputs, keep=0.25, slots=16)
    assert sampler.summary.head < 16
    words = np.random.default_rng(2).permutation(WORDS).astype(np.int32)
    found = outcomes(sampler, words)
    for word, (ids, share) in zip(words.tolist(), rows_of(found), strict=True):
        law = sampler.law(word)
        assert ids == law.ids.tolist()
        assert share == law.probability.tolist()


def test_no_words(lexicon: Lexicon) -> None:
    for mechanism in (CusText(k=5), SanText(), MVC(epsilon=3.0)):
        sampler = mechanism.compile(lexicon)
        none = outcomes(sampler, np.empty(0, np.int32))
        assert (len(none.words), len(none.ids), none.starts.tolist()) == (0, 0, [0])
        assert none.draws == (None if sampler.law(0) is not None else DRAWS)
        assert list(blocks(sampler, np.empty(0, np.int32))) == []
    with pytest.raises(SettingsError, match=r"^draws: 0 given"):
        outcomes(MVC(epsilon=3.0).compile(lexicon), np.zeros(1, np.int32), draws=0)


def test_the_interval_is_that_of_clopper_and_pearson() -> None:
    """At the lower bound, as many or more are seen with probability 0.005; at the upper one, as many or fewer."""

    def at_least(count: int, draws: int, p: float) -> float:
        return sum(math.comb(draws, i) * p**i * (1 - p) ** (draws - i) for i in range(count, draws + 1))

    draws, confidence = 40, 0.99
    low, high = interval(np.arange(draws + 1), draws, confidence)
    assert low[0] == 0.0
    assert high[-1] == 1.0
    for count in range(1, draws + 1):
        assert at_least(count, draws, low[count]) == pytest.approx(0.005, rel=1e-9)
        assert 1 - at_least(count, draws, high[count - 1]) == pytest.approx(0.005, rel=1e-9)


def test_bounds(lexicon: Lexicon) -> None:
    """Of a law, itself. Of draws, they hold the probability: 2,000 draws of CusText against its law, at 1 - 1e-9 each."""
    sampler = CusText(k=6, epsilon=3.0).compile(lexicon)
    words = np.arange(WORDS, dtype=np.int32)
    exact = outcomes(sampler, words)
    assert exact.bounds(0.99) == (exact.probability, exact.probability)

    drawn = outcomes(Lawless(sampler), words, draws=2000)
    low, high = drawn.bounds(1 - 1e-9)
    for word in range(WORDS):
        law = dict(zip(*map(np.ndarray.tolist, exact.row(word)), strict=True))
        part = slice(drawn.starts[word], drawn.starts[word + 1])
        true = np.array([law[u] for u in drawn.ids[part].tolist()])
        assert ((low[part] <= true) & (true <= high[part])).all()
        assert (high[part] - low[part]).max() < 0.15
