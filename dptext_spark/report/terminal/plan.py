"""What a run would do, without reading any data: settings, guarantee, disclosure, what would be written.

What a dry run shows on one screen: what was checked, what would happen, and where the rest is said.

The findings of `dptext doctor` for a person: a table, and one line that says how it stands.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from dptext_spark.config.file import dumped
from dptext_spark.config.model import TRIGGER, RunConfig
from dptext_spark.config.requirements import MEANING
from dptext_spark.config.sections import ledger_on_disk, read_key
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.disclosure.statement import check_measurable, not_audited
from dptext_spark.doctor import CheckResult
from dptext_spark.model.artifact import certificate_of
from dptext_spark.model.certificate import Certificate
from dptext_spark.model.compile import prepare
from dptext_spark.model.dry_run import Checked
from dptext_spark.model.record import record_account
from dptext_spark.model.tables.target_checks import mapped_names
from dptext_spark.report.terminal.console import WIDTH, hanging
from dptext_spark.runtime.display import line, table
from dptext_spark.runtime.progress import Progress, by_default
from dptext_spark.runtime.record import Json

if TYPE_CHECKING:
    from rich.table import Table


_STYLE = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def table_of(findings: Sequence[CheckResult]) -> Table:
    """Return the findings as a table: what was checked, how it stands, what was seen, and what to do."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what was seen, and what to do", overflow="fold")
    for found in findings:
        seen = Text(found.message)
        if found.hint:
            seen.append("\n→ ").append(found.hint, style="bold")
        table.add_row(Text(found.check), Text(found.status, style=_STYLE[found.status]), seen)
    return table


def verdict(findings: Sequence[CheckResult], seconds: float) -> str:
    """Return one line: whether a run will work."""
    counts = {status: sum(found.status == status for found in findings) for status in _STYLE}
    said = {
        "fail": "A run would not work here as it is: do what the failed checks say.",
        "warn": "A run works here; the warnings say what would make it better.",
        "ok": "All is well.",
    }[next(status for status in ("fail", "warn", "ok") if counts[status] or status == "ok")]
    told = ", ".join(f"{counts[status]} {status}" for status in _STYLE if counts[status])
    return f"{told} in {seconds:.0f} s. {said}"


_NOT_READ = "No data was read, so columns, keys and target were not checked."
_UNCERTIFIED = "none was made; `dptext certify` makes one"
_LOOK = "look at a sample of 1,000 rows; refused where most of their words are not in the lexicon"


@dataclass(frozen=True)
class Written:
    """A place that a run writes to.

    Attributes:
        what: what it holds.
        where: its folder or catalog name.
        share: whether that may be shared, in words.
    """

    what: str
    where: str
    share: str


@dataclass(frozen=True)
class Plan:
    """What a run would do; printed, it is the text of `dptext run --dry-run --full`, but for what that checked.

    Attributes:
        facts: that are known before it, with the statement.
        steps: in order, in words.
        writes: where it writes.
        artifact: the folder of its model; `fingerprint` names the model.

    Examples:
        >>> plan = dp.plan(dp.load_config("reviews.yaml"))
        >>> print(plan)
        SETTINGS IN EFFECT
        ...
        >>> plan.as_dict()["guarantee"]["epsilon"]
        2.0
    """

    facts: RunFacts
    steps: tuple[str, ...]
    writes: tuple[Written, ...]
    artifact: str
    fingerprint: str

    def __repr__(self) -> str:
        """Return how much it plans; printed, it is the text."""
        return line(
            "Plan", f"{len(self.steps)} steps", f"{len(self.writes)} places written", "print it for the text"
        )

    def _repr_html_(self) -> str:
        """Return steps, places, guarantee and certificate, for a notebook; settings and statement are in the text."""
        steps = [(f"step {number}", step) for number, step in enumerate(self.steps, start=1)]
        writes = [(place.where, f"{place.what} (to be shared: {place.share})") for place in self.writes]
        promise = [
            ("guarantee", str(self.facts.guarantee)),
            ("certificate", certified(self.facts.certificate)),
        ]
        return table("What a run would do", [*steps, *writes, *promise], note=_NOT_READ)

    def __str__(self) -> str:
        """Return the text, in lines of the usual width."""
        return plan_text(self)

    def as_dict(self) -> dict[str, Json]:
        """Return the plan, JSON-able."""
        facts = self.facts.as_dict()
        return {
            "settings": _settings(self.facts.config),
            **{name: facts[name] for name in ("guarantee", "certificate", "disclosure")},
            "steps": list(self.steps),
            "writes": [asdict(place) for place in self.writes],
            "artifact": {"folder": self.artifact, "fingerprint": self.fingerprint},
        }


def plan(config: RunConfig, progress: Progress | None = None) -> Plan:
    """Say what a run would do, without Spark and without reading any data.

    The model is compiled, or opened where the user's cache or `run.artifact` has it.

    Args:
        config: the settings; the key that they name is read and checked, except a platform's secret.
        progress: progress callback, called with each step. None tells them on stderr in a notebook or terminal.

    Raises:
        SettingsError: a parameter does not fit the lexicon; the model has no figure that is required; the key cannot be read or
            is too short, or others may read its file.
        DataError: the lexicon or the artifact is missing, damaged or changed.

    Examples:
        >>> for step in dp.plan(dp.load_config("reviews.yaml")).as_dict()["steps"][:2]:
        ...     print(step)
        read /data/reviews (delta)
        check that id is unique and never NULL (a pass over that column)
    """
    privatizer, artifact = prepare(config, progress or by_default())
    check_measurable(config.require, privatizer.guarantee(of_rows=True), bounded=config.budget is not None)
    read_key(config.key)
    facts = RunFacts.planned(config, privatizer, certificate_of(artifact), record_account(privatizer))
    facts = replace(facts, disclosure=disclosure(facts))
    return Plan(facts, tuple(_steps(config)), tuple(_writes(config)), str(artifact), privatizer.fingerprint)


def _settings(config: RunConfig) -> dict[str, Json]:
    """Return the settings, and what binds no run."""
    settings = config.as_dict()
    if config.require:
        settings["require"] = [str(one) for one in config.require]
    approval = config.approval.model_dump(mode="json", exclude_none=True)
    return settings | ({"approval": approval} if approval else {})


def _where(config: RunConfig) -> str:
    """Return the condition on the input as a part of a sentence; empty without one."""
    where = config.shown_where
    return f" where {json.dumps(where, ensure_ascii=False)}" if where else ""


def certified(certificate: Certificate | None) -> str:
    """Return what a certificate says, or that there is none."""
    return _UNCERTIFIED if certificate is None else certificate.sentence


def _steps(config: RunConfig) -> list[str]:
    source, target = config.input, config.output
    place = f"{source.table or source.path} ({'catalog' if source.table else source.format})"
    read = f"read {place}"
    others = config.other_columns
    along = "all other columns go along" if others is None else "no other column goes along"
    if others:
        along = f"beside them only {', '.join(others)}"
    if config.is_stream:
        read = f"read what was added to {place} since {config.checkpoint} was last written to"
    steps = [read + _where(config)]
    if config.is_stream:
        began = f"compare key, settings, model and source with those that {config.checkpoint} began with"
        steps.insert(0, began)
        if not config.allow_unknown:
            steps.append(f"where the stream begins: {_LOOK}")
        steps.append(f"take it in micro-batches{_micro_batches(config)}, each as follows")
        steps.append(
            f"check that {config.row_key} is never NULL and does not come again ({config.stream.duplicates})"
        )
    elif config.row_key:
        steps.append(f"check that {config.row_key} is unique and never NULL (a pass over that column)")
    if config.record_key:
        steps.append(f"check that {config.record_key} is never NULL")
    if config.importance is not None and config.importance.own_data:
        steps.append("count in how many texts each word occurs (a pass over the text)")
    if not config.allow_unknown and not config.is_stream:
        steps.append(_LOOK)
    chosen = "" if config.importance is None else " that importance chooses"
    steps.append(
        f"replace the words of {', '.join(config.columns)}{chosen} by {config.mechanism.name} at "
        f"{config.consistency} level; {along}"
    )
    limit = (
        "past the limit that it keeps, where it keeps one"
        if config.ledger.limit is None
        else f"past ε = {config.ledger.limit:g} for one word of a column, or the lower limit that it keeps"
    )
    steps.append(f"reserve in the ledger what the release spends; refused {limit}")
    steps.append(
        f"write {target.table or target.path} in one commit (mode {target.mode}), counting on the way"
    )
    if config.consistency != "token" and config.audit.consistency_scopes:
        whole = " (whole records)" if config.consistency == "record" else ""
        scopes = f"about {config.audit.consistency_scopes:,} rows{whole}"
        joined = "" if config.row_key else "; not possible without a row_key"
        steps.append(f"check on {scopes} that equal words have equal replacements{joined}")
    steps.append("compare the counts with the commit, and write the account")
    if config.require:
        limits = ", ".join(map(str, config.require))
        steps.append(f"hold what was measured against {limits}; broken, it ends with exit code 7")
    unaudited = not_audited(config.row_key)
    return [*steps, *([f"(after it) {unaudited}"] if unaudited else [])]


def _micro_batches(config: RunConfig) -> str:
    most = f" of at most {config.stream.max_files:,} files" if config.stream.max_files else ""
    if config.mode == "incremental":
        return f"{most} until nothing is left"
    return f"{most}, every {config.stream.trigger or TRIGGER} until it is stopped"


def _writes(config: RunConfig) -> Iterator[Written]:
    place = config.output.table or config.output.path or ""
    ledger = ledger_on_disk(config.input, config.ledger)
    yield Written("the sanitized Delta table", place, "yes, with the disclosure statement")
    yield Written("runs: settings, guarantee, disclosure", str(config.shareable), "yes")
    yield Written("ledger: what was spent on which input", ledger, "yes")
    yield Written("metrics: depend on the private text", str(config.restricted), "no")
    if config.is_stream:
        yield Written("the checkpoint: what was read", str(config.checkpoint), "no")


def plan_text(planned: Plan, columns: int = WIDTH, checked: str = _NOT_READ) -> str:
    """Write a plan for a person, in lines of so many columns; `checked` says what was looked at."""
    settings = dumped(_settings(planned.facts.config), 100)
    parts = ["SETTINGS IN EFFECT", settings.rstrip(), "", "WHAT WOULD HAPPEN"]
    parts += [hanging(f"  {number}. ", step, columns) for number, step in enumerate(planned.steps, start=1)]
    parts += ["", "WHAT WOULD BE WRITTEN"]
    for place in planned.writes:
        parts.append(f"  {place.where}")
        parts.append(hanging("    ", f"{place.what} (to be shared: {place.share})", columns))
    certificate, statement = planned.facts.certificate, planned.facts.disclosure
    promise = hanging("  ", str(planned.facts.guarantee), columns)
    found = certified(certificate)
    parts += ["", "GUARANTEE", promise, hanging("  certificate: ", found, columns), "", "DISCLOSURE"]
    for heading, sentences in () if statement is None else statement.sections:
        parts.append(f"  {heading}")
        parts += [hanging("    - ", sentence, columns) for sentence in sentences]
    parts += [
        "",
        hanging("", checked, columns),
        "Nothing was written but the model:",
        planned.artifact,
    ]
    return "\n".join(parts)


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
        f"Columns, keys and targets were checked by Spark, which read {checked.read}. Only the run can tell: "
        f"{'; '.join(checked.open)}."
    )


def _entries(planned: Plan, checked: Checked) -> Iterator[tuple[str, str, int]]:
    """Yield heads, what they say, and how many lines each may have: with title and last line no more than the screen has."""
    config, statement = planned.facts.config, planned.facts.disclosure
    source, target = config.input, config.output
    kind = "catalog" if source.table else source.format
    read = (
        f"{source.table or source.path} ({kind}), {len(checked.columns):,} columns; Spark read {checked.read}"
    )
    yield "input", read + _where(config).replace(" where", "; where", 1), 2
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
    warned = [] if statement is None else [*statement.under("Warnings")]
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
