"""SanText, SanText+ and TEM against the papers' formulas: law, bound of all pairs and outputs, what is refuted, draws."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import TEM, SanText
from dptext_spark.mechanisms.samplers.table import TableSampler, TableSummary
from dptext_spark.model.certificate import certify
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.policy import Policy
from tests.core.mechanisms import plain_whole as plain
from tests.core.mechanisms.plain_whole import tables

# Halves of small integers.
TABLES = tables(24, 3).map(lambda vectors: vectors / np.float32(2))


class TestParameters:
    def test_a_list_becomes_a_tuple(self) -> None:
        made = SanText(sensitive=["w1", "w2"])  # type: ignore[arg-type]
        assert made.sensitive == ("w1", "w2")
        assert hash(made) == hash(SanText(sensitive=("w1", "w2")))

    def test_words_that_are_not_there_are_counted_not_named(self) -> None:
        with pytest.raises(SettingsError, match=r"mechanism\.sensitive: 2 of 4 words") as caught:
            SanText(sensitive=("w1", "SECRET", "w2", "W3")).compile(plain.lexicon(plain.gaussian(9)))
        assert "SECRET" not in str(caught.value)

    @pytest.mark.parametrize("sensitive", [0.1, ("w1", "w1")])
    def test_one_word_is_not_enough(self, sensitive: float | tuple[str, ...]) -> None:
        with pytest.raises(SettingsError, match=r"mechanism\.sensitive: .* leaves 1 of 9 words"):
            SanText(sensitive=sensitive).compile(plain.lexicon(plain.gaussian(9)))


class TestLaw:
    @pytest.mark.parametrize("p", [0.000001, 0.2, 1.0])
    def test_santext_plus(self, p: float) -> None:
        """Every draw is from the law over the sensitive words; others are kept with probability 1-p."""
        vectors = plain.gaussian(61)
        made = SanText(1.5, sensitive=0.5, p=p).compile(plain.lexicon(vectors))
        weight = np.exp(-1.5 * plain.distances(vectors) / 2)
        weight[:, :30] = 0  # the last 31 words are the least frequent half
        wanted = weight / weight.sum(axis=1, keepdims=True)
        wanted[:30] *= p
        wanted[:30, :30] = (1 - p) * np.eye(30)
        for w in range(61):
            plain.check_law(made.law(w), wanted[w], made.slack)

    def test_a_share_of_all_is_santext(self) -> None:
        lexicon = plain.lexicon(plain.gaussian(20))
        every, one = SanText().compile(lexicon), SanText(sensitive=1.0).compile(lexicon)
        assert all((one.arrays()[name] == array).all() for name, array in every.arrays().items())
        assert one.guarantee == every.guarantee

    def test_a_list_in_any_order(self) -> None:
        lexicon = plain.lexicon(plain.gaussian(20))
        made = SanText(sensitive=("w17", "w3", "w11", "w3")).compile(lexicon)
        assert made.outputs.tolist() == [3, 11, 17]
        assert made.law(3).ids.tolist() == [3, 11, 17]
        assert made.law(5).ids.tolist() == [3, 5, 11, 17]


TINY = {
    "two": [[0.0], [1.0]],
    "zeros": np.zeros((2, 3)),
    "equal": np.ones((3, 2)),
    "some equal": [[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]],
    "far": [[-1e18], [1e18], [0.0]],
    **{f"{words} others": plain.gaussian(words, 1) for words in (2, 3, 17)},
    "17 zeros": np.zeros((17, 2)),
}


@pytest.mark.parametrize("vectors", TINY.values(), ids=list(TINY))
@pytest.mark.parametrize(
    "choice", [SanText(0.7), TEM(1.3), TEM(1.3, 0.5), TEM(1.3, gamma=1e-300), TEM(1e300), TEM(1e-6)]
)
def test_tiny_lexicons(choice: SanText | TEM, vectors: np.ndarray) -> None:
    made = choice.compile(plain.lexicon(np.array(vectors)))
    wanted = plain.laws(plain.distances(np.array(vectors)), choice.epsilon, float(made.figures[1]))
    for w in range(len(vectors)):
        plain.check_law(made.law(w), wanted[w], made.slack)
        plain.check_draws(plain.draw(made, w, 2000, "tiny"), made.law(w))


@pytest.mark.parametrize(
    "choice",
    [
        *(SanText(0.3), SanText(3.0), SanText(1.0, 0.5), SanText(1.0, 0.5, 0.9)),
        *(TEM(0.5), TEM(4.0), TEM(2.0, gamma=1.0), TEM(2.0, gamma=2.5)),
    ],
)
def test_draws_follow_the_law(choice: SanText | TEM) -> None:
    """More words than an alias row holds."""
    made = choice.compile(plain.lexicon(plain.gaussian(1100, 6 if isinstance(choice, SanText) else 4)))
    assert made.vectors.size
    for w in (0, 600, 1099):
        plain.check_draws(plain.draw(made, w, 30_000, str(choice)), made.law(w))


EPSILONS, GAMMAS = st.sampled_from([0.01, 0.1, 0.5, 2.0, 30.0]), st.sampled_from([None, 0.4, 1.0, 2.5])


@settings(max_examples=200)
@given(TABLES, st.builds(SanText, EPSILONS) | st.builds(TEM, EPSILONS, gamma=GAMMAS))
def test_all_pairs_and_outputs(vectors: np.ndarray, choice: SanText | TEM) -> None:
    made = choice.compile(plain.lexicon(vectors))
    radius = choice.radius(len(vectors)) if isinstance(choice, TEM) else math.inf
    logs = np.log(np.array([made.law(w).probability for w in range(len(vectors))]))
    loss = np.abs(logs[:, None, :] - logs[None, :, :]).max(axis=2)
    assert (loss <= choice.epsilon * np.minimum(plain.distances(vectors), radius) + 2 * made.slack).all()


class TestGuarantee:
    @settings(max_examples=100)
    @given(
        TABLES,
        st.sampled_from([0.5, 2.0]),
        st.sampled_from([0.001, 0.2, 1.0]),
        st.sampled_from([0.3, 0.5, 0.9]),
    )
    def test_santext_plus(self, vectors: np.ndarray, epsilon: float, p: float, share: float) -> None:
        """ε·d for outputs in the list, ln(1/p) more between a sensitive word and another."""
        words = len(vectors)
        count = math.ceil(share * words)
        if count < 2:
            return
        made = SanText(epsilon, share, p).compile(plain.lexicon(vectors))
        listed = np.arange(words) >= words - count
        table = np.array([plain.whole(made.law(w), words) for w in range(words)])
        logs = np.log(table[:, listed])
        loss = np.abs(logs[:, None, :] - logs[None, :, :]).max(axis=2)
        mixed = listed[:, None] != listed[None, :]
        bound = epsilon * plain.distances(vectors) + np.where(mixed, math.log(1 / p), 0.0)
        assert (loss <= bound + 2 * made.slack).all()
        # An output that is not sensitive comes from itself alone.
        assert (table[:, ~listed] > 0).sum() == (0 if p == 1 else words - count)

    def test_what_is_kept_and_what_it_adds_is_stated(self) -> None:
        lexicon = plain.lexicon(plain.gaussian(40))
        plus, drawn = (SanText(2.0, 0.5, p).compile(lexicon).guarantee for p in (0.2, 1.0))
        assert plus.compared == "sensitive words"
        assert "kept with probability 0.8" in plus.sentence
        assert "ln(1/p) = 1.6095 more against a sensitive word" in plus.sentence
        # Where nothing is released as it is, the bound is that of all words.
        assert (drawn.metric, drawn.compared) == ("euclidean", "words")


def test_real_vectors(glove_rows: tuple[list[str], np.ndarray]) -> None:
    """3,000 words of GloVe in 300 dimensions: the law in float64 from the formula, and draws from it."""
    vectors = glove_rows[1][:3000]
    made = SanText(2.0).compile(plain.lexicon(vectors))
    wide = vectors.astype(np.float64)
    for w in (0, 1500, 2999):
        away = np.sqrt(((wide - wide[w]) ** 2).sum(axis=1))
        weight = np.exp(-away)
        plain.check_law(made.law(w), weight / weight.sum(), made.slack)
        assert made.log_normaliser[w] == pytest.approx(math.log(weight.sum()), abs=1e-12)
        plain.check_draws(plain.draw(made, w, 30_000, "glove"), made.law(w))
    assert made.slack < 1e-9
    assert made.rounds.max() >= 8


def published(away: np.ndarray, epsilon: float, gamma: float, wrong: bool = False) -> np.ndarray:
    """Algorithm 1 as written: Gumbel noise of scale 2/ε selects with probability ∝ exp(ε·score/2).

    Words in the ball score -d, the bottom element -γ + 2·ln|W∖L|/ε; it stands for a uniform word outside. The known wrong
    form scores it with 2·ln(V/|L|)/ε.
    """
    words = len(away)
    table = np.zeros((words, words))
    for w, row in enumerate(away):
        inside = row <= gamma
        outside = words - int(inside.sum())
        bottom = 0.0
        if outside:
            more = words / int(inside.sum()) if wrong else outside
            bottom = math.exp(epsilon * (-gamma + 2 * math.log(more) / epsilon) / 2)
        weight = np.where(inside, np.exp(-epsilon * row / 2), bottom / max(outside, 1))
        table[w] = weight / weight.sum()
    return table


class TestTemLaw:
    def test_the_radius(self) -> None:
        assert TEM(2.0, 0.01).radius(101) == pytest.approx(math.log(0.99 * 100 / 0.01))
        assert TEM(2.0, gamma=5).radius(101) == 5.0
        assert TEM(2.0, 0.5).radius(2) == pytest.approx(0.0, abs=1e-15)

    @pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0, 15.0])
    @pytest.mark.parametrize("gamma", [None, 0.5, 1.7, 40.0])
    def test_the_closed_form_is_the_published_selection(self, epsilon: float, gamma: float | None) -> None:
        vectors = plain.gaussian(50, 3)
        choice = TEM(epsilon, gamma=gamma)
        radius, away = choice.radius(50), plain.distances(vectors)
        wanted = published(away, epsilon, radius)
        np.testing.assert_allclose(wanted, plain.laws(away, epsilon, radius), rtol=1e-12)
        made = choice.compile(plain.lexicon(vectors))
        if radius > made.figures[1]:  # cut off before: where the weight falls below 2^-40
            wanted = plain.laws(away, epsilon, float(made.figures[1]))
        for w in range(50):
            plain.check_law(made.law(w), wanted[w], made.slack)


class TestTemGuarantee:
    def test_the_certificate_refutes_the_wrong_form(self) -> None:
        """The law of the wrong form in integers, under the claim that right and wrong form share."""
        vectors = plain.gaussian(30, 2, 26) * np.float32(3.0)
        away = plain.distances(vectors)
        made = TEM(2.0, gamma=2.0).compile(plain.lexicon(vectors))
        assert made.figures[1] == 2.0  # γ itself: nothing is cut off before
        for wrong, expected in ((False, "confirmed"), (True, "refuted")):
            ids = np.tile(np.arange(30, dtype=np.int32), (30, 1))
            law = TableSampler.of(ids, published(away, 2.0, 2.0, wrong), made.guarantee, TableSummary())
            logs = np.log(np.array([law.law(w).probability for w in range(30)]))
            sampler = replace(made, cells=law.cells, log_normaliser=-np.diag(logs).copy())
            found = certify(Privatizer(plain.lexicon(vectors), sampler, Policy(tokenizer="whitespace")))
            assert found.verdict == expected
            assert (found.loss.attained > 2.0) == wrong
