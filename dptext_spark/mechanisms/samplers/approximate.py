"""Approximate search for the word nearest to a noisy vector: what it changes is which word comes out, never the guarantee.

The released word stays a function of the noisy vector and of public things, hence post-processing. For this, every draw goes to
the index: the table of neighbours, which settles short noise exactly, knows the input word, and a noisy vector that it settled
one way for one word and the index another way for another word would tell the two apart.

When it pays: `ivf` where noise is long, so that the search is the cost, and where a word that is near but not the nearest will
do. On the 32,857 words of the GloVe excerpt (calibrated noise, one core) it searches a point in 50 to 80 us, the exact search in
200 to 260, and finds the nearest word for 76 % of the points at ε = 1, 87 % at 10, 99 % at 20 and all at 50. Where noise is so
short that the table settles most draws (there, ε of 100 and more) the exact search is the faster one. `hnsw` does not pay there:
330 to 470 us, 58 %, 76 %, 94 % and 98 %; its cost grows with the logarithm of the lexicon, so it is for lexicons of many times
that size. The recall of a compiled model stands in its summary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.parameters import choice
from dptext_spark.mechanisms.samplers.cell_index import CellIndex
from dptext_spark.mechanisms.samplers.graph_index import GraphIndex
from dptext_spark.mechanisms.samplers.nearest import Ids, Reals, Targets
from dptext_spark.runtime.array_checks import Arrays

Search = Literal["exact", "ivf", "hnsw"]
RECALL_DRAWS = 512  # by which recall is measured: public numbers, words at even steps through the lexicon
Index = CellIndex | GraphIndex
_STORED: tuple[tuple[str, type[Index]], ...] = (("cells.words", CellIndex), ("graph.links", GraphIndex))
_KINDS: dict[str, Callable[..., Index]] = {"ivf": CellIndex.of, "hnsw": GraphIndex.of}


def search_choice() -> Any:
    """Declare `search`, as every noise mechanism has it."""
    meaning = (
        "How the word next to the noisy vector is found: exactly, or by an approximate index (`ivf`: cells, `hnsw`: a graph), "
        "which changes which word comes out, not the guarantee."
    )
    return choice(Search, "exact", meaning)


def index_of(search: Search, targets: Targets) -> Index | None:
    """Make the index of a search; none for `exact`."""
    return None if search == "exact" else _KINDS[search](targets.vectors)


def check_index(arrays: Arrays, words: int) -> tuple[str, ...]:
    """Return the names of the arrays of a stored index, none where there is none.

    Raises:
        DataError: a search along them would leave the lexicon.
    """
    for name, kind in _STORED:
        if name in arrays:
            kind.check(arrays, words)
            return kind.ARRAYS
    return ()


def restored(arrays: Mapping[str, npt.NDArray[Any]]) -> Index | None:
    """Return the index that stored arrays hold, if any."""
    for name, kind in _STORED:
        if name in arrays:
            found: Index = kind.restore(arrays)
            return found
    return None


def recall(index: Index, targets: Targets, points: Reals, wanted: int) -> float:
    """Return the share of float64[n, d] points for which the index finds the nearest word (or both of the nearest two)."""
    exact, found = targets.search(points, wanted), index.search(targets, points, wanted)
    return float((exact[:, :wanted] == found[:, :wanted]).all(axis=1).mean())


def told(guarantee: Guarantee, search: Search, share: float) -> Guarantee:
    """Return the guarantee with a sentence on the search."""
    return replace(
        guarantee,
        sentence=f"{guarantee.sentence} The word next to it is searched for approximately ({search}): in {share:.1%} of "
        f"{RECALL_DRAWS} public draws the exact one was found. This changes which word comes out, not the bound.",
    )


def words_evenly(words: int) -> Ids:
    """Return int32[RECALL_DRAWS]: ids at even steps through the lexicon."""
    return (np.arange(RECALL_DRAWS) * words // RECALL_DRAWS).astype(np.int32)
