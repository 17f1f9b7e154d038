"""Which words share an output set: CusText's three mappings, and what a mapping says of itself.

Paper: Chen et al. 2022, "A Customized Text Sanitization Mechanism with Differential Privacy", §4.2 and Table 4.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

import numpy as np

from dptext_spark.arrays import F32, Ids
from dptext_spark.lexicon.neighbors import Metric, nearest, nearest_in
from dptext_spark.mechanisms.base import TOTAL, Laws
from dptext_spark.mechanisms.samplers.table import TableSummary
from dptext_spark.mechanisms.summary import Quantiles
from dptext_spark.runtime.jit import compiled

Mapping = Literal["aggressive", "balanced", "conservative"]
Remainder = Literal["join", "own"]
MAPPINGS, REMAINDERS = get_args(Mapping), get_args(Remainder)
WALK = 2048  # words of the walk whose neighbours are searched at once


def output_sets(
    vectors: F32, k: int, mapping: str, metric: Metric, remainder: str = "join"
) -> tuple[Ids, Ids]:
    """Return the distinct output sets and which one each word has.

    Args:
        vectors: float32[V, d].
        k: size of a set.
        mapping: one of `MAPPINGS`.
        metric: one of `METRICS`.
        remainder: one of `REMAINDERS`; for the conservative mapping.

    Returns:
        (sets int32[S, k'], ids of a set ascending, padded with -1; of_word int32[V]).
    """
    words = len(vectors)
    if mapping == "aggressive":
        rows = np.sort(nearest(vectors, np.arange(words, dtype=np.int32), k, metric)[0], axis=1)
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        return np.ascontiguousarray(distinct, dtype=np.int32), inverse.reshape(-1).astype(np.int32)
    of_word: Ids = np.full((words,), -1, dtype=np.int32)
    found: list[Ids] = []
    if mapping == "balanced":
        waiting = np.arange(words, dtype=np.int32)
        while len(waiting):
            near, _ = nearest(vectors, waiting[:WALK], k, metric)
            count = _walk_balanced(waiting[:WALK], near, of_word, len(found))
            found.extend(np.sort(row) for row in near[count >= 0])
            waiting = waiting[WALK:][of_word[waiting[WALK:]] < 0]
    else:
        found = _conservative(vectors, k, metric, remainder, of_word)
    width = max(len(row) for row in found)
    sets = np.full((len(found), width), -1, np.int32)
    for index, row in enumerate(found):
        sets[index, : len(row)] = np.sort(row)
    return sets, of_word


@compiled
def _walk_balanced(queries: Any, near: Any, of_word: Any, first: int) -> Any:
    """Assign the members of each set in the order of the walk; return per query its set's number, or -1 if it had one."""
    made = np.full(queries.shape[0], -1, np.int64)
    number = first
    for i in range(queries.shape[0]):
        if of_word[queries[i]] >= 0:
            continue
        made[i] = number
        for j in range(near.shape[1]):
            if of_word[near[i, j]] < 0:
                of_word[near[i, j]] = number
        number += 1
    return made


def _conservative(vectors: F32, k: int, metric: Metric, remainder: str, of_word: Ids) -> list[Ids]:
    """Walk the pool: each word still in it takes its K nearest of the pool along. Fills `of_word`."""
    found: list[Ids] = []
    pool = np.arange(len(vectors), dtype=np.int32)
    while len(pool) >= k:
        width = min(len(pool), 4 * k)
        batch = pool[: max(1, min(WALK, len(pool) // (2 * k) + 1))]
        near, _ = nearest_in(vectors, batch, pool, width, metric)
        for query, row in zip(batch, near, strict=True):
            if of_word[query] >= 0:
                continue
            members = row[of_word[row] < 0][:k]
            if len(members) < k:
                break  # too few of the list are left: search again in the pool as it is now
            of_word[members] = len(found)
            found.append(members)
        pool = pool[of_word[pool] < 0]
    if len(pool) and (remainder == "own" or not found):
        of_word[pool] = len(found)
        found.append(pool)
    elif len(pool):
        of_word[pool] = len(found) - 1
        found[-1] = np.concatenate([found[-1], pool])
    return found


def mapping_summary(sets: Ids, of_word: Ids) -> TableSummary:
    """Describe a mapping: shares of words by type, sizes of the sets, and what an output rules out.

    Returns:
        Figures. Types as in the paper's Table 4: inputs that share the set, then outputs in it ("1-N": alone on
        a set of several). `alone_share` is 1-1 and 1-N together. `inputs_per_output` counts, for an output, the words
        that can have produced it, `one_input_share` the share of outputs where that is one; `ruled_out_bits` are those of
        draws at ε = 0. `class_size_of_words` is the class size that a word has, `class_size` that of a set.
    """
    words = len(of_word)
    inputs = np.bincount(of_word, minlength=len(sets))
    outputs = (sets >= 0).sum(axis=1)
    alone, several = inputs[of_word] == 1, outputs[of_word] > 1
    shares = {
        "1-1": float((alone & ~several).mean()),
        "1-N": float((alone & several).mean()),
        "N-1": float((~alone & ~several).mean()),
        "N-M": float((~alone & several).mean()),
    }
    per_output, drawn = np.zeros(words, np.int64), np.zeros(words)
    held = sets >= 0
    np.add.at(per_output, sets[held], np.repeat(inputs, held.sum(axis=1)))
    np.add.at(drawn, sets[held], np.repeat(inputs / outputs, held.sum(axis=1)))
    possible = per_output > 0
    reachable = per_output[possible]

    return TableSummary(
        words=words,
        sets=int((inputs > 0).sum()),
        type_share=shares,
        alone_share=float(alone.mean()),
        set_size=Quantiles.of(outputs[inputs > 0]),
        class_size=Quantiles.of(inputs[inputs > 0]),
        class_size_of_words=Quantiles.of(inputs[of_word]),
        inputs_per_output=Quantiles.of(reachable),
        one_input_share=float((reachable == 1).mean()),
        ruled_out_bits=float((drawn[possible] * np.log2(words / reachable)).sum() / words),
    )


def bits_told(laws: Iterable[Laws], words: int) -> tuple[float, float]:
    """Compute how many bits a draw tells of its word, where all words are equally likely.

    With n(u) words that can become u, a draw u rules out all others: log2(V / n(u)) bits, at any ε. In all it tells I(w; u).

    Args:
        laws: of all words, some after others.
        words: V.

    Returns:
        (the bits by what a draw rules out, the bits in all): means over the draws.
    """
    behind, drawn, sure = np.zeros(words, np.int64), np.zeros(words), 0.0
    for some in laws:
        probability = some.weight[some.weight > 0] / float(TOTAL)
        behind += np.bincount(some.ids, minlength=words)
        drawn += np.bincount(some.ids[some.weight > 0], weights=probability, minlength=words)
        sure += float((probability * np.log2(probability)).sum())
    possible = drawn > 0
    of_draws = drawn[possible] / words
    ruled_out = float((of_draws * np.log2(words / behind[possible])).sum())
    return ruled_out, sure / words - float((of_draws * np.log2(of_draws)).sum())
