"""The Bayes-optimal adversary, and the plausible inputs of an output that the attacks on words weigh.

The plausible inputs w of an output u, best first by P(w)·P(u|w) under a public prior P.

An attack asks for P(u|w) of the outputs u that it saw, over all words w. :func:`candidates` reads every word's law, a row over u:
34,000 rows of 34,000 numbers take minutes. Where P(u|w) is a formula of w and u (laws by distance over the whole lexicon, lists),
:func:`from_columns` is quicker. It computes only the needed columns, in float32, within about 1e-4 of the law. The success of
guesses made with them is measured on draws of the law itself.

At most a stated number of words is listed for an output; `covered` says what share of P(w)·P(u|w) they hold. A law that is
counted from draws misses rare inputs: an attack that uses it reaches less than one with more draws would.

The Bayes-optimal adversary: guesses argmax_w P(w)·P(u|w) for each output u, P a public prior (concepts/mechanisms, Audits).

No adversary who sees one replaced word alone succeeds more often: Σ_u max_w P(w)·P(u|w). Exact for laws, read in blocks with a
running maximum for each output. A law that is a formula can be read backwards, and that is quicker by far. The guesses are then
made in float32, and their success is taken in float64. Without a law the draws of each word come in two halves of n. The guesses
are learnt on the first (P(u|w) the shares there) and tried on the second. That success, with Hoeffding's bound (1963) for draws
in strata, bounds the optimum from below. From above: Σ_u max_w P(w)·share(u|w) over the second half is in expectation at least
the optimum (a mean of maxima is at least the maximum of means). A draw of w changes it by P(w)/n at most, so McDiarmid (1989)
bounds how far it can fall short. Both bounds hold together with the stated confidence.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from dptext_spark.arrays import F32, F64, I64, Bools, Ids, offsets
from dptext_spark.audit.attacks.attacked_text import sampled
from dptext_spark.audit.results import CONFIDENCE, Estimate, WordAttack
from dptext_spark.audit.word_figures import DRAWS, blocks, share_of
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.prior import Prior, of_drawn
from dptext_spark.mechanisms.base import LawColumns, Sampler
from dptext_spark.mechanisms.matrices import in_threads
from dptext_spark.randomness import Draws
from dptext_spark.runtime.jit import Int, compiled

MOST = 64
TRIES = 4_096  # words that are drawn from the prior for the attack on one word
AT_ONCE = 256  # outputs whose columns are held at once, by each thread
SUBKEY = hashlib.sha256(b"backward attack").digest()  # public: nothing private is drawn here


@dataclass(frozen=True, eq=False)
class InputWords:
    """The plausible inputs of some outputs.

    Attributes:
        slot: int32[V], the row of an output; -1 for those that were not asked for.
        starts: int64[n + 1], rows of the next two.
        ids: int32[m], words, the largest P(w)·P(u|w) first, ties to the lower id.
        probability: float64[m], P(u|w).
        possible: int64[n], how many words can lead to each output at all.
        covered: float64[n], the share of Σ_w P(w)·P(u|w) that the listed words hold; 1 where nothing can lead to u.
        most: at most so many are listed for an output.
        draws: of each word, where the law was counted from draws; None where it is exact.
    """

    slot: Ids
    starts: I64
    ids: Ids
    probability: F64
    possible: I64
    covered: F64
    most: int
    draws: int | None

    @property
    def best(self) -> Ids:
        """The likeliest word of each row, int32[n]: the Bayes adversary's guess; -1 where there is none."""
        filled = np.diff(self.starts) > 0
        best = np.full(len(filled), -1, np.int32)
        best[filled] = self.ids[self.starts[:-1][filled]]
        return best

    def row(self, output: int) -> tuple[Ids, F64]:
        """Return (words, P(output|word)) of an output that was asked for."""
        row = int(self.slot[output])
        part = slice(int(self.starts[row]), int(self.starts[row + 1]))
        return self.ids[part], self.probability[part]


@compiled
def _collect(
    words: Ids, starts: I64, ids: Ids, probability: F64, prior: F64, slot: Ids, inputs: Ids, shares: F64, scores: F64,
    possible: I64, total: F64,
) -> None:  # fmt: skip
    """Take the laws of some words in: each output keeps its best candidates, in no order."""
    most = np.int64(inputs.shape[1])
    for i in range(words.shape[0]):
        word = words[i]
        for e in range(starts[i], starts[i + 1]):
            row = np.int64(slot[ids[e]])
            score = prior[word] * probability[e]
            if row < 0 or score <= 0.0:
                continue
            place: Int = possible[row]
            possible[row] += 1
            total[row] += score
            if place >= most:
                place = 0
                for j in range(1, most):
                    low = scores[row, j] < scores[row, place]
                    if low or (scores[row, j] == scores[row, place] and inputs[row, j] > inputs[row, place]):
                        place = j
                if score < scores[row, place] or (score == scores[row, place] and word > inputs[row, place]):
                    continue
            inputs[row, place], shares[row, place], scores[row, place] = word, probability[e], score


def candidates(
    sampler: Sampler, prior: F64, outputs: Ids, most: int = MOST, draws: int = DRAWS
) -> InputWords:
    """Read a mechanism backwards.

    Args:
        sampler: of any mechanism.
        prior: float64[V], of the words that are drawn; words of probability 0 are no candidates.
        outputs: int32[n], the outputs that are asked for; repeated ones count once.
        most: candidates of an output.
        draws: of each word, where there is no law.

    Raises:
        SettingsError: `most` below 1.
    """
    if most < 1:
        raise SettingsError(f"most: {most} is not valid. Use 1 or more.")
    observed = np.unique(np.asarray(outputs, np.int32))
    slot = np.full(len(prior), -1, np.int32)
    slot[observed] = np.arange(len(observed), dtype=np.int32)
    inputs = np.zeros((len(observed), most), np.int32)
    shares, scores = np.zeros((2, len(observed), most))
    possible, total = np.zeros(len(observed), np.int64), np.zeros(len(observed))
    counted: int | None = None
    for block in blocks(sampler, np.flatnonzero(prior).astype(np.int32), draws):
        counted = block.draws
        _collect(
            block.words, block.starts, block.ids, block.probability, prior, slot, inputs, shares, scores, possible, total
        )  # fmt: skip
    counts = np.minimum(possible, most)
    filled = np.arange(most) < counts[:, None]
    order = np.lexsort((inputs, -np.where(filled, scores, -1.0)), axis=1)
    inputs, shares = np.take_along_axis(inputs, order, 1), np.take_along_axis(shares, order, 1)
    covered = np.divide(scores.sum(axis=1), total, out=np.ones(len(observed)), where=total > 0)
    starts = offsets(counts)
    return InputWords(
        slot, starts, inputs[filled], shares[filled], possible, np.minimum(covered, 1.0), most, counted
    )


def candidates_after(
    sampler: Sampler, prior: F64, outputs: Ids, before: Ids, most: int = MOST
) -> tuple[InputWords, Ids]:
    """Read a mechanism backwards whose draws depend on the word before them.

    Args:
        sampler: of such a mechanism.
        prior: float64[V], of the words that are drawn; words of probability 0 are no candidates.
        outputs: int32[n].
        before: int32[n], what is released before each.
        most: candidates of an output.

    Returns:
        (the candidates of each different pair of an output and what is before it; int32[n], which pair each is, as `slot` takes
        it).
    """
    pairs = (np.asarray(outputs, np.int64) << 32) + np.asarray(before, np.int64) + (1 << 16)
    unique, observed = np.unique(pairs, return_inverse=True)
    outputs, before = (unique >> 32).astype(np.int32), ((unique & 0xFFFFFFFF) - (1 << 16)).astype(np.int32)
    inputs = sampler.inputs_after(outputs, before)
    assert inputs is not None
    score = prior[inputs.words] * inputs.probability
    row = np.repeat(np.arange(len(unique)), np.diff(inputs.starts))
    order = np.lexsort((inputs.words, -score, row))
    order = order[score[order] > 0]
    possible = np.bincount(row[order], minlength=len(unique)).astype(np.int64)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(possible) - possible, possible)
    best = order[rank < most]
    total = np.bincount(row, weights=score, minlength=len(unique))
    listed_score = np.bincount(row[best], weights=score[best], minlength=len(unique))
    covered = np.divide(listed_score, total, out=np.ones(len(unique)), where=possible > most)
    slot, starts = np.arange(len(unique), dtype=np.int32), offsets(np.minimum(possible, most))
    words, probability = inputs.words[best], inputs.probability[best]
    listed = InputWords(slot, starts, words, probability, possible, np.minimum(covered, 1.0), most, None)
    return listed, observed.reshape(-1).astype(np.int32)


def columns_of(sampler: Sampler) -> LawColumns:
    """Return the reader of a law by outputs; :class:`ValueError`: the sampler has no such reading."""
    columns = sampler.law_columns()
    if columns is None:
        raise ValueError("the law cannot be read output by output")
    return columns


@compiled
def _best(
    probability: F32, prior: F32, inputs: Ids, shares: F32, scores: F32, possible: I64, total: F64
) -> None:
    """Keep the words of largest P(w)·P(u|w) of each row, the largest first, ties to the lower id.

    Fills `inputs` int32[n, m], `shares` P(u|w) and `scores` (all 0 before), float32[n, m]. Also `possible` int64[n], how many
    words have a product above 0, and `total` float64[n], their sum. `probability` is float32[n, V].
    """
    last = inputs.shape[1] - 1
    for row in range(probability.shape[0]):
        bar = np.float32(0.0)
        many, sums = 0, 0.0
        for w in range(probability.shape[1]):
            score = probability[row, w] * prior[w]
            sums += np.float64(score)
            many += score > 0.0
            if score > bar:
                at = last
                while at > 0 and scores[row, at - 1] < score:
                    scores[row, at] = scores[row, at - 1]
                    inputs[row, at], shares[row, at] = inputs[row, at - 1], shares[row, at - 1]
                    at -= 1
                scores[row, at], inputs[row, at], shares[row, at] = score, w, probability[row, w]
                bar = scores[row, last]
        possible[row], total[row] = many, sums


def from_columns(column_of: Callable[[Ids], F32], prior: F64, observed: Ids, most: int = MOST) -> InputWords:
    """Compute the plausible inputs of the observed outputs.

    Args:
        column_of: int32[n] -> float32[n, V], how likely each word leads to each of some observations, each up to a factor.
        prior: float64[V]; words of probability 0 are no candidates.
        observed: int32[n], 0 or more; repeated ones count once.
        most: candidates of each.
    """
    distinct = np.unique(np.asarray(observed, np.int32))
    weight = prior.astype(np.float32)
    n = len(distinct)
    inputs = np.zeros((n, most), np.int32)
    shares, scores = np.zeros((2, n, most), np.float32)
    possible, total = np.zeros(n, np.int64), np.zeros(n)

    def fill(rows: Ids) -> None:
        part = slice(int(rows[0]), int(rows[-1]) + 1)
        _best(
            column_of(distinct[part]), weight, inputs[part], shares[part], scores[part], possible[part], total[part]
        )  # fmt: skip

    in_threads(fill, np.arange(n, dtype=np.int32), AT_ONCE)
    covered = np.divide(scores.sum(axis=1, dtype=np.float64), total, out=np.ones(n), where=total > 0)
    slot = np.full(max(len(prior), int(distinct[-1]) + 1), -1, np.int32)
    slot[distinct] = np.arange(n, dtype=np.int32)
    filled = scores > 0
    return InputWords(
        slot, offsets(filled.sum(axis=1)), inputs[filled], shares[filled].astype(np.float64), possible,
        np.minimum(covered, 1.0), most, None,
    )  # fmt: skip


def bayes_by_tries(sampler: Sampler, prior: F64, tries: int = TRIES, confidence: float = 0.95) -> Estimate:
    """Return the success of the Bayes-optimal adversary, counted on words that are drawn from the prior.

    A word is drawn from the prior, its output from the law. The guess is argmax_w P(w)·P(u|w) over all words, ties to the lower
    id. The share of right guesses estimates the optimum without a bias; bounds by Clopper and Pearson (1934).

    Args:
        sampler: one that has columns.
        prior: float64[V], sums to 1.
        tries: how many words are drawn.
        confidence: that both bounds hold.
    """
    words, draws = drawn_from(prior, tries)
    outputs, where = np.unique(sampled(sampler, words, draws), return_inverse=True)
    guess = likeliest_inputs(columns_of(sampler), prior, outputs.astype(np.int32))
    hits = int((guess[where.reshape(-1)] == words).sum())
    return share_of(hits, tries, confidence)


def likeliest_inputs(column_of: Callable[[Ids], F32], prior: F64, observed: Ids) -> Ids:
    """Return argmax_w P(w)·P(u|w) over all words for int32[n] observations, ties to the lower id: int32[n].

    Args:
        column_of: as for :func:`from_columns`.
        prior: float64[V].
        observed: int32[n], at least one.
    """
    weight = prior.astype(np.float32)

    def guesses(part: Ids) -> Ids:
        return np.asarray((column_of(part) * weight).argmax(axis=1), np.int32)

    return np.concatenate(in_threads(guesses, observed, AT_ONCE))


def drawn_from(prior: F64, tries: int) -> tuple[Ids, Draws]:
    """Draw words from the prior, and what an output of each is made from: (int32[tries], draws), the same each time."""
    random = np.random.default_rng(int.from_bytes(SUBKEY[:8], "little"))
    words = random.choice(len(prior), tries, p=prior).astype(np.int32)
    numbers = np.stack([np.arange(tries, dtype=np.uint64), np.zeros(tries, np.uint64)], axis=1)
    return words, Draws(SUBKEY, numbers)


WORST = 0.01
LISTED = 50  # of the worst words, how many are named
ROUNDING = 1e-3  # relative: what float32 may hide of the largest P(w)·P(u|w)
BACKWARDS = "Read from the law of each word, exact for these guesses. The best guesses find at most a thousandth more."
HALVES = tuple(hashlib.sha256(b"bayes attack %d" % half).digest() for half in range(2))  # public
QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


@dataclass(frozen=True, kw_only=True)
class BayesAttack(WordAttack):
    """Success of the Bayes-optimal adversary on one replaced word.

    Attributes:
        success: the probability that the input is guessed, the input drawn from the prior. Without a law it is that of the
            guesses learnt from half the draws.
        lower: a bound of the optimal success; and `upper`. Equal to it where exact.
        confidence: that both bounds hold; None where exact.
        by_word: quantiles over the candidate words of the probability that the word is guessed when it is the input. This field
            and those that follow from it are None where single words were not looked at.
        worst_share: the share of words that `worst_mean` is over: those most often guessed.
        worst_mean: the mean of that probability over them. Without a law they are chosen by the first half of the draws and
            measured on the second.
        worst_words: ids of the first ones, the worst first, ties to the lower id.
        never: the share of candidate words that are never guessed when they are the input.
        baseline: success of always guessing the most frequent candidate.
    """

    name: str = "Bayes-optimal adversary"
    measures: str = "Success of a Bayes-optimal adversary on one replaced word, from its replacement alone."
    knows: str | None = (
        "The adversary knows one replacement, the mechanism with all settings, the words that can be replaced, and "
        "public word frequencies. The adversary does not know the other words of the text or the key."
    )

    lower: float = field()
    upper: float = field()
    draws: int | None = field()  # no default: `as_dict` writes it even where it is None
    confidence: float | None = field()
    baseline: float
    candidates: int
    worst_words: tuple[int, ...]
    by_word: Mapping[str, float] | None = None
    by_word_mean: float | None = None
    worst_share: float | None = None
    worst_mean: float | None = None
    never: float | None = None
    how: str | None = ""
    unprotected: float | None = 1.0


@compiled
def _raise(words: Ids, starts: I64, ids: Ids, probability: F64, prior: F64, best: F64, guess: Ids) -> None:
    """Take the laws of some words in: best[u] = max P(w)·P(u|w), guess[u] = that w, ties to the lower."""
    for i in range(words.shape[0]):
        word = words[i]
        for e in range(starts[i], starts[i + 1]):
            value, u = prior[word] * probability[e], ids[e]
            if value > best[u] or (value == best[u] and value > 0.0 and word < guess[u]):
                best[u], guess[u] = value, word


@compiled
def _tried(words: Ids, starts: I64, ids: Ids, probability: F64, guess: Ids, success: F64) -> None:
    """found[w] = P(the guess for its output is w | w), for some words."""
    for i in range(words.shape[0]):
        total = 0.0
        for e in range(starts[i], starts[i + 1]):
            if guess[ids[e]] == words[i]:
                total += probability[e]
        success[words[i]] = total


def guesses(sampler: Sampler, prior: F64, draws: int = DRAWS) -> tuple[Ids, F64, bool]:
    """Return (the guess for each output int32[V], -1 for outputs of no word; float64[V], its P(w)·P(u|w); whether exact).

    Args:
        sampler: of any mechanism.
        prior: float64[V]; words of probability 0 are never guessed.
        draws: of each word, where there is no law.
    """
    best, guess = np.zeros(len(prior)), np.full(len(prior), -1, np.int32)
    exact = True
    for block in blocks(sampler, np.flatnonzero(prior).astype(np.int32), draws, subkey=HALVES[0]):
        _raise(block.words, block.starts, block.ids, block.probability, prior, best, guess)
        exact = block.exact
    return guess, best, exact


def guesses_backwards(sampler: Sampler, prior: F64) -> tuple[Ids, F64]:
    """Guess as :func:`guesses` does, for a law that is a formula: (int32[V], float64[V]).

    A guess is made in float32: its P(w)·P(u|w) may lie up to `ROUNDING` (relative) below the largest. It is returned in float64.
    """
    every = np.arange(len(prior), dtype=np.int32)
    columns = columns_of(sampler)
    guess = likeliest_inputs(columns, prior, every)
    best = prior[guess] * columns.probability(guess, every)
    guess[best <= 0] = -1
    return guess, best


def found_by_word(guess: Ids, best: F64, prior: F64) -> F64:
    """Compute how often each word is guessed when it is the input: float64[V], from the result of :func:`guesses`."""
    success = np.zeros(len(prior))
    led = guess >= 0
    np.add.at(success, guess[led], best[led] / prior[guess[led]])
    return success


def bayes_attack(
    sampler: Sampler,
    words: int,
    prior: Prior | F64 | None = None,
    drawn: Bools | None = None,
    *,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    backwards: bool = False,
) -> BayesAttack:
    """Attack one word at a time.

    Args:
        sampler: of any mechanism.
        words: V.
        prior: how frequent words are in public, with its name or as float64[V]; None for Zipf's law over the lexicon's order.
        drawn: bool[V], the words that can be the input (those that the policy draws); None for all.
        draws: of each word, where there is no law; an even number.
        confidence: of the bounds, where there is no law.
        backwards: read the law backwards, see :func:`guesses_backwards`; for samplers that have columns.

    Raises:
        SettingsError: an invalid prior, fewer than 2 draws, or an invalid confidence.
    """
    if not 0 < confidence < 1:
        raise SettingsError(f"confidence: {confidence} is not valid. Use a number between 0 and 1.")
    public = Prior.by_rank(words) if prior is None else prior
    law, used = (public.words, public.name) if isinstance(public, Prior) else (public, "given")
    chosen = of_drawn(law, drawn)
    if len(chosen) != words:
        raise SettingsError(f"prior: {len(chosen)} words are not valid. Give the lexicon's {words}.")
    if draws < 2:
        raise SettingsError(f"draws: {draws} is not valid. Use 2 or more.")
    inputs = np.flatnonzero(chosen).astype(np.int32)
    if backwards:
        (guess, best), exact = guesses_backwards(sampler, chosen), True
    else:
        guess, best, exact = guesses(sampler, chosen, draws // 2)
    measured = success_of_words = found_by_word(guess, best, chosen)
    slack, upper = 0.0, 0.0
    if not exact:
        measured, optimistic = np.zeros(words), np.zeros(words)
        again = np.full(words, -1, np.int32)
        for block in blocks(sampler, inputs, draws // 2, subkey=HALVES[1]):
            _tried(block.words, block.starts, block.ids, block.probability, guess, measured)
            _raise(block.words, block.starts, block.ids, block.probability, chosen, optimistic, again)
        # One side each: the sum of squared effects of a draw is Σ P(w)²/n in both inequalities.
        slack = math.sqrt(float((chosen**2).sum()) / (draws // 2) * math.log(2.0 / (1.0 - confidence)) / 2.0)
        upper = min(1.0, float(optimistic.sum()) + slack)
    success = min(1.0, float((chosen * measured).sum()))
    if exact:
        upper = min(1.0, success * (1.0 + ROUNDING)) if backwards else success
    worst = inputs[np.lexsort((inputs, -success_of_words[inputs]))][: max(1, math.ceil(WORST * len(inputs)))]
    shares = np.minimum(measured[inputs], 1.0)
    return BayesAttack(
        success=success, lower=max(0.0, success - slack), upper=upper, exact=exact and not backwards,
        draws=None if exact else draws // 2 * 2, confidence=None if exact else confidence,
        by_word={f"{q:g}": float(v) for q, v in zip(QUANTILES, np.quantile(shares, QUANTILES), strict=True)},
        by_word_mean=float(shares.mean()), worst_share=WORST, worst_mean=min(1.0, float(measured[worst].mean())),
        worst_words=tuple(int(w) for w in worst[:LISTED]), never=float((shares == 0).mean()),
        baseline=float(chosen.max()), candidates=len(inputs), restricted=False,
        settings={"prior": used},
        how=BACKWARDS if backwards else f"Laws are {sampler.law_is}." if sampler.law_is else "",
    )  # fmt: skip
