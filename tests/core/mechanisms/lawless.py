"""A sampler that keeps its law to itself: what a noise mechanism is to an audit."""

from __future__ import annotations

import numpy as np

from dptext_spark.mechanisms.base import Sampler
from dptext_spark.randomness import Draws


class Lawless(Sampler):
    """Draws as another sampler does; it cannot be stored."""

    def __init__(self, inner: Sampler) -> None:
        self.inner, self.guarantee, self.summary = inner, inner.guarantee, inner.summary

    def sample(self, ids: np.ndarray, draws: Draws) -> np.ndarray:
        return self.inner.sample(ids, draws)

    def arrays(self) -> dict[str, np.ndarray]:
        return self.inner.arrays()
