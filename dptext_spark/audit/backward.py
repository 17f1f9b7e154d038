"""Laws read backwards: how likely each word leads to an output, without a law for every word of the lexicon.

An attack asks for P(u|w) of the outputs u that it saw, over all words w. Laws are rows over u; reading 34,000 rows of 34,000
numbers for a few thousand outputs takes minutes. Where P(u|w) is a formula of w and u (laws by distance over the whole lexicon,
lists), the columns that are needed are computed instead, in float32: within about 1e-4 of the law, which an adversary
does not feel. What is guessed with them is measured on draws of the law itself.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dptext_spark.audit.candidates import MOST, Candidates
from dptext_spark.audit.outcomes import interval, read_rows
from dptext_spark.draws import Draws
from dptext_spark.mechanisms.base import TOTAL, Ids, Sampler
from dptext_spark.mechanisms.kernels import WholeSampler
from dptext_spark.mechanisms.kernels.line import LineSampler

TRIES = 4_096  # words that are drawn from the prior for the attack on one word
AT_ONCE = 256  # outputs whose columns are held at once, by each thread
SUBKEY = hashlib.sha256(b"backward attack").digest()  # public: nothing private is drawn here
Singles = npt.NDArray[np.float32]
Reals = npt.NDArray[np.float64]
Found = TypeVar("Found")


def has_columns(sampler: Sampler) -> bool:
    """Return whether the columns of a law can be computed."""
    return isinstance(sampler, LineSampler | WholeSampler)


def columns(sampler: Sampler, outputs: Ids) -> Singles:
    """Return P(u|w) of some outputs over all words, float32[n, V]; `has_columns` says for which samplers."""
    return columns_of(sampler)(outputs)


def columns_of(sampler: Sampler) -> Callable[[Ids], Singles]:
    """Return :func:`columns` of a sampler; what all columns need is made once."""
    if isinstance(sampler, LineSampler):
        return partial(_line, sampler)
    assert isinstance(sampler, WholeSampler)
    kept = None if len(sampler.outputs) == len(sampler.level) else kept_shares(sampler).astype(np.float32)
    vectors = np.asarray(sampler.vectors)
    return partial(_whole, sampler, np.einsum("ij,ij->i", vectors, vectors), kept)


def _whole(sampler: WholeSampler, squares: Singles, kept: Singles | None, outputs: Ids) -> Singles:
    vectors = sampler.vectors
    step, cut = float(sampler.figures[0]), float(sampler.figures[1])
    found = vectors[outputs] @ vectors.T
    found *= -2.0
    found += squares
    found += squares[outputs][:, None]
    np.maximum(found, 0.0, out=found)
    found[np.arange(len(outputs)), outputs] = 0.0
    np.sqrt(found, out=found)
    np.minimum(found, np.float32(min(cut, 3e38)), out=found)
    found *= -step
    found -= sampler.log_normaliser.astype(np.float32)
    np.exp(found, out=found)
    if kept is not None:
        # A word that is no output comes out of itself alone, where it is kept.
        found *= 1.0 - kept
        alone = np.flatnonzero(~np.isin(outputs, sampler.outputs))
        found[alone] = 0.0
        found[alone, outputs[alone]] = kept[outputs[alone]]
    return np.asarray(found, np.float32)


def kept_shares(sampler: WholeSampler) -> Reals:
    """Return how often each word that is no output is released as it is, whatever is drawn: float64[V]."""
    words = np.setdiff1d(np.arange(len(sampler.level), dtype=np.int32), sampler.outputs)
    row, ids, weight = read_rows(sampler.cells[words])
    itself = ids == words[row]
    found = np.zeros(len(sampler.level))
    found[words[row[itself]]] = weight[itself] / TOTAL
    return found


def probability(sampler: Sampler, words: Ids, outputs: Ids) -> Reals:
    """Return P(outputs[i] | words[i]) of int32[n] each, in float64, as the formula says: float64[n]."""
    if isinstance(sampler, LineSampler):
        lists, total = sampler.order.shape
        found = np.zeros(len(words))
        for chosen in range(lists):
            i, j = (sampler.place[some, chosen].astype(np.int64) for some in (words, outputs))
            start, width = sampler.start[i], sampler.width[i]
            low = np.where(j == 0, start, sampler.edges[total - 1 - i + j])
            high = np.where(
                j == total - 1, start + width, sampler.edges[np.minimum(total - i + j, 2 * total - 1)]
            )
            found += (high - low) / width.astype(np.float64) / lists
        return found
    assert isinstance(sampler, WholeSampler)
    step, cut = float(sampler.figures[0]), float(sampler.figures[1])
    gap = sampler.vectors[words].astype(np.float64) - sampler.vectors[outputs]
    distance = np.minimum(np.sqrt((gap * gap).sum(axis=1)), cut)
    found = np.exp(-step * distance - np.asarray(sampler.log_normaliser)[words])
    if len(sampler.outputs) < len(sampler.level):
        kept = kept_shares(sampler)[words]
        found = np.where(np.isin(outputs, sampler.outputs), found * (1.0 - kept), 0.0)
        found = np.where((words == outputs) & (kept > 0), kept, found)
    return found


def _line(sampler: LineSampler, outputs: Ids) -> Singles:
    """Average over the lists; a number of the table that passes an end of the list belongs to that end."""
    lists, words = sampler.order.shape
    edges, start, end = sampler.edges, sampler.start, sampler.start + sampler.width
    every = sampler.width.astype(np.float64) * lists
    found = np.zeros((len(outputs), words), np.float32)
    for chosen in range(lists):
        i = sampler.place[:, chosen].astype(np.int64)
        whole = every[i]
        for row, j in enumerate(sampler.place[outputs, chosen].tolist()):
            low = start[i] if j == 0 else edges[words - 1 - i + j]
            high = end[i] if j == words - 1 else edges[words - i + j]
            found[row] += (high - low) / whole
    return found


def backward_candidates(sampler: Sampler, prior: Reals, outputs: Ids, most: int = MOST) -> Candidates:
    """Return what :func:`~dptext_spark.audit.candidates.candidates` does, from columns.

    Args:
        sampler: one that has columns.
        prior: float64[V], of the words that are drawn; words of probability 0 are no candidates.
        outputs: int32[n], the outputs that are asked for; repeated ones count once.
        most: candidates of an output.
    """
    return from_columns(columns_of(sampler), prior, outputs, most)


def from_columns(
    column_of: Callable[[Ids], Singles], prior: Reals, observed: Ids, most: int = MOST
) -> Candidates:
    """Return the plausible inputs of what was observed.

    Args:
        column_of: int32[n] -> float32[n, V], how likely each word leads to each of some observations, each up to a factor.
        prior: float64[V]; words of probability 0 are no candidates.
        observed: int32[n], 0 or more; repeated ones count once.
        most: candidates of each.
    """
    wanted = np.unique(np.asarray(observed, np.int32))
    words = np.flatnonzero(prior)
    most_here = min(most, len(words))
    weight = prior[words].astype(np.float32)

    def some(part: Ids) -> tuple[Ids, Reals, npt.NDArray[np.int64], Reals]:
        probability = column_of(part)[:, words]
        score = probability * weight
        top = np.argpartition(score, len(words) - most_here, axis=1)[:, len(words) - most_here :]
        scores = np.take_along_axis(score, top, 1)
        order = np.lexsort((words[top], -scores), axis=1)
        top = np.take_along_axis(top, order, 1)
        shares = np.take_along_axis(probability, top, 1).astype(np.float64)
        total = score.sum(axis=1, dtype=np.float64)
        covered = np.divide(
            scores.sum(axis=1, dtype=np.float64), total, out=np.ones(len(part)), where=total > 0
        )
        return words[top].astype(np.int32), shares, np.count_nonzero(score, axis=1), covered

    parts = [*in_threads(some, wanted)]
    kept, shares, possible, covered = (np.concatenate(one) for one in zip(*parts, strict=True))
    slot = np.full(max(len(prior), int(wanted[-1]) + 1), -1, np.int32)
    slot[wanted] = np.arange(len(wanted), dtype=np.int32)
    filled = shares > 0
    starts = np.append(0, np.cumsum(filled.sum(axis=1))).astype(np.int64)
    return Candidates(
        slot, starts, kept[filled], shares[filled], possible.astype(np.int64), np.minimum(covered, 1.0), most, None
    )  # fmt: skip


def bayes_by_tries(
    sampler: Sampler, prior: Reals, tries: int = TRIES, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return (success, lower, upper) of the Bayes-optimal adversary, counted on words that are drawn from the prior.

    A word is drawn from the prior, its output from the law; the guess is argmax_w P(w)·P(u|w) over all words, ties to the
    lower id. The share of right guesses estimates the optimum without a bias; bounds by Clopper and Pearson (1934).

    Args:
        sampler: one that has columns.
        prior: float64[V], sums to 1.
        tries: how many words are drawn.
        confidence: that both bounds hold.
    """
    words, draws = drawn_from(prior, tries)
    outputs, where = np.unique(sampler.sample(words, draws), return_inverse=True)
    guess = likeliest_inputs(columns_of(sampler), prior, outputs.astype(np.int32))
    hits = int((guess[where.reshape(-1)] == words).sum())
    low, high = interval([hits], tries, confidence)
    return hits / tries, float(low[0]), float(high[0])


def likeliest_inputs(column_of: Callable[[Ids], Singles], prior: Reals, observed: Ids) -> Ids:
    """Return argmax_w P(w)·P(u|w) over all words for int32[n] observations, ties to the lower id: int32[n].

    Args:
        column_of: as for :func:`from_columns`.
        prior: float64[V].
        observed: int32[n], at least one.
    """
    weight = prior.astype(np.float32)

    def guesses(part: Ids) -> Ids:
        return np.asarray((column_of(part) * weight).argmax(axis=1), np.int32)

    return np.concatenate([*in_threads(guesses, observed)])


def drawn_from(prior: Reals, tries: int) -> tuple[Ids, Draws]:
    """Draw words from the prior, and what an output of each is made from: (int32[tries], draws), the same each time."""
    random = np.random.default_rng(int.from_bytes(SUBKEY[:8], "little"))
    words = random.choice(len(prior), tries, p=prior).astype(np.int32)
    numbers = np.stack([np.arange(tries, dtype=np.uint64), np.zeros(tries, np.uint64)], axis=1)
    return words, Draws(SUBKEY, numbers)


def in_threads(work: Callable[[Ids], Found], outputs: Ids) -> Iterator[Found]:
    """Do the work for parts of the outputs, in order."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        yield from threads.map(work, [outputs[i : i + AT_ONCE] for i in range(0, len(outputs), AT_ONCE)])
