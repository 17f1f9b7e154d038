"""The contextual adversary as one would write it down: NumPy, record by record, a dense matrix for each step."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dptext_spark.audit.attacks.bigrams import SPECIAL, Bigrams
from dptext_spark.audit.attacks.posterior import Candidates
from dptext_spark.audit.attacks.tokens import Tokens

Ids = npt.NDArray[np.int32]


def plain_guesses(tokens: Tokens, plausible: Candidates, bigrams: Bigrams) -> Ids:
    """Guess every word of a text in which all words were drawn: int32[n]."""
    edge = np.array([bigrams.words + SPECIAL - 1], np.int32)
    followers = [dict(zip(*row, strict=True)) for row in _rows(bigrams)]

    def step(first: Ids, second: Ids) -> npt.NDArray[np.float64]:
        share = np.array([[followers[a].get(b, 0.0) for b in second.tolist()] for a in first.tolist()])
        weight = bigrams.weight[first][:, None]
        return np.asarray(weight * share + (1 - weight) * bigrams.unigram[second])

    guesses = np.empty(len(tokens.words), np.int32)
    for start, end in zip(tokens.bounds[:-1].tolist(), tokens.bounds[1:].tolist(), strict=True):
        rows = [plausible.row(int(u)) for u in tokens.outputs[start:end]]
        states = [edge, *(ids for ids, _ in rows), edge]
        steps = [step(a, b) for a, b in pairwise(states)]
        alpha = [np.ones(1)]
        for move, (_, seen) in zip(steps, rows, strict=False):
            ahead = (alpha[-1] @ move) * seen
            alpha.append(ahead / ahead.sum())
        after = np.ones(1)
        for t in range(len(rows), 0, -1):
            beta = steps[t] @ after
            guesses[start + t - 1] = states[t][(alpha[t] * beta).argmax()]
            after = beta / beta.sum() * rows[t - 1][1]
    return guesses


def _rows(bigrams: Bigrams) -> list[tuple[list[int], list[float]]]:
    cuts = bigrams.starts[1:-1]
    return [
        (ids.tolist(), shares.tolist())
        for ids, shares in zip(np.split(bigrams.following, cuts), np.split(bigrams.share, cuts), strict=True)
    ]
