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
from tests.core.mechanisms.plain_custext import distance


def brute(vectors: np.ndarray, queries, pool, k: int, metric: str):
    """The rule itself: the query first, then by (distance, id)."""
    ids, distances, rows = [], [], vectors.astype(np.float64).tolist()
    for q in queries:
        others = sorted((distance(rows[q], rows[u], metric), u) for u in pool if u != q)
        row = [(distance(rows[q], rows[q], metric), q), *others][:k]
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


RANDOM = np.random.default_rng(1)
FAR = 1000 + RANDOM.normal(size=(1, 20))
TABLES = {
    "a grid full of ties": RANDOM.integers(-3, 4, size=(60, 1)),
    "more duplicates than spare candidates": np.insert(RANDOM.normal(size=(80, 6)), [20] * 70, 0.5, axis=0),
    "some zeros": RANDOM.normal(size=(80, 3)) * (RANDOM.random((80, 1)) < 0.95),
    "mostly zeros": np.concatenate([np.eye(3), np.zeros((97, 3))]),
    "an outlier": RANDOM.normal(size=(90, 4)) * np.where(np.arange(90) == 7, 1e6, 1.0)[:, None],
    # About the float32 resolution of the squares, and outside the range of float32 squares.
    **{f"spread {x}": FAR + x * RANDOM.normal(size=(200, 20)) for x in (1e-3, 0.1, 0.3, 1.0)},
    **{f"scale {x}": RANDOM.normal(size=(70, 5)) * x for x in (1e-40, 1e-25, 1e-10, 1e18, 1e30)},
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", TABLES)
def test_tables_that_are_hard(name: str, metric: str) -> None:
    vectors = TABLES[name].astype(np.float32)
    for k in (1, 3, 9, len(vectors)) if name == "some zeros" else (3, 9):
        check(vectors, k, metric)


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
    ids, distances = nearest(np.eye(4, dtype=np.float32), np.zeros(0, np.int32), 2, "cosine")
    assert ids.shape == distances.shape == (0, 2)


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
