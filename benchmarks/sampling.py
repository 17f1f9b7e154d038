"""Samplers for measurement: compiled models, and calls that draw words, from text to text or from id to id."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import seconds_of
from benchmarks.sizes import Sizes
from benchmarks.sources import drawn_ids, lexicons, packaged
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import Mechanism
from dptext_spark.randomness.draws import Draws

WARM_UP = 300
BATCH = 1 << 14  # words of a call: about as many as the text engine asks for at once


class Model(NamedTuple):
    """A compiled mechanism.

    Attributes:
        sampler: of the mechanism.
        seconds: that compiling took, without the making of machine code.
    """

    sampler: Any
    seconds: float


def subject(sizes: Sizes) -> tuple[str, Lexicon]:
    """Return the lexicon on which mechanisms are measured, and its name: the GloVe excerpt if it is here, or the packaged one."""
    return lexicons(sizes.lexicon_words)[0][-1]


@lru_cache(maxsize=20)  # tables over a whole lexicon are large
def model(lexicon: Lexicon, mechanism: Mechanism) -> Model:
    """Compile a mechanism, and remember the last few."""
    mechanism.compile(packaged(WARM_UP))  # machine code is made or loaded once a process
    made: list[Any] = []
    seconds = seconds_of(lambda: made.append(mechanism.compile(lexicon)))
    return Model(made[0], seconds)


def drawing(sampler: Any, lexicon: Lexicon, count: int) -> Callable[[], Any]:
    """Return a call that draws `count` words, as many at a time as the text engine does, each with a number of its own."""
    ids = drawn_ids(lexicon, count)
    blocks = np.random.default_rng(1).integers(1 << 63, size=(count, 2)).astype(np.uint64)
    keys: dict[int, bytes] = {}

    def run() -> None:
        for start in range(0, count, BATCH):
            some = slice(start, start + BATCH)
            sampler.sample(ids[some], Draws(bytes(32), blocks[some], keys))

    run()  # numba compiles for arrays as they come
    return run
