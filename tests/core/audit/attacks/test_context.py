"""The contextual adversary against every possible text of a tiny lexicon: alone, with shared draws, and against fluent draws."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from dptext_spark.audit.attacks.attacked_text import (
    HIDDEN,
    SUBKEY,
    Bigrams,
    Tokens,
    guess_bigram_baseline,
    simulate,
    states,
)
from dptext_spark.audit.attacks.bayes import bayes_attack, candidates, candidates_after
from dptext_spark.audit.attacks.context import context_attack, pooled_guesses, posterior_guesses
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms import CusText
from dptext_spark.mechanisms.base import NO_WORD
from dptext_spark.randomness import Draws
from dptext_spark.text.tokens import EDGE, UNKNOWN
from tests.core.audit.plain_attacks import posterior, some_law, table_sampler, transitions
from tests.core.mechanisms.fluent_toys import lexicon_of

WORDS = 6
ALLOWED = np.array([False, True, True, True, True, True])  # word 0 is a stop word


def records(seed: int, many: int, shortest: int = 0, longest: int = 6) -> list[list[int]]:
    """Texts with a pattern: a word is often followed by the next one."""
    random = np.random.default_rng(seed)
    out = []
    for _ in range(many):
        row: list[int] = []
        for _ in range(random.integers(shortest, longest)):
            after = (row[-1] + 1) % WORDS if row and row[-1] >= 0 and random.random() < 0.6 else None
            row.append(int(after if after is not None else random.choice([0, 1, 2, 3, 4, 5, EDGE, UNKNOWN])))
        out.append(row)
    return out


def flat(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    bounds = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return np.array([w for row in rows for w in row], np.int32), bounds


def seen(rows: list[list[int]], law: np.ndarray, seed: int) -> Tokens:
    words, bounds = flat(rows)
    drawn = (words >= 0) & ALLOWED[words]
    random = np.random.default_rng(seed)
    outputs = words.copy()
    for n in np.flatnonzero(drawn):
        outputs[n] = random.choice(WORDS, p=law[words[n]])
    return Tokens(words, outputs, drawn, bounds)


@pytest.mark.long
@pytest.mark.parametrize("weight", [None, 0.0, 0.4, 0.95])
def test_the_posterior_is_that_of_every_text(weight: float | None) -> None:
    law, public = some_law(WORDS, 1), records(2, 60)
    step, unigram = transitions(public, WORDS, weight)
    model = Bigrams.of(*flat(public), WORDS, weight)
    assert model.unigram == pytest.approx(unigram)
    pairs = [np.arange(WORDS + 2, dtype=np.int32)] * 2
    grid = np.meshgrid(*pairs, indexing="ij")
    assert model.probability(grid[0].ravel(), grid[1].ravel()) == pytest.approx(step.ravel())
    rows = records(3, 25)
    tokens = seen(rows, law, 4)
    prior = of_drawn(model.unigram[:WORDS], ALLOWED)
    plausible = candidates(table_sampler(law), prior, tokens.outputs[tokens.drawn], WORDS)
    guesses, certainty = posterior_guesses(tokens, plausible, model)
    assert (guesses[~tokens.drawn] == -1).all()
    assert tokens.drawn.sum() > 30
    for i in range(len(rows)):
        part = slice(int(tokens.bounds[i]), int(tokens.bounds[i + 1]))
        truth = posterior(tokens.words[part], tokens.outputs[part], tokens.drawn[part], law, ALLOWED, step)
        for t, n in enumerate(range(part.start, part.stop)):
            if tokens.drawn[n]:
                assert certainty[n] == pytest.approx(truth[t].max(), rel=1e-9)
                assert guesses[n] == truth[t].argmax()


@pytest.mark.long
def test_without_bigrams_it_is_the_bayes_adversary() -> None:
    law, rows = some_law(WORDS, 5), records(6, 300)
    tokens = seen(rows, law, 7)
    model = Bigrams.of(*flat(records(8, 200)), WORDS, 0.0)
    found = context_attack(table_sampler(law), tokens, model, ALLOWED)
    assert found.success == found.bayes
    assert found.gain == found.gain_lower == found.gain_upper == 0.0
    # The same from the formula: argmax P(w)·P(u|w).
    score = (np.where(ALLOWED, model.unigram[:WORDS], 0.0))[:, None] * law
    guess = score.argmax(axis=0)[tokens.outputs[tokens.drawn]]
    assert found.bayes == pytest.approx((guess == tokens.words[tokens.drawn]).mean())


def test_context_helps_where_there_is_some() -> None:
    law, rows = np.full((WORDS, WORDS), 1 / WORDS), records(9, 400, 3, 9)
    tokens = seen(rows, law, 10)
    model = Bigrams.of(*flat(records(11, 2000, 3, 9)), WORDS)
    found = context_attack(table_sampler(law), tokens, model, ALLOWED)
    assert found.gain_lower > 0
    assert found.lower < found.success < found.upper
    assert found.bayes == found.most_frequent  # the outputs say nothing at all
    assert found.random == pytest.approx(1 / ALLOWED.sum())
    assert found.certainty == pytest.approx(found.success, abs=0.05)  # the model is nearly the truth
    assert found.bigram_baseline > found.most_frequent
    assert (found.exact, found.restricted, found.tokens) == (False, True, tokens.drawn.sum())
    assert found.covered == found.unprotected == 1.0


def test_an_output_that_nothing_leads_to_is_guessed_as_itself() -> None:
    law = np.eye(WORDS)
    tokens = Tokens(*(np.array(x) for x in ([1, 2], [1, 0], [True, True], [0, 2])))  # type: ignore[arg-type]
    model = Bigrams.of(*flat(records(14, 50)), WORDS)
    prior = of_drawn(model.unigram[:WORDS], ALLOWED)
    plausible = candidates(table_sampler(law), prior, tokens.outputs)
    alone = posterior_guesses(tokens, plausible, model)
    for guesses, certainty in (alone, pooled_guesses(tokens, plausible, model, prior, by_record=True)):
        assert guesses.tolist() == [1, 0]
        assert certainty.tolist() == [1.0, 0.0]
    found = context_attack(table_sampler(law), tokens, model, ALLOWED)
    assert (found.success, found.bayes, found.unchanged) == (0.5, 0.5, 0.5)


def test_the_guess_without_the_output() -> None:
    public = records(15, 30)
    step, unigram = transitions(public, WORDS, None)
    model = Bigrams.of(*flat(public), WORDS)
    sides = [HIDDEN, *range(WORDS + 2)]
    left, right = (np.array(x, np.int32) for x in zip(*((a, b) for a in sides for b in sides), strict=True))
    guesses = guess_bigram_baseline(model, left, right, ALLOWED)
    for a, b, guess in zip(left, right, guesses, strict=True):
        value = (step[a, :WORDS] if a >= 0 else unigram[:WORDS]) * (step[:WORDS, b] if b >= 0 else 1.0)
        value = np.where(ALLOWED, value, -1.0)
        assert value[guess] == pytest.approx(value.max(), rel=1e-12)


def test_tokens_that_do_not_fit() -> None:
    ids, flags = np.array([1, -1], np.int32), np.array([True, False])
    Tokens(ids, ids, flags, np.array([0, 2]))
    for wrong in (
        (ids[:1], ids, flags, np.array([0, 1])),
        (ids, ids, ~flags, np.array([0, 2])),
        (ids, ids, flags, np.array([0, 1])),
        (ids, ids, flags, np.array([0, 2, 1, 2])),
    ):
        with pytest.raises(DataError, match=r"^tokens: "):
            Tokens(*wrong)
    nothing = Tokens(ids, ids, ~flags & flags, np.array([0, 2]))
    with pytest.raises(DataError, match=r"^tokens: none"):
        context_attack(table_sampler(np.eye(WORDS)), nothing, Bigrams.of(*flat(records(1, 9)), WORDS))


def test_after_a_word_that_many_words_follow() -> None:
    """Its followers are searched, not read through; word w > 0 follows word 0 w mod 7 + 1 times."""
    words = 900
    after = np.repeat(np.arange(1, words), np.arange(1, words) % 7 + 1).astype(np.int32)
    public = np.stack([np.zeros_like(after), after], axis=1).ravel()
    model = Bigrams.of(public, np.arange(0, len(public) + 1, 2), words)
    law = np.zeros((words, words))
    odd = np.arange(words) % 2 == 1
    law[np.arange(words), np.arange(words) - odd] = 1.0  # words 2i and 2i + 1 come out as 2i
    text = np.arange(words, dtype=np.int32)[2:]
    tokens = Tokens(
        np.stack([np.zeros_like(text), text], axis=1).ravel(),
        np.stack([np.zeros_like(text), text - text % 2], axis=1).ravel(),
        np.tile([False, True], len(text)),
        np.arange(0, 2 * len(text) + 1, 2),
    )
    allowed = np.arange(words) > 0
    prior = of_drawn(model.unigram[:words], allowed)
    plausible = candidates(table_sampler(law), prior, tokens.outputs[tokens.drawn])
    guesses, certainty = posterior_guesses(tokens, plausible, model)
    low = tokens.outputs[tokens.drawn]
    edge = np.full(len(low), words + 1, np.int32)
    zero = np.zeros(len(low), np.int32)
    both = [model.probability(zero, w) * model.probability(w, edge) for w in (low, low + 1)]
    assert (guesses[tokens.drawn] == np.where(both[1] > both[0], low + 1, low)).all()
    assert certainty[tokens.drawn] == pytest.approx(np.maximum(*both) / (both[0] + both[1]))


def text(records: int, seed: int, length: int = 5) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    out = random.choice([EDGE, 0, 1, 2, 3, 4, 5], (records, length))
    for t in range(1, length):
        follows = (random.random(records) < 0.5) & (out[:, t - 1] >= 0)
        out[:, t] = np.where(follows, (out[:, t - 1] + 1) % WORDS, out[:, t])
    return out.ravel().astype(np.int32), np.arange(0, out.size + 1, length)


def model_of(seed: int) -> tuple[Bigrams, np.ndarray]:
    words, bounds = text(80, seed)
    rows = [words[a:b].tolist() for a, b in itertools.pairwise(bounds)]
    return Bigrams.of(words, bounds, WORDS), transitions(rows, WORDS, None)[0]


@pytest.mark.parametrize("level", ["record", "dataset"])
def test_it_is_the_sum_over_occurrences(level: str) -> None:
    law, (model, step) = some_law(WORDS, 1), model_of(2)
    words, bounds = text(20, 3)
    tokens = simulate(table_sampler(law), words, (words >= 0) & ALLOWED[words], bounds, level)  # type: ignore[arg-type]
    prior = of_drawn(model.unigram[:WORDS], ALLOWED)
    plausible = candidates(table_sampler(law), prior, tokens.outputs[tokens.drawn], WORDS)
    guesses, certainty = pooled_guesses(tokens, plausible, model, prior, level == "record")
    scores: dict[tuple[int, int], np.ndarray] = {}
    for i, (a, b) in enumerate(itertools.pairwise(bounds)):
        found = posterior(words[a:b], tokens.outputs[a:b], tokens.drawn[a:b], law, ALLOWED, step)
        for t, n in enumerate(range(a, b)):
            if tokens.drawn[n]:
                u = int(tokens.outputs[n])
                with np.errstate(divide="ignore", invalid="ignore"):
                    told = np.log(found[t][:WORDS] / (law[:, u] * prior))
                    start = np.log(law[:, u] * prior)
                key = (i if level == "record" else 0, u)
                scores[key] = scores.get(key, start) + np.where(np.isnan(told), -np.inf, told)
    assert any((tokens.outputs[tokens.drawn] == u).sum() > 5 for u in range(WORDS))
    for i, (a, b) in enumerate(itertools.pairwise(bounds)):
        for n in range(a, b):
            if tokens.drawn[n]:
                score = scores[i if level == "record" else 0, int(tokens.outputs[n])]
                assert guesses[n] == score.argmax()
                assert certainty[n] == pytest.approx(1 / np.exp(score - score.max()).sum())
            else:
                assert guesses[n] == -1


def test_sharing_draws_helps_the_adversary() -> None:
    words, bounds = text(300, 6)
    sampler, (model, _) = table_sampler(np.full((WORDS, WORDS), 1 / WORDS)), model_of(7)
    # A cipher: word w is always released as w.
    tokens = Tokens(words, words, (words >= 0) & ALLOWED[words], bounds)
    found = context_attack(sampler, tokens, model, ALLOWED, level="dataset")
    assert found.success == 1.0 > 0.6 > found.apart > found.bayes
    assert found.settings["level"] == "dataset"
    again = context_attack(sampler, tokens, model, ALLOWED)
    assert again.success == again.apart == found.apart
    with pytest.raises(SettingsError, match=r"^level: "):
        context_attack(sampler, tokens, model, ALLOWED, level="row")  # type: ignore[arg-type]


FLUENT = 12
BEYOND = FLUENT + 3  # a stop word that the lexicon lacks
# Kept words are those below 3; records of a chain, a kept word between, marks, unknown words, one of the last kind at the end.
TEXT = [[5, 6, 7, 8], [9, 1, 10], [4, EDGE, 11, 5], [6, UNKNOWN, 7, 3], [UNKNOWN, 4]]
NUMBERS = [*TEXT[:4], [BEYOND, 4]]


@pytest.fixture(scope="module")
def sampler() -> Any:
    words = lexicon_of(FLUENT, 9, share=0.5)
    return CusText(epsilon=3.0, k=4, mapping="aggressive", fluent=True).compile(words)


@pytest.fixture(scope="module")
def tokens(sampler: Any) -> Tokens:
    words, bounds = flat(TEXT)
    return simulate(sampler, words, words >= 3, bounds, numbers=flat(NUMBERS)[0])


@pytest.fixture(scope="module")
def bigrams() -> Bigrams:
    public = np.random.default_rng(3).integers(0, FLUENT, 300).astype(np.int32)
    return Bigrams.of(public, np.arange(0, 301, 5), FLUENT)


@pytest.mark.long
def test_words_are_replaced_after_what_is_released(sampler: Any, tokens: Tokens) -> None:
    at = np.flatnonzero(tokens.drawn)
    before = tokens.before
    known = flat(NUMBERS)[0]
    for row in range(tokens.records):
        for i in range(int(tokens.bounds[row]), int(tokens.bounds[row + 1])):
            last = NO_WORD
            if i > tokens.bounds[row]:
                last = tokens.outputs[i - 1] if tokens.drawn[i - 1] else max(known[i - 1], NO_WORD)
            assert before[i] == last
    blocks = np.stack([at, np.zeros(len(at))], axis=1).astype(np.uint64)
    again = sampler.sample_after(tokens.words[at], before[at], Draws(SUBKEY, blocks))
    np.testing.assert_array_equal(again, tokens.outputs[at])
    assert before[-1] == BEYOND


@pytest.mark.long
def test_the_fluent_posterior_is_that_of_every_text(sampler: Any, tokens: Tokens, bigrams: Bigrams) -> None:
    prior = bigrams.unigram[:FLUENT] / bigrams.unigram[:FLUENT].sum()
    at = np.flatnonzero(tokens.drawn)
    before = tokens.before
    listed, pairs = candidates_after(sampler, prior, tokens.outputs[at], before[at], FLUENT)
    assert (listed.covered == 1.0).all()
    observed = np.zeros(len(tokens.words), np.int32)
    observed[at] = pairs
    guesses, certainty = posterior_guesses(tokens, listed, bigrams, observed)
    emission = {
        (w, int(before[i])): dict(zip(*law_of(sampler, w, int(before[i])), strict=True)) for i in at for w in range(FLUENT)
    }  # fmt: skip
    edge = FLUENT + 1
    for row in range(tokens.records):
        part = list(range(int(tokens.bounds[row]), int(tokens.bounds[row + 1])))
        hidden = [i for i in part if tokens.drawn[i]]
        totals = {i: np.zeros(FLUENT) for i in hidden}
        for words in itertools.product(range(FLUENT), repeat=len(hidden)):
            filled = dict(zip(hidden, words, strict=True))
            chance = 1.0
            for i in hidden:
                chance *= emission[filled[i], int(before[i])].get(int(tokens.outputs[i]), 0.0)
            if not chance:
                continue
            seen = [filled.get(i, int(states(tokens.words[i : i + 1], FLUENT)[0])) for i in part]
            steps = np.array([edge, *seen, edge], np.int32)
            chance *= float(bigrams.probability(steps[:-1], steps[1:]).prod())
            for i in hidden:
                totals[i][filled[i]] += chance
        for i in hidden:
            assert guesses[i] == totals[i].argmax()
            assert certainty[i] == pytest.approx(totals[i].max() / totals[i].sum(), rel=1e-9)


def law_of(sampler: Any, word: int, before: int) -> tuple[list[int], list[float]]:
    found = sampler.law(word, before)
    return found.ids.tolist(), found.probability.tolist()


def test_the_attack_takes_the_laws_where_words_stand(sampler: Any, bigrams: Bigrams) -> None:
    random = np.random.default_rng(8)
    words = random.integers(3, FLUENT, 4_000).astype(np.int32)
    bounds = np.arange(0, 4_001, 8)
    drawn = np.arange(FLUENT) >= 3
    tokens = simulate(sampler, words, words >= 3, bounds)
    found = context_attack(sampler, tokens, bigrams, drawn)
    alone = bayes_attack(sampler, FLUENT, bigrams.unigram[:FLUENT], drawn)
    assert alone.exact
    assert "averaged over the word before" in (alone.how or "")
    assert found.covered == 1.0
    assert 1 / FLUENT < found.random < found.success < 1


@pytest.mark.parametrize("level", ["record", "dataset"])
def test_draws_are_not_shared(sampler: Any, level: Any) -> None:
    words, bounds = flat(TEXT)
    with pytest.raises(SettingsError, match=r"is not valid with mechanism\.fluent"):
        simulate(sampler, words, words >= 3, bounds, level)
