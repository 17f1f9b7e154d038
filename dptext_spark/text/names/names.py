"""The lists of a run, ready to be looked for: what they mask becomes `[NAME]` or has pseudonyms, what they keep stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8
from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.names.listed_parts import parts_of_listed
from dptext_spark.text.names.matching import OWN, OwnNames, names_in
from dptext_spark.text.names.name_table import MOST_LISTS, NameTable
from dptext_spark.text.names.public_names import LISTED_KINDS
from dptext_spark.text.names.search import NAME_TYPES
from dptext_spark.text.names.sources import LIST_TYPES


@dataclass(frozen=True, eq=False)
class Names:
    """Compiled lists as a provider of identifiers. They are private, and no part of a model or of its fingerprint.

    Attributes:
        table: the lists of all rows, those that mask first; it may hold none.
        masking: how many of them mask; the others keep.
        own: the lists that each row of a batch has of its own; None where there are none.
        masked: whether the texts hold what the first of the lists masked already, so that only the others are looked for.
        kinds: of each of the lists of all rows that mask, of what its entries are names, in `NAME_TYPES`, where they have
            pseudonyms; None where they are masked. Of no length: all are masked.
        own_kinds: the same of the lists that each row has of its own.
        name: as errors call them.
    """

    table: NameTable
    masking: int
    own: OwnNames | None = None
    masked: bool = False
    kinds: tuple[str | None, ...] = ()
    own_kinds: tuple[str | None, ...] = ()
    name: str = "lists of names"

    @property
    def types(self) -> tuple[str, ...]:
        """Of what is masked, and of the parts of names that have pseudonyms."""
        return (*LIST_TYPES, *LISTED_KINDS) if self._has_pseudonyms else LIST_TYPES

    @property
    def _has_pseudonyms(self) -> bool:
        return any(kind is not None for kind in (*self.kinds, *self.own_kinds))

    @cached_property
    def _kind_of_list(self) -> I64:
        """Return int64[...], by the number of a list the position of its kind in `NAME_TYPES`; -1: it has no pseudonyms."""
        found = np.full(OWN + MOST_LISTS + 1, -1, np.int64)
        for first, kinds in ((0, self.kinds), (OWN, self.own_kinds)):
            for number, kind in enumerate(kinds):
                if kind is not None:
                    found[first + number] = NAME_TYPES.index(kind)
        return found

    def of_rows(self, rows: I64) -> Names:
        """Return them for texts of these rows, int64[r]; without, text i is of row i."""
        return self if self.own is None else replace(self, own=self.own._replace(rows=rows))

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return where the entries stand in texts."""
        return self.find_in(*padded(texts))

    def find_in(self, data: U8, rows: I64) -> TypedSpans:
        """Return where the entries stand in the bytes of a batch, which are padded: as wholes, or as parts with pseudonyms."""
        starts, ends, lists, row = names_in(data, rows, self.table, self.masking, self.own).T
        own = 0 if self.own is None else self.own.masking
        kept = lists >= np.where(lists < OWN, self.masking, OWN + own)
        kinds = self._kind_of_list[lists]
        if self.masked:
            row, starts, ends, kept, kinds = (column[kept] for column in (row, starts, ends, kept, kinds))
        types = np.zeros(len(row), np.int64)
        wholes = np.full(len(row), -1, np.int64)
        named = np.flatnonzero(kinds >= 0)
        if len(named):
            parts = parts_of_listed(data, rows[row[named]], starts[named], ends[named], kinds[named])
            entry = named[parts[:, 3]]
            others = np.flatnonzero(kinds < 0)
            starts, ends = (
                np.append(whole[others], part)
                for whole, part in zip((starts, ends), parts.T[:2], strict=True)
            )
            types = np.append(types[others], len(LIST_TYPES) + parts[:, 2])
            wholes = np.append(wholes[others], entry)
            which = np.append(others, entry)
            order = np.argsort(starts, kind="stable")
            starts, ends, types, wholes, which = (
                column[order] for column in (starts, ends, types, wholes, which)
            )
            row, kept = row[which], kept[which]
        shift = rows[row]
        return TypedSpans(row, starts - shift, ends - shift, types, kept, wholes)
