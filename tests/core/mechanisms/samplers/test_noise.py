"""The noise kernel against one token at a time: every draw equal, whatever settled it and however the batch was put together."""

from __future__ import annotations

import dataclasses
import hashlib
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import MVC, Mahalanobis, Projection, Vickrey
from dptext_spark.mechanisms.mvc import radial_noise
from dptext_spark.mechanisms.samplers.nearest import OPEN, NeighborTable
from dptext_spark.mechanisms.samplers.noise import NOISES, NoiseSampler, NoiseSummary, fill, lanes_of
from dptext_spark.randomness.draws import Draws
from tests.core.mechanisms.plain_noise import draws_of, plain_choice, plain_two

SAID = Guarantee("metric_dp", 1.0, metric="euclidean")
PARAMETERS: dict[str, tuple[float, ...]] = {
    "laplace": (0.4,),
    "gaussian": (0.5,),
    "truncated_laplace": (0.5, 1.0),
}


def plain_sample(
    ids: np.ndarray, draws: Draws, centers: np.ndarray, targets: np.ndarray, noise: str, parameters: tuple[float, ...],
    matrix: np.ndarray | None = None, second: float | None = None,
) -> np.ndarray:  # fmt: skip
    """Noise lane by lane, then a search of the whole lexicon for each token."""
    size = centers.shape[1]
    lanes = lanes_of(noise, size)
    bits = np.stack([draws.u64(lane) for lane in range(lanes)], axis=1)
    z = np.empty((len(ids), size))
    fill(NOISES.index(noise), np.array(parameters), bits, z)
    if matrix is not None:
        turned = np.zeros_like(z)
        for k in range(size):
            turned += z[:, k : k + 1] * matrix[:, k]
        z = turned
    out = []
    for i, word in enumerate(ids):
        query = centers[word].astype(np.float64) + z[i]
        pair = plain_two(query, targets)
        if second is None:
            out.append(pair[0])
        else:
            u = (int(draws.u64(lanes)[i]) + 0.5) / 2**64
            out.append(plain_choice(query, targets, pair, second, u))
    return np.array(out, np.int32)


def vectors_of(words: int, size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(words, size)).astype(np.float32)


def clustered() -> np.ndarray:
    """300 words in 12 knots: tables settle much, and the second nearest is often far."""
    rng = np.random.default_rng(7)
    return (
        (rng.normal(size=(12, 5)) * 4 + rng.normal(size=(25, 12, 5)) * 0.3).reshape(300, 5).astype(np.float32)
    )


@pytest.mark.long
@pytest.mark.parametrize("second", [None, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 40.0, 400.0, 1e300])
def test_every_draw_is_that_of_a_plain_search(epsilon: float, second: float | None) -> None:
    vectors = clustered()
    ids = np.random.default_rng(1).integers(0, 300, 700).astype(np.int32)
    noise, parameters = radial_noise(epsilon, 5)
    wanted = plain_sample(ids, draws_of(700), vectors, vectors, noise, parameters, second=second)
    for neighbors in (0, 2, 8, 64, 1000):
        made = NoiseSampler.of(
            vectors, vectors, noise, parameters, SAID, NoiseSummary(), second=second, neighbors=neighbors
        )
        if neighbors:  # however little it settles
            made = dataclasses.replace(made, table=NeighborTable.of(made.centers, neighbors))
        assert (made.sample(ids, draws_of(700)) == wanted).all(), neighbors


@pytest.mark.parametrize(
    ("epsilon", "wanted", "least"), [(400.0, 1, 0.99), (40.0, 1, 0.3), (40.0, 2, 0.3), (0.1, 1, 0.0)]
)
def test_short_noise_is_settled_by_the_table(epsilon: float, wanted: int, least: float) -> None:
    vectors = clustered()
    made = NoiseSampler.of(vectors, vectors, *radial_noise(epsilon, 5), SAID, NoiseSummary())
    table = NeighborTable.of(vectors, 64)
    noise = made._noise(made._bits(draws_of(2000), slice(0, 2000)))
    ids = (np.arange(2000) % 300).astype(np.int32)
    found = table.settle(ids, made.centers, made.targets, noise, wanted)
    settled = float((found[:, 0] != OPEN).mean())
    assert least <= settled
    assert (settled > 0) == (least > 0)
    assert (made.table.near.shape[1] == 64) == (epsilon > 1)


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "truncated_laplace"])
def test_other_noises_and_other_targets(noise: str) -> None:
    centers, targets = vectors_of(150, 6), vectors_of(150, 6, 1) * 3
    ids = (np.arange(400) % 150).astype(np.int32)
    for where in (centers, targets):
        made = NoiseSampler.of(centers, where, noise, PARAMETERS[noise], SAID, NoiseSummary(seed=1))
        wanted = plain_sample(ids, draws_of(400), centers, where, noise, PARAMETERS[noise])
        assert (made.sample(ids, draws_of(400)) == wanted).all()
        assert made.summary.seed == 1
        assert made.summary.noise == noise
        again = NoiseSampler.restore(made.arrays(), SAID, made.summary)
        assert (again.sample(ids, draws_of(400)) == wanted).all()
        assert ("targets" in made.arrays()) == (where is targets)


@pytest.mark.parametrize("second", [None, 0.5])
def test_a_matrix_turns_the_noise(second: float | None) -> None:
    vectors = vectors_of(200, 5)
    matrix = np.random.default_rng(3).normal(size=(5, 5))
    noise, parameters = radial_noise(4.0, 5)
    made = NoiseSampler.of(
        vectors, vectors, noise, parameters, SAID, NoiseSummary(), matrix=matrix, second=second
    )
    ids = (np.arange(500) % 200).astype(np.int32)
    wanted = plain_sample(ids, draws_of(500), vectors, vectors, noise, parameters, matrix, second)
    assert (made.sample(ids, draws_of(500)) == wanted).all()


class TestTinyLexicons:
    @pytest.mark.parametrize("second", [None, 0.5])
    @pytest.mark.parametrize(
        "vectors",
        [
            [[0.0], [1.0]],
            [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]],
            [[0.0, 0.0], [0.0, 1.0], [0.0, 1.0]],
            [[0.0] * 9, [0.0] * 9],
            [[-3.0], [0.0], [0.0], [5.0]],
        ],
    )
    @pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e3])
    def test_any(self, vectors: list[list[float]], epsilon: float, second: float | None) -> None:
        given = np.array(vectors, np.float32)
        noise, parameters = radial_noise(epsilon, given.shape[1])
        made = NoiseSampler.of(given, given, noise, parameters, SAID, NoiseSummary(), second=second)
        ids = (np.arange(200) % len(given)).astype(np.int32)
        wanted = plain_sample(ids, draws_of(200), given, given, noise, parameters, second=second)
        assert (made.sample(ids, draws_of(200)) == wanted).all()

    def test_equal_words_draw_alike(self) -> None:
        """Two words with one vector have one law: the same numbers, the same output."""
        vectors = np.concatenate([vectors_of(30, 3), vectors_of(30, 3)])
        made = NoiseSampler.of(vectors, vectors, *radial_noise(2.0, 3), SAID, NoiseSummary())
        first, second = (made.sample(np.full(500, w, np.int32), draws_of(500)) for w in (4, 34))
        assert (first == second).all()
        assert (first < 30).all()


class TestBatches:
    MADE = NoiseSampler.of(
        vectors_of(2500, 12), vectors_of(2500, 12), *radial_noise(8.0, 12), SAID, NoiseSummary(), second=0.3
    )
    IDS = np.random.default_rng(2).integers(0, 2500, 1700).astype(np.int32)

    def test_parts_and_orders(self) -> None:
        """Both kinds of draws in one batch: settled by the table, and left to the search."""
        same = vectors_of(2500, 12)
        made = NoiseSampler.of(same, same, *radial_noise(25.0, 12), SAID, NoiseSummary())
        table = NeighborTable.of(made.centers, 64)
        for sampler in (self.MADE, dataclasses.replace(made, table=table)):
            whole = sampler.sample(self.IDS, draws_of(1700))
            blocks = draws_of(1700).blocks
            order = np.random.default_rng(3).permutation(1700)
            shuffled = sampler.sample(self.IDS[order], Draws(bytes(32), blocks[order]))
            assert (shuffled == whole[order]).all()
            for part in (slice(0, 1), slice(5, 40), slice(511, 514), slice(1000, 1700)):
                assert (sampler.sample(self.IDS[part], Draws(bytes(32), blocks[part])) == whole[part]).all()

    def test_equal_blocks_are_drawn_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        blocks = draws_of(60).blocks
        some = np.random.default_rng(4).integers(0, 60, 1500)
        words = (some * 7 % 2500).astype(np.int32)
        whole = self.MADE.sample((np.arange(60) * 7).astype(np.int32), Draws(bytes(32), blocks))
        asked = []
        plain = NoiseSampler._sample

        def counted(self: NoiseSampler, ids: np.ndarray, draws: Draws) -> np.ndarray:
            asked.append(len(ids))
            return plain(self, ids, draws)

        monkeypatch.setattr(NoiseSampler, "_sample", counted)
        found = self.MADE.sample(words, Draws(bytes(32), blocks[some]))
        assert asked == [60]
        assert found.dtype == np.int32
        assert (found == whole[some]).all()
        # One block for two words is two draws.
        both = self.MADE.sample(np.array([3, 9, 3], np.int32), Draws(bytes(32), blocks[[5, 5, 5]]))
        alone = [
            self.MADE.sample(np.array([w], np.int32), Draws(bytes(32), blocks[[5]]))[0] for w in (3, 9, 3)
        ]
        assert both.tolist() == alone

    @pytest.mark.long
    def test_memory_does_not_grow_with_batch_times_lexicon(self) -> None:
        vectors = vectors_of(20_000, 8)
        made = NoiseSampler.of(vectors, vectors, *radial_noise(1.0, 8), SAID, NoiseSummary(), neighbors=0)
        ids = (np.arange(6000) % 20_000).astype(np.int32)
        made.sample(ids[:600], draws_of(600))
        tracemalloc.start()
        try:
            made.sample(ids, draws_of(6000))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 10e6  # all scores at once would be 480 MB

    def test_from_mapped_files(self, tmp_path: Path) -> None:
        held = {}
        for name, array in self.MADE.arrays().items():
            np.save(tmp_path / name, array, allow_pickle=False)
            held[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        again = NoiseSampler.restore(held, SAID, self.MADE.summary)
        assert (again.sample(self.IDS, draws_of(1700)) == self.MADE.sample(self.IDS, draws_of(1700))).all()
        assert again.second == 0.3
        assert again.law(0) is None


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-155])
def test_noise_that_float64_does_not_hold(epsilon: float) -> None:
    vectors = vectors_of(10, 3)
    with pytest.raises(SettingsError, match=r"mechanism\.epsilon: .* given; valid: a greater one"):
        NoiseSampler.of(
            vectors, vectors, *radial_noise(epsilon, 3), Guarantee("metric_dp", epsilon), NoiseSummary()
        )


def near_ties() -> Lexicon:
    """1,500 words of the packaged lexicon, 300 of them a last bit apart from others."""
    whole = Lexicon.default()
    vectors = whole.vectors[:1500].copy()
    vectors[1200:] = np.nextafter(vectors[:300], np.float32(9))
    return Lexicon(Vocabulary.of(whole.vocabulary.strings()[:1500]), vectors)


def digest() -> str:
    """A hash of arrays and draws of every mechanism on this kernel: table and search, near ties among them."""
    lexicon = near_ties()
    ids = (np.arange(3000) % 1500).astype(np.int32)
    parts: list[Any] = []

    def add(made: NoiseSampler) -> None:
        total = hashlib.sha256()
        for array in made.arrays().values():
            total.update(array.tobytes())
        total.update(made.sample(ids, draws_of(3000)).tobytes())
        parts.append(total.hexdigest()[:16])

    for epsilon in (3.0, 60.0):
        add(MVC(epsilon).compile(lexicon))
        add(Mahalanobis(epsilon, 0.6).compile(lexicon))
        add(Vickrey(epsilon, 0.4, "mahalanobis").compile(lexicon))
        add(Projection(epsilon, m=20).compile(lexicon))
    add(Vickrey(6.0, 0.4, search="ivf").compile(lexicon))
    return " ".join(parts)


@pytest.mark.cluster
def test_other_processors_and_libraries(on_another_processor: Callable[[str], str]) -> None:
    """No vector instructions, one thread, another matrix product, nothing cached: every byte is the same."""
    assert on_another_processor("tests.core.mechanisms.samplers.test_noise.digest") == digest()
