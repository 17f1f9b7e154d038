"""Vectors for tests of laws: small ones full of ties."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


@st.composite
def tables(draw: st.DrawFn, most: int = 14, largest: int = 2) -> np.ndarray:
    """Small integer vectors, full of ties, duplicates and zero vectors."""
    words, dimensions = draw(st.integers(2, most)), draw(st.integers(1, 3))
    count = words * dimensions
    values = draw(st.lists(st.integers(-largest, largest), min_size=count, max_size=count))
    return np.array(values, np.float32).reshape(words, dimensions)
