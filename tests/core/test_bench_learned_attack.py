"""The adversary that learns from released text against its formula, word by word, and against what it cannot know."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import learned_attack as module
from benchmarks.learned_attack import ReleasedNeighbours, learned_guesses
from dptext_spark.audit.attacks.attacked_text import CAUTION, Tokens
from dptext_spark.audit.attacks.bayes import candidates
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import Prior
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import CusText
from dptext_spark.text.tokens import EDGE, UNKNOWN
from tests.core.names import names

WORDS = 24


def sampler(epsilon: float = 3.0) -> object:
    vectors = np.random.default_rng(3).normal(size=(WORDS, 4)).astype(np.float32)
    return CusText(epsilon=epsilon, k=6).compile(Lexicon(Vocabulary.of(names(WORDS)), vectors))


def text(seed: int, records: int = 60) -> Tokens:
    """Records whose words follow each other by a rule, with kept words, numbers and punctuation among them."""
    random = np.random.default_rng(seed)
    words, bounds = [], [0]
    for _ in range(records):
        word = int(random.integers(WORDS))
        for _ in range(int(random.integers(0, 9))):
            words.append(int(random.choice([word, EDGE, UNKNOWN], p=[0.8, 0.1, 0.1])))
            word = (word * 5 + int(random.integers(3))) % WORDS
        bounds.append(len(words))
    ids = np.array(words, np.int32)
    drawn = (ids >= 0) & (ids % 7 != 0)
    outputs = ids.copy()
    law = {word: sampler().law(word) for word in range(WORDS)}  # type: ignore[attr-defined]
    for place in np.flatnonzero(drawn):
        one = law[int(ids[place])]
        outputs[place] = random.choice(one.ids, p=one.probability / one.probability.sum())
    return Tokens(ids, outputs, drawn, np.array(bounds, np.int64))


def shown(tokens: Tokens, place: int, record: int) -> str:
    """Return what stands at a place of a record after the release, as a word of its own kind."""
    if not tokens.bounds[record] <= place < tokens.bounds[record + 1]:
        return "edge"
    if tokens.drawn[place]:
        return f"word {tokens.outputs[place]}"
    word = int(tokens.words[place])
    return {EDGE: "edge", UNKNOWN: "unknown"}.get(word, f"word {word}")


def learnt(tokens: Tokens, side: int) -> tuple[dict[tuple[int, str], int], dict[str, int]]:
    """Count (word, what is released beside it), and how often each state stands in any of these pairs."""
    pairs: dict[tuple[int, str], int] = {}
    states: dict[str, int] = {}
    for record in range(tokens.records):
        for place in range(int(tokens.bounds[record]), int(tokens.bounds[record + 1])):
            if tokens.drawn[place]:
                pair = int(tokens.words[place]), shown(tokens, place + side, record)
                pairs[pair] = pairs.get(pair, 0) + 1
                states[pair[1]] = states.get(pair[1], 0) + 1
    return pairs, states


def test_guesses_are_the_likeliest_words_by_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    public, private = text(1, 200), text(2)
    prior = Prior.by_rank(WORDS).words
    plausible = candidates(sampler(), prior, private.outputs[private.drawn])  # type: ignore[arg-type]
    model = ReleasedNeighbours.of(public, WORDS)
    guesses = learned_guesses(private, plausible, prior, model)
    counts = {-1: learnt(public, -1), 1: learnt(public, 1)}

    def beside(side: int, word: int, state: str) -> float:
        pairs, states = counts[side]
        mine = [many for pair, many in pairs.items() if pair[0] == word]
        base = (states.get(state, 0) + 1) / (sum(states.values()) + WORDS + 2)
        caution = CAUTION * max(len(mine), 1)
        return (pairs.get((word, state), 0) + caution * base) / (sum(mine) + caution)

    for record in range(private.records):
        for place in range(int(private.bounds[record]), int(private.bounds[record + 1])):
            if not private.drawn[place]:
                assert guesses[place] == -1
                continue
            words, law = plausible.row(int(private.outputs[place]))
            score = {
                int(word): math.log(prior[word] * share)
                + math.log(beside(-1, int(word), shown(private, place - 1, record)))
                + math.log(beside(1, int(word), shown(private, place + 1, record)))
                for word, share in zip(words, law, strict=True)
            }
            assert score[int(guesses[place])] >= max(score.values()) - 1e-9
    monkeypatch.setattr(module, "AT_ONCE", 7)
    assert np.array_equal(learned_guesses(private, plausible, prior, model), guesses)


def test_neighbours_tell_more_than_the_word_alone() -> None:
    public, private = text(1, 3_000), text(2, 400)
    prior = np.full(WORDS, 1 / WORDS)
    plausible = candidates(sampler(), prior, private.outputs[private.drawn])  # type: ignore[arg-type]
    guesses = learned_guesses(private, plausible, prior, ReleasedNeighbours.of(public, WORDS))
    at = private.drawn
    alone = plausible.best[plausible.slot[private.outputs[at]]]
    assert (guesses[at] == private.words[at]).mean() > (alone == private.words[at]).mean() + 0.05


def test_a_text_without_a_drawn_word_has_no_guess() -> None:
    empty = Tokens(
        np.array([EDGE, UNKNOWN], np.int32), np.array([EDGE, UNKNOWN], np.int32), np.zeros(2, np.bool_), np.array([0, 0, 2])
    )  # fmt: skip
    prior = np.full(WORDS, 1 / WORDS)
    plausible = candidates(sampler(), prior, np.array([1], np.int32))  # type: ignore[arg-type]
    model = ReleasedNeighbours.of(text(1, 20), WORDS)
    assert learned_guesses(empty, plausible, prior, model).tolist() == [-1, -1]
