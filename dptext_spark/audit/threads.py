"""Draws of an audit, made by every processor."""

from __future__ import annotations

import numpy as np

from dptext_spark.arrays import Ids
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.randomness.draws import Draws
from dptext_spark.runtime.threads import in_threads

DRAWN = 4_096  # draws of a part; whole tiles of the search for the word next to a noisy vector


def sampled(sampler: Sampler, ids: Ids, draws: Draws) -> Ids:
    """Return what `sampler.sample` does, int32[n]: a draw depends on its own number alone."""
    parts = in_threads(lambda part: sampler.sample(ids[part], draws.take(part)), np.arange(len(ids)), DRAWN)
    return np.concatenate([np.empty(0, np.int32), *parts])
