"""What `dptext start` and `dptext preview --input` show: restricted text, with changed words in marks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dptext_spark.errors import DataError
from dptext_spark.model.first_look import THROWN_AWAY, FirstLook, ShownRow
from dptext_spark.model.tables.table_files import MOST_FILES, SAMPLE_ROWS, TableSample
from dptext_spark.report.terminal.console import hanging
from dptext_spark.runtime.display import differences
from dptext_spark.runtime.record import Json
from dptext_spark.text.unknown import ENGLISH, EXTRA, can_tell, refusal

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

RESTRICTED = "RESTRICTED: this shows private text and figures of it. Do not share it."
OPEN, CLOSE = "«", "»"  # around changed words
_HEAD = 16


def next_text(found: FirstLook, file: str) -> str:
    """Return what comes next: where a run would be refused, a lexicon of the text's language."""
    checked = f"dptext run {shlex.quote(file)} --dry-run"
    if _refused(found) is None:
        return f"Next: {checked}; then dptext release {shlex.quote(file)}"
    return (
        "Next: name a lexicon of the text's language in it (lexicon.source; guide 'Another language'), or a run is refused. "
        f"Then {checked}, which reads no text and so cannot tell"
    )


def look_text(sample: TableSample, found: FirstLook, columns: int) -> str:
    """Return what a sample holds, as lines of at most so many columns."""
    of = found.columns
    about = "" if sample.is_exact else "about "
    unknown, refused = found.unknown, _refused(found)
    share = f"{unknown.unknown / max(unknown.words, 1):.0%} of {unknown.words:,} words"
    heads = [
        ("table", f"{sample.path} ({sample.format})"),
        ("rows", f"{about}{sample.total:,}; looked at {sample.rows.num_rows:,}, in {sample.read} of {sample.files} files (at "
         f"most {SAMPLE_ROWS:,} rows of {MOST_FILES} files)"),
        *(("assumed", one) for one in sample.assumed),
        ("text columns", ", ".join(of.texts)),
        ("no text in", ", ".join(of.nested)),
        ("left out", ", ".join(of.others)),
        ("language", found.language or ("not told" if can_tell() else f"not told: it takes the extra [{EXTRA}]")),
        ("unknown", f"{share} of the sample are not in the lexicon"),
        ("", f"a run would end here: {refused}" if refused is not None else ""),
        ("found", ", ".join(f"{kind} {count:,}" for kind, count in found.found) or "no identifiers or names"),
        ("", f"in the sample, by rules and public lists, which miss some and take others for one{_foreign(found)}"),
        ("row key", _candidates(of.row_keys, "none: the place in the files tells rows apart")),
        ("record key", _candidates(of.record_keys, "none: each row is a record")),
        ("", "a candidate is one in the sample only; the run checks that a row_key is unique and never NULL"),
        ("attribute", f"{_candidates(of.attributes, '')}; `dptext audit FILE --attribute COLUMN` tells whether the released text "
         "gives it away" if of.attributes and of.row_key else ""),
        ("minutes", f"about {max(1, round(found.minutes)):,} on this machine, at the speed of the sample and with Spark's start"),
    ]  # fmt: skip
    return "\n".join([RESTRICTED, "", *(hanging(f"{h:{_HEAD}}", said, columns) for h, said in heads if said)])


def _candidates(names: Sequence[str], none: str) -> str:
    return f"candidates: {', '.join(names)}" if names else none


def _foreign(found: FirstLook) -> str:
    """Say where names are mostly wrong."""
    unknown = found.unknown.is_mostly_unknown
    if found.language in (None, ENGLISH) and not unknown:
        return ""
    what = "the settings have policy.names: none" if unknown else "policy.names: none looks for none"
    return f"; they are made for English: in another language names are mostly wrong ({what})"


def _refused(found: FirstLook) -> DataError | None:
    """Return the error that a run would end with."""
    return (
        refusal(found.unknown, found.language, can_tell=can_tell(), done="")
        if found.unknown.is_mostly_unknown
        else None
    )


def rows_shown(rows: Sequence[ShownRow]) -> RenderableType:
    """Return rows before and after, with changed words in marks, and why nothing was counted."""
    from rich.console import Group
    from rich.text import Text

    width = max((len(style) for row in rows for style, _ in row.after), default=0)
    width = max(width, len("before")) + 2
    lines: list[Text] = []
    for row in rows:
        lines += [Text(row.column, "bold"), Text(f"{'before':{width}}").append(_flat(row.before))]
        lines += [Text(f"{style:{width}}").append(_marked(row.before, after)) for style, after in row.after]
        lines.append(Text(""))
    return Group(*lines, Text(f"Words in {OPEN}{CLOSE} were changed. {THROWN_AWAY}", "dim"))


def _marked(before: str, after: str) -> Text:
    from rich.text import Text

    made = Text()
    for same, _, there in differences(_flat(before), _flat(after)):
        made.append(there if same or not there else f"{OPEN}{there}{CLOSE}", "" if same else "bold")
    return made


def _flat(text: str) -> str:
    """Return a text in one line, without what moves a terminal's cursor."""
    return "".join(char if char.isprintable() else " " for char in text)


def rows_record(rows: Sequence[ShownRow]) -> list[Json]:
    """Return rows, JSON-able."""
    return [{"column": row.column, "before": row.before, "after": dict(row.after)} for row in rows]


def look_record(sample: TableSample, found: FirstLook) -> dict[str, Json]:
    """Return everything, JSON-able."""
    of, unknown = found.columns, found.unknown
    refused = _refused(found)
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
        "language": found.language,
        "words": unknown.words,
        "unknown_words": unknown.unknown,
        "refused": None if refused is None else str(refused),
        "found": dict(found.found),
        "minutes": round(found.minutes, 1),
        "shown": rows_record(found.rows),
        "note": THROWN_AWAY,
    }
