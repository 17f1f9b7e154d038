"""What the additive mechanisms share: clipping never leaves a longer vector, and bad values are named."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import Gaussian, Laplace, TruncatedLaplace
from dptext_spark.mechanisms.clipped_noise import clipped, upwards
from tests.core.mechanisms.plain_noise import draws_of, lexicon_of

KINDS = (Laplace, Gaussian, TruncatedLaplace)


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 2, 7, 300])
@pytest.mark.parametrize("clip", [1e-3, 1.0, 3.7])
def test_no_clipped_vector_is_longer_than_c(size: int, clip: float) -> None:
    """In exact fractions: float32 numbers are."""
    vectors = np.random.default_rng(size).normal(size=(200, size)).astype(np.float32)
    vectors[0] = 0
    found = clipped(vectors, clip)
    for before, after in zip(vectors, found, strict=True):
        assert sum(Fraction(float(x)) ** 2 for x in after) <= Fraction(clip) ** 2
        length = np.linalg.norm(before.astype(float))
        wanted = before * min(1.0, clip / length) if length else before
        np.testing.assert_allclose(after, wanted, rtol=3e-7, atol=1e-44)
        assert length > clip * (1 - 1e-9) or (before == after).all()


def test_rounding_upwards() -> None:
    assert all(1 < upwards(x) / x < 1 + 1e-14 for x in (1e-80, 1.0, 3.0, 1e80))
    assert upwards(0.0) > 0


@pytest.mark.parametrize("kind", KINDS[1:])
def test_the_published_calibration_takes_no_delta(kind: type) -> None:
    with pytest.raises(SettingsError, match=r"mechanism\.delta: .*published"):
        kind(epsilon=1.0, delta=0.1, calibration="published")


@pytest.mark.parametrize("kind", KINDS)
class TestEachOne:
    def test_without_noise_a_word_is_itself(self, kind: type) -> None:
        """But not where clipped vectors are compared with vectors as they are."""
        vectors = np.random.default_rng(3).normal(size=(200, 4)) * 3
        lexicon = lexicon_of(vectors)
        ids = np.arange(200, dtype=np.int32)
        drawn = kind(epsilon=1e9, snap="clipped").compile(lexicon).sample(ids, draws_of(200))
        assert (drawn == ids).all()
        drawn = kind(epsilon=1e9, snap="published").compile(lexicon).sample(ids, draws_of(200))
        assert (drawn == ids).mean() < 0.5

    @pytest.mark.parametrize(("epsilon", "clip"), [(1.0, 1e120), (1.0, 1e200), (1e-3, 1e300)])
    def test_noise_that_float64_does_not_hold(self, kind: type, epsilon: float, clip: float) -> None:
        with pytest.raises(SettingsError, match=r"mechanism\.epsilon: .* valid: "):
            kind(epsilon=epsilon, clip=clip).compile(lexicon_of(np.eye(3)))

    def test_noise_is_never_rounded_away(self, kind: type) -> None:
        with pytest.raises(SettingsError, match=r"mechanism\.epsilon: .* scale of the noise"):
            kind(epsilon=1e30, clip=1e-90).compile(lexicon_of(np.eye(3)))
