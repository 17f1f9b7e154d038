"""The adversary who learns from a text of its own that it has released: which neighbours a word has after the mechanism.

It releases public text with the mechanism, keeps both sides, and counts for each word w what was released before it and behind
it. A replaced word is guessed by argmax_w P(w)·P(u|w)·P(a|w)·P(b|w), u its replacement, a and b what is released beside it; the
law P(u|w) it knows. The contextual adversary (:mod:`dptext_spark.audit.attacks.context`) reckons with the whole chain of words
and knows how neighbours are replaced; this one needs no model of the language, and learns what the chain leaves out: neighbours
on both sides as they look after the mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dptext_spark.arrays import F64, I64, Ids
from dptext_spark.audit.attacks.attacked_text import CAUTION, SPECIAL, Tokens, states
from dptext_spark.audit.attacks.bayes import Candidates

AT_ONCE = 1 << 20  # guesses that are weighed at once


@dataclass(frozen=True, eq=False)
class Beside:
    """P(a|w) = (c(w,a) + 5·T(w)·P(a))/(c(w) + 5·T(w)), a what is released on one side of a word w; as :mod:`bigrams` smooths.

    T(w) is the number of different a beside w, and P(a) = (c(a) + 1)/(c + V + 2).

    Attributes:
        keys: int64[m], w·(V + 2) + a of all pairs that were seen, ascending.
        counts: int64[m].
        seen: int64[V], c(w).
        kinds: int64[V], T(w).
        base: float64[V + 2], P(a).
    """

    keys: I64
    counts: I64
    seen: I64
    kinds: I64
    base: F64

    @classmethod
    def of(cls, words: Ids, beside: Ids, size: int) -> Beside:
        """Count pairs int32[n] of a word and a state; `size` is V."""
        keys, counts = np.unique(words.astype(np.int64) * (size + SPECIAL) + beside, return_counts=True)
        base = (np.bincount(beside, minlength=size + SPECIAL) + 1.0) / (len(beside) + size + SPECIAL)
        seen, kinds = (np.bincount(one, minlength=size) for one in (words, keys // (size + SPECIAL)))
        return cls(keys, counts, seen, kinds, base)

    def probability(self, words: Ids, beside: Ids) -> F64:
        """Return P(beside|word) of int32[n] each: float64[n]."""
        wanted = words.astype(np.int64) * len(self.base) + beside
        place = np.minimum(np.searchsorted(self.keys, wanted), max(0, len(self.keys) - 1))
        held = self.keys[place] == wanted if len(self.keys) else np.zeros(len(wanted), np.bool_)
        count = np.where(held, self.counts[place] if len(self.keys) else 0, 0)
        caution = CAUTION * np.maximum(self.kinds[words], 1)
        return np.asarray((count + caution * self.base[beside]) / (self.seen[words] + caution), np.float64)


@dataclass(frozen=True, eq=False)
class ReleasedNeighbours:
    """What is released beside a word, as an adversary counted it: before it, and behind it."""

    left: Beside
    right: Beside

    @classmethod
    def of(cls, tokens: Tokens, words: int) -> ReleasedNeighbours:
        """Count them in a text whose words the adversary knows, beside what was released.

        Args:
            tokens: the text and its release.
            words: V.
        """
        own = tokens.words[tokens.drawn]
        return cls(*(Beside.of(own, side[tokens.drawn], words) for side in _released_beside(tokens, words)))


def _released_beside(tokens: Tokens, words: int) -> tuple[Ids, Ids]:
    """Return the state released before and after each token."""
    shown = states(np.where(tokens.drawn, tokens.outputs, tokens.words), words)
    return tokens.neighbours(shown, words + SPECIAL - 1)


def learned_guesses(
    tokens: Tokens,
    plausible: Candidates,
    prior: F64,
    neighbours: ReleasedNeighbours,
    observed: Ids | None = None,
) -> Ids:
    """Guess the replaced words of a text.

    Args:
        tokens: the text; of `words`, only those that were not replaced are looked at.
        plausible: of all outputs in it.
        prior: float64[V], of the words that are drawn.
        neighbours: what the adversary learnt.
        observed: int32[n], what `plausible` was asked for in place of the outputs, read only where words were drawn.

    Returns:
        int32[n], guesses; -1 where nothing was drawn. An output that no word is known to lead to counts as the word itself.
    """
    seen = tokens.outputs if observed is None else observed
    at = np.flatnonzero(tokens.drawn)
    row = plausible.slot[seen[at]]
    many = np.where(row >= 0, np.diff(plausible.starts)[row], 0)
    guesses = np.full(len(tokens.words), -1, np.int32)
    guesses[at] = tokens.outputs[at]
    left, right = _released_beside(tokens, len(neighbours.left.seen))
    ends = np.cumsum(many)
    cuts = np.append(np.searchsorted(ends, np.arange(0, int(ends[-1]) if len(ends) else 0, AT_ONCE)), len(at))
    for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        some = np.arange(first, last)[many[first:last] > 0]
        heads = np.append(0, np.cumsum(many[some]))[:-1]
        of = np.repeat(some, many[some])
        entry = plausible.starts[row[of]] + np.arange(len(of)) - np.repeat(heads, many[some])
        word = plausible.ids[entry]
        score = np.log(prior[word] * plausible.probability[entry])
        score += np.log(neighbours.left.probability(word, left[at[of]]))
        score += np.log(neighbours.right.probability(word, right[at[of]]))
        best = np.lexsort((word, -score, of))[heads]
        guesses[at[some]] = word[best]
    return guesses
