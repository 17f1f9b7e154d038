"""Find the identifiers of a batch: windows by their anchors, patterns on the windows, and what providers add.

Stretches that overlap become one, from the first start to the last end, of the type of the longest among them; of equally
long ones the built-in rule's counts, in the order of :data:`~dptext_spark.text.patterns.RULES`, before a provider's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dptext_spark.text.anchors import candidates
from dptext_spark.text.identifiers import TYPES, Identifiers, placeholder
from dptext_spark.text.patterns import RULES, Rule, match
from dptext_spark.text.provider import Provider, provided
from dptext_spark.text.skeleton import shapes, skeletons
from dptext_spark.text.spans import Spans
from dptext_spark.text.windows import KINDS, NAMED

I64 = npt.NDArray[np.int64]


class Found(NamedTuple):
    """The identifiers of a batch.

    Attributes:
        spans: where they stand.
        types: int64[n], positions in :attr:`Finder.names`.
        written: bool[n], whether a placeholder stands there already; it stays as it is.
    """

    spans: Spans
    types: I64
    written: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Finder:
    """Finds identifiers.

    Attributes:
        identifiers: which types are looked for.
        providers: who adds spans to them.
    """

    identifiers: Identifiers
    providers: tuple[Provider, ...] = ()
    _size: list[int] = field(default_factory=lambda: [1024], init=False, repr=False)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The types, the built-in ones first."""
        added = (name for provider in self.providers for name in provider.types)
        return tuple(dict.fromkeys([*TYPES, *added]))

    @cached_property
    def rules(self) -> tuple[tuple[int, Rule], ...]:
        """The rules of the types that are looked for, with the number of the type; placeholders are found by name."""
        wanted = set(self.identifiers.wanted())
        rules = [(TYPES.index(rule.name), rule) for rule in RULES if rule.name in wanted]
        names = [*self.identifiers.wanted(), *self.names[len(TYPES) :]]
        rules += [(self.names.index(name), _of_placeholder(name)) for name in names]
        return tuple(rules)

    def find(self, data: npt.NDArray[np.uint8], rows: I64, texts: pa.Array) -> Found:
        """Find the identifiers of a batch.

        Args:
            data: uint8[...], the bytes of the texts, padded.
            rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
            texts: the same texts as Arrow strings, which providers take.
        """
        starts, ends, order, types, written = self._by_rules(data, rows)
        owner = np.searchsorted(rows, starts, side="right") - 1
        parts = [(owner, starts, ends, order, types, written)]
        for number, provider in enumerate(self.providers):
            spans, kinds = provided(provider, data, rows, texts)
            named = np.array([self.names.index(name) for name in provider.types], np.int64)[kinds]
            rank = np.full(len(kinds), len(self.rules) + number)
            parts.append(
                (spans.owners, spans.starts, spans.ends, rank, named, np.zeros(len(kinds), np.bool_))
            )
        return _merged(data, rows, parts)

    def _by_rules(
        self, data: npt.NDArray[np.uint8], rows: I64
    ) -> tuple[I64, I64, I64, I64, npt.NDArray[np.bool_]]:
        """Return the matches of the built-in rules: (starts, ends, rule, type, whether it is a placeholder)."""
        wanted = np.zeros(len(KINDS), np.bool_)
        wanted[[rule.kind for _, rule in self.rules]] = True
        looks = shapes()
        while True:
            found = np.empty((self._size[0], 5), np.int64)
            count = candidates(data, rows, wanted, looks, found)
            if count <= len(found):
                break
            self._size[0] = 2 * count
        found = found[:count]
        windows = found[:, 2], found[:, 3]
        room = int((windows[1] - windows[0]).sum())
        seen, origin = np.empty(room, np.uint8), np.empty(room + count, np.int64)
        bounds = np.zeros(count + 1, np.int64)
        skeletons(
            data,
            np.ascontiguousarray(windows[0]),
            np.ascontiguousarray(windows[1]),
            looks,
            seen,
            origin,
            bounds,
        )
        hits = match(
            seen[: bounds[-1]], bounds, found, tuple((n, rule) for n, (_, rule) in enumerate(self.rules))
        )
        starts, ends = origin[hits.start + hits.candidate], origin[hits.end + hits.candidate]
        right = (hits.reach < 0) | (hits.reach >= ends)
        ends = np.where(hits.reach < 0, ends, hits.reach)[right]
        kinds = np.array([kind for kind, _ in self.rules], np.int64)[hits.rule[right]]
        is_written = np.array([rule.kind == NAMED for _, rule in self.rules])[hits.rule[right]]
        return starts[right], ends, hits.rule[right], kinds, is_written


def _of_placeholder(name: str) -> Rule:
    inner = placeholder(name)[1:-1]
    return Rule(name, NAMED, rf"^(?P<x>\[{inner}\])")


def _merged(data: npt.NDArray[np.uint8], rows: I64, parts: Sequence[tuple[np.ndarray, ...]]) -> Found:
    """Join stretches that overlap."""
    owner, starts, ends, ranks, types, written = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    order = np.lexsort((ends, starts))
    owner, starts, ends = owner[order], starts[order], ends[order]
    ranks, types, written = ranks[order], types[order], written[order]
    reached = np.maximum.accumulate(ends)
    fresh = np.ones(len(starts), np.bool_)
    fresh[1:] = starts[1:] >= reached[:-1]
    group = np.cumsum(fresh) - 1
    first = np.flatnonzero(fresh)
    # The longest of each group comes first.
    best = np.lexsort((ranks, starts - ends, group))[first] if len(first) else first
    count = np.bincount(owner[first], minlength=len(rows) - 1)
    bounds = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    last = np.append(first[1:], len(starts))[: len(first)] - 1
    spans = Spans(data, rows, starts[first], reached[last], bounds)
    alone = last == first
    return Found(spans, types[best], written[best] & (alone | (starts[best] == starts[first])))
