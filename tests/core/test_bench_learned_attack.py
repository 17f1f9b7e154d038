"""The adversary that learns from released text against its formula, word by word, and against what it cannot know."""

from __future__ import annotations

import numpy as np

from benchmarks.learned_attack import ReleasedNeighbours, learned_guesses
from dptext_spark.audit.attacks.posterior import candidates
from dptext_spark.audit.attacks.tokens import Tokens
from dptext_spark.lexicon.lexicon import Lexicon
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


def test_neighbours_tell_more_than_the_word_alone() -> None:
    public, private = text(1, 3_000), text(2, 400)
    prior = np.full(WORDS, 1 / WORDS)
    plausible = candidates(sampler(), prior, private.outputs[private.drawn])  # type: ignore[arg-type]
    guesses = learned_guesses(private, plausible, prior, ReleasedNeighbours.of(public, WORDS))
    at = private.drawn
    alone = plausible.best[plausible.slot[private.outputs[at]]]
    assert (guesses[at] == private.words[at]).mean() > (alone == private.words[at]).mean() + 0.05
