"""Find the identifiers of a batch: anchors, windows around them, patterns on the windows, and spans of providers.

Overlapping stretches become one, from the first start to the last end. It has the type of the longest among them. Of equally
long ones a built-in rule's type counts before a provider's, in the order of :data:`~dptext_spark.text.identifiers.rules.RULES`.

A pass over the bytes of a batch stops at few characters and looks around there. An @, a colon, a dot between letters, a digit or
a bracket is an *anchor*. Around it lies a *window*, and the patterns of :mod:`~dptext_spark.text.identifiers.rules` decide about
the window. Windows are bounded, or end where those of the same kind begin. So any text takes time in proportion to its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8, Bools, bounds_of
from dptext_spark.lexicon.characters import decode
from dptext_spark.runtime.jit import Int, compiled, inlined, load64, trailing_zeros
from dptext_spark.text.chunks import Spans
from dptext_spark.text.identifiers.provider import Provider, ProviderSpans, provided
from dptext_spark.text.identifiers.rules import (
    REACHES,
    RULES,
    WRITTEN,
    Rule,
    match,
    month_shapes,
    written_dates,
)
from dptext_spark.text.identifiers.skeletons import (
    ACCOUNT,
    ADDRESS,
    COLONS,
    DAY,
    FOREIGN,
    HANDLE,
    HOST,
    IN_LINE,
    KINDS,
    NAMED,
    NOTHING,
    NUMBER,
    ONE_BREAK,
    SCHEME,
    TWO_BREAKS,
    UNSPACED,
    backward,
    colons,
    context_of,
    ends_in_label,
    ends_sentence,
    figures,
    forward,
    in_name,
    is_digit,
    is_letter,
    is_word,
    look_back,
    reaches,
    seen_after,
    seen_before,
    shapes,
    skeletons,
)
from dptext_spark.text.policy import TYPES, Identifiers, placeholder

# Columns of a candidate.
KIND, ROW, START, END, REACH = range(5)
# Characters of a window at most: before an @, of a domain, a user name, a scheme's end and what follows it, an account, an IPv6
# address, before a day's figures and behind their beginning.
LOCAL, DOMAIN, USER, HEAD, ACCOUNT_SIZE, COLONS_SIZE, BEFORE_DAY, NEAR_DAY = np.array(
    [80, 260, 64, 8, 72, 48, 16, 56]
)
AREA = 6  # digits of an area or a country at most
_OPEN, _PLUS = np.array([40, 43])
_DASH, _DOT, _SLASH, _COLON, _AT, _CLOSE, _LOW = 45, 46, 47, 58, 64, 41, 95
_COMMA, _QUESTION, _NUMBER_SIGN = 44, 63, 35
_ONES = np.uint64(0x0101010101010101)
_TOP = np.uint64(0x8080808080808080)
_FROM, _TO = np.uint64(0x52) * _ONES, np.uint64(0x3F) * _ONES  # from "." to "@"
_BRACKET = np.uint64(0x5B) * _ONES


@inlined
def _anchors(word: Int) -> Int:
    """Return bit 7 of each byte of `word` that may be an anchor: `./0123456789:;<=>?@[`, or not ASCII."""
    low = word & ~_TOP
    other = word ^ _BRACKET
    bracket = (other - _ONES) & ~other & _TOP
    return (((low + _FROM) & ~(low + _TO)) | word | bracket) & _TOP


@compiled
def _note(found: Any, n: Int, kind: Int, row: Int, start: Int, end: Int, reach: Int) -> Int:
    """Note a candidate where there is room; return how many there are."""
    if n < found.shape[0]:
        found[n, KIND], found[n, ROW] = kind, row
        found[n, START], found[n, END], found[n, REACH] = start, end, reach
    return n + 1


@compiled
def _at(
    data: Any, i: Int, step: Int, start: Int, end: Int, row: Int, wanted: Any, shapes: Any, found: Any, n: Int
) -> Int:
    """Look around an @ at data[i:i + step]."""
    begin = backward(data, i, start, ADDRESS, LOCAL, ONE_BREAK, shapes)
    if begin < i and wanted[ADDRESS]:
        stop = forward(data, i + step, end, HOST, DOMAIN, TWO_BREAKS, shapes)
        if stop > i + step:
            n = _note(found, n, ADDRESS, row, begin, context_of(data, stop, end, shapes), stop)
    before = seen_before(data, i, start, shapes)
    if wanted[HANDLE] and not is_word(before) and before != _DOT:
        stop = forward(data, i + step, end, HANDLE, USER, IN_LINE, shapes)
        if stop > i + step:
            n = _note(found, n, HANDLE, row, i, context_of(data, stop, end, shapes), stop)
    return n


@compiled
def _opened(data: Any, i: Int, start: Int, mark: Int, shapes: Any) -> Int:
    """Return the beginning of a mark that ends at i; i if there is none."""
    at = i
    while at > start:
        shape, length = look_back(data, at, start, shapes)
        at -= length
        if shape == mark:
            return at
        if shape != NOTHING:
            break
    return i


@compiled
def _digits(
    data: Any, i: Int, start: Int, end: Int, row: Int, wanted: Any, shapes: Any, found: Any, n: Int
) -> tuple[Int, Int]:
    """Look around a run of digits; return (number of candidates, end of the run)."""
    run, stop, digits, first, dots = figures(data, i, end, shapes)
    before = seen_before(data, i, start, shapes)
    if wanted[DAY] and first <= 4:
        begin = backward(data, i, start, DAY, BEFORE_DAY, IN_LINE, shapes)
        last = forward(data, i, end, DAY, NEAR_DAY, IN_LINE, shapes)
        n = _note(found, n, DAY, row, begin, last, i)
    if is_letter(before):
        if wanted[ACCOUNT]:
            begin, letters = i, 0
            while begin > start and letters < 3:
                shape, length = look_back(data, begin, start, shapes)
                if not is_letter(shape) and shape != NOTHING:
                    break
                letters += shape != NOTHING
                begin -= length
            if letters == 2 and not is_word(seen_before(data, begin, start, shapes)):
                last = forward(data, begin, end, ACCOUNT, ACCOUNT_SIZE, TWO_BREAKS, shapes)
                n = _note(found, n, ACCOUNT, row, begin, context_of(data, last, end, shapes), last)
        return n, run
    if not wanted[NUMBER] or (digits < 7 and (dots < 3 or digits < 4)) or before == _LOW:
        return n, run
    begin = i
    if before == _DOT or before == _COMMA:  # a decimal part, or a group of thousands
        at = i
        while at > start:
            shape, length = look_back(data, at, start, shapes)
            at -= length
            if shape == before:
                break
        if is_digit(seen_before(data, at, start, shapes)):
            return n, run
    begin = _opened(data, i, start, _PLUS, shapes)
    # Else the bracket is around more than the digits of an area.
    if stop > run and first <= AREA and seen_after(data, run, end, shapes) == _CLOSE:
        begin = _opened(data, begin, start, _OPEN, shapes)
    return _note(found, n, NUMBER, row, begin, context_of(data, stop, end, shapes), run), run


@compiled
def candidates(data: Any, rows: Any, wanted: Any, shapes: Any, found: Any) -> Int:
    """Find the windows of a batch; return how many: if it is above n, only the first n were noted.

    Args:
        data: uint8[...], the bytes, padded by 8 or more.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
        wanted: bool[9], the kinds to look for.
        shapes: of :func:`~dptext_spark.text.identifiers.skeletons.shapes`.
        found: int64[n, 5], filled with (kind, row, start, end, reach). A window has `CONTEXT` characters behind its
            subject. `reach` is where digits end, and where an address on the web must have ended.
    """
    n = np.int64(0)
    for row in range(rows.shape[0] - 1):
        start, end = rows[row], rows[row + 1]
        i = start
        host_done, colons_done = start, start
        while i < end:
            hits = _anchors(load64(data, i))
            if hits == 0:
                i += 8
                continue
            i += trailing_zeros(hits) >> 3
            if i >= end:
                break
            first = data[i]
            step = np.int64(1)
            shape = np.int64(first)
            if first >= 128:
                code, length = decode(data, i, end)
                step = np.int64(length)
                if code < 0:
                    i += 1
                    continue
                shape = np.int64(shapes[code])
            if is_digit(shape):
                n, i = _digits(data, i, start, end, row, wanted, shapes, found, n)
                continue
            if shape == _AT:
                n = _at(data, i, step, start, end, row, wanted, shapes, found, n)
            elif shape == _DOT and wanted[HOST] and i >= host_done and data[i + step] > _DASH:
                last, first = seen_before(data, i, start, shapes), seen_after(data, i + step, end, shapes)
                # Between two letters that are not ASCII a dot ends a sentence: no domain looked for is like that on both sides.
                foreign = (last == FOREIGN or last == UNSPACED) and (first == FOREIGN or first == UNSPACED)
                stopped = ends_sentence(data, i, step, start, end, shapes)
                if in_name(last) and in_name(first) and not foreign and not stopped:
                    begin = backward(data, i, start, HOST, DOMAIN, IN_LINE, shapes)
                    host_done = forward(data, i, end, HOST, DOMAIN, IN_LINE, shapes)
                    if ends_in_label(data, begin, host_done, shapes):
                        after = seen_after(data, host_done, end, shapes)
                        goes_on = (
                            after == _SLASH or after == _COLON or after == _QUESTION or after == _NUMBER_SIGN
                        )
                        limit = end if goes_on else host_done
                        n = _note(found, n, HOST, row, begin, context_of(data, host_done, end, shapes), limit)
            elif shape == _COLON:
                following = seen_after(data, i + step, end, shapes)
                if following == _SLASH:
                    if wanted[SCHEME]:
                        begin = backward(data, i, start, SCHEME, USER, IN_LINE, shapes)
                        if begin < i:
                            head = forward(data, i, end, DAY, HEAD, IN_LINE, shapes)
                            n = _note(found, n, SCHEME, row, begin, head, end)
                elif wanted[COLONS] and i >= colons_done and (following == _COLON or is_word(following)):
                    begin = backward(data, i, start, COLONS, COLONS_SIZE, IN_LINE, shapes)
                    colons_done = forward(data, i, end, COLONS, COLONS_SIZE, IN_LINE, shapes)
                    before = seen_before(data, begin, start, shapes)
                    if colons(data, begin, colons_done) > 1 and not is_word(before):
                        last = context_of(data, colons_done, end, shapes)
                        n = _note(found, n, COLONS, row, begin, last, colons_done)
            elif shape == 91 and wanted[NAMED] and 65 <= data[i + 1] <= 90:
                stop = min(end, i + 40)
                n = _note(found, n, NAMED, row, i, stop, stop)
            i += step
    return n


PART_BYTES = 1 << 20  # of windows that are looked at together


class FoundSpans(NamedTuple):
    """The identifiers of a batch.

    Attributes:
        types: int64[n], positions in :attr:`Finder.names`.
        written: bool[n], the placeholders of the input, which stay unchanged.
        kept: bool[n], those that stay in clear.
    """

    spans: Spans
    types: I64
    written: Bools
    kept: Bools


@dataclass(frozen=True, eq=False)
class Finder:
    """Finds identifiers.

    Attributes:
        searches: the policy's own for names. Kept stretches win over theirs; of equal stretches the first
            search's counts.
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
        """The rules of the wanted types, with the number of the type. Placeholders are found by name."""
        types = set(self.identifiers.wanted())
        languages = self.identifiers.languages
        all_rules = (*RULES, written_dates(languages)) if languages else RULES
        rules = [(TYPES.index(rule.name), rule) for rule in all_rules if rule.name in types]
        names = [*self.identifiers.wanted(), *self.names[len(TYPES) :]]
        rules += [(self.names.index(name), _of_placeholder(name)) for name in names]
        return tuple(rules)

    def find(self, data: U8, rows: I64, texts: pa.Array) -> FoundSpans:
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
        found_by = [provided(provider, n, data, rows, texts) for n, provider in enumerate(self.providers)]
        parts += [self._typed(provider, n, found_by[n]) for n, provider in enumerate(self.providers)]
        known = len(self.providers)
        searched = [
            self._typed(provider, known + n, provided(provider, known + n, data, rows, texts))
            for n, provider in enumerate(self.searches)
        ]
        for provider_spans in found_by if searched else ():
            begins, stops = _wholes(provider_spans)
            searched = [_subset(part, ~_lie_within(begins, stops, part)) for part in searched]
        if any(part[-1].any() for part in parts):
            # A kept span counts only if nothing else was found there. It comes before the policy's own searches.
            merged = _merged(data, rows, [_subset(part, ~part[-1]) for part in parts])
            parts = [_subset(part, ~part[-1] | _apart(merged, part)) for part in parts]
            if searched:
                kept_spans = _merged(data, rows, [_subset(part, part[-1]) for part in parts])
                searched = [_subset(part, _apart(kept_spans, part)) for part in searched]
        return _merged(data, rows, [*parts, *searched])

    def _typed(self, provider: Provider, number: int, found: ProviderSpans) -> tuple[np.ndarray, ...]:
        """Return a provider's spans: (text, start, end, rank, type, whether a placeholder, whether kept) of each."""
        spans, kinds, kept_marks, _ = found
        named = np.array([self.names.index(name) for name in provider.types], np.int64)[kinds]
        rank = np.full(len(kinds), len(self.rules) + number)
        return spans.owners, spans.starts, spans.ends, rank, named, np.zeros(len(kinds), np.bool_), kept_marks

    def _by_rules(self, data: U8, rows: I64) -> tuple[I64, I64, I64, I64, Bools]:
        """Return the matches of the built-in rules: (starts, ends, rule, type, whether it is a placeholder)."""
        looked_for = np.zeros(len(KINDS), np.bool_)
        looked_for[[rule.kind for _, rule in self.rules]] = True
        looks = shapes()
        while True:
            windows = np.empty((self.room[0], 5), np.int64)
            count = candidates(data, rows, looked_for, looks, windows)
            if count <= len(windows):
                break
            self.room[0] = 2 * count
        windows = windows[:count]
        # In parts, so that memory does not depend on the size of a batch.
        size = np.cumsum(windows[:, END] - windows[:, START])
        cuts = np.searchsorted(size, np.arange(PART_BYTES, size[-1] if count else 0, PART_BYTES))
        edges = np.concatenate([[0], cuts, [count]])
        parts = [part for a, b in pairwise(edges) for part in self._matched(data, windows[a:b], looks)]
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
        """Try the rules on some candidates: (starts, ends, rule, reach) of the matches; reach is -1 if there is none."""
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
    skeleton, origin = np.empty(room, np.uint8), np.empty(room + len(found), np.int64)
    bounds = np.zeros(len(found) + 1, np.int64)
    skeletons(data, begins, stops, looks, skeleton, origin, bounds)
    hits = match(skeleton[: bounds[-1]], bounds, found, rules)
    starts, ends = origin[hits.start + hits.candidate], origin[hits.end + hits.candidate]
    return starts, ends, hits.rule, hits.reach


def _of_placeholder(name: str) -> Rule:
    inner = placeholder(name)[1:-1]
    return Rule(name, NAMED, rf"^(?P<x>\[{inner}\])")


def _subset(part: tuple[np.ndarray, ...], some: Bools) -> tuple[np.ndarray, ...]:
    return tuple(column[some] for column in part)


def _wholes(found: ProviderSpans) -> tuple[I64, I64]:
    """Return the bounds of the names with parts that a provider found, int64[n] each, ascending."""
    part = np.flatnonzero(found.wholes >= 0)
    change = np.diff(found.wholes[part]) != 0
    first = part[np.append(True, change)[: len(part)]]
    last = part[np.append(change, True)[: len(part)]]
    return found.spans.starts[first], found.spans.ends[last]


def _lie_within(begins: I64, stops: I64, part: tuple[np.ndarray, ...]) -> Bools:
    """Return which stretches lie within one of begins[i]:stops[i]; these are ascending and apart."""
    _, starts, ends, *_ = part
    place = np.searchsorted(begins, starts, side="right") - 1
    return np.asarray((place >= 0) & (ends <= np.append(stops, 0)[place]))


def _apart(found: FoundSpans, part: tuple[np.ndarray, ...]) -> Bools:
    """Return the stretches that overlap no earlier find."""
    _, starts, ends, *_ = part
    reached = np.append(0, found.spans.ends)[np.searchsorted(found.spans.starts, ends)]
    return np.asarray(reached <= starts)


def _merged(data: U8, rows: I64, parts: Sequence[tuple[np.ndarray, ...]]) -> FoundSpans:
    """Join stretches that overlap."""
    owner, starts, ends, ranks, types, written, kept_marks = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    if not (starts[1:] > starts[:-1]).all():
        order = np.lexsort((ends, starts))
        owner, starts, ends = owner[order], starts[order], ends[order]
        ranks, types, written, kept_marks = ranks[order], types[order], written[order], kept_marks[order]
    reached = np.maximum.accumulate(ends)
    fresh = np.ones(len(starts), np.bool_)
    fresh[1:] = starts[1:] >= reached[:-1]
    if fresh.all():
        return FoundSpans(
            Spans(data, rows, starts, ends, bounds_of(owner, len(rows) - 1)), types, written, kept_marks
        )
    group = np.cumsum(fresh) - 1
    first = np.flatnonzero(fresh)
    # The longest of each group comes first.
    best = np.lexsort((ranks, starts - ends, group))[first] if len(first) else first
    bounds = bounds_of(owner[first], len(rows) - 1)
    last = np.append(first[1:], len(starts))[: len(first)] - 1
    spans = Spans(data, rows, starts[first], reached[last], bounds)
    alone = last == first
    # What is kept overlaps only its like here.
    return FoundSpans(
        spans, types[best], written[best] & (alone | (starts[best] == starts[first])), kept_marks[best]
    )
