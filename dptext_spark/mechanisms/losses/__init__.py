"""The worst-case loss of the law that is really sampled: what certificates state and exact calibration is steered by.

It is read off the integers that are sampled, never off the formula that they were made from, but for slack that is stated.
"""

from __future__ import annotations

from typing import Any

from dptext_spark.mechanisms.kernels.line import LineSampler
from dptext_spark.mechanisms.kernels.noise import NoiseSampler
from dptext_spark.mechanisms.kernels.whole import WholeSampler
from dptext_spark.mechanisms.losses.distances import by_distance
from dptext_spark.mechanisms.losses.draws import by_draws
from dptext_spark.mechanisms.losses.groups import within_groups
from dptext_spark.mechanisms.losses.loss import Loss, Progress
from dptext_spark.mechanisms.losses.steps import by_steps

__all__ = ["Loss", "Progress", "by_distance", "by_draws", "by_steps", "within_groups", "worst_loss"]


def worst_loss(sampler: Any, words: int, progress: Progress | None = None) -> Loss | None:
    """Return the largest loss of a compiled mechanism, by the way that its law allows; None where there is none in closed form.

    Args:
        sampler: of any mechanism.
        words: V.
        progress: is told how many words are done.
    """
    if isinstance(sampler, WholeSampler):
        return by_distance(sampler, progress)
    if isinstance(sampler, LineSampler):
        return by_steps(sampler, progress)
    if isinstance(sampler, NoiseSampler):
        return by_draws(sampler, progress)
    if sampler.guarantee.kind == "epsilon_dp_within_group":
        return within_groups(sampler, words, progress)
    return None
