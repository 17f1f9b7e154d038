"""Vectors for tests of short laws: normal ones, and small ones full of ties."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


def gaussian(words: int, dimensions: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(words, dimensions)).astype(np.float32)


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """Small integer vectors, full of ties, duplicates and zero vectors."""
    words, dimensions = draw(st.integers(2, 14)), draw(st.integers(1, 3))
    values = draw(st.lists(st.integers(-2, 2), min_size=words * dimensions, max_size=words * dimensions))
    return np.array(values, np.float32).reshape(words, dimensions)
