"""A law P whose outputs are replaced by a fixed public table r: what is released is r(y), by the law Q.

Q(z|w) = Σ_{y: r(y) = z} P(y|w), in the integers of P: the law that is released is as exact as the one that is drawn. Replacing
outputs by a table that depends on no text is post-processing: no guarantee of P is lost (concepts/mechanisms, Bayes remap).

Rows of a table are relabelled once, so that a draw costs what it did. Other laws are drawn as before, and r is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F32, F64, I64, U64, Ids
from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.base import Law, LawColumns, Laws, Sampler
from dptext_spark.mechanisms.samplers.table import AliasRows, TableSampler, merged
from dptext_spark.mechanisms.summary import Summary
from dptext_spark.randomness import Draws

COLUMNS = 512  # of P that are held at once while those of Q are added up
PAIRS = 1 << 20  # of words and outputs of P, likewise
_LOWER, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
_REMAP, _RELEASED, _GROUP = "remap", "released", "group"


@dataclass(frozen=True, eq=False)
class RemappedSampler(Sampler):
    """Sampler of a law whose outputs are replaced.

    Attributes:
        inner: draws y by P.
        table: int32[V], r: what is released in the place of each output.
        guarantee: what holds for one draw: that of P.
        summary: public figures of Q.
    """

    is_confirmed = True

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
        found = self.inner.laws(words)
        assert found is not None
        return merged(found, self.table)

    def law_bytes(self) -> int | None:
        """Return about how many bytes a law takes while it is made."""
        return self.inner.law_bytes()

    def law_columns(self) -> LawColumns | None:
        """Return what adds the columns of P up, where P has such a reading."""
        columns = self.inner.law_columns()
        return None if columns is None else RemappedColumns.of(columns, self.table)

    def unchanged(self, words: Ids) -> tuple[F64, F64] | None:
        """Return Q(w|w), the sum of P(y|w) over all y that w is released for, and bounds of the error of its logarithm."""
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
        """Return which words shared an output set before the remap: int32[V], equal numbers for those that did."""
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

    def _behind(self, outputs: Ids) -> tuple[I64, Ids]:
        """Return (place in `outputs`, output of P) of everything that becomes one of them."""
        first, many = self.starts[outputs], self.starts[outputs + 1] - self.starts[outputs]
        place = np.repeat(np.arange(len(outputs)), many)
        within = np.arange(len(place)) - np.repeat(np.cumsum(many) - many, many)
        return place, self.order[first[place] + within]

    def __call__(self, outputs: Ids) -> F32:
        """Return Q(z|w) of some outputs z over all words w: float32[n, V]."""
        return np.asarray(self._added(self.columns, np.float32, outputs), np.float32)

    @property
    def precise(self) -> Callable[[Ids], F64] | None:
        """What returns the same in float64: float64[n, V]; None where P has no such reading."""
        columns = getattr(self.columns, "precise", None)
        return None if columns is None else partial(self._added, columns, np.float64)

    def _added(self, columns: Callable[[Ids], Any], number: type[np.floating[Any]], outputs: Ids) -> Any:
        """Add up the columns that `columns` returns of P."""
        total = np.zeros((len(outputs), len(self.order)), number)
        place, behind = self._behind(outputs)
        for start in range(0, len(behind), COLUMNS):
            part = slice(start, start + COLUMNS)
            heads = np.flatnonzero(np.diff(place[part], prepend=-1))
            total[place[part][heads]] += np.add.reduceat(columns(behind[part]), heads, axis=0)
        return total

    def probability(self, words: Ids, outputs: Ids) -> F64:
        """Return Q(outputs[i] | words[i]) of int32[n] each, in float64, as the formula says: float64[n]."""
        found = np.zeros(len(outputs))
        place, behind = self._behind(outputs)
        for start in range(0, len(behind), PAIRS):
            part = slice(start, start + PAIRS)
            np.add.at(found, place[part], self.columns.probability(words[place[part]], behind[part]))
        return found
