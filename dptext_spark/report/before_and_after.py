"""Texts before and after: in a notebook with the changed words marked, and on the screens of `start` and `preview`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from dptext_spark.errors import DataError
from dptext_spark.model.first_look import THROWN_AWAY, FirstLook, ShownRow
from dptext_spark.model.preview import Preview, Word
from dptext_spark.model.table_files import MOST_FILES, SAMPLE_ROWS, TableSample
from dptext_spark.report.console import RESTRICTED, Rows, Screen
from dptext_spark.rounding import rounded_up
from dptext_spark.runtime.display import cut, differences, line, side_by_side
from dptext_spark.runtime.validation import Json
from dptext_spark.text.unknown_words import ENGLISH, EXTRA, can_tell, refusal

Texts: TypeAlias = str | Sequence[str | None] | pa.Array | pa.ChunkedArray
"""One text, or many; None is a NULL."""

NOTE = "These texts are as private as their source. A notebook that is saved with its outputs contains them."
_VALID = (
    "valid: one text, or a list, a pandas column or an Arrow array of texts; a column of a Spark DataFrame by "
    'df.limit(20).toPandas()["body"]'
)


@dataclass(frozen=True, repr=False)
class RowComparison:
    """Texts and their replacements. A notebook shows them side by side, with the differing words marked.

    Attributes:
        before: the texts; None is a NULL.
        after: what they became, in the same order.

    Examples:
        >>> dps.compare_rows("Send the parcel.", "Send the letter.").after
        ('Send the letter.',)
    """

    before: tuple[str | None, ...]
    after: tuple[str | None, ...]

    def __repr__(self) -> str:
        """Show the number of texts; they may be private."""
        size = len(self.before)
        return line("RowComparison", f"{size:,} {'row' if size == 1 else 'rows'}", "not shown")

    def _repr_html_(self) -> str:
        """Return the texts side by side, for a notebook."""
        numbered = zip(self.before, self.after, strict=True)
        rows = [(f"{number:,}", first, second) for number, (first, second) in enumerate(numbered, start=1)]
        return side_by_side("Before and after", rows, note=NOTE)


def compare_rows(before: Texts, after: Texts) -> RowComparison:
    """Show texts beside their replacements.

    As the last line of a notebook's cell it is a table with the words marked that differ, everything escaped. It holds the texts
    as they are: a notebook that is kept with its outputs holds them, too.

    Args:
        before: one text, or a list, a pandas column or an Arrow array of texts.
        after: the replacements: as many, in the same order.

    Raises:
        DataError: no texts, no valid Unicode, or not equally many.

    Examples:
        >>> dps.compare_rows(["Send the parcel.", None], ["Send the letter.", None])
        RowComparison(2 rows, not shown)
    """
    if isinstance(before, str) != isinstance(after, str):
        raise DataError("before, after: one text and several given; valid: both one text, or both as many.")
    first, second = _texts("before", before), _texts("after", after)
    if len(first) != len(second):
        raise DataError(
            f"before, after: {len(first):,} and {len(second):,} texts given; valid: equally many, in the same order."
        )
    return RowComparison(first, second)


def _texts(field: str, given: Texts) -> tuple[str | None, ...]:
    """Return texts by one door, whatever held them; what does not fit is named by its type, never by its content."""
    try:
        many = [given] if isinstance(given, str) else given
        texts = many if isinstance(many, pa.Array | pa.ChunkedArray) else pa.array(many, from_pandas=True)
        values = texts.to_pylist()
    except (TypeError, ValueError):  # Arrow's own message would show the value
        raise DataError(f"{field}: what was given holds no texts, or no valid Unicode; {_VALID}.") from None
    if any(not isinstance(value, str | None) for value in values):
        raise DataError(f"{field}: values of type {texts.type} given; {_VALID}.")
    return tuple(values)


OPEN, CLOSE = "«", "»"  # around changed words
_MARKED = f"words in {OPEN}{CLOSE} were changed. {THROWN_AWAY}"
_NOT_READ = "only a run reads these lists: "
MOST_WORD = 28  # characters of a word in a table


def look(sample: TableSample, first: FirstLook, file: str, style: str) -> Screen:
    """Return the contents of a sample, the release of some rows, and the settings that were written."""
    of = first.columns
    about = "" if sample.is_exact else "about "
    unknown, refused = first.unknown, _refused(first)
    share = f"{unknown.unknown / max(unknown.words, 1):.0%} of {unknown.words:,} words"
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in first.found) or "no identifiers or names"
    command = f"dptext run {shlex.quote(file)} --dry-run"
    another = (
        "set lexicon.source to a lexicon of the text's language (guide 'Another language'), or a run is refused. Then "
        f"{command}; it reads no text, so it cannot check the language"
    )
    return Screen(
        f"Wrote {file} in the style {style}.",
        [
            ("rows", f"{about}{sample.total:,}; looked at {sample.rows.num_rows:,}, in {sample.read} of {sample.files} files "
             f"(at most {SAMPLE_ROWS:,} rows of {MOST_FILES} files)"),
            *(("assumed", assumed) for assumed in sample.assumed),
            ("text columns", ", ".join(of.texts)),
            ("no text in", ", ".join(of.nested)),
            ("left out", ", ".join(of.others)),
            ("language", first.language or ("not recognised" if can_tell() else f"not recognised: install the extra [{EXTRA}]")),
            ("unknown", f"{share} of the sample are not in the lexicon"),
            ("found", f"{kinds}; rules and public lists miss some and mistake others{_foreign(first)}"),
            ("row key", _candidates(of.row_keys, "none: the place in the files identifies a row")),
            ("record key", _candidates(of.record_keys, "none: each row is a record")),
            ("attribute", f"{_candidates(of.attributes, '')}; `dptext audit FILE --attribute COLUMN` measures how well the "
             "released text reveals it" if of.attributes and of.row_key else ""),
            ("minutes", f"about {max(1, round(first.minutes)):,} here, at the speed of the sample and with Spark's start"),
        ],
        table=_shown(first.rows),
        warnings=[] if refused is None else [f"a run would end here: {refused}"],
        places=[("table", f"{sample.path} ({sample.format})"), ("rows shown", _MARKED)],
        next=another if refused is not None else f"{command}; then dptext release {shlex.quote(file)}",
        restricted=True,
    )  # fmt: skip


def rows_of(sample: TableSample, rows: Sequence[ShownRow], left: Sequence[str]) -> Screen:
    """Return rows of a table before and after."""
    return Screen(
        f"{len(rows):,} rows before and after",
        [
            *(("assumed", assumed) for assumed in sample.assumed),
            ("lists", f"{_NOT_READ}{', '.join(left)}" if left else ""),
        ],
        table=_shown(rows),
        places=[("rows shown", _MARKED)],
        restricted=True,
    )


def sentence(found: Preview) -> Screen:
    """Return a sentence before and after one draw, and what can become of each of its words."""
    counted = any(word.draws is not None for word in found.words)
    head = "can become, with share of fresh draws" if counted else "can become, with probability"
    words = (
        (
            cut(word.text, MOST_WORD), cut(word.became, MOST_WORD),
            f"{word.action}: {word.reason}" if word.reason else word.action, _candidates_of(word) or "-",
        )
        for word in found.words
    )  # fmt: skip
    record, left = found.record, found.lists_left_out
    return Screen(
        "One draw with a fresh key; the same command draws anew.",
        [("before", _flat(found.text)), ("after", _flat(found.output)), ("plain", _flat(found.plain or ""))],
        table=[("word", "became", "what happens", head), *words],
        places=[
            ("guarantee", str(found.guarantee)),
            ("remap", found.remapped or ""),
            ("record", "" if record is None else f"its {record.draws} draws as one record: {record}"),
            ("lists", f"{_NOT_READ}{', '.join(left)}" if left else ""),
        ],
    )


def _candidates_of(word: Word) -> str:
    """Return the candidates of a word; a probability is never shown as less than it is."""
    listed = ", ".join(
        f"{name} {rounded_up(share, 3) if word.draws is None else format(share, '.3f')}"
        for name, share in word.candidates
    )
    more = (word.outputs or 0) - len(word.candidates)
    if word.draws is not None and listed:
        return f"in {word.draws:,} draws: {listed}{f', {more:,} more seen' if more else ''}"
    return f"{listed}, {more:,} more" if more and listed else listed


def _candidates(names: Sequence[str], none: str) -> str:
    return f"candidates: {', '.join(names)}" if names else none


def _foreign(first: FirstLook) -> str:
    """Warn where names are mostly wrong."""
    unknown = first.unknown.is_mostly_unknown
    if first.language in (None, ENGLISH) and not unknown:
        return ""
    what = "the settings have policy.names: none" if unknown else "policy.names: none looks for none"
    return f"; they are for English, and mostly wrong about names in another language ({what})"


def _refused(first: FirstLook) -> DataError | None:
    """Return the error that a run would end with."""
    return (
        refusal(first.unknown, first.language, can_tell=can_tell(), done="")
        if first.unknown.is_mostly_unknown
        else None
    )


def _shown(rows: Sequence[ShownRow]) -> Rows:
    """Return rows before and after, with changed words in marks."""
    texts = []
    for row in rows:
        before = _flat(row.before)
        texts.append((row.column, "before", before or "(empty)"))
        texts += [("", style, _marked(before, _flat(after)) or "(empty)") for style, after in row.after]
    return texts


def _marked(before: str, after: str) -> str:
    pieces = differences(before, after)
    return "".join(new if same or not new else f"{OPEN}{new}{CLOSE}" for same, _, new in pieces)


def _flat(text: str) -> str:
    """Return a text in one line, without what moves a terminal's cursor."""
    return "".join(char if char.isprintable() else " " for char in text)


def rows_record(rows: Sequence[ShownRow]) -> list[Json]:
    """Return rows, JSON-able."""
    return [{"column": row.column, "before": row.before, "after": dict(row.after)} for row in rows]


def look_record(sample: TableSample, first: FirstLook) -> dict[str, Json]:
    """Return everything, JSON-able."""
    of, unknown = first.columns, first.unknown
    refused = _refused(first)
    return {
        "restricted": RESTRICTED,
        "table": sample.path,
        "format": sample.format,
        "rows": sample.total,
        "rows_are_exact": sample.is_exact,
        "sampled_rows": sample.rows.num_rows,
        "files": sample.files,
        "sampled_files": sample.read,
        "assumed": list(sample.assumed),
        "text_columns": list(of.texts),
        "nested_columns": list(of.nested),
        "left_out": list(of.others),
        "row_key_candidates": list(of.row_keys),
        "record_key_candidates": list(of.record_keys),
        "attribute_candidates": list(of.attributes),
        "language": first.language,
        "words": unknown.words,
        "unknown_words": unknown.unknown,
        "refused": None if refused is None else str(refused),
        "found": dict(first.found),
        "minutes": round(first.minutes, 1),
        "shown": rows_record(first.rows),
        "note": THROWN_AWAY,
    }
