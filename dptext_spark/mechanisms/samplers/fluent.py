"""The fluent sampler: a finite law for each word that also depends on the word released before it (concepts/mechanisms).

After h an output u of w has the weight b(u|h)·f_w(u). Here b counts public pairs of words, and f is the
mechanism's own law. Both are integers, and their product is neither shifted nor rounded, so that b cancels in
every ratio of two inputs. The sum Σ of a word's weights stays below 2^64. A draw takes the upper word of x·Σ,
x the 128 bits of its block. If the lower 128 bits are below 2^128 mod Σ, it takes the next block (Lemire
2019, "Fast Random Integer Generation in an Interval"). This happens with a probability below 2^-64. So the
sampled law is exactly the ratio of integers.

Public counts of word pairs come from a small hash table for each word that others follow, or from a whole row. A slot of a
table holds a word and its weight. A bit for each word that begins at a slot rules out most missing words without a look at the
slots. A pair that was not counted has max(1, λ(h)·base(u) >> SHIFT), as in the pair model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F64, I64, U8, U32, U64, Bools, Ids, read_only
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.prior import SHIFT, PairModel
from dptext_spark.mechanisms.base import DECIDES, NO_WORD, PREVIOUS, Inputs, Law, Laws, Sampler
from dptext_spark.mechanisms.elementary import exponentials
from dptext_spark.mechanisms.matrices import in_threads
from dptext_spark.mechanisms.samplers.table import TableSummary, integer_weights
from dptext_spark.randomness import Draws
from dptext_spark.runtime.jit import Int, compiled, inlined, mul_high, prefetch

FACTOR_BITS = 24  # 1 <= f <= 2^24, 1 <= b < 2^28; with 2^12 outputs a sum stays below 2^64
FIRST_AGAIN = 2  # the block of a draw that needs another number; the one before may say what stands before it
CONTEXTS = 128  # words that a law without a context is averaged over
TOGETHER, MOST_WEIGHTS = 32, 4_096  # draws whose look-ups go on side by side, and their outputs at most
AT_ONCE = 2_048  # words whose average law is made at a time
# Contexts that are followed by more than a 64th of the words have their weights in a row, as far as that takes 8 MB.
MOST_ROWS, ROW_BYTES, LEAST_SHARE = 64, 1 << 23, 64
_MIX = np.uint64(0x9E3779B97F4A7C15)
_LOWER, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_ONE, _EIGHTH, _SEVEN, _BITS = np.uint64(1), np.uint64(3), np.uint64(7), np.uint64(SHIFT)


@inlined
def place_of(u: Int, size: Int) -> Int:
    """Return the place of a word in a table of `size` slots: 8 times its first slot, plus its bit in the byte of `held`."""
    return ((np.uint64(u) * _MIX) >> _HALF) & (np.uint64(8) * np.uint64(size) - _ONE)


@compiled
def _fill(starts: Any, following: Any, weight: Any, slots: Any, cells: Any, held: Any) -> None:
    """Fill the hash tables; slots: int64[H + 1], where the table of each context begins."""
    for h in range(slots.shape[0] - 1):
        low, size = slots[h], slots[h + 1] - slots[h]
        for e in range(starts[h], starts[h + 1] if size > 0 else starts[h]):
            place = place_of(following[e], size)
            slot = np.int64(place >> _EIGHTH)
            held[low + slot] |= np.uint8(1) << np.uint8(place & _SEVEN)
            while cells[low + slot] != 0:
                slot = (slot + 1) & (size - 1)
            cells[low + slot] = np.uint64(following[e]) | (np.uint64(weight[e]) << _HALF)


@inlined
def unseen(backoff: Int, base: Int) -> Int:
    """Return b(u|h) of a pair that was not counted."""
    return max(_ONE, (np.uint64(backoff) * np.uint64(base)) >> _BITS)


@inlined
def seen(cells: Any, low: Int, size: Int, u: Int, slot: Int, otherwise: Int) -> Int:
    """Return b(u|h) of a counted pair, looked for from a slot on; `otherwise` where it is none."""
    weight = np.uint64(otherwise)
    cell = cells[low + slot]
    while cell != np.uint64(0):
        if (cell & _LOWER) == u:
            weight = cell >> _HALF
            break
        slot = (slot + _ONE) & (size - _ONE)
        cell = cells[low + slot]
    return weight


def whole_rows(pairs: PairModel) -> tuple[Ids, U32]:
    """Return the contexts with all their weights in a row, int32[H + 1] with -1 for none, and the rows, uint32[D, V]."""
    counts, words = np.diff(pairs.starts), pairs.words
    most = min(MOST_ROWS, ROW_BYTES // (4 * words))
    chosen = np.lexsort((np.arange(len(counts)), -counts))[:most]
    chosen = np.sort(chosen[counts[chosen] > words // LEAST_SHARE])
    row = np.full(len(counts) + 1, -1, np.int32)
    row[chosen] = np.arange(len(chosen), dtype=np.int32)
    every = np.arange(words, dtype=np.int32)
    rows = [pairs.weights(np.full(words, h, np.int32), every) for h in chosen.tolist()]
    return row, np.stack(rows) if rows else np.zeros((0, words), np.uint32)


def hashed(pairs: PairModel, listed: Bools) -> tuple[I64, U64, U8]:
    """Return the counted pairs of some contexts (bool[H + 1]) as hash tables, at least half empty.

    Returns:
        starts int64[H + 2], cells uint64[m], held uint8[m].
    """
    counts = np.where(listed[:-1], np.diff(pairs.starts), 0)
    sizes = np.where(counts > 0, 1 << np.ceil(np.log2(np.maximum(2 * counts, 2))).astype(np.int64), 0)
    starts = np.concatenate([[0], np.cumsum(sizes), [sizes.sum()]]).astype(np.int64)
    cells, marks = np.zeros(int(starts[-1]), np.uint64), np.zeros(int(starts[-1]), np.uint8)
    _fill(pairs.starts, pairs.following, pairs.weight, starts[:-1], cells, marks)
    return starts, cells, marks


class Tables(NamedTuple):
    """The arrays of the sampler as compiled loops take them; see :class:`FluentSampler`."""

    sets: Ids
    of_word: Ids
    factor: U32
    starts: I64
    cells: U64
    held: U8
    row: Ids
    rows: U32
    backoff: U32
    base: U32


@compiled
def _weigh(tables: Tables, word: Int, before: Int, sums: Any) -> Int:
    """Fill sums[j] with the weights of the first j + 1 outputs of a word after a context; return the number of outputs."""
    sets, of_word, factor, starts, cells, marks, row, rows, backoff, base = tables
    contexts = starts.shape[0] - 2
    h = before if 0 <= before < contexts else contexts
    low, size = np.uint64(starts[h]), np.uint64(starts[h + 1] - starts[h])
    total = np.uint64(0)
    for j in range(sets.shape[1]):
        u = sets[of_word[word], j]
        if u < 0:
            return np.int64(j)
        weight = unseen(backoff[h], base[u])
        if row[h] >= 0:
            weight = np.uint64(rows[row[h], u])
        if size != np.uint64(0):
            place = place_of(u, size)
            if (marks[low + (place >> _EIGHTH)] >> np.uint8(place & _SEVEN)) & np.uint8(1):
                weight = seen(cells, low, size, np.uint64(u), place >> _EIGHTH, weight)
        total += weight * np.uint64(factor[word, j])
        sums[j] = total
    return np.int64(sets.shape[1])


@compiled
def _remainder(total: Int) -> Int:
    """Return 2^128 mod Σ, for Σ > 0: 2^64 mod Σ, doubled 64 times."""
    rest = (np.uint64(0) - total) % total
    for _ in range(64):
        rest = rest - (total - rest) if rest >= total - rest else rest + rest
    return rest


@compiled
def _by_depth(before: Any, order: Any, ends: Any) -> Int:
    """List draws so that each comes after the one it depends on: those before[i] is `PREVIOUS` for. Return the number of waves.

    Wave d, of independent draws, is order[ends[d]:ends[d + 1]]; `ends` are int64[n + 2] of zeros before.
    """
    n = before.shape[0]
    depth = np.zeros(n, np.int32)
    waves = np.int64(0)
    for i in range(n):
        if i > 0 and before[i] == PREVIOUS:
            depth[i] = depth[i - 1] + 1
        waves = max(waves, np.int64(depth[i]) + 1)
        ends[depth[i] + 2] += 1
    for d in range(waves):
        ends[d + 2] += ends[d + 1]
    for i in range(n):
        order[ends[depth[i] + 1]] = i
        ends[depth[i] + 1] += 1
    return waves


@compiled
def draw_by_depth(
    tables: Tables, bases: Any, ids: Any, before: Any, numbers: Any, order: Any, ends: Any, waves: Int, first: Int, out: Any
) -> Int:  # fmt: skip
    """Draw an output for each of ids int32[n] by its number uint64[n, 2] into out int32[n].

    Some draws at a time go through four steps. In each step no draw waits for another. Pair counts and pair weights are loads
    from all over the memory.

    Args:
        tables: of the sampler.
        bases: uint32[S, k], the base of each output of a set; 0 in padding.
        ids: the words.
        before: int32[n], as for :meth:`Sampler.sample_after`.
        numbers: 128 bits each, the upper half first.
        order: of :func:`_by_depth`, with `ends` and `waves`.
        ends: of the waves.
        waves: their number.
        first: where to begin in `order`.
        out: filled.

    Returns:
        n; or the place in `order` of a draw that needs another number.
    """
    sets, of_word, factor, starts, cells, marks, whole, rows, backoff, _ = tables
    every = rows.reshape(-1)
    wide = sets.shape[1]
    width = np.uint64(wide)
    together = max(1, min(TOGETHER, MOST_WEIGHTS // wide))
    flat_sets, flat_factor, flat_bases = sets.reshape(-1), factor.reshape(-1), bases.reshape(-1)
    weight, sums = np.zeros(together * wide, np.uint32), np.zeros(wide, np.uint64)
    room = together * wide + 1
    hit, of, word = np.zeros(room, np.uint32), np.zeros(room, np.uint32), np.zeros(room, np.uint32)
    slots = np.zeros(room, np.uint64)
    low, size = np.zeros(together, np.uint64), np.zeros(together, np.uint64)
    contexts = np.int64(starts.shape[0] - 2)
    at = np.int64(first)
    for wave in range(waves):
        while at < ends[wave + 1]:
            many = min(together, ends[wave + 1] - at)
            for c in range(many):
                i = order[at + c]
                h = np.int64(before[i])
                if h == PREVIOUS and i > 0:
                    h = np.int64(out[i - 1])
                if h < 0 or h >= contexts:
                    h = contexts
                low[c] = np.uint64(h)
                prefetch(starts, h)
                prefetch(backoff, h)
                prefetch(whole, h)
                row = np.int64(of_word[ids[i]]) * wide
                for j in range(0, min(wide, 64), 16):
                    prefetch(flat_sets, row + j)
                    prefetch(flat_bases, row + j)
                    prefetch(flat_factor, np.int64(ids[i]) * wide + j)
            hits = np.uint64(0)
            for c in range(many):
                i, h = order[at + c], low[c]
                low[c] = np.uint64(starts[h])
                size[c] = np.uint64(starts[h + _ONE]) - low[c]
                row, cell = np.uint64(of_word[ids[i]]) * width, np.uint64(c) * width
                if whole[h] >= 0:
                    first_of = np.uint64(whole[h]) * np.uint64(rows.shape[1])
                    for j in range(width):
                        weight[cell + j] = every[first_of + np.uint64(max(flat_sets[row + j], 0))]
                    continue
                share = np.uint64(backoff[h])
                for j in range(width):
                    weight[cell + j] = np.uint32(unseen(share, flat_bases[row + j]))
                if size[c] == np.uint64(0):
                    continue
                for j in range(width):
                    # Whether it is listed cannot be predicted: listed in any case, and overwritten if not.
                    place = place_of(flat_sets[row + j], size[c])
                    hit[hits] = np.uint32(cell + j)
                    of[hits] = np.uint32(c)
                    hits += np.uint64(
                        (marks[low[c] + (place >> _EIGHTH)] >> np.uint8(place & _SEVEN)) & np.uint8(1)
                    )
            for k in range(hits):
                mine = of[k]
                row = np.uint64(of_word[ids[order[at + np.int64(mine)]]]) * width
                u = flat_sets[row + np.uint64(hit[k]) - np.uint64(mine) * width]
                word[k] = np.uint32(u)
                slots[k] = low[mine] + (place_of(u, size[mine]) >> _EIGHTH)
                prefetch(cells, np.int64(slots[k]))
            for k in range(hits):
                cell, mine = np.uint64(hit[k]), of[k]
                begin, slot = low[mine], slots[k] - low[mine]
                pair_weight = seen(
                    cells, begin, size[mine], np.uint64(word[k]), slot, np.uint64(weight[cell])
                )
                weight[cell] = np.uint32(pair_weight)
            for c in range(many):
                i = order[at + c]
                row, factors_of = np.uint64(of_word[ids[i]]) * width, np.uint64(ids[i]) * width
                total, cell = np.uint64(0), np.uint64(c) * width
                for j in range(width):
                    total += np.uint64(weight[cell + j]) * np.uint64(flat_factor[factors_of + j])
                    sums[j] = total
                # The upper word of x·Σ, of 192 bits, and the lower two.
                lower, carried = numbers[i, 1] * total, mul_high(numbers[i, 1], total)
                middle = numbers[i, 0] * total + carried
                upper = mul_high(numbers[i, 0], total) + np.uint64(middle < carried)
                if middle == np.uint64(0) and lower < total and lower < _remainder(total):
                    return at + c
                output = np.uint64(0)
                for j in range(width):
                    output += np.uint64(sums[j] <= upper)
                out[i] = flat_sets[row + output]
            at += many
    return at


@compiled
def _average(tables: Tables, words: Any, contexts: Any, shares: Any, out: Any) -> None:
    """Add shares[c]·P(u|w, contexts[c]) over the contexts to out: float64[n, k]."""
    sums = np.zeros(tables.sets.shape[1], np.uint64)
    for i in range(words.shape[0]):
        for c in range(contexts.shape[0]):
            count = _weigh(tables, words[i], contexts[c], sums)
            scale = shares[c] / np.float64(sums[count - 1])
            below = np.uint64(0)
            for j in range(count):
                out[i, j] += scale * np.float64(sums[j] - below)
                below = sums[j]


@compiled
def _inputs(
    tables: Tables, rows: Any, starts: Any, outputs: Any, before: Any, ends: Any, words: Any, shares: Any
) -> None:
    """Fill P(output | word, before) of every word that can give an output: `words` and `shares`, output i from ends[i] on.

    The words that can give output u are rows[starts[u]:starts[u + 1]].
    """
    sums = np.zeros(tables.sets.shape[1], np.uint64)
    for i in range(outputs.shape[0]):
        at = ends[i]
        for e in range(starts[outputs[i]], starts[outputs[i] + 1]):
            word = rows[e]
            count = _weigh(tables, word, before[i], sums)
            row, below = tables.of_word[word], np.uint64(0)
            for j in range(count):
                if tables.sets[row, j] == outputs[i]:
                    shares[at] = np.float64(sums[j] - below) / np.float64(sums[count - 1])
                below = sums[j]
            words[at] = word
            at += 1


@dataclass(frozen=True, eq=False)
class FluentSampler(Sampler):
    """Sampler of a finite law per word and word before it.

    Attributes:
        sets: int32[S, k], the output sets, ids ascending, padded with -1.
        of_word: int32[V], the set of each word.
        factor: uint32[V, k], f_w(u) of the outputs in its set, from 1 to 2^24; 0 is padding.
        starts: int64[H + 2], the hash table of context h is cells[starts[h]:starts[h + 1]], 2^n slots or none; the last one, of
            no known word, holds none.
        cells: uint64[m], u | b(u|h) << 32 of the counted pairs; 0 is an empty slot.
        row: int32[H + 1], which of the next a context has; -1 where it has a hash table.
        rows: uint32[D, V], b(u|h) of all words for the contexts that are followed by most.
        held: uint8[m], a bit for each counted pair that begins at a slot, picked by its word: most others are told by it.
        backoff: uint32[H + 1], λ(h).
        base: uint32[V].
    """

    ARRAYS = Tables._fields
    summary_type = TableSummary
    cost = "constant: K weights a token"
    certified_by = (
        "exact, for every prior: the integers of the law, by the range of the log ratio over all pairs of words that share an "
        f"output set; {DECIDES}"
    )
    has_short_laws = True
    compiles_quickly = True
    reads_context = True
    law_is = f"averaged over the word before: the {CONTEXTS} most frequent words, and no known word in place of the rest"

    sets: Ids
    of_word: Ids
    factor: U32
    starts: I64
    cells: U64
    held: U8
    row: Ids
    rows: U32
    backoff: U32
    base: U32
    guarantee: Guarantee
    summary: TableSummary = TableSummary()

    @classmethod
    def of(
        cls,
        sets: Ids,
        of_word: Ids,
        factor: U32,
        pairs: PairModel,
        guarantee: Guarantee,
        summary: TableSummary,
    ) -> FluentSampler:
        """Build from output sets int32[S, k], the set of each word int32[V], factors uint32[V, k] and a pair model."""
        row, rows = whole_rows(pairs)
        tables = hashed(pairs, np.append(row[:-1] < 0, False))
        return cls(sets, of_word, factor, *tables, row, rows, pairs.backoff, pairs.base, guarantee, summary)

    @property
    def tables(self) -> Tables:
        """The arrays as compiled loops take them."""
        return Tables(*(getattr(self, name) for name in Tables._fields))

    @property
    def contexts(self) -> int:
        """H, how many words a draw can depend on."""
        return len(self.starts) - 2

    def sample(self, ids: Ids, draws: Draws) -> Ids:
        """Draw one output for each of int32[n] as if it were alone: after a drawn word, too, as :attr:`law_is` says."""
        contexts, shares = self._average_contexts
        ends = np.cumsum(integer_weights(shares[None, :])[0])
        place = np.searchsorted(ends, draws.u64(2) >> np.uint64(1), side="right")
        return self.sample_after(ids, contexts[place], draws)

    def sample_after(self, ids: Ids, before: Ids, draws: Draws) -> Ids:
        """Draw an output for each of int32[n] by the block of lanes 0 and 1; once in 2^64 draws by others."""
        numbers, out, order = draws.pair(0), np.empty(len(ids), np.int32), np.empty(len(ids), np.int32)
        ends = np.zeros(len(ids) + 2, np.int64)
        ids, before = (read_only(np.asarray(array, np.int32)) for array in (ids, before))
        waves = int(_by_depth(before, order, ends))
        done, block = 0, FIRST_AGAIN
        while True:
            stopped = int(
                draw_by_depth(self.tables, self._bases, ids, before, numbers, order, ends, waves, done, out)
            )
            if stopped == len(ids):
                return out
            block = block + 1 if stopped == done else FIRST_AGAIN
            place, done, numbers = int(order[stopped]), stopped, np.array(numbers)
            numbers[place] = draws.pair(block, slice(place, place + 1))[0]

    @cached_property
    def _bases(self) -> U32:
        """The base of each output of a set, uint32[S, k]; 0 in padding."""
        return read_only(np.where(self.sets >= 0, self.base[self.sets], 0).astype(np.uint32))

    @cached_property
    def _average_contexts(self) -> tuple[Ids, F64]:
        """The contexts of a law without one, int32[n], and their shares, float64[n]: the last represents all others."""
        order = np.lexsort((np.arange(len(self.base)), -self.base.astype(np.int64)))[:CONTEXTS]
        share = self.base[order].astype(np.float64) / float(self.base.sum(dtype=np.uint64))
        rest = max(0.0, 1.0 - float(share.sum()))
        contexts = np.append(order, NO_WORD).astype(np.int32)
        return (contexts, np.append(share, rest)) if rest > 1e-9 else (contexts[:-1], share / share.sum())

    def law(self, word_id: int, before: int | None = None) -> Law:
        """Return the law of a word.

        Args:
            word_id: the word.
            before: the word released before it, of the word table or `NO_WORD`: then the weights are the sampled ones,
                b(u|h)·f_w(u), and sum to less than 2^64. None: :attr:`law_is`, rounded to integers that sum to 2^63.
        """
        if before is None:
            return self.laws(np.array([word_id], np.int32)).only
        sums = np.zeros(self.sets.shape[1], np.uint64)
        count = int(_weigh(self.tables, word_id, before, sums))
        weight = np.diff(sums[:count], prepend=np.uint64(0))
        ids = self.sets[self.of_word[word_id], :count]
        return Law(ids, weight, weight.astype(np.float64) / float(sums[count - 1]))

    def law_after(self, word_id: int, before: int) -> Law:
        """Return the exact law of a word after another."""
        return self.law(word_id, before)

    def laws(self, words: Ids) -> Laws:
        """Return the laws of int32[n] words without a context, see :meth:`law`."""
        words = np.ascontiguousarray(words, np.int32)
        mean = np.zeros((len(words), self.sets.shape[1]))
        contexts, shares = self._average_contexts

        def fill(part: Ids) -> None:
            some = slice(int(part[0]), int(part[-1]) + 1)
            _average(self.tables, words[some], contexts, shares, mean[some])

        in_threads(fill, np.arange(len(words), dtype=np.int32), AT_ONCE)
        outputs = self.sets[self.of_word[words]]
        weight = integer_weights(mean) if len(words) else mean.astype(np.uint64)
        starts = np.append(0, np.cumsum((outputs >= 0).sum(axis=1))).astype(np.int64)
        return Laws(starts, outputs[outputs >= 0], weight[outputs >= 0])

    def inputs_after(self, outputs: Ids, before: Ids) -> Inputs:
        """Return every word that can give outputs int32[n] after int32[n] contexts, with P(output | word, before)."""
        words, starts = self._words_of
        outputs = np.ascontiguousarray(outputs, np.int32)
        ends = np.append(0, np.cumsum(np.diff(starts)[outputs])).astype(np.int64)
        inputs, shares = np.zeros(ends[-1], np.int32), np.zeros(ends[-1])
        _inputs(
            self.tables, words, starts, outputs, np.ascontiguousarray(before, np.int32), ends, inputs, shares
        )
        return Inputs(ends, inputs, shares)

    @cached_property
    def _words_of(self) -> tuple[Ids, I64]:
        """The words that can give each output, one output behind the other: (int32[m], int64[V + 1])."""
        sets = self.sets[self.of_word]
        words, place = np.nonzero(sets >= 0)
        outputs = sets[words, place]
        order = np.argsort(outputs, kind="stable")
        counts = np.bincount(outputs, minlength=len(self.of_word))
        return words[order].astype(np.int32), np.append(0, np.cumsum(counts)).astype(np.int64)

    def law_bytes(self) -> int:
        """Return the bytes of a law while it is made."""
        return int(self.sets.shape[1]) * 64


def factors(score: F64, held: npt.NDArray[np.bool_], epsilon: float) -> U32:
    """Compute f_w(u) = max(1, round(2^24·e^(ε(s - 1)/2))): uint32 of the shape of `score`, 0 where not held.

    Args:
        score: float64[V, k], s from 0 to 1.
        held: bool[V, k], which are outputs.
        epsilon: ε.
    """
    rounded = np.rint(exponentials(epsilon * (score - 1.0) / 2.0) * float(1 << FACTOR_BITS))
    return np.where(held, np.clip(rounded, 1, 1 << FACTOR_BITS), 0).astype(np.uint32)
