"""A graph of near words ("HNSW"): from word to word towards a point, first in coarse steps, then in fine ones.

Paper: Malkov and Yashunin 2020, "Efficient and Robust Approximate Nearest Neighbor Search Using Hierarchical Navigable Small
World Graphs", algorithms 2 and 5.
The graph is built by faiss, on one thread with its fixed seed; its float32 sums depend on the processor, so two machines may
build two graphs, which are then two models with two fingerprints. The walk is our own, with scores in float64 in one fixed order:
what comes out depends on the stored graph and on the point alone.

The walk begins where the graph says, never at the input word: then the released word would no longer be post-processing of the
noisy vector.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import faiss
import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F64, I64, Ids, Vectors
from dptext_spark.mechanisms.samplers.nearest import LONGEST, Targets
from dptext_spark.mechanisms.samplers.scores import best_two, better, score
from dptext_spark.runtime.array_checks import Arrays
from dptext_spark.runtime.jit import Int, compiled

LINKS = 16  # of a word on each level; twice as many on the lowest
BUILD_BEAM = 100  # words in view when a word is put in
BEAM = 128  # words in view when a point is asked for
WIDEST = 1 << 16  # beam that a stored graph may have


@dataclass(frozen=True, eq=False)
class GraphIndex:
    """Levels of links between words.

    Attributes:
        links: int32[m], the linked words of each word, its levels one after the other; -1 where there is none.
        offsets: int64[V + 1], where each word's links begin.
        begins: int64[levels + 1], where each level's links begin among those of a word.
        entry: the word that a walk begins with; the graph's highest level holds it.
        beam: words in view on the lowest level.
    """

    ARRAYS: ClassVar = ("graph.links", "graph.offsets", "graph.begins", "graph.settings")
    links: Ids
    offsets: I64
    begins: I64
    entry: int
    beam: int

    @classmethod
    def of(cls, vectors: Vectors) -> GraphIndex:
        """Link float32[V, d]."""
        made: Any = faiss.IndexHNSWFlat(vectors.shape[1], LINKS)
        made.hnsw.efConstruction = BUILD_BEAM
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # on several, who comes first is chance
        try:
            made.add(np.ascontiguousarray(vectors))
        finally:
            faiss.omp_set_num_threads(threads)
        held = made.hnsw
        begins = faiss.vector_to_array(held.cum_nneighbor_per_level)[: held.max_level + 2]
        return cls(
            faiss.vector_to_array(held.neighbors).astype(np.int32),
            faiss.vector_to_array(held.offsets).astype(np.int64),
            begins.astype(np.int64),
            int(held.entry_point),
            BEAM,
        )

    def search(self, targets: Targets, points: F64, wanted: int) -> Ids:
        """Find the words nearest to some points, along the links.

        Args:
            targets: the words that the index was made of.
            points: float64[n, d], C order. A point longer than 1e15, or one whose walk meets fewer words than wanted, is
                compared with every word.
            wanted: 1 for the nearest word alone, 2 for the second, too.

        Returns:
            int32[n, 2]: the nearest word and the second nearest of those that the walk met; ties to the lower id.
        """
        out = np.empty((len(points), 2), np.int32)
        _walk(
            points.reshape(-1), targets.vectors.reshape(-1), points.shape[1], targets.halves, self.links, self.offsets,
            self.begins, self.entry, max(self.beam, wanted), wanted, out,
        )  # fmt: skip
        return out

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what :meth:`restore` needs."""
        return {
            "graph.links": self.links,
            "graph.offsets": self.offsets,
            "graph.begins": self.begins,
            "graph.settings": np.array([self.entry, self.beam], np.int64),
        }

    @classmethod
    def check(cls, arrays: Arrays, words: int) -> None:
        """Refuse links that leave the graph: each leads to a word that has links on the same level."""
        links = arrays.take("graph.links", np.int32, None)
        arrays.within("graph.links", links, -1, words - 1)
        offsets = arrays.take("graph.offsets", np.int64, words + 1)
        arrays.ascending("graph.offsets", offsets)
        ends = offsets[0] == 0 and offsets[-1] == len(links)
        arrays.require("graph.offsets", ends, f"places from 0 to {len(links)}")
        begins = arrays.take("graph.begins", np.int64, None)
        arrays.require(
            "graph.begins", len(begins) >= 2 and begins[0] == 0, "where each level begins, the first at 0"
        )
        arrays.ascending("graph.begins", begins)
        held = np.diff(offsets)
        arrays.require("graph.offsets", held.min() >= begins[1], "links on the lowest level for every word")
        entry, beam = (int(one) for one in arrays.take("graph.settings", np.int64, 2))
        known = 0 <= entry < words and bool(held[entry] >= begins[-1])
        arrays.require(
            "graph.settings", known and 1 <= beam <= WIDEST, f"a word of the highest level, 1 to {WIDEST}"
        )
        for low, high in pairwise(begins[1:].tolist()):
            above = offsets[:-1][held >= high]
            for step in range(low, high):
                led = links[above + step]
                arrays.require(
                    "graph.links", (held[led[led >= 0]] >= high).all(), "links to words of the same level"
                )

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> GraphIndex:
        """Build again from :meth:`arrays`."""
        entry, beam = map(int, arrays["graph.settings"])
        links, offsets, begins = (arrays[f"graph.{name}"] for name in ("links", "offsets", "begins"))
        return cls(links, offsets, begins, entry, beam)

    def figures(self) -> dict[str, Any]:
        """Return public figures."""
        return {"links": int((self.links >= 0).sum()), "beam": self.beam}


@compiled
def _walk(
    queries: Any, words: Any, size: Int, halves: Any, links: Any, offsets: Any, begins: Any, entry: Int, beam: Int,
    wanted: Int, out: Any,
) -> None:  # fmt: skip
    """See :meth:`GraphIndex.search`.

    The words in view are kept sorted by score, the best first, ties to the lower id; the best that was not left yet is left
    next, until all were.
    """
    seen = np.full(halves.shape[0], -1, np.int64)  # the point that a word was met for
    view, value, is_left = np.empty(beam, np.int64), np.empty(beam), np.empty(beam, np.bool_)
    for i in range(out.shape[0]):
        at = np.int64(entry)
        most = score(queries, i, words, at, size, halves)
        for level in range(begins.shape[0] - 2, 0, -1):
            moved = True
            while moved:
                moved = False
                here = offsets[at]
                for k in range(here + begins[level], here + begins[level + 1]):
                    u = np.int64(links[k])
                    if u < 0:
                        break
                    found = score(queries, i, words, u, size, halves)
                    if better(found, u, most, at):
                        at, most, moved = u, found, True
        seen[at] = i
        view[0], value[0], is_left[0] = at, most, False
        count, turn = 1, 0
        while turn < count:
            if is_left[turn]:
                turn += 1
                continue
            is_left[turn] = True
            here = offsets[view[turn]]
            for k in range(here, here + begins[1]):
                u = np.int64(links[k])
                if u < 0:
                    break
                if seen[u] == i:
                    continue
                seen[u] = i
                found = score(queries, i, words, u, size, halves)
                if count == beam and not better(found, u, value[count - 1], view[count - 1]):
                    continue
                place = min(count, beam - 1)
                while place > 0 and better(found, u, value[place - 1], view[place - 1]):
                    view[place], value[place] = view[place - 1], value[place - 1]
                    is_left[place] = is_left[place - 1]
                    place -= 1
                view[place], value[place], is_left[place] = u, found, False
                count = min(count + 1, beam)
                turn = min(turn, place)
        length = math.sqrt(_square(queries, i, size))
        if count < wanted or not length <= LONGEST:
            out[i, 0], out[i, 1], _, _ = best_two(queries, i, words, size, halves, view, -1)
        else:
            out[i, 0] = view[0]
            out[i, 1] = view[1] if count > 1 else -1


@compiled
def _square(flat: Any, i: Int, size: Int) -> float:
    total = 0.0
    for k in range(size):
        total += flat[i * size + k] * flat[i * size + k]
    return total
