"""All texts of a row, one behind the other: words are chosen among those of all its columns and list elements together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dptext_spark.errors import DataError
from dptext_spark.importance.providers import WrongWeights
from dptext_spark.randomness.draws import is_bytes
from dptext_spark.text.selection import Chosen, Texts
from dptext_spark.text.spans import Spans

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """The texts of a batch in the order of their rows, and in a row in the order of its columns.

    Attributes:
        texts: string, large_string or binary [m].
        weights: list<float64> [m], where the user weighs the words; None where not.
        bounds: int64[rows + 1], row i has the texts bounds[i]:bounds[i + 1].
        places: for each column int64[m of the column], where its texts stand; None for a single column, which stands as it is.
        rows: for each column int64[m of the column], the row of each text.
    """

    texts: pa.Array
    weights: pa.Array | None
    bounds: I64
    places: tuple[I64, ...] | None
    rows: tuple[I64, ...]

    @classmethod
    def of(cls, columns: Sequence[Texts]) -> Rows:
        """Put the columns of a batch together.

        Raises:
            DataError: a column that holds no texts, or not as many rows as texts.
            WrongWeights: weights that are no lists, or not one list for each text.
        """
        owners = tuple(_rows_of(column) for column in columns)
        owner = np.concatenate(owners)
        order = np.argsort(owner, kind="stable")
        bounds = np.searchsorted(owner[order], np.arange(int(owner.max(initial=-1)) + 2))
        weights = _weights_of(columns)
        if len(columns) == 1:
            return cls(columns[0].values, weights, bounds, None, owners)
        texts = pa.concat_arrays([column.values.cast(pa.large_binary()) for column in columns])
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        places = tuple(np.split(place, np.cumsum([len(one) for one in owners])[:-1]))
        taken = pa.array(order)
        return cls(
            texts.take(taken), None if weights is None else weights.take(taken), bounds, places, owners
        )

    def split(self, words: Spans, levels: npt.NDArray[np.uint8], none: int, units: I64) -> tuple[Chosen, ...]:
        """Return what was chosen, for each column by itself.

        Args:
            words: of the texts.
            levels: uint8[n], of the words.
            none: how many levels there are.
            units: int64[m], of the texts.
        """
        if self.places is None:
            return (Chosen(words.starts, levels, none, units, self.rows[0]),)
        sizes, counts = np.diff(words.rows), np.diff(words.bounds)
        found = []
        for place, rows in zip(self.places, self.rows, strict=True):
            # Each word of the column, by its number among all: those of a text follow one another.
            held = counts[place]
            before = np.cumsum(held) - held
            which = np.repeat(words.bounds[:-1][place] - before, held) + np.arange(int(held.sum()))
            # In its column a text begins where the ones before it end.
            own = np.cumsum(sizes[place]) - sizes[place]
            starts = words.starts[which] + np.repeat(own - words.rows[:-1][place], held)
            found.append(Chosen(starts, levels[which], none, units[place], rows))
        return tuple(found)


def _rows_of(column: Texts) -> I64:
    """Return the row of each text of a column, int64[m]."""
    if not is_bytes(column.values.type):
        raise DataError(f"texts: of type {column.values.type}; valid: texts.")
    rows = np.arange(len(column.values)) if column.rows is None else np.asarray(column.rows, np.int64)
    if len(rows) != len(column.values) or (np.diff(rows) < 0).any() or (len(rows) and rows[0] < 0):
        raise DataError(
            f"texts: {len(column.values)} with {len(rows)} numbers of rows; valid: one each, ascending from 0."
        )
    return rows


def _weights_of(columns: Sequence[Texts]) -> pa.Array | None:
    """Return the lists of all columns behind each other; None where no column has any."""
    given = [column.weights for column in columns if column.weights is not None]
    if not given:
        return None
    if len(given) < len(columns):
        raise WrongWeights("importance: weights for some columns only; valid: for each, or for none.", 0)
    for column, lists in zip(columns, given, strict=True):
        if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
            raise WrongWeights(
                f"importance: weights of type {lists.type}; valid: lists of numbers.", len(lists)
            )
        if len(lists) != len(column.values):
            missing = len(column.values)
            raise WrongWeights(
                f"importance: {missing:,} texts have not as many weights as words; valid: a list for each text.",
                missing,
            )
    return (
        given[0] if len(given) == 1 else pa.concat_arrays([one.cast(pa.list_(pa.float64())) for one in given])
    )
