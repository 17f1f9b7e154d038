"""What a dry run shows on one screen: what was checked, what would happen, and where the rest is said."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from dptext_spark.config.figures import MEANING
from dptext_spark.config.model import RunConfig
from dptext_spark.model.dry_run import Checked
from dptext_spark.model.tables.target_checks import mapped_names
from dptext_spark.report.terminal.console import WIDTH
from dptext_spark.report.terminal.plan import Plan, certified, plan_text, shown_where
from dptext_spark.runtime.record import Json

LINES = 24  # of the screen
_HEAD = 13
_ROWS = {
    "parquet": "file and position in it tell rows apart",
    "delta": "file and position, or the place in the scan",
}
_SCAN = "the place in the scan tells rows apart"


def screen(planned: Plan, checked: Checked, columns: int = WIDTH) -> str:
    """Return at most :data:`LINES` lines of at most so many columns."""
    said = "DRY RUN: no schema, key or target stands against this run. Nothing was written but its model."
    lines = _cut("", said, columns, 1)
    for head, text, most in _entries(planned, checked):
        lines += _cut(f"{head:{_HEAD}}", text, columns, most)
    statement = planned.facts.disclosure
    points = 0 if statement is None else sum(len(sentences) for _, sentences in statement.sections)
    more = (
        f"the same without --dry-run; with --full, too: settings, steps and all {points} points of disclosure"
    )
    return "\n".join([*lines, *_cut(f"{'next':{_HEAD}}", more, columns, 1)])


def full(planned: Plan, checked: Checked, columns: int = WIDTH) -> str:
    """Return the plan with all settings and the whole disclosure, and what was checked."""
    return plan_text(planned, columns, _checked(checked))


def as_record(planned: Plan, checked: Checked) -> dict[str, Json]:
    """Return the plan with what was checked, JSON-able."""
    return {
        **planned.as_dict(),
        "checked": {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(checked).items()},
    }


def _checked(checked: Checked) -> str:
    return (
        f"Columns, keys and targets were checked by {checked.by}, which read {checked.read}. Only the run can tell: "
        f"{'; '.join(checked.open)}."
    )


def _entries(planned: Plan, checked: Checked) -> Iterator[tuple[str, str, int]]:
    """Yield heads, what they say, and how many lines each may have: with title and last line no more than the screen has."""
    config, statement = planned.facts.config, planned.facts.disclosure
    source, target = config.input, config.output
    where = shown_where(config)
    kind = "catalog" if source.table else source.format
    read = f"{source.table or source.path} ({kind}), {len(checked.columns):,} columns; {checked.by} read {checked.read}"
    yield "input", read + (f"; where {where}" if where else ""), 2
    if checked.slow:
        yield "slow", checked.slow, 1
    yield "text", _listed(config.columns), 1
    yield "rows", _rows(config), 1
    yield "records", _records(config), 1
    mechanism = config.spec()["mechanism"]
    yield (
        "drawn",
        f"by {mechanism['name']}, ε = {mechanism['epsilon']:g}, at {config.consistency} level; {_words(config)}",
        2,
    )
    unaudited = "" if config.row_key else "there is no row_key"
    required = _listed([str(one) for one in config.require], "")
    lines = 5 - bool(unaudited) - bool(required) - bool(checked.slow)
    yield "guarantee", _short(str(planned.facts.guarantee)), lines
    yield "certificate", certified(planned.facts.certificate).split(" (", 1)[0], 2
    warned = [
        s for h, said in (() if statement is None else statement.sections) if h == "Warnings" for s in said
    ]
    warned += [said] if (said := mapped_names((*config.columns, *checked.kept))) else []
    if warned:
        yield "WARNING", (f"1 of {len(warned)}: " if len(warned) > 1 else "") + warned[0], 2
    texts = {name.lower() for name in config.columns}
    along = [name for name in checked.kept if name.lower() not in texts]
    yield "in clear", _listed(along, "no other column") + ", beside what words and gaps tell (--full)", 1
    yield "output", f"{target.table or target.path} ({checked.target}), to be shared with the disclosure", 1
    _, account, ledger, restricted, *_ = planned.writes
    yield "account", f"{account.where}, may be shared; ledger {ledger.where}", 1
    yield "restricted", f"{restricted.where}, depends on the private text", 1
    if required:
        approver = config.approval.approver
        yield "required", (f"to be signed by {approver}: " if approver else "") + required, 1
    if unaudited:
        yield "no audit", unaudited + _undecided(config), 1
    yield "not checked", f"only the run can tell {', '.join(checked.open)}", 2


def _undecided(config: RunConfig) -> str:
    """Say how many requirements take an audit of the written table, which cannot be."""
    count = sum(one.subject in MEANING for one in config.require)
    said = f"{count:,} requirement{'s' if count > 1 else ''} will"
    return f", so that {said} not be decided (--full)" if count else " (--full)"


def _rows(config: RunConfig) -> str:
    if config.row_key is not None:
        return f"by row_key {config.row_key}"
    kind = "" if config.input.table else config.input.format
    return f"row_key is not set: {_ROWS.get(kind, _SCAN)}"


def _records(config: RunConfig) -> str:
    if config.record_key is None:
        return "record_key is not set: each row is a record of its own"
    return f"by record_key {config.record_key}: all rows that share it are one record"


def _words(config: RunConfig) -> str:
    """Say what is released as it stands."""
    policy = config.policy
    kept = [
        *(["stop words"] if policy.stop_words == "keep" else []),
        *(["UNKNOWN WORDS"] if policy.oov == "keep" else []),
        *(["NUMBERS"] if policy.numbers == "keep" else []),
        *(["all words that importance does not choose"] if config.importance is not None else []),
    ]
    return f"in clear: {', '.join(kept)}" if kept else "no word is meant to stay in clear"


def _short(guarantee: str) -> str:
    """Return the first sentence and the unit: what is promised to whom, and for what."""
    sentences = re.split(r"(?<=[.\])]) (?=[A-Z0-9])", guarantee)
    unit = [one for one in sentences[1:] if one.startswith("The unit")]
    return " ".join([sentences[0], *unit])


def _listed(names: Sequence[str], none: str = "none") -> str:
    """Return names, those that do not fit into a line as a number."""
    shown: list[str] = []
    size = 0
    for name in names:
        size += len(name) + 2
        if size > 50 and shown:
            return f"{', '.join(shown)} and {len(names) - len(shown):,} more"
        shown.append(name)
    return ", ".join(shown) or none


def _cut(head: str, said: str, columns: int, most: int) -> list[str]:
    """Return text behind a head in at most so many lines, with dots where it goes on."""
    return textwrap.wrap(
        said, columns, initial_indent=head, subsequent_indent=" " * len(head), max_lines=most, placeholder=" ...",
        break_on_hyphens=False,
    )  # fmt: skip
