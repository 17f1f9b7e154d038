"""N_w, S_w and S_w[n] from the formulas of the papers; laws as sparse rows, and counts of draws with bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dptext_spark.audit.deniability import measure
from dptext_spark.audit.word_figures import (
    DRAWS,
    SUBKEY,
    DistinctOutputs,
    Outcomes,
    SmallestSet,
    StayRate,
    WordFigure,
    blocks,
    interval,
    outcomes,
)
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS, MVC, TEM, CusText, Diffractor, Mechanism, Sampler, SanText
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler
from dptext_spark.mechanisms.samplers.table import TableSampler, TableSummary
from dptext_spark.randomness import Draws
from tests.core.mechanisms.lawless import Lawless
from tests.core.names import lexicon_at, scattered

LAWS = [
    {0: 0.5, 3: 0.25, 4: 0.25},
    {1: 1.0},
    {0: 0.04, 2: 0.96},
    {u: 1 / 7 for u in range(7)},
    {0: 0.9, 5: 0.1},  # word 4 never comes out as itself
]


def outcomes_of(laws: list[dict[int, float]], draws: int | None = None) -> Outcomes:
    ids = [np.array(sorted(law), np.int32) for law in laws]
    starts = np.cumsum([0, *map(len, ids)])
    shares = [np.array([law[u] for u in sorted(law)]) for law in laws]
    words = np.arange(len(laws), dtype=np.int32)
    return Outcomes(words, starts, np.concatenate(ids), np.concatenate(shares), draws)


def counted(law: list[float], words: int, draws: int, seed: int) -> Outcomes:
    """`words` words with one law, each drawn `draws` times."""
    random = np.random.default_rng(seed)
    counts = random.multinomial(draws, law, size=words)
    return outcomes_of([{u: c / draws for u, c in enumerate(row) if c} for row in counts.tolist()], draws)


def test_exact_figures_are_the_formulas() -> None:
    found = outcomes_of(LAWS)
    unchanged = StayRate().of(found, 7, 0.9)
    assert unchanged.values.tolist() == [0.5, 1.0, 0.96, 1 / 7, 0.0]
    assert unchanged.lower is unchanged.values
    assert unchanged.upper is unchanged.values
    assert SmallestSet().of(found, 7, 0.9).values.tolist() == [3, 1, 1, 7, 2]
    assert SmallestSet(0.25).of(found, 7, 0.9).values.tolist() == [2, 1, 1, 6, 1]
    for n in (1, 2, 100, 1000):
        plain = [sum(1 - (1 - p) ** n for p in law.values()) for law in LAWS]
        assert DistinctOutputs(n).of(found, 7, 0.9).values == pytest.approx(plain, rel=1e-12)


def test_a_mass_that_rounding_keeps_short_is_reached() -> None:
    """19 of 20 equal outputs hold 95 %, whatever float64 makes of the sum."""
    for size in (20, 40, 100, 1000):
        found = outcomes_of([{u: 1 / size for u in range(size)}])
        assert SmallestSet().of(found, size, 0.9).values.tolist() == [size * 95 // 100]


def test_distinct_outputs_from_draws_are_the_mean_over_all_subsets() -> None:
    """Hurlbert's number against its definition, in fractions, and without bias over many repetitions."""
    counts, n = [5, 3, 1, 1], 4
    draws = sum(counts)
    plain = sum(1 - Fraction(math.comb(draws - c, n), math.comb(draws, n)) for c in counts)
    found = outcomes_of([{u: c / draws for u, c in enumerate(counts)}], draws)
    assert DistinctOutputs(n).of(found, 10, 0.9).values[0] == pytest.approx(float(plain), rel=1e-12)
    assert DistinctOutputs(draws).of(found, 10, 0.9).values[0] == 4.0

    law = (np.arange(1, 41) / (41 * 20)).tolist()
    many = DistinctOutputs(50).of(counted(law, 4000, 200, seed=1), 40, 0.9).values
    true = sum(1 - (1 - p) ** 50 for p in law)
    # Five standard errors of a mean of 4,000: a false alarm of 1e-6.
    assert abs(many.mean() - true) < 5 * many.std() / math.sqrt(4000)


FLAT = [1 / 500] * 500
STEEP = [0.97, 0.02, 0.005, 0.005]
MIXED = [0.5, *[0.5 / 300] * 300]


@pytest.mark.parametrize("law", [FLAT, STEEP, MIXED], ids=["flat", "steep", "mixed"])
@pytest.mark.parametrize(
    "figure",
    [StayRate(), SmallestSet(), SmallestSet(0.5), DistinctOutputs(100), DistinctOutputs(300)],
    ids=lambda figure: figure.name,
)
def test_bounds_from_draws_hold(figure: WordFigure, law: list[float]) -> None:
    """400 words with one law, bounds at 95 %: at most 20 are expected outside; 46 or more have a probability below 1e-7."""
    size, words, draws = len(law), 400, 300
    random = np.random.default_rng(3)
    counts = random.multinomial(draws, law, size=words)
    rows = [{u: c / draws for u, c in enumerate(row) if c} for row in counts.tolist()]
    found = outcomes_of(rows, draws)
    found = Outcomes(np.zeros(words, np.int32), found.starts, found.ids, found.probability, draws)
    exact = outcomes_of([dict(enumerate(law))])
    true = figure.of(exact, size, 0.95).values[0]
    bounded = figure.of(found, size, 0.95)
    outside = (bounded.lower > true) | (bounded.upper < true)
    assert outside.sum() <= 45
    assert (bounded.lower <= bounded.values).all()
    assert (bounded.values <= bounded.upper).all()
    tight = {"N_w": 0.12, "S_w[100]": 22.0, "S_w[300]": 130.0}
    if figure.name in tight:
        assert (bounded.upper - bounded.lower).max() <= tight[figure.name]


def test_the_estimate_of_the_smallest_set_is_low_and_its_bound_says_so() -> None:
    """A flat law of 500 outputs, seen 300 times: no set of draws can be as large as the true one, 475."""
    bounded = SmallestSet().of(counted(FLAT, 20, 300, seed=5), 500, 0.99)
    assert (bounded.values < 300).all()
    assert (bounded.upper == 500).all()
    assert (bounded.lower > 100).all()


def test_more_different_outputs_than_draws_are_not_estimated() -> None:
    with pytest.raises(ValueError, match=r"S_w\[301\] needs 301 draws of a word, not 300"):
        DistinctOutputs(301).of(counted(STEEP, 2, 300, seed=1), 4, 0.9)


@pytest.mark.parametrize(
    "mechanism",
    [
        Diffractor(lists=3),
        Diffractor(form="tem", epsilon=0.3),
        SanText(epsilon=1.5),
        SanText(epsilon=1.5, sensitive=0.4, p=0.3),
        SanText(epsilon=1.5, sensitive=0.4, p=1.0),
        TEM(epsilon=6.0),
    ],
    ids=str,
)
def test_the_short_cut_leads_to_the_same(mechanism: Mechanism) -> None:
    vectors = scattered(700, 6, 1).vectors.copy()
    vectors[5] = vectors[9]
    sampler = mechanism.compile(lexicon_at(vectors))
    words = np.random.default_rng(2).permutation(700)[:90].astype(np.int32)
    found = StayRate().shortcut(sampler, words)
    assert found is not None
    true = StayRate().of(outcomes(sampler, words), 700, 0.9).values
    if isinstance(mechanism, Diffractor):
        assert (found.values == true).all()
    assert found.values == pytest.approx(true, rel=1e-9)
    # Bounds within 1e-16: what float64 makes of the exponential.
    assert (found.lower <= true * (1 + 1e-15)).all()
    assert (true <= found.upper * (1 + 1e-15)).all()
    assert (found.upper - found.lower).max() < 1e-8
    (measured,) = measure(sampler, words, 700, [StayRate()])
    assert measured.exact
    assert (measured.of.values == found.values).all()
    assert SmallestSet().shortcut(sampler, words) is None
    assert DistinctOutputs(5).shortcut(sampler, words) is None


def test_tables_have_no_short_cut() -> None:
    sampler = CusText(k=4).compile(scattered(30, 6, 1))
    assert StayRate().shortcut(sampler, np.arange(3, dtype=np.int32)) is None


WORDS = 80
SETTINGS: dict[str, list[dict[str, object]]] = {
    "custext": [{"k": 7}, {"k": 7, "epsilon": 4e2}, {"k": 16, "mapping": "conservative", "remainder": "own"}],
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
    weights = np.array([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]])
    promised = Guarantee("epsilon_dp_within_group", 1.0)
    made = TableSampler.of(ids, weights, promised, TableSummary())
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
    with pytest.raises(SettingsError, match=r"^draws: 0 "):
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
