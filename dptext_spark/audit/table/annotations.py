"""A sample of labelled texts, read from a file: where their names stand, and of which kinds they are.

Two forms are read, told apart by the first line that is not blank:

1. CoNLL: a token, a tab and its label a line (`O`, `B-person`, `I-person`), a blank line between texts; what stands behind a
   second tab is left out. A text is found in the table by what it says, whatever spaces stand between its tokens::

       Ada<TAB>B-person
       Lovelace<TAB>I-person
       wrote<TAB>O

2. Spans: a JSON object a line, which names the row by its key, and the column where the audit has several; `start` and `end`
   count characters (code points) from 0, `end` is the first behind the name. A text without names has no spans, and belongs
   there, too::

       {"row": 17, "column": "body", "spans": [{"start": 0, "end": 12, "kind": "person"}]}
       {"row": 18, "column": "body", "spans": []}

An error names lines, never what stands in them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

import numpy as np

from dptext_spark.arrays import I64
from dptext_spark.encoder.classifier_files import LOCATION, OUTSIDE, PERSON, kind_of
from dptext_spark.errors import DataError

FIELD = "annotations"
LARGEST = 64 << 20  # bytes of a file
MOST_KINDS = 64
GROUPS = ("persons", "locations", "others")
_LABEL = re.compile(r"([BI])-([A-Za-z][A-Za-z0-9 _./-]{0,63})")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9 _./-]{0,63}")
_CONLL = "a token, a tab and a label a line: O, B-KIND or I-KIND, such as B-person"
_SPANS = '{"row": KEY, "column": NAME, "spans": [{"start": 0, "end": 3, "kind": "person"}]}'


class Mention(NamedTuple):
    """A labelled name.

    Attributes:
        start: its first token, or its first character.
        end: the one behind its last.
        kind: as the file calls it, in lower case.
    """

    start: int
    end: int
    kind: str


class ConllText(NamedTuple):
    """A text in CoNLL's form.

    Attributes:
        line: where it begins in its file, from 1.
        tokens: at least one.
        tags: of each, such as B-person, I-person and O.
    """

    line: int
    tokens: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def mentions(self) -> list[Mention]:
        """Its names, by tokens. `I-` begins one where none of its kind goes before it."""
        found: list[Mention] = []
        for place, tag in enumerate(self.tags):
            if tag == OUTSIDE:
                continue
            kind = tag[2:].lower()
            if tag[0] == "I" and found and found[-1].end == place and found[-1].kind == kind:
                found[-1] = found[-1]._replace(end=place + 1)
            else:
                found.append(Mention(place, place + 1, kind))
        return found


@dataclass(frozen=True, eq=False)
class Annotations:
    """Labelled texts. They are private.

    Attributes:
        path: of the file.
        by_row: whether a text is named by its row; else by what it says.
        kinds: as the file has them, in lower case, sorted.
        lines: int64[n], where each text begins in the file, from 1.
        names: of each the key of its row as text, or its tokens, joined.
        columns: of each the column that it names; None for the only one, or for any.
        bounds: int64[n + 1], text i has the names bounds[i]:bounds[i + 1].
        starts: int64[m], the first character of each, of the text, or of the text without its spaces.
        ends: int64[m], the one behind its last.
        labels: int64[m], positions in `kinds`.
        others: how many texts stand in the file before, with other labels; those of the first count.
    """

    path: str
    by_row: bool
    kinds: tuple[str, ...]
    lines: I64
    names: tuple[str, ...]
    columns: tuple[str | None, ...]
    bounds: I64
    starts: I64
    ends: I64
    labels: I64
    others: int = 0

    def __len__(self) -> int:
        """How many texts."""
        return len(self.lines)

    @property
    def groups(self) -> I64:
        """The group of each kind, int64[kinds], positions in `GROUPS`."""
        places = {PERSON: 0, LOCATION: 1}
        return np.array([places.get(kind_of(kind) or "", 2) for kind in self.kinds], np.int64)

    @classmethod
    def read(cls, path: str, columns: Sequence[str]) -> Annotations:
        """Read a file of either form.

        Args:
            path: of the file.
            columns: the text columns that an audit compares.

        Raises:
            DataError: it cannot be read, is empty, larger than `LARGEST`, no UTF-8, or a line of it is not valid.
        """
        text = _text_of(path)
        first = next((line.strip() for line in text.split("\n", 1000) if line.strip()), "")
        if first.startswith("{") and first.endswith("}"):
            return cls._of_spans(path, text, columns)
        return cls._of_tokens(path, conll_texts(path, text))

    @classmethod
    def _of_tokens(cls, path: str, texts: Iterator[ConllText]) -> Annotations:
        lines, names, mentions, others = [], [], [], 0
        known: dict[str, list[Mention]] = {}
        for one in texts:
            # Spaces count for nothing: neither those between tokens nor those that a token holds.
            ends = np.cumsum([0, *(len(_without_spaces(token)) for token in one.tokens)])
            name = _without_spaces("".join(one.tokens))
            here = [Mention(int(ends[a]), int(ends[b]), kind) for a, b, kind in one.mentions]
            before = known.setdefault(name, here)
            if before is here:
                lines.append(one.line)
                names.append(name)
                mentions.append(here)
            else:
                others += before != here
        return cls._of(path, False, lines, names, [None] * len(lines), mentions, others)

    @classmethod
    def _of_spans(cls, path: str, text: str, columns: Sequence[str]) -> Annotations:
        lines, names, named, mentions = [], [], [], []
        known: dict[tuple[str, str | None], int] = {}
        for number, line in _lines(text):
            row, column, here = _span_line(path, number, line, columns)
            if (row, column) in known:
                _refuse(path, number, f"the text of line {known[row, column]} again", "each text once")
            known[row, column] = number
            lines.append(number)
            names.append(row)
            named.append(column)
            mentions.append(here)
        return cls._of(path, True, lines, names, named, mentions)

    @classmethod
    def _of(
        cls, path: str, by_row: bool, lines: list[int], names: list[str], columns: list[str | None],
        mentions: list[list[Mention]], others: int = 0,
    ) -> Annotations:  # fmt: skip
        if not lines:
            raise DataError(f"{FIELD}: {path} holds no text; valid: {_CONLL}; or {_SPANS} a line.")
        every = [one for some in mentions for one in some]
        kinds = tuple(sorted({one.kind for one in every}))
        if len(kinds) > MOST_KINDS:
            raise DataError(
                f"{FIELD}: {path} has {len(kinds):,} kinds of names; valid: at most {MOST_KINDS}."
            )
        place = {kind: n for n, kind in enumerate(kinds)}
        starts, ends = (np.array([one[i] for one in every], np.int64) for i in range(2))
        labels = np.array([place[one.kind] for one in every], np.int64)
        bounds = np.cumsum([0, *map(len, mentions)]).astype(np.int64)
        return cls(
            path, by_row, kinds, np.array(lines, np.int64), tuple(names), tuple(columns), bounds, starts, ends,
            labels, others,
        )  # fmt: skip


def conll_texts(path: str, text: str | None = None) -> Iterator[ConllText]:
    """Read texts in CoNLL's form.

    Args:
        path: of the file.
        text: what it holds; None reads it.

    Raises:
        DataError: it cannot be read, or a line of it is not valid.
    """
    tokens: list[str] = []
    tags: list[str] = []
    for number, line in enumerate((_text_of(path) if text is None else text).split("\n"), 1):
        if not line.strip():
            if tokens:
                yield ConllText(number - len(tokens), tuple(tokens), tuple(tags))
            tokens, tags = [], []
            continue
        token, tab, rest = line.partition("\t")
        tag = rest.partition("\t")[0].strip()
        if not tab or not _without_spaces(token):
            _refuse(path, number, f"{'no token' if tab else 'no tab'}", _CONLL)
        if tag != OUTSIDE and _LABEL.fullmatch(tag) is None:
            _refuse(path, number, "a label of another form" if tag else "no label", _CONLL)
        tokens.append(token)
        tags.append(tag)
    if tokens:
        yield ConllText(number - len(tokens) + 1, tuple(tokens), tuple(tags))


def _text_of(path: str) -> str:
    try:
        size = os.stat(path).st_size
        if size > LARGEST:
            raise DataError(
                f"{FIELD}: {path} holds {size:,} bytes; valid: at most {LARGEST:,}, for it is a sample."
            )
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise DataError(f"{FIELD}: {path} cannot be read ({error.strerror}).") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{FIELD}: {path}, line {line:,}: no UTF-8.") from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _span_line(
    path: str, number: int, line: str, columns: Sequence[str]
) -> tuple[str, str | None, list[Mention]]:
    """Read a text with its spans: (the key of its row, its column, its names in their order)."""
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        _refuse(path, number, "no JSON object", _SPANS)
    strange = len(set(value) - {"row", "column", "spans"})
    if strange:
        _refuse(path, number, f"{strange} other fields", _SPANS)
    row, column, spans = value.get("row"), value.get("column"), value.get("spans")
    if isinstance(row, bool) or not isinstance(row, int | str):
        _refuse(path, number, "no row", "row: its key, a whole number or a text")
    if column is None and len(columns) == 1:
        column = columns[0]
    if column not in columns:
        _refuse(path, number, "no column of the audit", f"column: {', '.join(columns)}")
    if not isinstance(spans, list):
        _refuse(path, number, "no spans", "spans: a list, empty for a text without names")
    found = sorted(_span(path, number, one) for one in spans)
    if any(one.end > other.start for one, other in pairwise(found)):
        _refuse(path, number, "spans that overlap", "spans apart from each other")
    return str(row), column, found


def _span(path: str, number: int, value: object) -> Mention:
    if not isinstance(value, dict) or set(value) != {"start", "end", "kind"}:
        _refuse(path, number, "a span of another form", _SPANS)
    start, end, kind = value["start"], value["end"], value["kind"]
    whole = all(isinstance(one, int) and not isinstance(one, bool) for one in (start, end))
    if not whole or not 0 <= start < end < 1 << 31:
        _refuse(path, number, "a span that is empty or no span", "0 <= start < end, in characters")
    if not isinstance(kind, str) or _KIND.fullmatch(kind) is None:
        _refuse(path, number, "a span without a kind", "kind: a name such as person, beginning with a letter")
    return Mention(start, end, kind.lower())


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _refuse(path: str, number: int, what: str, valid: str) -> NoReturn:
    raise DataError(f"{FIELD}: {path}, line {number:,}: {what}; valid: {valid}.")
