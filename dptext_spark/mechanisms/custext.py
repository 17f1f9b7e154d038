"""CusText: an output set of K near words for each word, and an exponential mechanism over it.

Paper: Chen et al. 2022, "A Customized Text Sanitization Mechanism with Differential Privacy", §4.
Formula: s(w,u) is the cosine or minus the Euclidean distance, min-max normalised over the output set Y'(w) to [0, 1], so
its sensitivity is 1; P(u|w) = exp(ε·s(w,u)/2) / Σ over Y'(w).
Guarantee: ε-DP between words that share an output set (the same Y' as a set), nothing between words that do not.
Deviations: the walk follows the order of the lexicon, which is public (the reference code walks by frequency in the
private corpus); ties go to the lower id; a remainder of the conservative mapping joins the last full set
(`remainder: own` as published); the law is rounded to integers out of 2^63.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from dptext_spark.compiled import compiled
from dptext_spark.errors import SettingsError, require_choice
from dptext_spark.figures import exact, percent_up
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.neighbors import nearest, nearest_in
from dptext_spark.mechanisms.base import Ids, Mechanism, check_epsilon, check_integer
from dptext_spark.mechanisms.calibration import CALIBRATIONS, internal_epsilon
from dptext_spark.mechanisms.elementary import exponentials
from dptext_spark.mechanisms.kernels import MAX_SLOTS, TableSampler
from dptext_spark.mechanisms.losses.groups import within_groups

MAPPINGS = ("aggressive", "balanced", "conservative")
METRICS = ("cosine", "euclidean")
REMAINDERS = ("join", "own")
EQUAL = 1e-12  # scores that differ by less, relative to the largest, count as equal
WALK = 2048  # words of the walk whose neighbours are searched at once


@dataclass(frozen=True)
class CusText(Mechanism):
    """The parameters of CusText.

    Attributes:
        epsilon: ε >= 0; 0 draws uniformly from the output set.
        k: size K of an output set, 2 to 4,096.
        mapping: how output sets are shared: `aggressive` (each word its own K nearest), `balanced` (default) or
            `conservative` (disjoint sets).
        metric: what near means: `cosine` or `euclidean`.
        remainder: what becomes of fewer than K words left by the conservative mapping: `join` the last full set (up
            to 4,096 words together), or `own`.
        calibration: `published` (default), or `exact`: the largest internal ε whose certified loss is within ε.
    """

    name: ClassVar[str] = "custext"
    paper: ClassVar[str] = (
        "Chen et al. 2022, A Customized Text Sanitization Mechanism with Differential Privacy"
    )
    protects: ClassVar[str] = "ε-DP between words that share an output set, nothing between words that do not"
    sampler: ClassVar[type] = TableSampler

    epsilon: float = 1.0
    k: int = 20
    mapping: Literal["aggressive", "balanced", "conservative"] = "balanced"
    metric: Literal["cosine", "euclidean"] = "cosine"
    remainder: Literal["join", "own"] = "join"
    calibration: Literal["published", "exact"] = "published"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_epsilon("mechanism.epsilon", self.epsilon, zero_allowed=True)
        check_integer("mechanism.k", self.k, 2, MAX_SLOTS)
        require_choice("mechanism.mapping", self.mapping, MAPPINGS)
        require_choice("mechanism.metric", self.metric, METRICS)
        require_choice("mechanism.remainder", self.remainder, REMAINDERS)
        require_choice("mechanism.calibration", self.calibration, CALIBRATIONS)

    def compile(self, lexicon: Lexicon) -> TableSampler:
        """Return the sampler.

        Args:
            lexicon: V words; its own metric is not used, the mechanism names one.

        Raises:
            SettingsError: K is larger than the lexicon, or its last set would hold more words than a law can.
        """
        return self.over_epsilons(lexicon)(self.epsilon)

    def over_epsilons(self, *lexicons: Lexicon) -> Callable[[float], TableSampler]:
        """Return what compiles at another ε, with the output sets searched and scored once."""
        (lexicon,) = lexicons
        if self.k > len(lexicon):
            raise SettingsError(
                f"mechanism.k: {self.k} given, but the lexicon holds {len(lexicon)} words; "
                f"valid: an integer from 2 to {min(len(lexicon), MAX_SLOTS)}."
            )
        self._check_last_set(len(lexicon))
        sets, of_word = output_sets(lexicon.vectors, self.k, self.mapping, self.metric, self.remainder)
        vectors = np.ascontiguousarray(lexicon.vectors)
        score = _scores(vectors, sets, of_word, self.metric == "cosine")
        outputs = sets[of_word]
        low = np.where(outputs >= 0, score, np.inf).min(axis=1, keepdims=True)
        span = np.where(outputs >= 0, score, -np.inf).max(axis=1, keepdims=True) - low
        # Equal scores differ by rounding (cosines of parallel vectors), and min-max would blow that up to [0, 1].
        spread = span > EQUAL * np.maximum(np.abs(low), np.abs(low + span))
        scaled = np.where(spread, (score - low) / np.where(spread, span, 1.0), 0.0)
        mapping = mapping_summary(sets, of_word)

        def sampler(epsilon: float, guarantee: Guarantee, summary: dict[str, Any]) -> TableSampler:
            probability = np.where(outputs >= 0, exponentials(epsilon * (scaled - 1.0) / 2.0), 0.0)
            # A possible output is never rounded away: exp underflows only past ε of about 1,400.
            probability = np.where(outputs >= 0, np.maximum(probability, np.finfo(np.float64).tiny), 0.0)
            return TableSampler.of(outputs, probability, guarantee, summary)

        def compile_at(epsilon: float) -> TableSampler:
            guarantee = self._at(epsilon)._guarantee(mapping)
            if self.calibration == "published":
                return sampler(epsilon, guarantee, dict(mapping))
            internal = internal_epsilon(
                epsilon, lambda e: within_groups(sampler(e, guarantee, mapping), len(lexicon)).value
            )
            return sampler(internal, guarantee, mapping | {"internal_epsilon": internal})

        return compile_at

    def _check_last_set(self, words: int) -> None:
        """Refuse a joined remainder that no law has room for, before the walk and not after it."""
        left = words % self.k
        if self.mapping != "conservative" or self.remainder != "join" or self.k + left <= MAX_SLOTS:
            return
        # Half of the slots and fewer always fit: the remainder is smaller than K.
        largest = next(k for k in range(self.k - 1, 1, -1) if k + words % k <= MAX_SLOTS)
        raise SettingsError(
            f"mechanism.k: {self.k} given; of {words:,} words the conservative mapping leaves {left:,}, which join the "
            f"last set and make it {self.k + left:,} words, more than {MAX_SLOTS:,}; valid: mechanism.remainder=own, or "
            f"another k, such as {largest} or any up to {MAX_SLOTS // 2}."
        )

    def _guarantee(self, summary: dict[str, Any]) -> Guarantee:
        alone = summary["alone_share"]
        others = max(0, int(summary["class_size_of_words"]["p50"]) - 1)
        sentence = (
            f"One drawn word is ε-differentially private with ε = {exact(self.epsilon)} against every other drawn word that "
            f"has the same output set, and against no other word ({self.k} candidates, {self.mapping} mapping; half of the "
            f"words share their set with at most {others:,} other{'' if others == 1 else 's'})."
        )
        if alone > 0:
            sentence += (
                f" {percent_up(alone)} of the lexicon's words are alone on their set: they have no such word."
            )
        return Guarantee("epsilon_dp_within_group", float(self.epsilon), sentence=sentence)


def output_sets(
    vectors: npt.NDArray[np.float32], k: int, mapping: str, metric: Any, remainder: str = "join"
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


def _conservative(
    vectors: npt.NDArray[np.float32], k: int, metric: Any, remainder: str, of_word: Ids
) -> list[Ids]:
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


@compiled
def _scores(vectors: Any, sets: Any, of_word: Any, cosine: bool) -> Any:
    """Score each word against its set in float64, in a fixed order: float64[V, k']; 0 where the set is padded."""
    words, size = vectors.shape
    width = sets.shape[1]
    norm = np.zeros(words)
    for w in range(words):
        total = 0.0
        for j in range(size):
            total += np.float64(vectors[w, j]) * np.float64(vectors[w, j])
        norm[w] = np.sqrt(total)
    out = np.zeros((words, width))
    for w in range(words):
        for i in range(width):
            u = sets[of_word[w], i]
            if u < 0:
                continue
            total = 0.0
            if cosine:
                for j in range(size):
                    total += np.float64(vectors[w, j]) * np.float64(vectors[u, j])
                both = norm[w] * norm[u]
                out[w, i] = total / both if both > 0 else 0.0
            else:
                for j in range(size):
                    gap = np.float64(vectors[w, j]) - np.float64(vectors[u, j])
                    total += gap * gap
                out[w, i] = -np.sqrt(total)
    return out


def mapping_summary(sets: Ids, of_word: Ids) -> dict[str, Any]:
    """Describe a mapping: shares of words by type, sizes of the sets, and what an output rules out.

    Returns:
        JSON-able figures. Types as in the paper's Table 4: inputs that share the set, then outputs in it ("1-N": alone on
        a set of several). `alone_share` is 1-1 and 1-N together. `inputs_per_output` counts, for an output, the words
        that can have produced it, `one_input_share` the share of outputs where that is one; `ruled_out_bits` is
        log2(V / that number), averaged over the outputs. `class_size_of_words` is the class size that a word has, `class_size`
        that of a set.
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
    per_output = np.zeros(words, np.int64)
    held = sets >= 0
    np.add.at(per_output, sets[held], np.repeat(inputs, held.sum(axis=1)))
    reachable = per_output[per_output > 0]

    def spread(values: npt.NDArray[Any]) -> dict[str, float]:
        low, middle, high = np.quantile(values, [0.0, 0.5, 1.0])
        return {"min": float(low), "p50": float(middle), "max": float(high), "mean": float(values.mean())}

    return {
        "words": words,
        "sets": int((inputs > 0).sum()),
        "type_share": shares,
        "alone_share": float(alone.mean()),
        "set_size": spread(outputs[inputs > 0]),
        "class_size": spread(inputs[inputs > 0]),
        "class_size_of_words": spread(inputs[of_word]),
        "inputs_per_output": spread(reachable),
        "one_input_share": float((reachable == 1).mean()),
        "ruled_out_bits": float(np.log2(words / reachable).mean()),
    }
