"""The graph of near words: its links, and what a walk along them finds."""

from __future__ import annotations

import dataclasses

import faiss
import numpy as np
import pytest

from dptext_spark.mechanisms.samplers.graph_index import GraphIndex
from dptext_spark.mechanisms.samplers.nearest import Targets
from tests.core.mechanisms.samplers.test_cell_index import points_near, vectors_of


def test_the_graph_is_the_same_each_time() -> None:
    vectors, threads = vectors_of(3000, 8), faiss.omp_get_max_threads()
    first, second = (GraphIndex.of(vectors).arrays() for _ in range(2))
    assert all((first[name] == second[name]).all() for name in first)
    assert faiss.omp_get_max_threads() == threads


@pytest.mark.parametrize("spread", [0.1, 3.0, 100.0])
def test_a_walk_is_that_of_a_plain_one(spread: float) -> None:
    """Algorithm 2 of the paper with sets and sorting, for one point at a time."""
    vectors = vectors_of(1500, 6)
    made, targets = dataclasses.replace(GraphIndex.of(vectors), beam=10), Targets.of(vectors)
    points = points_near(vectors, 100, spread)
    wide = vectors.astype(np.float64)

    def linked(word: int, level: int) -> list[int]:
        start, end = made.offsets[word] + made.begins[level], made.offsets[word] + made.begins[level + 1]
        return [int(u) for u in made.links[start:end] if u >= 0]

    def plain(point: np.ndarray) -> list[int]:
        score = wide @ point - 0.5 * (wide * wide).sum(axis=1)

        def order(u: int) -> tuple[float, int]:
            return (-score[u], u)

        at = made.entry
        for level in range(len(made.begins) - 2, 0, -1):
            while (best := min([at, *linked(at, level)], key=order)) != at:
                at = best
        met, view, left = {at}, [at], set()
        while waiting := [u for u in view if u not in left]:
            left.add(waiting[0])
            new = [u for u in linked(waiting[0], 0) if u not in met]
            met |= set(new)
            view = sorted(view + new, key=order)[:10]
        return view[:2]

    found = made.search(targets, points, 2)
    assert found.tolist() == [plain(point) for point in points]


def test_a_wide_view_is_an_exact_search() -> None:
    vectors = vectors_of(600, 5)
    vectors[400:] = np.nextafter(vectors[:200], np.float32(9))
    made, targets = dataclasses.replace(GraphIndex.of(vectors), beam=600), Targets.of(vectors)
    for spread in (0.01, 1.0, 1e5):
        points = points_near(vectors, 200, spread)
        assert (made.search(targets, points, 2) == targets.search(points, 2)).all()
    narrow = dataclasses.replace(made, beam=1).search(targets, points_near(vectors, 200, 1.0), 2)
    assert (narrow != targets.search(points_near(vectors, 200, 1.0), 2)).any()


@pytest.mark.parametrize(
    "vectors",
    [[[0.0], [1.0]], [[1.0, 2.0]] * 3, [[0.0] * 9, [0.0] * 9], [[-3.0], [0.0], [0.0], [5.0]], [[0.0, 0.0], [1.0, 0.0]]],
)  # fmt: skip
def test_tiny_lexicons(vectors: list[list[float]]) -> None:
    given = np.array(vectors, np.float32)
    made, targets = GraphIndex.of(given), Targets.of(given)
    points = points_near(given, 50, 2.0)
    assert (made.search(targets, points, 2) == targets.search(points, 2)).all()


def test_a_word_without_links_is_no_dead_end() -> None:
    """A walk that meets fewer words than wanted compares the point with every word."""
    vectors = vectors_of(50, 3)
    made, targets = GraphIndex.of(vectors), Targets.of(vectors)
    cut = dataclasses.replace(made, links=np.full_like(made.links, -1))
    points = points_near(vectors, 30, 1.0)
    assert (cut.search(targets, points, 2) == targets.search(points, 2)).all()
    assert (cut.search(targets, points, 1)[:, 0] == made.entry).all()


@pytest.mark.parametrize("length", [1e16, 1e150, np.nan])
def test_points_that_float32_does_not_hold(length: float) -> None:
    vectors = vectors_of(400, 4)
    made, targets = GraphIndex.of(vectors), Targets.of(vectors)
    points = points_near(vectors, 40, 1.0) * length
    assert (made.search(targets, points, 2) == targets.search(points, 2)).all()
