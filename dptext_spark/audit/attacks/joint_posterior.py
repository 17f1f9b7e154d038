"""The contextual adversary where equal words share a draw: what the neighbours of all occurrences say is put together.

At record and dataset level one draw decides all occurrences of a word in the scope, so the same output in the same scope is
taken for the same word throughout: argmax_w ln P(w) + ln P(u|w) + Σ_t ln (P(neighbours of t|w)/P(neighbours of t)), each term
of the sum from forward-backward over the record of occurrence t, its own output left out. That is one round of message
passing: the occurrences inform each other, not their neighbours' guesses. Different words with one output are not told apart,
and how often a word occurs is not used.
"""

from __future__ import annotations

import numpy as np

from dptext_spark.audit.attacks.bigrams import SPECIAL, Bigrams, states
from dptext_spark.audit.attacks.candidates import Candidates
from dptext_spark.audit.attacks.hmm import decode
from dptext_spark.audit.attacks.prior import Reals
from dptext_spark.audit.attacks.tokens import Ids, Tokens


def pooled_guesses(
    tokens: Tokens, plausible: Candidates, bigrams: Bigrams, prior: Reals, by_record: bool
) -> tuple[Ids, Reals]:
    """Guess the replaced words of a text whose draws are shared.

    Args:
        tokens: the text; of `words`, only those that were not replaced are looked at.
        plausible: of all outputs in it, under `prior`.
        bigrams: over the same lexicon.
        prior: float64[V], of the words that are drawn.
        by_record: whether a draw is shared within a record; else in the whole text.

    Returns:
        (int32[n] guesses, -1 where nothing was drawn; float64[n], the probability of each by the formula above).
    """
    words = bigrams.words
    filled = np.append(
        np.diff(plausible.starts) > 0, False
    )  # the last stands for outputs that were not asked for
    slot = np.where(tokens.drawn, plausible.slot[np.where(tokens.drawn, tokens.outputs, 0)], -1)
    at = np.flatnonzero(tokens.drawn & filled[slot])
    scope = (
        np.repeat(np.arange(tokens.records, dtype=np.int64), np.diff(tokens.bounds))[at] if by_record else 0
    )
    symbols, symbol = np.unique(scope * words + tokens.outputs[at].astype(np.int64), return_inverse=True)
    source = plausible.slot[symbols % words]
    sizes = np.diff(plausible.starts)[source]
    starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
    of = np.repeat(np.arange(len(symbols)), sizes)
    entry = np.arange(starts[-1]) - starts[of] + plausible.starts[source][of]
    ids, probability = plausible.ids[entry], plausible.probability[entry]
    row = np.full(len(tokens.words), -1, np.int32)
    row[at] = symbol.reshape(-1)
    evidence = np.zeros(len(ids))
    decode(
        states(np.where(tokens.drawn, tokens.outputs, tokens.words).astype(np.int32), words), row, tokens.bounds,
        words + SPECIAL - 1, starts, ids, probability,
        (bigrams.unigram, bigrams.weight, bigrams.starts, bigrams.following, bigrams.share),
        np.empty(len(row), np.int32), np.empty(len(row)), evidence,
    )  # fmt: skip
    guesses = np.where(tokens.drawn, tokens.outputs, -1).astype(np.int32)
    certainty = np.zeros(len(row))
    if len(symbols):
        score = np.log(prior[ids]) + np.log(probability) + evidence
        best = np.lexsort((ids, -score, of))[starts[:-1]]
        total = np.add.reduceat(np.exp(score - score[best][of]), starts[:-1])
        guesses[at], certainty[at] = ids[best][row[at]], (1.0 / total)[row[at]]
    return guesses, certainty
