"""The worst-case loss of a law whose outputs are replaced.

Q(z|w)/Q(z|w') lies between the least and the greatest P(y|w)/P(y|w') of the outputs y that become z, so no pair loses more
under Q than under P. Rows of a table are read as they are released, integer by integer, between the words that shared an output
set before the remap: sets of what is released may agree by chance, and of such words nothing is promised. Laws over the whole
lexicon and along lists have a short cut under P, for there the output that tells two words apart best is known. Under Q it is
not, and the loss of P is stated as a bound of that of Q; for some words every output is compared.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dptext_spark.arrays import F64, Ids
from dptext_spark.mechanisms.numerics.distances import pair_distances
from dptext_spark.mechanisms.privacy_loss.loss import LOG_SLACK, Loss, evenly_spaced
from dptext_spark.mechanisms.remap import telling
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler
from dptext_spark.mechanisms.samplers.ordering import OrderingSampler
from dptext_spark.mechanisms.samplers.remapped import RemappedSampler, RemappedTable, laws_of
from dptext_spark.rounding import digits_up

EVERY, SOME = (
    96,
    12,
)  # words whose laws are compared output by output: of a small lexicon all, of a larger one some
ERROR = 1e-14  # relative: the roundings of a difference, a weight, their quotient and its logarithm


def by_groups(sampler: RemappedTable) -> Loss:
    """Return the largest loss between words that share an output set of P, exactly, from the integers that are sampled."""
    laws, words = laws_of(sampler.cells), len(sampler.cells)
    group, rows = np.asarray(sampler.group, np.int64), np.diff(laws.starts)
    word = np.repeat(np.arange(words), rows)
    keys = group[word] * words + laws.ids
    order = np.argsort(keys, kind="stable")
    heads = np.flatnonzero(np.diff(keys[order], prepend=-1))
    weight = laws.weight[order]
    high, low = (kind.reduceat(weight, heads) for kind in (np.maximum, np.minimum))
    many = np.diff(np.append(heads, len(order)))
    sizes = np.bincount(group, minlength=words)
    members = sizes[keys[order][heads] // words]
    shared = members > 1
    pairs = int((sizes * (sizes - 1) // 2).sum())
    method = (
        "every pair of words that shared an output set before the remap, and every output, "
        "from the integers that are sampled"
    )
    if not shared.any():
        return Loss(0.0, 0.0, pairs, pairs, None, method)
    losses = np.where(shared, np.log1p((high - low).astype(np.float64) / low.astype(np.float64)), 0.0)
    losses[shared & (many < members)] = np.inf  # a word that cannot lead to an output of another one
    at = int(losses.argmax())
    value = float(losses[at])
    run = order[heads[at] : heads[at] + many[at]]
    pair = (int(word[run[laws.weight[run].argmax()]]), int(word[run[laws.weight[run].argmin()]]))
    if not np.isfinite(value):
        able = word[run]
        pair = (int(able[0]), int(np.setdiff1d(np.flatnonzero(group == group[able[0]]), able)[0]))
    return Loss(value * (1.0 + ERROR), value * (1.0 - ERROR), pairs, pairs, pair, method)


def by_bound(sampler: RemappedSampler, before: Loss) -> Loss:
    """Return the loss of P as a bound of that of Q, and what pairs of some words lose under Q.

    Args:
        sampler: of Q, over the whole lexicon or along lists.
        before: what was found of P.
    """
    inner = sampler.inner
    compared = np.arange(len(sampler.table), dtype=np.int32)
    if isinstance(inner, ExponentialSampler) and inner.keeps:
        compared = np.asarray(inner.outputs, np.int32)
    some = compared[evenly_spaced(len(compared), len(compared) if len(compared) <= EVERY else SOME)]
    if before.worst is not None:
        some = np.unique(np.append(some, before.worst)).astype(np.int32)
    attained, worst = _attained(sampler, some)
    method = f"before the remap, which bounds what is released: {before.method}"
    outside = before.outside
    if isinstance(inner, ExponentialSampler) and before.others is not None and outside:
        outside = _outside(sampler, before.others, inner)
    return replace(before, attained=attained, worst=worst or before.worst, method=method, outside=outside)


def _attained(sampler: RemappedSampler, words: Ids) -> tuple[float, tuple[int, int] | None]:
    """Return (the largest loss of Q for each unit of distance over all pairs of some words, less its slack; its pair)."""
    probability = np.zeros((len(words), len(sampler.table)))
    for row, law in zip(probability, map(sampler.law, words.tolist()), strict=True):
        row[law.ids] = law.probability
    possible = (probability > 0).any(axis=0)
    with np.errstate(divide="ignore"):
        logs = np.log(probability[:, possible])
    slack = 2.0 * (sampler.inner.summary.rounding or 0.0) + LOG_SLACK
    found, worst = 0.0, None
    distances = _distances(sampler, words)
    for i in range(1, len(words)):
        with np.errstate(invalid="ignore"):
            gaps = np.abs(logs[i] - logs[:i])
        losses = np.nan_to_num(gaps, nan=0.0, posinf=np.inf).max(axis=1) - slack
        away = distances[i, :i]
        slopes = np.where(away > 0, losses / np.where(away > 0, away, 1.0), 0.0)
        at = int(slopes.argmax())
        if slopes[at] > found:
            found, worst = float(slopes[at]), (int(words[at]), int(words[i]))
    return found, worst


def _distances(sampler: RemappedSampler, words: Ids) -> F64:
    """Return the distances that the guarantee counts, float64[n, n]."""
    inner = sampler.inner
    if isinstance(inner, OrderingSampler):
        place = np.asarray(inner.place)[words].astype(np.int64)
        return np.asarray(np.abs(place[:, None] - place[None]).max(axis=2), np.float64)
    assert isinstance(inner, ExponentialSampler)
    others = np.tile(words, (len(words), 1))
    return np.minimum(pair_distances(np.asarray(inner.vectors), words, others), float(inner.figures[1]))


def _outside(sampler: RemappedSampler, others: float, inner: ExponentialSampler) -> str:
    """Write what words of SanText+ lose that are not sensitive."""
    alone, words = len(sampler.table) - len(inner.outputs), len(telling(inner, sampler.table))
    kept = float(inner.law_columns().kept.max())
    return (
        f"It does not cover words that are not sensitive: released as it is, such a word is revealed by {words:,} of {alone:,} "
        "outputs, which come of it alone, and by the others as far as few words lead to them. On all other outputs it loses at "
        f"most {digits_up(others, 6)} for each unit of distance, with ln(1/p) = {digits_up(-np.log1p(-kept), 6)} more against a "
        "sensitive word."
    )
