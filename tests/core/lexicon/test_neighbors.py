"""Nearest words against a brute force in float64 that spells out the rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import SettingsError
from dptext_spark.lexicon import neighbors
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.neighbors import METRICS, nearest, nearest_in


def brute_distance(x: np.ndarray, u: np.ndarray, metric: str) -> float:
    """One distance, term after term in float64."""
    dot = xx = uu = gaps = 0.0
    for a, b in zip(x.astype(np.float64).tolist(), u.astype(np.float64).tolist(), strict=True):
        dot += a * b
        xx += a * a
        uu += b * b
        gaps += (a - b) * (a - b)
    if metric == "euclidean":
        return float(np.sqrt(gaps))
    both = float(np.sqrt(xx * uu))
    return 1.0 - min(1.0, max(-1.0, dot / both)) if both > 0 else 1.0


def brute(vectors: np.ndarray, queries, pool, k: int, metric: str):
    """The rule itself: the query first, then by (distance, id)."""
    ids, distances = [], []
    for q in queries:
        others = sorted((brute_distance(vectors[q], vectors[u], metric), u) for u in pool if u != q)
        row = [(brute_distance(vectors[q], vectors[q], metric), q), *others][:k]
        ids.append([u for _, u in row])
        distances.append([d for d, _ in row])
    return np.array(ids, np.int32).reshape(-1, k), np.array(distances).reshape(-1, k)


def check(vectors: np.ndarray, k: int, metric: str) -> None:
    everything = np.arange(len(vectors), dtype=np.int32)
    ids, distances = nearest(vectors, everything, k, metric)
    wanted_ids, wanted = brute(vectors, everything, range(len(vectors)), k, metric)
    assert ids.dtype == np.int32
    assert distances.dtype == np.float64
    np.testing.assert_array_equal(ids, wanted_ids)
    np.testing.assert_array_equal(distances, wanted)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("words", [1, 2, 3, 4, 5])
def test_tiny_tables(words: int, metric: str) -> None:
    rng = np.random.default_rng(words)
    for dimensions in (1, 2, 7):
        vectors = rng.normal(size=(words, dimensions)).astype(np.float32)
        for k in range(1, words + 1):
            check(vectors, k, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_one_dimension_on_a_grid_full_of_ties(metric: str) -> None:
    vectors = np.random.default_rng(0).integers(-3, 4, size=(60, 1)).astype(np.float32)
    check(vectors, 9, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_duplicates_beyond_the_spare_candidates(metric: str) -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(150, 6)).astype(np.float32)
    vectors[20:90] = vectors[5]
    check(vectors, 4, metric)
    ids, distances = nearest(vectors, np.array([89]), 3, metric)
    assert ids.tolist() == [[89, 5, 20]]  # itself first, though 70 others share its vector
    assert distances.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("metric", METRICS)
def test_zero_vectors(metric: str) -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(80, 3)).astype(np.float32)
    vectors[[3, 40, 41, 79]] = 0
    for k in (1, 3, 80):
        check(vectors, k, metric)


def test_zero_vector_has_cosine_0_to_everything() -> None:
    vectors = np.zeros((200, 3), np.float32)
    vectors[:3] = np.eye(3)
    ids, distances = nearest(vectors, np.array([150]), 4, "cosine")
    assert ids.tolist() == [[150, 0, 1, 2]]
    assert distances.tolist() == [[1.0, 1.0, 1.0, 1.0]]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("spread", [1e-3, 0.1, 0.3, 1.0])
def test_differences_about_the_float32_resolution_of_the_squares(spread: float, metric: str) -> None:
    rng = np.random.default_rng(3)
    base = 1000 + rng.normal(size=(1, 20))
    vectors = (base + spread * rng.normal(size=(200, 20))).astype(np.float32)
    check(vectors, 7, metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("scale", [1e-40, 1e-25, 1e-10, 1e18, 1e30])
def test_lengths_outside_the_range_of_float32_squares(scale: float, metric: str) -> None:
    vectors = (np.random.default_rng(4).normal(size=(70, 5)) * scale).astype(np.float32)
    check(vectors, 5, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_one_outlier_among_small_vectors(metric: str) -> None:
    vectors = np.random.default_rng(5).normal(size=(90, 4)).astype(np.float32)
    vectors[7] *= 1e6
    check(vectors, 6, metric)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), metric=st.sampled_from(METRICS))
def test_any_small_integer_table(data: st.DataObject, metric: str) -> None:
    words = data.draw(st.integers(1, 30))
    dimensions = data.draw(st.integers(1, 3))
    values = data.draw(st.lists(st.integers(-2, 2), min_size=words * dimensions, max_size=words * dimensions))
    vectors = np.array(values, np.float32).reshape(words, dimensions)
    check(vectors, data.draw(st.integers(1, words)), metric)


@pytest.mark.parametrize("metric", METRICS)
def test_the_answer_does_not_depend_on_blocks(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    vectors = rng.normal(size=(300, 8)).astype(np.float32)
    vectors[100:130] = vectors[7]
    everything = np.arange(300, dtype=np.int32)
    whole = nearest(vectors, everything, 10, metric)
    monkeypatch.setattr(neighbors, "QUERY_ROWS", 50)
    monkeypatch.setattr(neighbors, "BLOCK_VALUES", 1024)
    parts = nearest(vectors, everything, 10, metric)
    np.testing.assert_array_equal(whole[0], parts[0])
    np.testing.assert_array_equal(whole[1], parts[1])
    shuffled = rng.permutation(300).astype(np.int32)
    again = nearest(vectors, shuffled, 10, metric)
    np.testing.assert_array_equal(whole[0][shuffled], again[0])
    np.testing.assert_array_equal(whole[1][shuffled], again[1])


@pytest.mark.parametrize("metric", METRICS)
def test_the_packaged_lexicon_against_brute_force(metric: str) -> None:
    vectors = Lexicon.default().vectors
    queries = np.array([0, 17, 999, 12345, len(vectors) - 1], np.int32)
    ids, distances = nearest(vectors, queries, 20, metric)
    wide = vectors.astype(np.float64)
    for row, q in enumerate(queries):
        if metric == "euclidean":
            far = np.sqrt(((wide - wide[q]) ** 2).sum(axis=1))
        else:
            far = 1 - wide @ wide[q] / np.sqrt((wide**2).sum(axis=1) * (wide[q] ** 2).sum())
        wanted = np.argsort(far, kind="stable")[:20]
        assert ids[row].tolist() == wanted.tolist()
        np.testing.assert_allclose(distances[row], far[wanted], atol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_a_pool(metric: str) -> None:
    rng = np.random.default_rng(8)
    vectors = rng.integers(-4, 5, size=(120, 3)).astype(np.float32)
    pool = np.sort(rng.permutation(120)[:50]).astype(np.int32)
    for k in (1, 5, 50):
        ids, distances = nearest_in(vectors, pool[::3], pool, k, metric)
        wanted_ids, wanted = brute(vectors, pool[::3], pool.tolist(), k, metric)
        np.testing.assert_array_equal(ids, wanted_ids)
        np.testing.assert_array_equal(distances, wanted)


def test_no_query_at_all() -> None:
    ids, distances = nearest(np.eye(3, dtype=np.float32), np.zeros(0, np.int32), 2, "cosine")
    assert ids.shape == distances.shape == (0, 2)


def test_a_memory_mapped_table(tmp_path) -> None:
    vectors = np.random.default_rng(9).normal(size=(60, 4)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", vectors)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    for metric in METRICS:
        np.testing.assert_array_equal(
            nearest(mapped, np.arange(60), 5, metric)[0], nearest(vectors, np.arange(60), 5, metric)[0]
        )


TABLE = np.eye(4, dtype=np.float32)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: nearest(TABLE, np.arange(4), 5, "cosine"), "k: 5"),
        (lambda: nearest(TABLE, np.arange(4), 0, "cosine"), "k: 0"),
        (lambda: nearest(TABLE, np.array([4]), 2, "cosine"), "queries"),
        (lambda: nearest(TABLE, np.array([-1]), 2, "cosine"), "queries"),
        (lambda: nearest(TABLE, np.arange(4), 2, "cosin"), "cosine"),
        (lambda: nearest_in(TABLE, np.array([1]), np.array([0, 1]), 3, "cosine"), "k: 3"),
        (lambda: nearest_in(TABLE, np.array([3]), np.array([0, 1]), 1, "cosine"), "queries"),
        (lambda: nearest_in(TABLE, np.array([1]), np.array([1, 0]), 1, "cosine"), "pool"),
        (lambda: nearest_in(TABLE, np.array([1]), np.array([1, 1]), 1, "cosine"), "pool"),
        (lambda: nearest_in(TABLE, np.array([1]), np.array([1, 4]), 1, "cosine"), "pool"),
        (lambda: nearest_in(TABLE, np.array([1]), np.zeros(0), 1, "cosine"), "queries"),
    ],
)
def test_settings_out_of_range(call, field: str) -> None:
    with pytest.raises(SettingsError, match=field):
        call()
