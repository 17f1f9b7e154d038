"""The loss by rank against scipy's Poisson law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dptext_spark.mechanisms.truncated_gumbel import loss_by_rank


def test_loss_by_rank() -> None:
    mass = stats.poisson.pmf(np.arange(1, 61), math.log(60))
    wanted = [0.0] + [math.log(mass[0] / mass[r - 1 :].sum()) for r in range(1, 61)]
    assert loss_by_rank(math.log(60), 60) == pytest.approx(wanted, rel=1e-10)
