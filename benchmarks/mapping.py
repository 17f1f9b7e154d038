"""CusText's compilation against the bare neighbour search that it cannot do without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from benchmarks.measure import Figure, Goal, Section, in_turn, quotient, scaled
from benchmarks.sizes import Sizes
from benchmarks.sources import lexicons, packaged
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.neighbors import METRICS
from dptext_spark.mechanisms import CusText

K = 20
WARM_UP = 300
GOALS = (Goal(5.0, 5.0, "value"), Goal(1.5, 1.5, "ratio"))


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure compilation with every lexicon that is here."""
    section = Section("mapping", f"CusText compiled, balanced, K = {K}, all cores that faiss takes")
    # The papers' lexicon whole: the entries that only a tokenized text can hold belong to the matrix.
    found, section.skipped = lexicons(sizes.lexicon_words, tokenizer="whitespace")
    section.facts = {"faiss_threads": faiss.omp_get_max_threads()}
    for name, lexicon in found:
        shown = f"{name} {len(lexicon):,} x {lexicon.dimensions}"
        for metric in METRICS:
            say(f"mapping: {shown}, {metric}")
            section.figures.append(_compilation(shown, lexicon, metric, sizes))
    return section


def _compilation(shown: str, lexicon: Lexicon, metric: Any, sizes: Sizes) -> Figure:
    """Return the seconds of a compilation beside those of the search of every word's K nearest."""
    mechanism = CusText(k=K, metric=metric)
    vectors, kind = _searched(lexicon, metric)
    mechanism.compile(packaged(WARM_UP))  # machine code is made or loaded once a process
    ours, theirs = in_turn(
        sizes.long_rounds,
        lambda: mechanism.compile(lexicon),
        lambda: faiss.knn(vectors, vectors, K, metric=kind),
    )
    value, peer = scaled(ours, 1.0), scaled(theirs, 1.0)
    return Figure(
        f"{shown}, {metric}", "s", value, f"faiss.knn, k = {K}", peer, quotient(value, peer), "x its time", GOALS
    )  # fmt: skip


def _searched(lexicon: Lexicon, metric: str) -> tuple[npt.NDArray[np.float32], int]:
    """Return the matrix that faiss searches (of length 1 for the cosine) and its metric."""
    vectors = np.array(lexicon.vectors)
    if metric == "euclidean":
        return vectors, faiss.METRIC_L2
    faiss.normalize_L2(vectors)
    return vectors, faiss.METRIC_INNER_PRODUCT
