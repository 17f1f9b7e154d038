"""Labelled names of a source: how many the search for names finds, and how many stand in the table as they were.

A word is labelled where it overlaps a labelled name, and found where it overlaps a name that the search finds; words are cut
without the policy's identifiers, and numbers are none. A labelled word counts as found whatever kind the search takes it for,
since it is replaced then. Of what the search takes for a kind, precision is the share with a label of that kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import I64, U8, U64, Bools, bounds_of
from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.results import AuditResult, Group, Shown
from dptext_spark.audit.table.annotations import GROUPS, Annotations
from dptext_spark.audit.table.metrics import stretches_in
from dptext_spark.config.figures import LABELLED as MEANING
from dptext_spark.encoder.classifier_names import searches_of
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey, identify
from dptext_spark.text.engine import Engine
from dptext_spark.text.identifiers.finder import Finder
from dptext_spark.text.identifiers.types import NO_IDENTIFIERS
from dptext_spark.text.names.public_names import PARTS_OF_PERSONS, PARTS_OF_PLACES, PublicNames
from dptext_spark.text.names.search import NAME_TYPES, NameSearch
from dptext_spark.text.names.sources import LIST_TYPES
from dptext_spark.text.pair_tokens import NUMBER, Words, words_of

SCOPE = "labelled text"
LABEL_COUNTS = (
    "words", "words_found", "words_compared", "words_kept", "mentions", "mentions_found", "mentions_compared", "mentions_kept",
)  # fmt: skip
# Of what the search takes for a kind: words; those labelled as that kind; those labelled at all.
FOUND_COUNTS = ("taken", "right", "labelled")


@dataclass(frozen=True, eq=False)
class Labels:
    """Labelled texts as workers have them: hashes in place of names and texts, and where the labels stand.

    Attributes:
        ids: uint64[n, 2], keyed hashes, ascending.
        by_row: whether they are of the key of a row and the number of its column; else of the text without its spaces.
        texts: int64[n], which text of the file each is.
        bounds: int64[texts + 1], as `starts`, `ends`, `labels` those of :class:`Annotations`.
        starts: int64[m].
        ends: int64[m].
        labels: int64[m].
        kinds: how many kinds there are.
        groups: int64[kinds].
    """

    ids: U64
    by_row: bool
    texts: I64
    bounds: I64
    starts: I64
    ends: I64
    labels: I64
    kinds: int
    groups: I64

    @classmethod
    def of(cls, given: Annotations, columns: tuple[str, ...], key: RunKey) -> Labels:
        """Hash what names the texts."""
        names = [
            name if column is None else _named(columns.index(column), name)
            for name, column in zip(given.names, given.columns, strict=True)
        ]
        ids = identify(pa.array(names, pa.large_string()), key, SCOPE)
        order = np.lexsort((ids[:, 1], ids[:, 0]))
        return cls(
            ids[order], given.by_row, order.astype(np.int64), given.bounds, given.starts, given.ends, given.labels,
            len(given.kinds), given.groups,
        )  # fmt: skip

    def texts_of(self, ids: U64) -> I64:
        """Return which text each row is, int64[rows]; -1 where it is none."""
        # The first halves are unlike enough to look by; the second halves decide.
        place = np.minimum(np.searchsorted(self.ids[:, 0], ids[:, 0]), len(self.ids) - 1)
        return np.where((self.ids[place] == ids).all(axis=1), self.texts[place], -1)


class LabelledCounts(NamedTuple):
    """What was counted in a batch.

    Attributes:
        seen: int64[n], the texts of the file that stand there; a text may stand in several rows.
        outside: int64[k], those of which a label stands outside.
        by_label: int64[kinds, len(LABEL_COUNTS)].
        by_type: int64[len(NAME_TYPES), len(FOUND_COUNTS)].
    """

    seen: I64
    outside: I64
    by_label: I64
    by_type: I64


def key_ids(keys: pa.Array, column: int, key: RunKey) -> U64:
    """Return the hashes of rows by their keys as text, uint64[rows, 2]."""
    begin, joiner = (pa.scalar(one, pa.large_string()) for one in (_named(column, ""), ""))
    names = pc.binary_join_element_wise(begin, keys.cast(pa.large_string()), joiner)
    return identify(names, key, SCOPE)


def text_ids(data: U8, rows: I64, key: RunKey) -> U64:
    """Return the hashes of texts by what they say without spaces, uint64[rows, 2].

    Args:
        data: uint8[...], the bytes of the texts, padded.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
        key: of the hashes.
    """
    kept = ~_spaces(data)[: rows[-1]]
    ends = np.append(0, np.cumsum(kept))[rows].astype(np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data[: rows[-1]][kept].tobytes())]
    return identify(pa.Array.from_buffers(pa.large_binary(), len(rows) - 1, buffers), key, SCOPE)


def _named(column: int, row: str) -> str:
    return f"{column}\x1f{row}"


def _spaces(data: U8) -> Bools:
    """Return which bytes are of a space, as `str.split` has them: bool[n]; the last 32 are padding."""
    one, two = data[:-2], data[1:-1]
    three = data[2:]
    found = np.zeros(len(data), np.bool_)
    found[:-2] = ((one >= 0x09) & (one <= 0x0D)) | ((one >= 0x1C) & (one <= 0x20))
    double = (one == 0xC2) & ((two == 0x85) | (two == 0xA0))
    general = (three >= 0x80) & ((three <= 0x8A) | np.isin(three, (0xA8, 0xA9, 0xAF)))
    triple = (one == 0xE1) & (two == 0x9A) & (three == 0x80)
    triple |= (one == 0xE2) & (((two == 0x80) & general) | ((two == 0x81) & (three == 0x9F)))
    triple |= (one == 0xE3) & (two == 0x80) & (three == 0x80)
    for ahead, which in ((0, double | triple), (1, double | triple), (2, triple)):
        found[ahead : len(data) - 2 + ahead] |= which
    return found


# Of which kind what is found is: entries of lists that are masked, and what providers find, may be of none.
OF_NO_KIND = len(NAME_TYPES)
KIND_OF_TYPE = {name: place for place, name in enumerate(NAME_TYPES)}
KIND_OF_TYPE |= {f"{LIST_TYPES[0]}:{part}": 0 for part in PARTS_OF_PERSONS}
KIND_OF_TYPE |= {f"{LIST_TYPES[0]}:{part}": 1 for part in PARTS_OF_PLACES}


def name_finder(privatizer: Privatizer, given: bool) -> Finder:
    """Return what finds names: what the run has, all of its kinds masked; public lists and rules where it looks for none.

    Args:
        privatizer: the model; with the lists of the run, where it has any, for the rows that are looked at.
        given: whether it is of settings that were given: then their search, lists and providers count.
    """
    names = privatizer.policy.names
    providers = privatizer.engine.providers if given else ()
    search = NameSearch(lists=not providers)
    if given and names:
        search = replace(names, person="mask", location="mask")
    by_lists = (PublicNames(search),) if search.lists else ()
    classifier = privatizer.classifier if search.classifies else None
    searches = (*by_lists, *searches_of(search, classifier, privatizer.engine.table))
    return Finder(NO_IDENTIFIERS, providers, searches)


def plain_engine(engine: Engine) -> Engine:
    """Return an engine that cuts words as another, and looks for no identifiers and names."""
    policy = replace(engine.policy, identifiers=NO_IDENTIFIERS, names=NameSearch())
    return Engine(engine.table, policy)


def labelled_counts(
    labels: Labels,
    found: I64,
    texts: pa.Array,
    data: U8,
    rows: I64,
    pair: tuple[Words, Bools, Bools],
    finder: Finder,
    engine: Engine,
) -> LabelledCounts:
    """Count the labelled names of texts.

    Args:
        labels: of the file.
        found: int64[rows], which text of the file each is; -1 of none.
        texts: string [rows], of the source.
        data: their bytes, padded; and `rows`, where each begins.
        rows: int64[rows + 1].
        pair: (the words of the source, which of them are aligned, which stand in the table as they were).
        finder: of names.
        engine: that cuts words, as :func:`plain_engine` makes it.
    """
    at = np.flatnonzero(found >= 0)
    seen = found[at]
    nothing = np.zeros((labels.kinds, len(LABEL_COUNTS)), np.int64)
    if not len(at):
        return LabelledCounts(seen, seen, nothing, np.zeros((len(NAME_TYPES), len(FOUND_COUNTS)), np.int64))
    sizes = labels.bounds[seen + 1] - labels.bounds[seen]
    first = np.append(0, np.cumsum(sizes))
    which = np.repeat(labels.bounds[seen] - first[:-1], sizes) + np.arange(first[-1])
    row = np.repeat(at, sizes)
    starts, ends, inside = _bytes_of(data, rows, row, labels.starts[which], labels.ends[which], labels.by_row)
    outside = np.unique(found[row[~inside]])
    row, kind, starts, ends = row[inside], labels.labels[which][inside], starts[inside], ends[inside]

    words = words_of(engine, texts, _NO_KEYS)
    begin, end = words.spans.starts, words.spans.ends
    written = words.kind != NUMBER
    compared, kept = stretches_in(pair[0], begin, end, pair[1], pair[2])
    names = finder.find(data, rows, texts)
    type_of = _overlapped(names.spans.starts, names.spans.ends, begin, end)
    types = np.array([KIND_OF_TYPE.get(name, OF_NO_KIND) for name in finder.names], np.int64)
    # What a list keeps was found, but stays.
    kind_of = np.where(names.kept, -1, types[names.types])
    taken = np.where(type_of >= 0, kind_of[type_of] if len(kind_of) else -1, -1)
    mention = _overlapped(starts, ends, begin, end)
    label = np.where(mention >= 0, kind[mention] if len(kind) else -1, -1)
    is_word = written & (mention >= 0)

    by_label = nothing
    flags = np.stack([np.ones(len(begin), np.bool_), taken >= 0, compared, kept], axis=1)[is_word]
    np.add.at(by_label[:, :4], label[is_word], flags.astype(np.int64))
    # Of the words of each labelled name as many are found, compared and kept; the words of a name follow each other.
    of = bounds_of(mention[is_word], len(starts))
    total = np.append(np.zeros((1, 4), np.int64), np.cumsum(flags, axis=0), axis=0)
    held = total[of[1:]] - total[of[:-1]]
    whole = (held == held[:, :1]) & (held[:, :1] > 0)
    np.add.at(by_label[:, 4:], kind, whole.astype(np.int64))

    labelled_text = np.zeros(len(rows) - 1, np.bool_)
    labelled_text[at] = True
    looked = (
        labelled_text[np.repeat(np.arange(len(rows) - 1), np.diff(words.bounds))]
        & written
        & (taken >= 0)
        & (taken < OF_NO_KIND)
    )
    group = np.where(label >= 0, labels.groups[label] if labels.kinds else -1, -1)
    by_type = np.zeros((len(NAME_TYPES), len(FOUND_COUNTS)), np.int64)
    marks = np.stack([np.ones(len(begin), np.bool_), group == taken, group >= 0], axis=1)[looked]
    np.add.at(by_type, taken[looked], marks.astype(np.int64))
    return LabelledCounts(seen, outside, by_label, by_type)


_NO_KEYS = (np.uint64(0), np.uint64(0))  # of hashes that nobody looks at


def _bytes_of(
    data: U8, rows: I64, row: I64, starts: I64, ends: I64, with_spaces: bool
) -> tuple[I64, I64, Bools]:
    """Return where stretches of characters lie in the bytes of texts, and which lie in their texts: int64[n] twice, bool[n].

    Args:
        data: the bytes of the texts, padded.
        rows: where each begins.
        row: int64[n], the text of each stretch.
        starts: int64[n], its first character.
        ends: int64[n], the one behind its last.
        with_spaces: whether spaces are counted.
    """
    counted = (data[: rows[-1]] & 0xC0) != 0x80
    if not with_spaces:
        counted &= ~_spaces(data)[: rows[-1]]
    at = np.flatnonzero(counted)
    before = np.searchsorted(at, rows)
    inside = ends <= before[row + 1] - before[row]
    lead = np.append(np.flatnonzero((data[: rows[-1]] & 0xC0) != 0x80), rows[-1])
    safe = np.where(inside, before[row], 0)
    place = np.append(at, rows[-1])
    begin = place[np.minimum(safe + starts, len(at))]
    last = place[np.minimum(safe + ends - 1, len(at))]
    return begin, lead[np.minimum(np.searchsorted(lead, last, side="right"), len(lead) - 1)], inside


def _overlapped(starts: I64, ends: I64, begin: I64, end: I64) -> I64:
    """Return the first of some stretches, ascending and apart, that each word overlaps, int64[words]; -1 for none."""
    place = np.searchsorted(ends, begin, side="right")
    there = place < len(starts)
    hit = np.zeros(len(begin), np.bool_)
    hit[there] = starts[place[there]] < end[there]
    return np.where(hit, place, -1)


def labelled_figures(texts: int, by_label: I64, by_type: I64, groups: I64) -> list[Metric]:
    """Return the figures that follow from counts: each of `MEANING`.

    Args:
        texts: labelled ones that were found.
        by_label: int64[kinds, len(LABEL_COUNTS)].
        by_type: int64[len(NAME_TYPES), len(FOUND_COUNTS)].
        groups: int64[kinds], the group of each.
    """
    whole = _named_counts(by_label.sum(axis=0))
    taken = dict(zip(FOUND_COUNTS, by_type.sum(axis=0).tolist(), strict=True))
    found: dict[str, float | None] = {
        "annotated_texts": texts,
        "annotated_words": whole["words"],
        **{f"annotated_{name}": value for name, value in _shares(whole).items()},
        "annotated_precision": _share(taken["labelled"], taken["taken"]),
    }
    for place, group in enumerate(GROUPS):
        counts = _named_counts(by_label[groups == place].sum(axis=0))
        found |= {f"annotated_{group}_{name}": value for name, value in _shares(counts).items()}
        if place < len(NAME_TYPES):
            found[f"annotated_{group}_precision"] = _share(int(by_type[place, 1]), int(by_type[place, 0]))
    return [Metric(name, found[name]) for name in MEANING]


def _named_counts(counts: I64) -> dict[str, int]:
    return dict(zip(LABEL_COUNTS, counts.tolist(), strict=True))


def _shares(counts: Mapping[str, int]) -> dict[str, float | None]:
    return {
        "recall": _share(counts["words_found"], counts["words"]),
        "recall_whole": _share(counts["mentions_found"], counts["mentions"]),
        "kept": _share(counts["words_kept"], counts["words_compared"]),
        "kept_whole": _share(counts["mentions_kept"], counts["mentions_compared"]),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True, kw_only=True)
class LabelledNames(AuditResult):
    """What became of labelled names, by the kinds of their file.

    Attributes:
        unit: what the figures are.
        found: of each kind, the share of its words that the search finds.
        found_whole: the share of its names of which every word is found.
        kept: the share of its words that stand in the table as they were.
        kept_whole: the share of its names of which every word does.
        words: how many words of each there are.
    """

    name: str = "labelled names"
    measures: str = "The share of the words of labelled names that the search for names finds, by the kinds of the sample."
    exact: bool = True
    unit: str = "share of the words"
    found: Mapping[str, float]
    found_whole: Mapping[str, float] = field(default_factory=dict)
    kept: Mapping[str, float] = field(default_factory=dict)
    kept_whole: Mapping[str, float] = field(default_factory=dict)
    words: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, kinds: tuple[str, ...], by_label: I64) -> LabelledNames:
        """Return it from counts, int64[kinds, len(LABEL_COUNTS)]."""
        counts = {kind: _named_counts(row) for kind, row in zip(kinds, by_label, strict=True) if row[0]}
        shares = {kind: _shares(one) for kind, one in counts.items()}

        def part(name: str) -> dict[str, float]:
            return {kind: value for kind, one in shares.items() if (value := one[name]) is not None}

        return cls(
            found=part("recall"), found_whole=part("recall_whole"), kept=part("kept"), kept_whole=part("kept_whole"),
            words={kind: float(one["words"]) for kind, one in counts.items()},
        )  # fmt: skip

    def without_names(self) -> None:
        """Return nothing: it is of names."""
        return None

    def shown(self) -> Shown:
        """Show the shares, and of how many words they are."""
        named = (
            ("", self.found, ""),
            ("whole names found", self.found_whole, "The share of the labelled names of which every word is found."),
            ("words that stayed", self.kept, "The share of their words that are in the table as they were."),
            ("whole names that stayed", self.kept_whole, "The share of the names of which every word is in the table as it was."),
        )  # fmt: skip
        groups = [Group(name, figures, self.unit, says) for name, figures, says in named if figures]
        return Shown(groups, singles={f"words: {kind}": number for kind, number in self.words.items()})
