"""The lists of a run, ready to be looked for: what they mask becomes `[NAME]`, what they keep stays as it stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.names.matching import names_in
from dptext_spark.text.names.name_table import NameTable

LIST_TYPES = ("name",)


@dataclass(frozen=True, eq=False)
class Names:
    """Compiled lists as a provider of identifiers. They are private, and no part of a model or of its fingerprint.

    Attributes:
        table: the lists, those that mask first.
        masking: how many of them mask; the others keep.
        name: as errors call them.
        types: of what is masked.
    """

    table: NameTable
    masking: int
    name: str = "lists of names"
    types: tuple[str, ...] = LIST_TYPES

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return where the entries stand in texts."""
        from dptext_spark.text.engine import padded

        return self.find_in(*padded(texts))

    def find_in(self, data: U8, rows: I64) -> TypedSpans:
        """Return where the entries stand in the bytes of a batch, which are padded."""
        found = names_in(data, rows, self.table)
        row = np.searchsorted(rows, found[:, 0], side="right") - 1
        shift = rows[row]
        starts, ends = found[:, 0] - shift, found[:, 1] - shift
        return TypedSpans(row, starts, ends, np.zeros(len(row), np.int64), kept=found[:, 2] >= self.masking)
