"""The frequency attack on a substitution cipher: at dataset level every occurrence of a word has one output, at any ε.

Outputs are matched with words by rank: the most frequent output with the most frequent word of a public text, and so on. Then the
neighbours improve the matching of the most frequent outputs, in a stated number of rounds. Output u and word w agree by Σ_a
n(a,u)·ln P(w|a) + Σ_b n(u,b)·ln P(b|w) over the neighbours a before and b after u. Neighbours are words that were kept; from the
second round on also the current guesses of the other frequent outputs. The attack takes the best one-to-one matching under these
sums (the assignment problem, Kuhn 1955). The mechanism's law is not used. At record and token level the outputs of a word vary.
The attack would still take each output for one symbol and be weak, so audits and reports make it at dataset level.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment

from dptext_spark.arrays import F64, Bools, Ids
from dptext_spark.audit.attacks.attacked_text import SPECIAL, Bigrams, Tokens, states
from dptext_spark.audit.attacks.bayes import InputWords
from dptext_spark.audit.results import CONFIDENCE, WordAttack, rate
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.rounding import percent_up

SYMBOLS = 800
ROUNDS = 6
HIDDEN = -1


@dataclass(frozen=True, kw_only=True)
class FrequencyAttack(WordAttack):
    """Result of the frequency attack on a text.

    Attributes:
        success: share of the replaced words that are guessed; `lower` and `upper` by resampling records, the guesses fixed.
        by_type: share of the different pairs of word and output that are guessed.
        ranks: success of the matching by rank alone, and `ranks_by_type`.
        bayes: success of the adversary that knows the law and looks at one word at a time; None where it was not asked for.
        bayes_by_type: the same by type.
        tokens: replaced words; `types` are the different pairs of word and output, `outputs` the different outputs.
    """

    name: str = "frequency matching"
    measures: str = "The share of replaced words that the adversary guesses from the frequencies of outputs and word pairs."
    knows: str | None = (
        "The adversary knows the whole released text, the places of replaced words, the kept words, and "
        "public frequencies of words and word pairs. The adversary does not know the mechanism or the key."
    )

    lower: float = field()
    upper: float = field()
    by_type: float
    ranks: float
    ranks_by_type: float
    bayes_by_type: float | None
    tokens: int
    types: int
    outputs: int
    open: bool | None = True  # it is a heuristic: another matching may find more

    @property
    def details(self) -> dict[str, str]:
        """Figures beside its success, as text."""
        return {
            "replaced words attacked": f"{self.tokens:,}, with {self.outputs:,} different outputs",
            "found by the frequency of outputs alone": percent_up(self.ranks),
            "different words found": percent_up(self.by_type),
        }


def by_rank(outputs: Ids, prior: F64) -> Ids:
    """Match outputs with words by rank.

    Args:
        outputs: int32[n], of the replaced words.
        prior: float64[V], of the words that are drawn.

    Returns:
        int32[V], the word for each output; -1 where it does not occur, or there are no more words. Ties to the lower id.
    """
    counts = np.bincount(outputs, minlength=len(prior))
    symbols = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    words = np.argsort(-prior, kind="stable")[: np.count_nonzero(prior)]
    many = min(len(symbols), len(words))
    guess = np.full(len(prior), -1, np.int32)
    guess[symbols[:many]] = words[:many]
    return guess


def by_neighbours(
    tokens: Tokens, bigrams: Bigrams, prior: F64, symbols: int = SYMBOLS, rounds: int = ROUNDS
) -> Ids:
    """Match outputs with words by rank, and the most frequent ones by their neighbours: int32[V], as :func:`by_rank`.

    Args:
        tokens: the text; of `words`, only those that were not replaced are looked at.
        bigrams: of a public text.
        prior: float64[V], of the words that are drawn.
        symbols: how many outputs are matched by neighbours, among twice as many words.
        rounds: at most so many; fewer where nothing changes.
    """
    at = np.flatnonzero(tokens.drawn)
    outputs = tokens.outputs[at]
    guess = by_rank(outputs, prior)
    counts = np.bincount(outputs, minlength=len(prior))
    top = np.argsort(-counts, kind="stable")[: min(symbols, np.count_nonzero(counts))]
    words = np.argsort(-prior, kind="stable")[: np.count_nonzero(prior)]
    pool = words[: max(2 * symbols, len(top))].astype(np.int32)
    top = top[: len(pool)]
    place = np.full(len(prior), -1, np.int64)
    place[top] = np.arange(len(top))
    word_states = states(np.where(tokens.drawn, 0, tokens.words), bigrams.words)
    released = np.where(tokens.drawn, tokens.outputs, 0)
    known = tokens.drawn & (place[released] >= 0)  # of the others there is a rank alone
    for turn in range(rounds):
        read = np.where(known & (turn > 0), guess[released], np.where(tokens.drawn, HIDDEN, word_states))
        left, right = (side[at] for side in tokens.neighbours(read, bigrams.words + SPECIAL - 1))
        score = np.zeros((len(top), len(pool)))
        for side, before in ((left, True), (right, False)):
            counted = (place[outputs] >= 0) & (side >= 0)
            contexts, column = np.unique(side[counted], return_inverse=True)
            cells = place[outputs[counted]] * len(contexts) + column
            pair_count = np.bincount(cells, minlength=len(top) * len(contexts)).reshape(len(top), -1)
            logs = _logs(bigrams, contexts, pool) if before else _logs(bigrams, pool, contexts).T
            score += pair_count.astype(np.float64) @ logs
        row, chosen = linear_sum_assignment(score, maximize=True)
        if turn and (guess[top[row]] == pool[chosen]).all():
            break
        guess[top[row]] = pool[chosen]
    rest = np.setdiff1d(np.flatnonzero(counts), top)
    rest = rest[np.argsort(-counts[rest], kind="stable")]
    spare = words[~np.isin(words, guess[top])][: len(rest)]
    guess[rest] = -1
    guess[rest[: len(spare)]] = spare
    return guess


def frequency_attack(
    tokens: Tokens,
    bigrams: Bigrams,
    drawn: Bools | None = None,
    plausible: InputWords | None = None,
    *,
    symbols: int = SYMBOLS,
    rounds: int = ROUNDS,
    restricted: bool = True,
) -> FrequencyAttack:
    """Attack a text.

    Args:
        tokens: the text beside what was released.
        bigrams: of a public or held-out text, over the same lexicon.
        drawn: bool[V], the words that the policy draws; None for all.
        plausible: of all outputs by the law, for the Bayes adversary beside it; None leaves it out.
        symbols: how many outputs are matched by neighbours.
        rounds: how often.
        restricted: whether the text is private.

    Raises:
        DataError: nothing in the text was drawn.
        SettingsError: `symbols` or `rounds` below 1.
    """
    for name, value in (("symbols", symbols), ("rounds", rounds)):
        if value < 1:
            raise SettingsError(f"{name}: {value!r} is not valid. Use 1 or more.")
    at = np.flatnonzero(tokens.drawn)
    if not len(at):
        raise DataError("tokens: none was drawn. Give at least one drawn word.")
    prior = of_drawn(bigrams.unigram[: bigrams.words], drawn)
    truth, outputs = tokens.words[at], tokens.outputs[at]
    keys, first = np.unique(truth.astype(np.int64) * len(prior) + outputs, return_index=True)

    def rates(guess: Ids) -> tuple[float, float]:
        hit = guess[outputs] == truth
        return float(hit.mean()), float(hit[first].mean())

    matched = by_neighbours(tokens, bigrams, prior, symbols, rounds)
    flags = np.zeros(len(tokens.words), np.bool_)
    flags[at] = matched[outputs] == truth
    interval = rate(tokens.by_record(flags), tokens.by_record(tokens.drawn))
    bayes: tuple[float | None, float | None] = (None, None)
    if plausible is not None:
        bayes = rates(np.where(plausible.slot >= 0, plausible.best[plausible.slot], -1).astype(np.int32))
    ranks = rates(by_rank(outputs, prior))
    success, by_type = rates(matched)
    return FrequencyAttack(
        success=success, lower=interval.lower, upper=interval.upper, by_type=by_type, ranks=ranks[0], ranks_by_type=ranks[1],
        bayes=bayes[0], bayes_by_type=bayes[1], random=1.0 / int(np.count_nonzero(prior)), unprotected=1.0, tokens=len(at),
        types=len(keys), outputs=len(np.unique(outputs)), confidence=CONFIDENCE, restricted=restricted,
        settings={
            "symbols": symbols, "rounds": rounds, "transitions": bigrams.smoothing, "counted_tokens": bigrams.tokens,
        },
    )  # fmt: skip


def _logs(bigrams: Bigrams, first: Ids, second: Ids) -> F64:
    """Return ln P(second|first) for all pairs of two lists of states, each without repetition: float64[n, m]."""
    rest = 1.0 - bigrams.weight[first]
    out = np.asarray(rest[:, None] * bigrams.unigram[second], np.float64)
    column = np.full(len(bigrams.unigram), -1, np.int64)
    column[second] = np.arange(len(second))
    sizes = bigrams.starts[first + 1] - bigrams.starts[first]
    row = np.repeat(np.arange(len(first)), sizes)
    entry = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + bigrams.starts[first][row]
    where = column[bigrams.following[entry]]
    listed = where >= 0
    out[row[listed], where[listed]] += bigrams.weight[first][row[listed]] * bigrams.share[entry[listed]]
    return np.asarray(np.log(out), np.float64)
