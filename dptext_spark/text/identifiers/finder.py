"""Find the identifiers of a batch: windows by their anchors, patterns on the windows, and what providers add.

Stretches that overlap become one, from the first start to the last end, of the type of the longest among them; of equally
long ones the built-in rule's counts, in the order of :data:`~dptext_spark.text.identifiers.rules.RULES`, before a provider's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8, Bools, bounds_of
from dptext_spark.text.chunks import Spans
from dptext_spark.text.identifiers.candidates import END, KIND, START, candidates
from dptext_spark.text.identifiers.normalize import DAY, KINDS, NAMED, reaches, shapes, skeletons
from dptext_spark.text.identifiers.provider import Provided, Provider, provided
from dptext_spark.text.identifiers.rules import (
    REACHES,
    RULES,
    WRITTEN,
    Rule,
    match,
    month_shapes,
    written_dates,
)
from dptext_spark.text.identifiers.types import TYPES, Identifiers, placeholder

PART_BYTES = 1 << 20  # of windows that are looked at together


class Found(NamedTuple):
    """The identifiers of a batch.

    Attributes:
        spans: where they stand.
        types: int64[n], positions in :attr:`Finder.names`.
        written: bool[n], whether a placeholder stands there already; it stays as it is.
        kept: bool[n], whether it stays as it stands, in clear.
    """

    spans: Spans
    types: I64
    written: Bools
    kept: Bools


@dataclass(frozen=True, eq=False)
class Finder:
    """Finds identifiers.

    Attributes:
        identifiers: which types are looked for.
        providers: who adds spans to them.
        searches: the policy's own for names, which yield to what is kept; of equal stretches the first's counts.
        room: for how many candidates, as batches before had them; finders that differ in providers only may share it.
    """

    identifiers: Identifiers
    providers: tuple[Provider, ...] = ()
    searches: tuple[Provider, ...] = ()
    room: list[int] = field(default_factory=lambda: [1024], repr=False)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The types, the built-in ones first."""
        added = (name for provider in (*self.providers, *self.searches) for name in provider.types)
        return tuple(dict.fromkeys([*TYPES, *added]))

    @cached_property
    def rules(self) -> tuple[tuple[int, Rule], ...]:
        """The rules of the types that are looked for, with the number of the type; placeholders are found by name."""
        wanted = set(self.identifiers.wanted())
        languages = self.identifiers.languages
        all_rules = (*RULES, written_dates(languages)) if languages else RULES
        rules = [(TYPES.index(rule.name), rule) for rule in all_rules if rule.name in wanted]
        names = [*self.identifiers.wanted(), *self.names[len(TYPES) :]]
        rules += [(self.names.index(name), _of_placeholder(name)) for name in names]
        return tuple(rules)

    def find(self, data: U8, rows: I64, texts: pa.Array) -> Found:
        """Find the identifiers of a batch.

        Args:
            data: uint8[...], the bytes of the texts, padded.
            rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
            texts: the same texts as Arrow strings, which providers take.
        """
        starts, ends, ranks, types, written = self._by_rules(data, rows)
        owner = np.searchsorted(rows, starts, side="right") - 1
        clear = np.zeros(len(starts), np.bool_)
        parts: list[tuple[np.ndarray, ...]] = [(owner, starts, ends, ranks, types, written, clear)]
        found_by = [provided(one, n, data, rows, texts) for n, one in enumerate(self.providers)]
        parts += [self._typed(one, n, found_by[n]) for n, one in enumerate(self.providers)]
        known = len(self.providers)
        searched = [
            self._typed(one, known + n, provided(one, known + n, data, rows, texts))
            for n, one in enumerate(self.searches)
        ]
        for one in found_by if searched else ():
            begins, stops = _wholes(one)
            searched = [_of(part, ~_within(begins, stops, part)) for part in searched]
        if any(part[-1].any() for part in parts):
            # What is kept counts where nothing else was found, and before the policy's own searches.
            found = _merged(data, rows, [_of(part, ~part[-1]) for part in parts])
            parts = [_of(part, ~part[-1] | _apart(found, part)) for part in parts]
            if searched:
                kept = _merged(data, rows, [_of(part, part[-1]) for part in parts])
                searched = [_of(part, _apart(kept, part)) for part in searched]
        return _merged(data, rows, [*parts, *searched])

    def _typed(self, provider: Provider, number: int, found: Provided) -> tuple[np.ndarray, ...]:
        """Return what a provider found: (text, start, end, rank, type, whether a placeholder, whether kept) of each."""
        spans, kinds, kept, _ = found
        named = np.array([self.names.index(name) for name in provider.types], np.int64)[kinds]
        rank = np.full(len(kinds), len(self.rules) + number)
        return spans.owners, spans.starts, spans.ends, rank, named, np.zeros(len(kinds), np.bool_), kept

    def _by_rules(self, data: U8, rows: I64) -> tuple[I64, I64, I64, I64, Bools]:
        """Return the matches of the built-in rules: (starts, ends, rule, type, whether it is a placeholder)."""
        wanted = np.zeros(len(KINDS), np.bool_)
        wanted[[rule.kind for _, rule in self.rules]] = True
        looks = shapes()
        while True:
            found = np.empty((self.room[0], 5), np.int64)
            count = candidates(data, rows, wanted, looks, found)
            if count <= len(found):
                break
            self.room[0] = 2 * count
        found = found[:count]
        # In parts, so that what is held at a time does not depend on how much stands in a batch.
        size = np.cumsum(found[:, END] - found[:, START])
        cuts = np.searchsorted(size, np.arange(PART_BYTES, size[-1] if count else 0, PART_BYTES))
        edges = np.concatenate([[0], cuts, [count]])
        parts = [part for a, b in pairwise(edges) for part in self._matched(data, found[a:b], looks)]
        starts, ends, rule, reach = (np.concatenate(column) for column in zip(*parts, strict=True))
        web = np.flatnonzero(np.array([rule.check == REACHES for _, rule in self.rules])[rule])
        if len(web):
            order = np.argsort(starts[web], kind="stable")
            reach[web] = reaches(data, starts[web], ends[web], reach[web], order, looks)
        right = (reach < 0) | (reach >= ends)
        ends = np.where(reach < 0, ends, reach)[right]
        rule = rule[right]
        kinds = np.array([kind for kind, _ in self.rules], np.int64)[rule]
        is_written = np.array([rule.kind == NAMED for _, rule in self.rules])[rule]
        return starts[right], ends, rule, kinds, is_written

    def _matched(self, data: U8, found: I64, looks: U8) -> list[tuple[I64, I64, I64, I64]]:
        """Try the rules on some candidates: (starts, ends, rule, reach) of what they match, -1 where nothing is to be reached."""
        rules = tuple((n, rule) for n, (_, rule) in enumerate(self.rules) if rule.check != WRITTEN)
        parts = [_tried(data, found, rules, looks)]
        if self.identifiers.languages:
            written = tuple((n, rule) for n, (_, rule) in enumerate(self.rules) if rule.check == WRITTEN)
            parts.append(_tried(data, found[found[:, KIND] == DAY], written, month_shapes()))
        return parts


def _tried(data: U8, found: I64, rules: tuple[tuple[int, Rule], ...], looks: U8) -> tuple[I64, I64, I64, I64]:
    """Try rules on the skeletons of candidates."""
    begins, stops = (np.ascontiguousarray(found[:, column]) for column in (START, END))
    room = int((stops - begins).sum())
    seen, origin = np.empty(room, np.uint8), np.empty(room + len(found), np.int64)
    bounds = np.zeros(len(found) + 1, np.int64)
    skeletons(data, begins, stops, looks, seen, origin, bounds)
    hits = match(seen[: bounds[-1]], bounds, found, rules)
    starts, ends = origin[hits.start + hits.candidate], origin[hits.end + hits.candidate]
    return starts, ends, hits.rule, hits.reach


def _of_placeholder(name: str) -> Rule:
    inner = placeholder(name)[1:-1]
    return Rule(name, NAMED, rf"^(?P<x>\[{inner}\])")


def _of(part: tuple[np.ndarray, ...], some: Bools) -> tuple[np.ndarray, ...]:
    return tuple(column[some] for column in part)


def _wholes(found: Provided) -> tuple[I64, I64]:
    """Return where the names begin and end whose parts a provider found, int64[n] each, ascending."""
    part = np.flatnonzero(found.wholes >= 0)
    change = np.diff(found.wholes[part]) != 0
    first = part[np.append(True, change)[: len(part)]]
    last = part[np.append(change, True)[: len(part)]]
    return found.spans.starts[first], found.spans.ends[last]


def _within(begins: I64, stops: I64, part: tuple[np.ndarray, ...]) -> Bools:
    """Return which stretches lie within one of begins[i]:stops[i], which are ascending and apart."""
    _, starts, ends, *_ = part
    place = np.searchsorted(begins, starts, side="right") - 1
    return np.asarray((place >= 0) & (ends <= np.append(stops, 0)[place]))


def _apart(found: Found, part: tuple[np.ndarray, ...]) -> Bools:
    """Return which stretches overlap nothing that was found."""
    _, starts, ends, *_ = part
    reached = np.append(0, found.spans.ends)[np.searchsorted(found.spans.starts, ends)]
    return np.asarray(reached <= starts)


def _merged(data: U8, rows: I64, parts: Sequence[tuple[np.ndarray, ...]]) -> Found:
    """Join stretches that overlap."""
    owner, starts, ends, ranks, types, written, kept = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    if not (starts[1:] > starts[:-1]).all():
        order = np.lexsort((ends, starts))
        owner, starts, ends = owner[order], starts[order], ends[order]
        ranks, types, written, kept = ranks[order], types[order], written[order], kept[order]
    reached = np.maximum.accumulate(ends)
    fresh = np.ones(len(starts), np.bool_)
    fresh[1:] = starts[1:] >= reached[:-1]
    if fresh.all():
        return Found(Spans(data, rows, starts, ends, bounds_of(owner, len(rows) - 1)), types, written, kept)
    group = np.cumsum(fresh) - 1
    first = np.flatnonzero(fresh)
    # The longest of each group comes first.
    best = np.lexsort((ranks, starts - ends, group))[first] if len(first) else first
    bounds = bounds_of(owner[first], len(rows) - 1)
    last = np.append(first[1:], len(starts))[: len(first)] - 1
    spans = Spans(data, rows, starts[first], reached[last], bounds)
    alone = last == first
    # What is kept overlaps only its like here.
    return Found(spans, types[best], written[best] & (alone | (starts[best] == starts[first])), kept[best])
