"""The lists of a run, ready to be looked for: what they mask becomes `[NAME]`, what they keep stays as it stands."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8
from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.names.matching import OWN, OwnNames, names_in
from dptext_spark.text.names.name_table import NameTable
from dptext_spark.text.names.sources import LIST_TYPES


@dataclass(frozen=True, eq=False)
class Names:
    """Compiled lists as a provider of identifiers. They are private, and no part of a model or of its fingerprint.

    Attributes:
        table: the lists of all rows, those that mask first; it may hold none.
        masking: how many of them mask; the others keep.
        own: the lists that each row of a batch has of its own; None where there are none.
        masked: whether the texts hold what the first of the lists masked already, so that only the others are looked for.
        name: as errors call them.
        types: of what is masked.
    """

    table: NameTable
    masking: int
    own: OwnNames | None = None
    masked: bool = False
    name: str = "lists of names"
    types: tuple[str, ...] = LIST_TYPES

    def of_rows(self, rows: I64) -> Names:
        """Return them for texts of these rows, int64[r]; without, text i is of row i."""
        return self if self.own is None else replace(self, own=self.own._replace(rows=rows))

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return where the entries stand in texts."""
        return self.find_in(*padded(texts))

    def find_in(self, data: U8, rows: I64) -> TypedSpans:
        """Return where the entries stand in the bytes of a batch, which are padded."""
        starts, ends, lists, row = names_in(data, rows, self.table, self.masking, self.own).T
        shift = rows[row]
        starts, ends = starts - shift, ends - shift
        own = 0 if self.own is None else self.own.masking
        kept = lists >= np.where(lists < OWN, self.masking, OWN + own)
        if self.masked:
            row, starts, ends, kept = (column[kept] for column in (row, starts, ends, kept))
        return TypedSpans(row, starts, ends, np.zeros(len(row), np.int64), kept=kept)
