"""The random projection: a public matrix from a seed, and calibrated noise over what it makes of the lexicon."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import MVC, Projection
from dptext_spark.mechanisms.calibrated_noise import project, projection_columns
from tests.core.mechanisms.plain_noise import draws_of
from tests.core.mechanisms.plain_whole import gaussian
from tests.core.names import lexicon_at


def plain_columns(size: int, m: int, seed: int) -> np.ndarray:
    """AES of 0, 1, 2, ... under the hash of the seed; 64 bits give a sign and the tail of a normal number."""
    encryptor = Cipher(
        algorithms.AES(hashlib.sha256(f"random projection {seed}".encode()).digest()), modes.ECB()
    ).encryptor()
    blocks = b"".join(i.to_bytes(16, "little") for i in range((size * m + 1) // 2))
    bits = np.frombuffer(encryptor.update(blocks), "<u8")[: size * m]
    tail = ((bits & np.uint64(2**63 - 1)).astype(np.float64) + 0.5) / 2.0**64
    normal = stats.norm.isf(tail) * np.where(bits >> np.uint64(63), 1, -1)
    return (normal / math.sqrt(m)).reshape(size, m)


@pytest.mark.parametrize(("size", "m", "seed"), [(5, 3, 0), (20, 7, 12345), (4, 4, 2**63 - 1), (1, 1, 7)])
def test_the_matrix(size: int, m: int, seed: int) -> None:
    np.testing.assert_allclose(projection_columns(size, m, seed), plain_columns(size, m, seed), rtol=1e-12)


def test_the_projected_vectors() -> None:
    vectors = gaussian(300, 20)
    found = project(vectors, 6, 5)
    assert found.dtype == np.float32
    assert found.shape == (300, 6)
    np.testing.assert_allclose(
        found, vectors.astype(np.float64) @ plain_columns(20, 6, 5), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("epsilon", [0.5, 6.0, 60.0])
def test_it_is_calibrated_noise_over_the_projected_lexicon(epsilon: float) -> None:
    vectors = gaussian(300, 20)
    ids = (np.arange(3000) % 300).astype(np.int32)
    made = Projection(epsilon, 6, 5).compile(lexicon_at(vectors))
    other = MVC(epsilon).compile(lexicon_at(project(vectors, 6, 5)))
    assert (made.sample(ids, draws_of(3000)) == other.sample(ids, draws_of(3000))).all()
    assert (made.summary.seed, made.summary.dimensions, made.summary.projected_from) == (5, 6, 20)


def test_m_must_be_given_and_fit() -> None:
    with pytest.raises(SettingsError, match=r"mechanism\.m: None is not valid"):
        Projection()
    with pytest.raises(SettingsError, match=r"mechanism\.m: 21 .* Choose an integer from 1 to 20"):
        Projection(1.0, 21).compile(lexicon_at(gaussian(300, 20)))


def test_vectors_that_float32_does_not_hold() -> None:
    with pytest.raises(SettingsError, match="exceeds float32"):
        Projection(1.0, 3).compile(lexicon_at(np.full((4, 9), 3e38)))
