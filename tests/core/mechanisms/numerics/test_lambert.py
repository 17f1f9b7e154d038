"""Lambert's W against scipy's."""

from __future__ import annotations

import math

import pytest
from scipy import special

from dptext_spark.mechanisms.numerics.elementary import lambert, lambert_real_part


def test_lambert() -> None:
    for log_x in (0.0, 0.1, 1.0, 5.0, 30.0, 700.0):
        assert lambert(log_x) == pytest.approx(special.lambertw(math.exp(log_x)).real, rel=1e-13)
    assert lambert(1e4) + math.log(lambert(1e4)) == pytest.approx(1e4, rel=1e-14)
    for x in (-0.4, -1.0, -math.pi / 2, -2.0, -62.0, -1e6):
        assert lambert_real_part(x) == pytest.approx(special.lambertw(x).real, abs=6e-11)
    assert lambert_real_part(-1e-3) == -1
