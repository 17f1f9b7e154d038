"""How many names of a source stand in a table as they were, by public lists or one that is given, whatever tool wrote it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import I64, U8, Bools
from dptext_spark.text.chunks import padded
from dptext_spark.text.names.names import Names
from dptext_spark.text.names.public_lists import CITY, REGION
from dptext_spark.text.names.public_names import parts_of_names
from dptext_spark.text.pair_tokens import Words

KINDS = ("persons", "locations")
LISTED_COUNTS = (
    "listed",
    "listed_same",
)  # entries of a list that is given, and those of which every word was kept
# Words of names, those of them that were kept, whole names, and those of which every word was kept.
NAME_COUNTS = tuple(f"{kind}{what}" for kind in KINDS for what in ("", "_same", "_whole", "_whole_same"))


class FoundNames(NamedTuple):
    """Names of texts, searched once for all that is counted of them.

    Attributes:
        data: uint8[...], the bytes of the texts, padded.
        parts: int64[n, 5], of each part of a name, as :func:`parts_of_names` returns them.
    """

    data: U8
    parts: I64

    @classmethod
    def of(cls, texts: pa.Array) -> FoundNames:
        """Search texts, string [rows]."""
        data, bounds = padded(texts)
        return cls(data, parts_of_names(data, bounds))


def name_counts(names: FoundNames, source: Words, aligned: Bools, same: Bools) -> dict[str, int]:
    """Count the names of texts.

    Args:
        names: of the texts of the source.
        source: their words.
        aligned: bool[n], which of these words could be aligned with the table's.
        same: bool[n], which stand there as they were.

    Returns:
        Each of `NAME_COUNTS`; words and names that could not be aligned are left out.
    """
    parts = names.parts
    starts, ends, kinds, whole, rows = parts.T
    compared, kept = stretches_in(source, starts, ends, aligned, same)
    place = np.isin(kinds, (CITY, REGION))
    begins = np.ones(len(parts), np.bool_)
    begins[1:] = (whole[1:] != whole[:-1]) | (rows[1:] != rows[:-1])
    mentions = np.flatnonzero(begins)
    all_compared, all_kept = (
        np.logical_and.reduceat(flags, mentions) if len(mentions) else flags for flags in (compared, kept)
    )
    found: dict[str, int] = {}
    for kind, of_kind in zip(KINDS, (~place, place), strict=True):
        found[kind] = int((compared & of_kind).sum())
        found[f"{kind}_same"] = int((kept & of_kind).sum())
        found[f"{kind}_whole"] = int((all_compared & of_kind[mentions]).sum())
        found[f"{kind}_whole_same"] = int((all_kept & of_kind[mentions]).sum())
    return found


def names_of_rows(texts: pa.Array, source: Words, aligned: Bools, same: Bools) -> I64:
    """Return how many words of names each text has, and how many of them were kept, as :func:`name_counts`: int64[rows, 2]."""
    parts = parts_of_names(*padded(texts))
    flags = stretches_in(source, parts[:, 0], parts[:, 1], aligned, same)
    return np.stack([np.bincount(parts[:, 4], flag, len(texts)).astype(np.int64) for flag in flags], axis=1)


def kept_words(names: FoundNames, source: Words, aligned: Bools, same: Bools) -> tuple[pa.Array, pa.Array]:
    """Return the words of names that stand in the table as they were: private text.

    Args:
        names: of the texts of the source.
        source: their words.
        aligned: bool[n], which of these words could be aligned with the table's.
        same: bool[n], which stand there as they were.

    Returns:
        (string [k], each in lower case, once; int64[k], how often).
    """
    found = np.unique(names.parts[:, :2], axis=0)
    # What stands within a longer part of a name is counted with that.
    found = found[np.lexsort((-found[:, 1], found[:, 0]))]
    reached = np.append(0, np.maximum.accumulate(found[:, 1]))[:-1] if len(found) else found[:, 1]
    starts, ends = found[found[:, 1] > reached].T
    _, kept = stretches_in(source, starts, ends, aligned, same)
    sizes = (ends - starts)[kept]
    offsets = np.append(0, np.cumsum(sizes))
    taken = np.repeat(starts[kept] - offsets[:-1], sizes) + np.arange(offsets[-1])
    buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(names.data[taken].tobytes())]
    words = pc.utf8_lower(pa.Array.from_buffers(pa.large_string(), len(sizes), buffers))
    counted = words.value_counts()
    return counted.field("values"), counted.field("counts")


def listed_counts(
    names: Names, texts: pa.Array, source: Words, aligned: Bools, same: Bools
) -> dict[str, int]:
    """Count the entries of a list in texts, as :func:`name_counts` does: each of `LISTED_COUNTS`."""
    data, bounds = padded(texts)
    found = names.find_in(data, bounds)
    shift = bounds[found.rows]
    compared, kept = stretches_in(source, found.starts + shift, found.ends + shift, aligned, same)
    return dict(zip(LISTED_COUNTS, (int(compared.sum()), int(kept.sum())), strict=True))


def stretches_in(source: Words, starts: I64, ends: I64, aligned: Bools, same: Bools) -> tuple[Bools, Bools]:
    """Return which stretches of the texts could be compared, bool[n], and which stand in the table as they were."""
    first = np.searchsorted(source.spans.ends, starts, side="right")
    last = np.maximum(first, np.searchsorted(source.spans.starts, ends, side="left"))
    # A stretch may be of several words, and a name that the policy replaces whole is one for all its parts.
    return (last > first) & (_sum(aligned, first, last) == last - first), (last > first) & (
        _sum(same, first, last) == last - first
    )


def _sum(flags: Bools, first: I64, last: I64) -> I64:
    """Return how many flags from first to last - 1 are set, int64[n] for int64[n] of each."""
    total = np.append(0, np.cumsum(flags))
    return np.asarray(total[last] - total[first])
