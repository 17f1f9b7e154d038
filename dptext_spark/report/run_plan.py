"""The plan of a run, made without reading any data: settings, guarantee, disclosure, outputs.

A dry run adds its checks. The findings of `dptext doctor` are a screen, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from dptext_spark.config.file import dumped
from dptext_spark.config.model import AUDITED_ROWS, TRIGGER, RunConfig
from dptext_spark.config.requirements import is_audited
from dptext_spark.config.sections import ledger_on_disk, read_key
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.disclosure.statement import check_measurable, not_audited
from dptext_spark.doctor import CheckResult
from dptext_spark.model.artifact import certificate_of
from dptext_spark.model.compile import prepare
from dptext_spark.model.record import record_account
from dptext_spark.model.table_checks import DryRunResult
from dptext_spark.model.target_checks import mapped_names
from dptext_spark.report.console import Screen, listed
from dptext_spark.runtime.display import Progress, by_default, line
from dptext_spark.runtime.validation import Json

_VERDICTS = {
    "fail": "A run would not work here as it is: do what the failed checks say.",
    "warn": "A run works here; the warnings say what would make it better.",
    "ok": "All is well.",
}


def checks(findings: Sequence[CheckResult], seconds: float) -> Screen:
    """Return the verdict on a run before it starts: obstacles, improvements, and passed checks."""
    by_status = {status: [each for each in findings if each.status == status] for status in _VERDICTS}
    count = ", ".join(
        f"{len(by_status[status])} {status}" for status in ("ok", "warn", "fail") if by_status[status]
    )
    rows = {
        status: [
            (each.check, status, f"{each.message}{f' → {each.hint}' if each.hint else ''}") for each in some
        ]
        for status, some in by_status.items()
    }
    stands = next(status for status in _VERDICTS if by_status[status] or status == "ok")
    return Screen(
        f"{count} in {seconds:.0f} s. {_VERDICTS[stands]}", [*rows["fail"], *rows["warn"]], table=rows["ok"]
    )


_UNCERTIFIED = "none was made; `dptext certify` makes one"
_LOOK = "look at a sample of 1,000 rows; refused where most of their words are not in the lexicon"


@dataclass(frozen=True)
class WrittenPlace:
    """A place that a run writes to: its contents, its folder or catalog name, and whether that may be shared, in words."""

    what: str
    where: str
    share: str

    @property
    def name(self) -> str:
        """The contents in a word."""
        return self.what.partition(":")[0].split()[-1]


@dataclass(frozen=True)
class Plan:
    """Plan of a run; printed, it is the text of `dptext run --dry-run --full` without the results of the checks.

    Attributes:
        facts: that are known before it, with the statement.
        steps: in order, in words.
        writes: where it writes.
        artifact: the folder of its model; `fingerprint` names the model.

    Examples:
        >>> plan = dp.plan(dp.load_config("reviews.yaml"))
        >>> print(plan)
        DRY RUN: nothing was written but the model. No data was read.
        ...
        >>> plan.as_dict()["guarantee"]["epsilon"]
        2.0
    """

    facts: RunFacts
    steps: tuple[str, ...]
    writes: tuple[WrittenPlace, ...]
    artifact: str
    fingerprint: str

    def __repr__(self) -> str:
        """Show the size of the plan; printed, it is the text."""
        return line(
            "Plan", f"{len(self.steps)} steps", f"{len(self.writes)} places written", "print it for the text"
        )

    def _repr_html_(self) -> str:
        """Show the draws, the promise and the outputs, for a notebook; settings, steps and statement are in the text."""
        return self.screen().html()

    def __str__(self) -> str:
        """Return the text, in lines of the usual width."""
        return self.screen().text(full=True)

    def screen(self, checked: DryRunResult | None = None) -> Screen:
        """Return the plan for a person, with the checks of a dry run."""
        config, statement = self.facts.config, self.facts.disclosure
        sections = () if statement is None else statement.sections
        steps = [(f"{number}.", step) for number, step in enumerate(self.steps, start=1)]
        names = (*config.columns, *(checked.kept if checked else ()))
        state, read = "", ""
        if checked:
            state = f"{checked.target}; "
            read = f", {len(checked.columns):,} columns; Spark read {checked.read}"
        return Screen(
            "DRY RUN: nothing was written but the model. "
            + ("No schema, key or target prevents this run." if checked else "No data was read."),
            [*_rows(self.facts, checked)],
            warnings=[
                *(statement.under("Warnings") if statement else ()),
                *filter(None, [mapped_names(names)]),
            ],
            places=[
                ("input", _source(config) + read + _where(config).replace(" where", "; where", 1)),
                ("slow", checked.slow if checked else ""),
                *(
                    (place.name, f"{place.where} ({'' if number else state}to be shared: {place.share})")
                    for number, place in enumerate(self.writes)
                ),
                ("model", self.artifact),
                (
                    "not checked",
                    f"only the run can tell {', '.join(checked.open)}"
                    if checked
                    else "columns, keys and target",
                ),
            ],
            next="the same without --dry-run",
            more=[
                ("settings in effect", dumped(_settings(config), 100).rstrip()),
                ("what would happen", steps),
                *(
                    (heading, [("-", each) for each in some])
                    for heading, some in sections
                    if heading != "Warnings"
                ),
            ],
        )

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
    """Plan a run, without Spark and without reading any data.

    The model is compiled, or opened where the user's cache or `run.artifact` has it.

    Args:
        config: the settings; the key that they name is read and checked, except a platform's secret.
        progress: progress callback, called with each step. None shows them on stderr in a notebook or terminal.

    Raises:
        SettingsError: a parameter does not fit the lexicon, or the model has no figure that is required. Also a key that cannot
            be read or is too short, or that others may read in its file.
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
        settings["require"] = [str(requirement) for requirement in config.require]
    approval = config.approval.model_dump(mode="json", exclude_none=True)
    return settings | ({"approval": approval} if approval else {})


def _where(config: RunConfig) -> str:
    """Return the condition on the input as a part of a sentence; empty without one."""
    where = config.shown_where
    return f" where {json.dumps(where, ensure_ascii=False)}" if where else ""


def _source(config: RunConfig) -> str:
    """Return the place of the input, and its format."""
    source = config.input
    return f"{source.table or source.path} ({'catalog' if source.table else source.format})"


def _steps(config: RunConfig) -> list[str]:
    target, place = config.output, _source(config)
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
    if config.consistency != "token":
        whole = " (whole records)" if config.consistency == "record" else ""
        scopes = f"about {AUDITED_ROWS:,} rows{whole}"
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


def _writes(config: RunConfig) -> Iterator[WrittenPlace]:
    place = config.output.table or config.output.path or ""
    ledger = ledger_on_disk(config.input, config.ledger)
    yield WrittenPlace("the sanitized Delta table", place, "yes, with the disclosure statement")
    yield WrittenPlace("runs: settings, guarantee, disclosure", str(config.shareable), "yes")
    yield WrittenPlace("ledger: what was spent on which input", ledger, "yes")
    yield WrittenPlace("metrics: depend on the private text", str(config.restricted), "no")
    if config.is_stream:
        yield WrittenPlace("the checkpoint: what was read", str(config.checkpoint), "no")


def as_record(planned: Plan, checked: DryRunResult) -> dict[str, Json]:
    """Return the plan with its checks, JSON-able."""
    return {
        **planned.as_dict(),
        "checked": {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(checked).items()},
    }


def _rows(facts: RunFacts, checked: DryRunResult | None) -> Iterator[tuple[str, str]]:
    """Yield the draws, the promise and the requirements."""
    config, mechanism = facts.config, facts.config.spec()["mechanism"]
    by = f"by {mechanism['name']}, ε = {mechanism['epsilon']:g}, at {config.consistency} level"
    yield "drawn", f"{listed(config.columns)}, {by}; {_words(config)}"
    unaudited = (
        f"row_key is not set: rows are told apart by their place, and no audit joins them{_undecided(config)}"
    )
    yield "rows", f"by row_key {config.row_key}" if config.row_key else unaudited
    if config.record_key is None:
        yield "records", "record_key is not set: each row is a record of its own"
    else:
        yield "records", f"by record_key {config.record_key}: all rows that share it are one record"
    yield "guarantee", str(facts.guarantee)
    yield "certificate", _UNCERTIFIED if facts.certificate is None else facts.certificate.sentence
    if checked:
        texts = {name.lower() for name in config.columns}
        along = [name for name in checked.kept if name.lower() not in texts]
        yield (
            "in clear",
            listed(along, "no other column") + "; also the form of the text: lengths, gaps, punctuation",
        )
    yield "required", "; ".join(map(str, config.require))


def _undecided(config: RunConfig) -> str:
    """Count the requirements that take such an audit."""
    count = sum(is_audited(requirement.subject) for requirement in config.require)
    return f", so that {count:,} requirement{'s' if count > 1 else ''} will not be decided" if count else ""


def _words(config: RunConfig) -> str:
    """Name the parts that are released unchanged."""
    policy = config.policy
    in_clear = [
        *(["stop words"] if policy.stop_words == "keep" else []),
        *(["UNKNOWN WORDS"] if policy.oov == "keep" else []),
        *(["NUMBERS"] if policy.numbers == "keep" else []),
        *(["all words that importance does not choose"] if config.importance is not None else []),
    ]
    return f"in clear: {', '.join(in_clear)}" if in_clear else "no word is meant to stay in clear"
