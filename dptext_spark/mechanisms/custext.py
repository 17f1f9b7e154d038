"""CusText: an output set of K near words for each word, and an exponential mechanism over it.

Paper: Chen et al. 2022, "A Customized Text Sanitization Mechanism with Differential Privacy", §4.
Formula: s(w,u) is the cosine or minus the Euclidean distance, min-max normalised over the output set Y'(w) to [0, 1]. So its
sensitivity is 1. P(u|w) = exp(ε·s(w,u)/2) / Σ over Y'(w).
Guarantee: ε-DP between words that share an output set (the same Y' as a set), nothing between words that do not.
Fluent draws (ours): P(u|w, h) ∝ b(u|h)·exp(ε·s(w,u)/2). Here h is the word released before w in its sentence, and b a public
count of word pairs, in integers (:mod:`dptext_spark.mechanisms.samplers.fluent`). The count b cancels between two inputs, so the
loss is at most the range of the log ratio, whatever b is. That is ε again, and `calibration: exact` can hardly raise it. The
largest valid ε is 32: integers flatten the law.
Reading: in the balanced walk a word without a set takes its K nearest words, of all words, as Y'. Members without a set yet get
Y' as theirs; the others keep theirs. So it is in the reference code.
Deviations: the walk follows the order of the lexicon, a public one; the reference code walks by frequency in the private corpus.
The mapping `clustered` is ours (:mod:`~dptext_spark.mechanisms.clustering`). Ties go to the lower id. The rest of disjoint sets
joins the last one (`remainder: own` as published). The law is rounded to integers out of 2^63. Below ε = 1e-12, and for K > 11
below K²·2^-47, it is uniform, as at ε = 0.

By the formula a small ε loses at most ε - ε/K. In the worst case a word's best score meets another's least, and both sums
share the other K - 1 scores. Floating point errs by less than 30·2^-53 in a weight. The remainder of 2^63 goes to the largest
weight, so that one may be off by K times as much. This makes 60·K·2^-53 in a pair, for which ε/K has room from K²·2^-47 on.

The mappings decide which words share an output set (§4.2 of the paper); their summaries have the types of its Table 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from dptext_spark.arrays import F32, F64, Ids
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.neighbors import Metric, nearest, nearest_in
from dptext_spark.lexicon.prior import PairModel
from dptext_spark.mechanisms.base import Quantiles, Sampler
from dptext_spark.mechanisms.clustering import lower_distances
from dptext_spark.mechanisms.elementary import exponentials
from dptext_spark.mechanisms.parameters import LEAST_EPSILON, choice, flag, integer, number
from dptext_spark.mechanisms.privacy_loss.exact_losses import within_groups
from dptext_spark.mechanisms.privacy_loss.log_ratios import by_log_range
from dptext_spark.mechanisms.privacy_loss.loss import (
    Calibration,
    calibrate,
    calibration_choice,
    internal_epsilon,
    lowered_epsilon,
)
from dptext_spark.mechanisms.remap import Remap, Remappable, bits_told, released, remap_choice
from dptext_spark.mechanisms.samplers.fluent import FluentSampler, factors
from dptext_spark.mechanisms.samplers.table import MAX_SLOTS, TableSampler, TableSummary, laws_of
from dptext_spark.rounding import exact, percent_up
from dptext_spark.runtime.jit import compiled

Mapping = Literal["aggressive", "balanced", "conservative", "clustered"]
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
        remainder: one of `REMAINDERS`; for disjoint sets.

    Returns:
        (sets int32[S, k'], ids of a set ascending, padded with -1; of_word int32[V]).
    """
    words = len(vectors)
    if mapping == "aggressive":
        rows = np.sort(nearest(vectors, np.arange(words, dtype=np.int32), k, metric)[0], axis=1)
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        return np.ascontiguousarray(distinct, dtype=np.int32), inverse.reshape(-1).astype(np.int32)
    of_word: Ids = np.full((words,), -1, dtype=np.int32)
    set_rows: list[Ids] = []
    if mapping == "balanced":
        waiting = np.arange(words, dtype=np.int32)
        while len(waiting):
            near, _ = nearest(vectors, waiting[:WALK], k, metric)
            count = _walk_balanced(waiting[:WALK], near, of_word, len(set_rows))
            set_rows.extend(np.sort(row) for row in near[count >= 0])
            waiting = waiting[WALK:][of_word[waiting[WALK:]] < 0]
    else:
        set_rows = _conservative(vectors, k, metric, remainder, of_word)
    width = max(len(row) for row in set_rows)
    sets = np.full((len(set_rows), width), -1, np.int32)
    for index, row in enumerate(set_rows):
        sets[index, : len(row)] = np.sort(row)
    if mapping == "clustered":
        lower_distances(sets, of_word, vectors, metric)
    return sets, of_word


@compiled
def _walk_balanced(queries: Any, near: Any, of_word: Any, first: int) -> Any:
    """Assign each set's members in the order of the walk; return the set's number per query, or -1 for a query with a set."""
    set_numbers = np.full(queries.shape[0], -1, np.int64)
    set_number = first
    for i in range(queries.shape[0]):
        if of_word[queries[i]] >= 0:
            continue
        set_numbers[i] = set_number
        for j in range(near.shape[1]):
            if of_word[near[i, j]] < 0:
                of_word[near[i, j]] = set_number
        set_number += 1
    return set_numbers


def _conservative(vectors: F32, k: int, metric: Metric, remainder: str, of_word: Ids) -> list[Ids]:
    """Walk the pool: each word still in it takes its K nearest of the pool along. Fills `of_word`."""
    set_rows: list[Ids] = []
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
            of_word[members] = len(set_rows)
            set_rows.append(members)
        pool = pool[of_word[pool] < 0]
    if len(pool) and (remainder == "own" or not set_rows):
        of_word[pool] = len(set_rows)
        set_rows.append(pool)
    elif len(pool):
        of_word[pool] = len(set_rows) - 1
        set_rows[-1] = np.concatenate([set_rows[-1], pool])
    return set_rows


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
    filled = sets >= 0
    np.add.at(per_output, sets[filled], np.repeat(inputs, filled.sum(axis=1)))
    np.add.at(drawn, sets[filled], np.repeat(inputs / outputs, filled.sum(axis=1)))
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


EQUAL = 1e-12  # scores that differ by less, relative to the largest, count as equal


def normalised_scores(vectors: F32, sets: Ids, of_word: Ids, cosine: bool) -> F64:
    """Compute float64[V, k'], the scores of a set's words for each word: 0 the least, 1 the best, all 0 if equal.

    Args:
        vectors: float32[V, d].
        sets: int32[S, k'], padded with -1, where the result means nothing.
        of_word: int32[V], the set of each word.
        cosine: the score is the cosine, else minus the Euclidean distance.
    """
    score = _scores(np.ascontiguousarray(vectors), sets, of_word, cosine)
    filled = sets[of_word] >= 0
    low = np.where(filled, score, np.inf).min(axis=1, keepdims=True)
    span = np.where(filled, score, -np.inf).max(axis=1, keepdims=True) - low
    # Equal scores differ by rounding (cosines of parallel vectors), and min-max would blow that up to [0, 1].
    spread = span > EQUAL * np.maximum(np.abs(low), np.abs(low + span))
    return np.where(spread, (score - low) / np.where(spread, span, 1.0), 0.0)


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


LEAST = 1e-12  # ε below which a law is uniform
MOST_FLUENT = 32
IN_CONTEXT = (
    "What it becomes also depends on the word released before it in its sentence, which is a word in clear or an earlier draw, "
    "never a later one: the bound holds whatever that word is, between whole texts that agree in all that is released as it is "
    "and in which places are drawn, and adds up over the words in which two such texts differ."
)


@dataclass(frozen=True)
class CusText(Remappable):
    """The parameters of CusText.

    Examples:
        >>> sampler = dp.CusText(epsilon=2.0, k=20).compile(lexicon)
        >>> law = sampler.law(0)  # of the first word of the lexicon, exactly as it is sampled
        >>> len(law.ids), int(law.weight.sum()) == 2**63
        (20, True)
    """

    name: ClassVar[str] = "custext"
    paper: ClassVar[str] = (
        "Chen et al. 2022, A Customized Text Sanitization Mechanism with Differential Privacy"
    )
    protects: ClassVar[str] = "ε-DP between words that share an output set, nothing between words that do not"
    sampler: ClassVar[type[Sampler]] = TableSampler
    other_samplers: ClassVar[tuple[type[Sampler], ...]] = (FluentSampler,)
    measured: ClassVar[str | None] = "some 5 ns for the draw of some 50 ns a token, text to text, on one core"

    epsilon: float = number(
        1.0, "ε; 0 draws uniformly from the output set.", zero="uniform", gap=LEAST_EPSILON
    )
    k: int = integer(
        20,
        "K, the number of words in an output set, at most 4,096; santext and tem draw from a whole lexicon instead.",
        least=2,
        most=MAX_SLOTS,
    )
    mapping: Mapping = choice(
        Mapping,
        "balanced",
        "Sharing of output sets. `aggressive`: each word has its own K nearest. `balanced`: the K nearest words of one that has "
        "no set become its set and that of each of them without one, as in the reference code. `conservative`: disjoint sets. "
        "`clustered`: disjoint sets, with words swapped until each set is as close as possible.",
    )
    metric: Metric = choice(Metric, "cosine", "Distance between words.")
    remainder: Remainder = choice(
        Remainder,
        "join",
        "Fewer than K words that disjoint sets leave over. `join`: they join the last full set (up to 4,096 words together). "
        "`own`: they form a set.",
    )
    calibration: Calibration = calibration_choice()
    fluent: bool = flag(
        "true: a draw also depends on the previous released word of its sentence, by public counts of word pairs. The text reads "
        "better at the same ε. Needs token level, a lexicon whose prior has pairs, and ε of at most 32.",
        sparse=True,
    )
    remap: Remap = remap_choice()

    @property
    def similarity(self) -> Metric:
        """The similarity of the output sets."""
        return self.metric

    def __post_init__(self) -> None:
        """Check the parameters and their agreement.

        Raises:
            SettingsError: values are not valid, or not together; a line for each.
        """
        super().__post_init__()
        if self.fluent and self.epsilon > MOST_FLUENT:
            raise SettingsError(
                f"mechanism.epsilon: {exact(self.epsilon)} is not valid with mechanism.fluent. Choose {MOST_FLUENT} or "
                "less: integers of 24 bits hold no larger ratios."
            )
        if self.fluent and self.remap != "none":
            raise SettingsError(
                f"mechanism.fluent: not valid with mechanism.remap: {self.remap}, because a remap releases other words than "
                "the draws. Choose one of the two."
            )

    @property
    def reads_context(self) -> bool:
        """Check whether draws also depend on the words released before them."""
        return self.fluent

    def without_context(self) -> CusText:
        """Return the mechanism without fluent draws."""
        return replace(self, fluent=False)

    def compile(self, lexicon: Lexicon) -> Any:
        """Return the sampler; the lexicon's own metric is not used, the mechanism names one."""
        return self.over_epsilons(lexicon)(self.epsilon)

    def over_epsilons(self, *lexicons: Lexicon) -> Callable[[float], Any]:
        """Return a function that compiles at another ε, with the output sets searched and scored once.

        Raises:
            SettingsError: K is larger than the lexicon, its last set would hold more words than a law can, or fluent draws are
                asked for and the lexicon's prior has no pairs.
        """
        (lexicon,) = lexicons
        if self.k > len(lexicon):
            raise SettingsError(
                f"mechanism.k: {self.k} is not valid for a lexicon of {len(lexicon)} words. Choose an integer from 2 to "
                f"{min(len(lexicon), MAX_SLOTS)}."
            )
        self._check_last_set(len(lexicon))
        pairs = lexicon.prior.pairs
        if self.fluent and pairs is None:
            raise SettingsError(
                f"mechanism.fluent: not valid, because {lexicon.name} has no counts of word pairs (prior: "
                f"{lexicon.prior.name}). Choose the packaged lexicon, or lexicon.prior: {{corpus: a public text}}."
            )
        sets, of_word = output_sets(lexicon.vectors, self.k, self.mapping, self.metric, self.remainder)
        outputs = sets[of_word]
        scaled = normalised_scores(lexicon.vectors, sets, of_word, self.metric == "cosine")
        summary = mapping_summary(sets, of_word)
        if self.fluent:
            assert pairs is not None
            return self._fluent(sets, of_word, scaled, pairs, summary)
        least = max(LEAST, outputs.shape[1] ** 2 * 2.0**-47)

        def sampler(epsilon: float, guarantee: Guarantee) -> TableSampler:
            inner = epsilon if epsilon >= least else 0.0
            probability = np.where(outputs >= 0, exponentials(inner * (scaled - 1.0) / 2.0), 0.0)
            # A possible output is never rounded away: exp underflows only past ε of about 1,400.
            probability = np.where(outputs >= 0, np.maximum(probability, np.finfo(np.float64).tiny), 0.0)
            return TableSampler.of(outputs, probability, guarantee, summary)

        def compile_at(epsilon: float) -> Any:
            guarantee = replace(self, epsilon=epsilon)._guarantee(summary)
            compile_inner = partial(sampler, guarantee=guarantee)
            certify = partial(within_groups, words=len(lexicon))
            table_sampler = calibrate(compile_inner, epsilon, self.calibration, certify)
            parts = (table_sampler.cells[first : first + WALK] for first in range(0, len(lexicon), WALK))
            ruled_out, told = bits_told(map(laws_of, parts), len(lexicon))
            own = replace(table_sampler.summary, ruled_out_bits=ruled_out, told_bits=told)
            return released(self, replace(table_sampler, summary=own), lexicon)

        return compile_at

    def _fluent(
        self, sets: Ids, of_word: Ids, scores: F64, pairs: PairModel, summary: TableSummary
    ) -> Callable[[float], FluentSampler]:
        """Return a function that compiles fluent draws at an ε. It covers the integers' own loss even if ε is not made tight."""
        filled = sets[of_word] >= 0
        guarantee = self._guarantee(summary)
        first = FluentSampler.of(sets, of_word, factors(scores, filled, 0.0), pairs, guarantee, summary)

        def loss_of(internal: float) -> float:
            return by_log_range(replace(first, factor=factors(scores, filled, internal))).value

        def compile_at(epsilon: float) -> FluentSampler:
            asked = replace(self, epsilon=epsilon)
            internal = lowered_epsilon(epsilon, loss_of)
            if self.calibration == "exact" and epsilon > 0.0:
                internal = min(MOST_FLUENT, internal_epsilon(epsilon, loss_of, least=internal))
            own = replace(summary, internal_epsilon=None if internal == epsilon else internal)
            return replace(
                first, factor=factors(scores, filled, internal), guarantee=asked._guarantee(own), summary=own
            )

        return compile_at

    def _check_last_set(self, words: int) -> None:
        """Refuse a joined remainder that no law has room for, before the walk and not after it."""
        left = words % self.k
        is_disjoint = self.mapping in ("conservative", "clustered")
        if not is_disjoint or self.remainder != "join" or self.k + left <= MAX_SLOTS:
            return
        # Half of the slots and fewer always fit: the remainder is smaller than K.
        largest = next(k for k in range(self.k - 1, 1, -1) if k + words % k <= MAX_SLOTS)
        raise SettingsError(
            f"mechanism.k: {self.k} is not valid. The {self.mapping} mapping leaves {left:,} of {words:,} words, so that "
            f"the last set would have {self.k + left:,}, more than {MAX_SLOTS:,}. Choose mechanism.remainder=own, or "
            f"another k, such as {largest} or any up to {MAX_SLOTS // 2}."
        )

    def _guarantee(self, summary: TableSummary) -> Guarantee:
        alone = summary.alone_share or 0.0
        assert summary.class_size_of_words is not None
        median, least = (
            max(0, int(size) - 1)
            for size in (summary.class_size_of_words.p50, summary.class_size_of_words.min)
        )
        half = f", and half of the words with at most {median:,}" if median > least or least == 0 else ""
        sentence = (
            f"One drawn word is ε-differentially private with ε = {exact(self.epsilon)} against every other drawn word with "
            f"the same output set, and against no other word. With {self.k} candidates and {self.mapping} mapping, each word "
            f"shares its set with at least {least:,} others{half}. No noise protects which set a word has."
        )
        if alone > 0:
            sentence += f" {percent_up(alone)} of the lexicon's words are alone on their set, and so compared with no word."
        if self.fluent:
            sentence += f" {IN_CONTEXT}"
        return Guarantee("epsilon_dp_within_group", float(self.epsilon), sentence=sentence)
