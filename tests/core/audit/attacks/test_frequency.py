"""The frequency attack: matching by rank, by neighbours against every matching, and on a cipher that it should break."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dptext_spark.audit.attacks.attacked_text import Bigrams, Tokens
from dptext_spark.audit.attacks.bayes import candidates
from dptext_spark.audit.attacks.frequency import by_neighbours, by_rank, frequency_attack
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.text.tokens import EDGE
from tests.core.audit.plain_attacks import table_sampler, transitions

WORDS = 60
KEPT = 12  # the most frequent words are kept


def text(records: int, seed: int, words: int = WORDS) -> tuple[np.ndarray, np.ndarray]:
    """Return (tokens, bounds) of a Markov chain in which each word has a few favourite followers."""
    random = np.random.default_rng(99)
    step = np.full((words, words), 0.02) * (1 / (np.arange(words) + 2.7))
    step += random.exponential(size=(words, words)) * (random.random((words, words)) < 0.1) * 0.2
    total = np.cumsum(step / step.sum(axis=1, keepdims=True), axis=1)
    random = np.random.default_rng(seed)
    out = np.zeros((records, 12), np.int32)
    for n in range(records):
        word = int(random.integers(words))
        for t in range(12):
            word = min(int(np.searchsorted(total[word], random.random())), words - 1)
            out[n, t] = word if random.random() > 0.05 else EDGE
    return out.ravel(), np.arange(0, out.size + 1, 12)


def cipher(words: np.ndarray, bounds: np.ndarray, drawn: np.ndarray, seed: int) -> Tokens:
    """Replace drawn words by a secret permutation of all words."""
    swapped = np.random.default_rng(seed).permutation(len(drawn)).astype(np.int32)
    replaced = (words >= 0) & drawn[words]
    return Tokens(words, np.where(replaced, swapped[words], words).astype(np.int32), replaced, bounds)


def test_by_rank() -> None:
    outputs = np.array([3, 3, 3, 1, 1, 4, 0], np.int32)
    prior = np.array([0.1, 0.3, 0.0, 0.3, 0.2, 0.1])
    assert by_rank(outputs, prior).tolist() == [4, 3, -1, 1, 0, -1]  # 3 1 0 4 meet 1 3 4 0
    assert by_rank(outputs, np.array([0, 0.6, 0, 0, 0.4, 0])).tolist() == [-1, 4, -1, 1, -1, -1]


def test_the_matching_is_the_best_of_all() -> None:
    words, bounds = text(80, 1, 7)
    drawn = np.arange(7) >= 2
    tokens = cipher(words, bounds, drawn, 2)
    public, ends = text(60, 3, 7)
    model = Bigrams.of(public, ends, 7)
    prior = of_drawn(model.unigram[:7], drawn)
    step, _ = transitions([public[a:b].tolist() for a, b in itertools.pairwise(ends)], 7, None)
    symbols = np.unique(tokens.outputs[tokens.drawn])

    def agreement(matching: dict[int, int], known: dict[int, int]) -> float:
        """Σ over drawn tokens of ln P(w|a) + ln P(b|w), neighbours that are hidden left out."""
        total, edge = 0.0, 8
        for start, end in itertools.pairwise(bounds):
            row = [edge]
            for n in range(start, end):
                if tokens.drawn[n]:
                    row.append(known.get(int(tokens.outputs[n]), -1))
                else:
                    row.append(edge if words[n] == EDGE else int(words[n]))
            row.append(edge)
            for t, n in enumerate(range(start, end), 1):
                if tokens.drawn[n]:
                    w = matching[int(tokens.outputs[n])]
                    total += np.log(step[row[t - 1], w]) if row[t - 1] >= 0 else 0.0
                    total += np.log(step[w, row[t + 1]]) if row[t + 1] >= 0 else 0.0
        return total

    known: dict[int, int] = {}
    for rounds in (1, 2):
        orders = itertools.permutations(range(2, 7), len(symbols))
        every = [dict(zip(symbols.tolist(), order, strict=True)) for order in orders]
        known = max(every, key=lambda matching: agreement(matching, known))
        found = by_neighbours(tokens, model, prior, rounds=rounds)
        assert {int(u): int(found[u]) for u in symbols} == known


def test_a_cipher_is_broken() -> None:
    words, bounds = text(600, 4)
    drawn = np.arange(WORDS) >= KEPT
    tokens = cipher(words, bounds, drawn, 5)
    model = Bigrams.of(*text(900, 6), WORDS)
    found = frequency_attack(tokens, model, drawn)
    assert found.success > 0.9 > 0.3 > found.ranks
    assert found.by_type > 0.8
    assert found.lower <= found.success <= found.upper
    assert found.random == pytest.approx(1 / (WORDS - KEPT))
    assert found.types == found.outputs == len(np.unique(words[words >= KEPT]))
    assert (found.bayes, found.exact, found.restricted) == (None, False, True)
    assert found.tokens == tokens.drawn.sum()
    # Fewer symbols: the rest is matched by rank with the words that are left.
    few = by_neighbours(tokens, model, of_drawn(model.unigram[:WORDS], drawn), symbols=10)
    used = few[few >= 0]
    assert len(used) == len(set(used.tolist())) == found.outputs
    assert drawn[used].all()
    some = frequency_attack(tokens, model, drawn, symbols=10)
    assert found.ranks == some.ranks
    assert some.success < found.success


def test_it_stands_beside_the_bayes_adversary() -> None:
    words, bounds = text(100, 7)
    tokens = Tokens(words, words.copy(), words >= 0, bounds)
    model = Bigrams.of(*text(300, 8), WORDS)
    prior = of_drawn(model.unigram[:WORDS], None)
    outputs = tokens.outputs[tokens.drawn]
    likely = candidates(table_sampler(np.eye(WORDS)), prior, outputs, 1)
    found = frequency_attack(tokens, model, plausible=likely)
    assert found.bayes == found.bayes_by_type == 1.0


def test_settings_that_are_wrong() -> None:
    words, bounds = text(2, 9)
    model = Bigrams.of(words, bounds, WORDS)
    tokens = Tokens(words, words, words >= 0, bounds)
    for setting in ("symbols", "rounds"):
        with pytest.raises(SettingsError, match=rf"^{setting}: 0 "):
            frequency_attack(tokens, model, **{setting: 0})
    with pytest.raises(DataError, match=r"^tokens: none"):
        frequency_attack(Tokens(words, words, words < -9, bounds), model)
