"""The table sampler: a finite law for each word, drawn from integer weights (concepts/mechanisms, Samplers).

A row of 2^m slots is a Walker alias table in integers. Slot s holds a threshold t and two outputs. A 63-bit
number picks the slot by its upper m bits, and the first output if the lower 63 - m bits are below t. The
weight of an output is the sum of its parts over the slots, an integer out of 2^63. So the sampled law can be
read off the table.

A law P with outputs replaced by a fixed public table r: it releases r(y), by the law Q.

Q(z|w) = Σ_{y: r(y) = z} P(y|w), in the integers of P. So the released law is as exact as the drawn one. Replacing outputs by a
table that depends on no text is post-processing: no guarantee of P is lost (concepts/mechanisms, Bayes remap).

Rows of a table are relabelled once, so a draw costs no more. Other laws are drawn as before, and r is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F32, F64, I64, U64, Ids
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.base import DECIDES, TOTAL, Law, LawColumns, Laws, Quantiles, Sampler, Summary
from dptext_spark.randomness import Draws
from dptext_spark.runtime.jit import Int, compiled, inlined, prefetch

_LOWER, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
MAX_SLOTS = 4096
READ_TOGETHER = 512  # laws
AHEAD = 16  # how many draws ahead an alias cell is asked for


def integer_weights(probability: F64) -> U64:
    """Round each row to integers that sum to 2^63, at least 1 where the output is possible.

    Args:
        probability: float64[n, k], non-negative, each row summing to about 1; 0 marks padding.

    Returns:
        uint64[n, k]. The rounding remainder goes to the row's largest weight (the first of equals).
    """
    possible = probability > 0
    scaled = probability / probability.sum(axis=1, keepdims=True) * float(1 << 62) * 2.0
    # Stay below 2^63 before the conversion; the remainder is given back below.
    weight = np.minimum(scaled, float(TOTAL - 1024)).astype(np.uint64)
    weight[possible] = np.maximum(weight[possible], np.uint64(1))
    largest = weight.argmax(axis=1)
    rows = np.arange(len(weight))
    weight[rows, largest] = 0
    weight[rows, largest] = np.uint64(TOTAL) - weight.sum(axis=1, dtype=np.uint64)
    return np.asarray(weight, np.uint64)


@compiled
def alias_rows(ids: Any, weight: Any, bits: Int) -> Any:
    """Build the rows: uint64[n, 2^bits, 2] as (threshold, first output | second output << 32)."""
    n, k = weight.shape
    slots = 1 << bits
    capacity = np.uint64(1) << np.uint64(63 - bits)
    cells = np.zeros((n, slots, 2), np.uint64)
    left = np.zeros(slots, np.uint64)
    small = np.empty(slots, np.int64)
    large = np.empty(slots, np.int64)
    for row in range(n):
        n_small, n_large = 0, 0
        for j in range(slots):
            left[j] = weight[row, j] if j < k else np.uint64(0)
            if left[j] < capacity:
                small[n_small] = j
                n_small += 1
            else:
                large[n_large] = j
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            s = small[n_small]
            big = large[n_large - 1]
            first = ids[row, s] if s < k and left[s] > 0 else ids[row, big]
            cells[row, s, 0] = left[s]
            cells[row, s, 1] = np.uint64(first) | (np.uint64(ids[row, big]) << np.uint64(32))
            left[big] -= capacity - left[s]
            if left[big] < capacity:
                n_large -= 1
                small[n_small] = big
                n_small += 1
        # Integers leave no remainder: what is over holds exactly one capacity each.
        for j in range(n_large):
            b = large[j]
            cells[row, b, 0] = capacity
            cells[row, b, 1] = np.uint64(ids[row, b]) | (np.uint64(ids[row, b]) << np.uint64(32))
        for j in range(n_small):
            b = small[j]
            cells[row, b, 0] = capacity
            cells[row, b, 1] = np.uint64(ids[row, b]) | (np.uint64(ids[row, b]) << np.uint64(32))
    return cells


@inlined
def alias_draw(cells: Any, bits: Int, word: Int, number: Int) -> Int:
    """Draw an output of `word` by one 64-bit number (its lowest bit is not used)."""
    u = number >> np.uint64(1)
    slot = u >> np.uint64(63 - bits)
    rest = u & ((np.uint64(1) << np.uint64(63 - bits)) - np.uint64(1))
    # Without a branch: which side it is cannot be predicted.
    side = np.uint64(rest >= cells[word, slot, 0]) << np.uint64(5)
    return np.int32((cells[word, slot, 1] >> side) & np.uint64(0xFFFFFFFF))


@compiled
def draw_all(cells: Any, bits: Int, ids: Any, numbers: Any, out: Any) -> None:
    """Draw an output for each of ids int32[n] by its number uint64[n] into out int32[n]."""
    last = ids.shape[0] - 1
    flat = cells.reshape(-1)
    for i in range(ids.shape[0]):
        ahead = min(i + AHEAD, last)
        slot = np.int64(numbers[ahead] >> np.uint64(1) >> np.uint64(63 - bits))
        prefetch(flat, ((np.int64(ids[ahead]) << bits) + slot) * 2)
        out[i] = alias_draw(cells, bits, ids[i], numbers[i])


@compiled
def _merge(starts: Any, ids: Any, weight: Any, table: Any, at: Any, out_ids: Any, out_weight: Any) -> None:
    """Add up the weights of outputs that get one name by `table` int32[V], row by row.

    Fills `at` int64[n + 1], where rows begin, `out_ids` int32[m], ascending within a row, and `out_weight` uint64[m].
    """
    words = table.shape[0]
    total, outputs = np.zeros(words, np.uint64), np.empty(words, np.int32)
    at[0] = 0
    for row in range(starts.shape[0] - 1):
        many = 0
        for e in range(starts[row], starts[row + 1]):
            if weight[e] == 0:
                continue
            z = table[ids[e]]
            if total[z] == 0:
                outputs[many] = z
                many += 1
            total[z] += weight[e]
        outputs[:many].sort()
        for k in range(many):
            z = outputs[k]
            out_ids[at[row] + k], out_weight[at[row] + k] = z, total[z]
            total[z] = np.uint64(0)
        at[row + 1] = at[row] + many


def merged(laws: Laws, table: Ids) -> Laws:
    """Return laws whose outputs are replaced by a table: weights of outputs that become one are added as integers."""
    starts = np.zeros(len(laws.starts), np.int64)
    ids, weight = np.empty(len(laws.ids), np.int32), np.empty(len(laws.ids), np.uint64)
    _merge(laws.starts, laws.ids, laws.weight, table, starts, ids, weight)
    size = int(starts[-1])
    return Laws(starts, ids[:size], weight[:size])


def laws_of(cells: U64) -> Laws:
    """Return the outcomes of alias rows uint64[n, 2^m, 2]; no weight is 0."""
    words, slots = cells.shape[:2]
    outputs = np.stack([cells[:, :, 1] & _LOWER, cells[:, :, 1] >> _SHIFT], axis=2).astype(np.int32)
    parts = np.stack([cells[:, :, 0], np.uint64(TOTAL // slots) - cells[:, :, 0]], axis=2)
    starts = np.arange(words + 1, dtype=np.int64) * (2 * slots)
    most = int(outputs.max(initial=0)) + 1
    return merged(Laws(starts, outputs.reshape(-1), parts.reshape(-1)), np.arange(most, dtype=np.int32))


@dataclass(frozen=True, kw_only=True)
class TableSummary(Summary):
    """Figures of output sets.

    Attributes:
        type_share: shares of the words by type ("1-1", "1-N", "N-1", "N-M").
        class_size: words that share an output set, over the sets.
        class_size_of_words: the same over the words.
    """

    sets: int | None = None
    type_share: Mapping[str, float] | None = None
    class_size: Quantiles | None = None
    class_size_of_words: Quantiles | None = None


def groups_of(laws: Laws, first: int = 0, known: dict[bytes, int] | None = None) -> Ids:
    """Return int32[n]: for each law the number of the first with the same set of outputs.

    Args:
        laws: of words that follow each other.
        first: the number of the first of these.
        known: sets of outputs that were met before, with their numbers; what is new is added.
    """
    met = {} if known is None else known
    encoded, starts = laws.ids.tobytes(), (laws.ids.itemsize * laws.starts).tolist()
    sets = (encoded[begin:end] for begin, end in pairwise(starts))
    return np.array([met.setdefault(outputs, word) for word, outputs in enumerate(sets, first)], np.int32)


def outputs_in_common(sampler: Sampler, words: int) -> Ids:
    """Return the first word with the same possible outputs as each of V words that have laws: int32[V]."""
    known: dict[bytes, int] = {}
    every, laws = np.arange(words, dtype=np.int32), cast(Any, sampler.laws)
    parts = ((first, every[first : first + READ_TOGETHER]) for first in range(0, words, READ_TOGETHER))
    return np.concatenate([groups_of(laws(part), first, known) for first, part in parts])


class AliasRows(Sampler):
    """A sampler with a row for each word. `cells`: uint64[V, 2^m, 2], the alias rows."""

    has_short_laws = True

    cells: U64

    def sample(self, ids: Ids, draws: Draws) -> Ids:
        """Draw one output for each of int32[n] by lane 0."""
        out = np.empty(len(ids), np.int32)
        draw_all(self.cells, self.cells.shape[1].bit_length() - 1, ids, draws.u64(0), out)
        return out

    def law(self, word_id: int) -> Law:
        """Return the law of a word, read off its row."""
        return laws_of(self.cells[word_id : word_id + 1]).only

    def laws(self, words: Ids) -> Laws:
        """Return the laws of int32[n] words, read off their rows."""
        return laws_of(self.cells[words])


@dataclass(frozen=True, eq=False)
class TableSampler(AliasRows):
    """Sampler of a finite law per word. `cells`: uint64[V, 2^m, 2], the alias rows."""

    ARRAYS = ("cells",)
    summary_type = TableSummary
    cost = "constant: a table look-up a token"
    certified_by = (
        "exact: the integers that are sampled, compared output by output over all pairs of words that share an output set; "
        f"{DECIDES}"
    )
    compiles_quickly = True

    cells: U64
    guarantee: Guarantee
    summary: TableSummary = TableSummary()

    @classmethod
    def of(cls, ids: Ids, probability: F64, guarantee: Guarantee, summary: TableSummary) -> TableSampler:
        """Build from rows of outputs int32[V, k] and their probabilities float64[V, k]; 0 is padding."""
        k = probability.shape[1]
        bits = max(0, (k - 1).bit_length())
        if 1 << bits > MAX_SLOTS:
            raise SettingsError(f"mechanism.k: {k} outputs a word are too many. Choose at most {MAX_SLOTS}.")
        weight = integer_weights(probability)
        return cls(alias_rows(np.ascontiguousarray(ids, dtype=np.int32), weight, bits), guarantee, summary)

    def groups(self) -> Ids | None:
        """Return the group of words with the same possible outputs: int32[V], the first word of each set."""
        if self.guarantee.kind != "epsilon_dp_within_group":
            return None
        return outputs_in_common(self, len(self.cells))

    def law_bytes(self) -> int:
        """Return the bytes of an alias row while it is read."""
        return int(self.cells.shape[1]) * 96


COLUMNS = 512  # of P that are held at once while those of Q are added up
PAIRS = 1 << 20  # of words and outputs of P, likewise
_REMAP, _RELEASED, _GROUP = "remap", "released", "group"


@dataclass(frozen=True, eq=False)
class RemappedSampler(Sampler):
    """Sampler of a law whose outputs are replaced.

    Attributes:
        inner: draws y by P.
        table: int32[V], r: what is released in the place of each output.
        guarantee: what holds for one draw: that of P.
    """

    inner: Sampler
    table: Ids
    guarantee: Guarantee
    summary: Summary

    def sample(self, ids: Ids, draws: Draws) -> Ids:
        """Draw one output for each of int32[n]."""
        return np.asarray(self.table.take(self.inner.sample(ids, draws)), np.int32)

    @property
    def before(self) -> Sampler:
        """The sampler of P."""
        return self.inner

    @property
    def remap(self) -> Ids:
        """The table r."""
        return self.table

    def law(self, word_id: int) -> Law:
        """Return the law of a word: the weights of P, added up."""
        law = self.inner.law(word_id)
        assert law is not None
        return merged(Laws(np.array([0, len(law.ids)]), law.ids, law.weight), self.table).only

    def laws(self, words: Ids) -> Laws:
        """Return the laws of int32[n] words."""
        inner_laws = self.inner.laws(words)
        assert inner_laws is not None
        return merged(inner_laws, self.table)

    def law_bytes(self) -> int | None:
        """Return about how many bytes a law takes while it is made."""
        return self.inner.law_bytes()

    def law_columns(self) -> LawColumns | None:
        """Return the reader that adds up the columns of P, if P has such a reading."""
        columns = self.inner.law_columns()
        return None if columns is None else RemappedColumns.of(columns, self.table)

    def unchanged(self, words: Ids) -> tuple[F64, F64] | None:
        """Compute Q(w|w), the sum of P(y|w) over all y that w is released for, and bounds of the logarithm's error."""
        columns = self.law_columns()
        if self.inner.unchanged(words[:1]) is None or columns is None:
            return None
        slack = (self.inner.summary.rounding or 0.0) + UNCHANGED_ERROR
        return columns.probability(words, words), np.full(len(words), slack)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return those of P, and the table; :func:`around` builds the sampler again."""
        return self.inner.arrays() | {_REMAP: self.table}


# Relative, of a probability that is read off a formula in float64, and of a sum of such.
UNCHANGED_ERROR = 1e-9


@dataclass(frozen=True, eq=False)
class RemappedTable(AliasRows, RemappedSampler):
    """Sampler of a table whose rows are relabelled.

    Attributes:
        cells: uint64[V, 2^m, 2], the alias rows of Q.
        group: int32[V], equal for words that share an output set of P: whom the guarantee compares. Sets of Q do not tell.
    """

    cells: U64
    group: Ids

    def groups(self) -> Ids:
        """Return the groups of words that shared an output set before the remap: int32[V], equal numbers for one set."""
        return self.group

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the rows of P and of Q, the table and the groups."""
        return super().arrays() | {_RELEASED: self.cells, _GROUP: self.group}


def around(
    inner: Sampler, arrays: Mapping[str, npt.NDArray[Any]], guarantee: Guarantee, summary: Summary
) -> RemappedSampler:
    """Build a sampler again around that of P, from checked arrays."""
    if isinstance(inner, TableSampler):
        return RemappedTable(inner, arrays[_REMAP], guarantee, summary, arrays[_RELEASED], arrays[_GROUP])
    return RemappedSampler(inner, arrays[_REMAP], guarantee, summary)


def split(
    arrays: Mapping[str, npt.NDArray[Any]],
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
    """Return (the arrays of P, what the remap adds)."""
    own = {name: array for name, array in arrays.items() if name in (_REMAP, _RELEASED, _GROUP)}
    return {name: array for name, array in arrays.items() if name not in own}, own


def relabelled(cells: U64, table: Ids) -> U64:
    """Return alias rows uint64[V, 2^m, 2] that draw table[y] where `cells` draw y."""
    names = table.astype(np.uint64)
    out: U64 = cells.copy()
    both = cells[:, :, 1]
    out[:, :, 1] = names[both & _LOWER] | (names[both >> _SHIFT] << _SHIFT)
    return out


@dataclass(frozen=True, eq=False)
class RemappedColumns:
    """Q(z|w) output by output: the columns of P of all outputs that become z, added up.

    Attributes:
        columns: of P.
        order: int32[V], the outputs of P by what they become, ascending.
        starts: int64[V + 1]: order[starts[z]:starts[z + 1]] become z.
    """

    columns: LawColumns
    order: Ids
    starts: I64

    @classmethod
    def of(cls, columns: LawColumns, table: Ids) -> RemappedColumns:
        """Turn the table round."""
        order = np.argsort(table, kind="stable").astype(np.int32)
        return cls(columns, order, np.append(0, np.cumsum(np.bincount(table, minlength=len(table)))))

    def _inputs_of(self, outputs: Ids) -> tuple[I64, Ids]:
        """Return (place in `outputs`, output of P) of everything that becomes an element of `outputs`."""
        first, many = self.starts[outputs], self.starts[outputs + 1] - self.starts[outputs]
        place = np.repeat(np.arange(len(outputs)), many)
        within = np.arange(len(place)) - np.repeat(np.cumsum(many) - many, many)
        return place, self.order[first[place] + within]

    def __call__(self, outputs: Ids) -> F32:
        """Return Q(z|w) of some outputs z over all words w: float32[n, V]."""
        return np.asarray(self._sums(self.columns, np.float32, outputs), np.float32)

    @property
    def precise(self) -> Callable[[Ids], F64] | None:
        """The same in float64: float64[n, V]; None if P has no such reading."""
        columns = getattr(self.columns, "precise", None)
        return None if columns is None else partial(self._sums, columns, np.float64)

    def _sums(self, columns: Callable[[Ids], Any], number: type[np.floating[Any]], outputs: Ids) -> Any:
        """Add up the columns that `columns` returns of P."""
        total = np.zeros((len(outputs), len(self.order)), number)
        place, behind = self._inputs_of(outputs)
        for start in range(0, len(behind), COLUMNS):
            part = slice(start, start + COLUMNS)
            heads = np.flatnonzero(np.diff(place[part], prepend=-1))
            total[place[part][heads]] += np.add.reduceat(columns(behind[part]), heads, axis=0)
        return total

    def probability(self, words: Ids, outputs: Ids) -> F64:
        """Return Q(outputs[i] | words[i]) of int32[n] each, in float64, as the formula says: float64[n]."""
        probabilities = np.zeros(len(outputs))
        place, behind = self._inputs_of(outputs)
        for start in range(0, len(behind), PAIRS):
            part = slice(start, start + PAIRS)
            np.add.at(probabilities, place[part], self.columns.probability(words[place[part]], behind[part]))
        return probabilities
