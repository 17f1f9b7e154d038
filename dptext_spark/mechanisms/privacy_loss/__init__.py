"""The worst-case loss of the law that is really sampled: what certificates state and exact calibration is steered by.

For a law in integers, the loss is read off them, never off the formula behind them; any slack is stated. For noise on a vector,
draws bound the loss. They can refute a claim and not confirm it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.privacy_loss.accountant import RecordLoss
from dptext_spark.mechanisms.privacy_loss.exact_losses import (
    by_bound,
    by_distance,
    by_groups,
    by_rank,
    by_steps,
    within_groups,
)
from dptext_spark.mechanisms.privacy_loss.log_ratios import (
    along_lists,
    between_groups,
    by_distances,
    by_log_range,
)
from dptext_spark.mechanisms.privacy_loss.loss import Loss
from dptext_spark.mechanisms.privacy_loss.sampled import by_draws, by_exits, by_half_spaces
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler
from dptext_spark.mechanisms.samplers.fluent import FluentSampler
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from dptext_spark.mechanisms.samplers.ordering import OrderingSampler
from dptext_spark.mechanisms.samplers.table import RemappedSampler, RemappedTable
from dptext_spark.mechanisms.truncated_gumbel import SelectionSampler
from dptext_spark.runtime.display import Counted

__all__ = ["Loss", "RecordLoss", "record_loss", "vector_loss", "worst_loss"]


def worst_loss(
    sampler: Sampler,
    words: int,
    progress: Counted | None = None,
    sample: int | None = None,
    *,
    before: Loss | None = None,
) -> Loss | None:
    """Return the largest loss of the word that a compiled mechanism releases, by the way that its law allows.

    Args:
        sampler: of any mechanism.
        words: V.
        progress: is told how much is done.
        sample: how many words to look at where a search would take the square of V; other searches look at all words.
        before: of the law before a remap, where it is known already.

    Returns:
        None for a sampler of another package whose `worst_loss` returns None.
    """
    if isinstance(sampler, RemappedTable):
        return by_groups(sampler)
    if isinstance(sampler, RemappedSampler):
        inner_loss = before or worst_loss(sampler.inner, words, progress, sample)
        return None if inner_loss is None else by_bound(sampler, inner_loss)
    own: Loss | None = sampler.worst_loss(words, progress, sample)
    if own is not None:
        return own
    if isinstance(sampler, FluentSampler):
        return by_log_range(sampler, progress)
    if isinstance(sampler, ExponentialSampler):
        return by_distance(sampler, progress, sample)
    if isinstance(sampler, OrderingSampler):
        return by_steps(sampler, progress, sample)
    if isinstance(sampler, SelectionSampler):
        return by_rank(sampler, words)
    if isinstance(sampler, NoiseSampler):
        search = by_half_spaces if sampler.guarantee.kind == "approx_dp" else by_draws
        return search(sampler, progress)
    if sampler.guarantee.kind == "epsilon_dp_within_group":
        return within_groups(sampler, words, progress)
    return None


def vector_loss(sampler: Sampler, progress: Counted | None = None, sample: int | None = None) -> Loss | None:
    """Return the loss of the noisy vector that is never released, where a claim rests on it and it is known exactly."""
    if isinstance(sampler, NoiseSampler) and sampler.noise == "truncated_laplace":
        return by_exits(sampler, progress, sample)
    return None


REVEALS = (
    "A word that is not sensitive is revealed if it is released as it is. Its loss has no bound, so a record that may hold one "
    "has no ε. With mechanism.p: 1, or mechanism.sensitive: none, the loss is finite."
)


NO_PAIR = "A record has no ε: each word is alone on its output set, and the guarantee compares none."


def record_loss(sampler: Sampler, words: int, progress: Counted | None = None) -> RecordLoss:
    """Return a law's figures that decide the ε of a record; `why` gives the reason if there is no such ε."""
    claimed = sampler.guarantee
    if claimed.status == "refuted":
        return RecordLoss(
            math.inf, why="The guarantee of a draw does not hold: it was refuted, and nothing composes."
        )
    if claimed.kind == "epsilon_dp_within_group" and sampler.summary.alone_share == 1.0:
        return RecordLoss(math.inf, why=NO_PAIR)
    loss: RecordLoss | None = sampler.record_loss(words, progress)
    if loss is not None:
        return replace(loss, adapts=sampler.reads_context)
    if isinstance(sampler, FluentSampler):
        # For every prior: whatever was released before, the log ratio of a draw ranges over R at most.
        largest = by_log_range(sampler, progress).value
        return RecordLoss(largest, spread=largest, adapts=True)
    if isinstance(sampler, RemappedSampler) and not isinstance(sampler, RemappedTable):
        return record_loss(sampler.inner, words, progress)  # no range grows by post-processing
    if claimed.kind == "metric_dp":
        loss = _by_distance(sampler, progress)
    else:
        groups = sampler.groups()
        if groups is not None:
            loss = between_groups(sampler, groups, progress)
            # What is promised bounds a draw, too; a loss beyond it is the certificate's to tell.
            loss = replace(loss, delta=float(claimed.delta))
        else:
            loss = RecordLoss(float(claimed.epsilon), float(claimed.delta))
    return replace(loss, adapts=sampler.reads_context)


def _by_distance(sampler: Sampler, progress: Counted | None) -> RecordLoss:
    """Return the figures for each unit of distance; R only where there is a law."""
    if sampler.guarantee.compared == "sensitive words":
        return RecordLoss(math.inf, by_distance=True, why=REVEALS)
    if isinstance(sampler, ExponentialSampler):
        return by_distances(sampler)
    if isinstance(sampler, OrderingSampler):
        return along_lists(sampler, progress)
    return RecordLoss(float(sampler.guarantee.epsilon), by_distance=True)
