"""What the additive mechanisms share: clipping never leaves a longer vector, and bad values are named."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
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


BAD = [
    *[("epsilon", x) for x in (0, -1, math.nan, math.inf, "1", None, True)],
    *[("clip", x) for x in (0, -1.0, math.nan, math.inf, "1", None, True)],
    *[("snap", x) for x in ("Clipped", None, 1)],
    *[("delta", x) for x in (0, 0.0, 1.0, 1, -0.1, 2.0, math.nan, "0.1", True)],
    *[("calibration", x) for x in ("exact", None, True)],
]


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [(kind, *bad) for kind in KINDS for bad in BAD if bad[0] in {entry.name for entry in fields(kind)}],
)
def test_bad_values(kind: type, field: str, value: object) -> None:
    with pytest.raises(SettingsError, match=rf"mechanism\.{field}: "):
        kind(**{field: value})


@pytest.mark.parametrize("kind", KINDS)
class TestEachOne:
    @pytest.mark.parametrize(
        "vectors",
        [
            [[0.0], [1.0]],
            [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]],
            [[0.0, 0.0], [1e30, 0.0], [-1e-30, 0.0], [0.0, 0.0]],
            [[-3.0], [0.0], [5.0]],
        ],
        ids=["two words", "three equal", "zero, huge and tiny", "one dimension"],
    )
    def test_tiny_lexicons(self, kind: type, vectors: list[list[float]]) -> None:
        lexicon = lexicon_of(np.array(vectors))
        for snap in ("clipped", "published"):
            made = kind(epsilon=1.0, snap=snap).compile(lexicon)
            ids = np.arange(500, dtype=np.int32) % len(vectors)
            drawn = made.sample(ids, draws_of(500))
            assert drawn.min() >= 0
            assert drawn.max() < len(vectors)
            if len({tuple(v) for v in vectors}) == 1:
                assert (drawn == 0).all()

    def test_without_noise_a_word_is_itself(self, kind: type) -> None:
        """But not where clipped vectors are compared with vectors as they are."""
        vectors = np.random.default_rng(3).normal(size=(200, 4)) * 3
        lexicon = lexicon_of(vectors)
        ids = np.arange(200, dtype=np.int32)
        drawn = kind(epsilon=1e9, snap="clipped").compile(lexicon).sample(ids, draws_of(200))
        assert (drawn == ids).all()
        drawn = kind(epsilon=1e9, snap="published").compile(lexicon).sample(ids, draws_of(200))
        assert (drawn == ids).mean() < 0.5

    def test_equal_words_draw_the_same(self, kind: type) -> None:
        lexicon = lexicon_of(
            np.array([[1.0, 2.0], [0.3, 0.1], [2.0, 4.0]])
        )  # 0 and 2 are clipped to about one vector
        made = kind(epsilon=2.0).compile(lexicon)
        first, second = (made.sample(np.full(300, w, np.int32), draws_of(300)) for w in (0, 2))
        assert (first == second).mean() > 0.99

    @pytest.mark.parametrize(("epsilon", "clip"), [(1.0, 1e120), (1.0, 1e200), (1e-3, 1e300)])
    def test_noise_that_float64_does_not_hold(self, kind: type, epsilon: float, clip: float) -> None:
        with pytest.raises(SettingsError, match=r"mechanism\.epsilon: .* valid: "):
            kind(epsilon=epsilon, clip=clip).compile(lexicon_of(np.eye(3)))

    def test_noise_is_never_rounded_away(self, kind: type) -> None:
        with pytest.raises(SettingsError, match=r"mechanism\.epsilon: .* scale of the noise"):
            kind(epsilon=1e30, clip=1e-90).compile(lexicon_of(np.eye(3)))


def draws_everywhere() -> str:
    """Constants and draws of the three, to be compared between processors."""
    lexicon = lexicon_of(np.random.default_rng(5).normal(size=(60, 5)))
    ids = np.arange(3000, dtype=np.int32) % 60
    found = []
    for kind in KINDS:
        for epsilon in (0.5, 7.0, 30.0):
            for more in ({}, {} if kind is Laplace else {"calibration": "published"}):
                made = kind(epsilon=epsilon, **more).compile(lexicon)
                found.append(made.parameters.tolist())
                found.append(int(made.sample(ids, draws_of(3000)).astype(np.int64) @ np.arange(3000)))
    return repr(found)


@pytest.mark.cluster
def test_every_processor_draws_the_same(on_another_processor: Callable[[str], str]) -> None:
    other = on_another_processor("tests.core.mechanisms.test_clipped_noise.draws_everywhere")
    assert other == draws_everywhere()
