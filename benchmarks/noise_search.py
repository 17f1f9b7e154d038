"""The noise kernel: the rate of its search beside that of a bare matrix product, and what short noise spares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.engine import one_core
from benchmarks.measure import Figure, Goal, Section, Spread, in_turn, quotient
from benchmarks.sampling import BATCH, drawing, model, subject
from benchmarks.sizes import Sizes
from benchmarks.sources import drawn_ids
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC
from dptext_spark.mechanisms.samplers.nearest import TOKENS, WORDS
from dptext_spark.mechanisms.samplers.noise import NoiseSampler

SMALL = 1.0  # every draw needs a search
LARGE = (50.0, 100.0, 500.0)
SQUARE = 2048
SHARE = (Goal(0.7, 0.7, "ratio", at_least=True),)
FASTER = (Goal(1.0, 1.0, "ratio", at_least=True),)
NOTE = (
    "Flops of a search are those of its matrix product, 2·V·d a word, however many it does. The bare product is the quicker of "
    f"two: tiles of {TOKENS} x d times d x {WORDS}, and a large square; float32, one thread, in the same process."
)


def noise_search(sizes: Sizes) -> Section:
    """Measure calibrated noise for small and large ε."""
    name, lexicon = subject(sizes)
    section = Section("noise search", f"noise kernel, {name}")
    count = min(sizes.noise_rows * sizes.words_a_row, BATCH) // TOKENS * TOKENS or TOKENS
    samplers = {epsilon: model(lexicon, MVC(epsilon=epsilon)).sampler for epsilon in (SMALL, *LARGE)}
    with one_core():
        section.figures += _beside_products(samplers[SMALL], lexicon, count, sizes.long_rounds, section.facts)
        small = drawing(samplers[SMALL], lexicon, count)
        for epsilon in LARGE:
            sampler = samplers[epsilon]
            section.facts[f"noise_length, ε = {epsilon:g}"] = sampler.summary.noise_length
            section.facts["nearest_distance"] = sampler.summary.nearest_distance
            ours, theirs = in_turn(sizes.long_rounds, drawing(sampler, lexicon, count), small)
            value, peer = _rates(ours, count), _rates(theirs, count)
            figure = Figure(
                f"calibrated, ε = {epsilon:g}, ids to ids", "tokens/s", value, f"ε = {SMALL:g}", peer,
                quotient(value, peer), "x faster", FASTER if epsilon > min(LARGE) else (),
            )  # fmt: skip
            section.figures.append(figure)
    return section


def _beside_products(
    sampler: NoiseSampler, lexicon: Lexicon, count: int, rounds: int, facts: dict[str, object]
) -> list[Figure]:
    """Return the rates of the search and of the whole kernel beside that of the quicker matrix product."""
    random = np.random.default_rng(0)
    points = random.normal(size=(count, lexicon.dimensions)) * np.sqrt(lexicon.dimensions) / SMALL
    points += lexicon.vectors[drawn_ids(lexicon, count)]
    sampler.targets.search(points)
    one = np.ones((SQUARE, SQUARE), np.float32)
    product = np.empty_like(one)
    tiles = _tiles(lexicon, count)
    search, kernel, tiled, square = in_turn(
        rounds,
        lambda: sampler.targets.search(points),
        drawing(sampler, lexicon, count),
        tiles,
        lambda: np.matmul(one, one, out=product),
    )
    flops = 2.0 * count * len(lexicon) * lexicon.dimensions
    products = {
        f"products of {TOKENS} x d x {WORDS}": _rates(tiled, flops / 1e9),
        f"a product of {SQUARE} x {SQUARE} x {SQUARE}": _rates(square, 2.0 * SQUARE**3 / 1e9),
    }
    facts["products"] = {shown: spread.as_dict() for shown, spread in products.items()}
    quicker = max(products, key=lambda shown: products[shown].median)
    figures = []
    for shown, times in (
        ("the search", search),
        ("search and noise", kernel),
    ):
        value = _rates(times, flops / 1e9)
        figure = Figure(
            f"calibrated, ε = {SMALL:g}, {shown}", "Gflop/s", value, quicker, products[quicker],
            quotient(value, products[quicker]), "of it", SHARE, NOTE,
        )  # fmt: skip
        figures.append(figure)
    return figures


def _tiles(lexicon: Lexicon, count: int) -> Callable[[], None]:
    """Return a call that multiplies `count` points with every word in tiles of the kernel's shape, and does no more."""
    points = np.ones((TOKENS, lexicon.dimensions), np.float32)
    vectors = np.array(lexicon.vectors)
    held = np.empty(TOKENS * WORDS, np.float32)

    def run() -> None:
        for _ in range(0, count, TOKENS):
            for begin in range(0, len(vectors), WORDS):
                block = vectors[begin : begin + WORDS]
                np.matmul(points, block.T, out=held[: TOKENS * len(block)].reshape(TOKENS, len(block)))

    run()
    return run


def _rates(times: tuple[float, ...], amount: float) -> Spread:
    return Spread(tuple(amount / seconds for seconds in times))
