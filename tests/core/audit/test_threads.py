"""Work in parts: in order, and the same as in one piece."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from dptext_spark.audit.attacks.attacked_text import SUBKEY, sampled, simulate
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC, TEM, CusText, Mechanism, Vickrey, matrices
from dptext_spark.mechanisms.matrices import in_threads, products
from dptext_spark.randomness import Draws
from tests.core.names import scattered

V = 90


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(V, 5, 4)


def test_parts_come_back_in_order_and_matrix_products_take_one_thread() -> None:
    def work(part: np.ndarray) -> tuple[list[int], list[int]]:
        # Another library's, which counts its threads by OpenMP, is not the one that NumPy multiplies with.
        blas = [one for one in threadpool_info() if one.get("threading_layer") == "pthreads"]
        return part.tolist(), [one["num_threads"] for one in blas]

    found = in_threads(work, np.arange(10, dtype=np.int32), 4)
    assert [part for part, _ in found] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert all(number == 1 for _, blas in found for number in blas)
    assert in_threads(work, np.arange(0), 4) == []


@pytest.mark.parametrize("mechanism", [CusText(k=5), TEM(epsilon=2.0), MVC(epsilon=6), Vickrey(epsilon=6.0)])
def test_draws_of_parts(mechanism: Mechanism, lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = mechanism.compile(lexicon)
    random = np.random.default_rng(5)
    words, bounds = random.integers(0, V, 400).astype(np.int32), np.arange(0, 401, 20)
    numbers = random.integers(0, 2**63, (400, 2)).astype(np.uint64)
    whole = sampler.sample(words, Draws(bytes(32), numbers))
    monkeypatch.setattr("dptext_spark.audit.attacks.attacked_text.DRAWN", 37)
    np.testing.assert_array_equal(sampled(sampler, words, Draws(bytes(32), numbers)), whole)
    assert len(sampled(sampler, words[:0], Draws(bytes(32), numbers[:0]))) == 0
    # At the other levels a draw is made once, and is the one that its record and word name.
    blocks = np.stack([np.repeat(np.arange(20), 20), 1 + words], axis=1).astype(np.uint64)
    drawn = random.random(400) < 0.8
    for level, scope in (("record", blocks), ("dataset", blocks * np.array([0, 1], np.uint64))):
        wanted = np.where(drawn, sampler.sample(words, Draws(SUBKEY, scope)), words)
        found = simulate(sampler, words, drawn, bounds, level)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found.outputs, wanted)


def test_products_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "TILE", 16)
    random = np.random.default_rng(6)
    some, vectors = random.normal(size=(7, 9)), random.normal(size=(50, 9))
    found = np.zeros((7, 50))
    for part, tile in products(some.astype(np.float32), vectors.astype(np.float32)):
        found[:, part] += tile
    np.testing.assert_allclose(found, some @ vectors.T, atol=1e-5)
