"""What a run would do, without reading any data: settings, guarantee, disclosure, what would be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from dptext_spark.config.keys import read_key
from dptext_spark.config.model import TRIGGER, RunConfig
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.released import filters_on_text
from dptext_spark.model.artifact import certificate_of
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.report.terminal.console import WIDTH, hanging
from dptext_spark.runtime.progress import Progress

_NOT_SHOWN = "(hidden: it names a text column)"


def planned_facts(
    config: RunConfig, privatizer: Privatizer, certificate: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the facts of the disclosure statement that are known before a run."""
    settings = config.as_dict()
    others = config.output.other_columns
    return {
        "config": settings,
        "policy": settings["policy"],
        "consistency": config.consistency,
        "guarantee": privatizer.guarantee(of_rows=True).as_dict(),
        "certificate": certificate,
        "mechanism_summary": privatizer.sampler.summary,
        "importance": None if privatizer.selector is None else privatizer.selector.provider.sentence,
        "identity": "row_key" if config.row_key else None,
        "other_columns": [] if others == "drop" else None if others == "keep" else list(others),
        "key_kind": config.key.kind,
        "releases_in_history": None,
        "second_release": False,
        "ledger": None,
    }


@dataclass(frozen=True, eq=False)
class Plan:
    """What a run would do; printed, it is the text of `dptext run --dry-run`.

    Attributes:
        facts: everything, JSON-able: settings, guarantee, certificate, disclosure, steps, writes, artifact.

    Examples:
        >>> plan = dp.plan(dp.load_config("reviews.yaml"))
        >>> print(plan)
        SETTINGS IN EFFECT
        ...
        >>> plan.as_dict()["guarantee"]["epsilon"]
        2.0
    """

    facts: dict[str, Any]

    def __str__(self) -> str:
        """Return the text, in lines of the usual width."""
        return plan_text(self.facts)

    def as_dict(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return dict(self.facts)


def plan(config: RunConfig, progress: Progress | None = None) -> Plan:
    """Say what a run would do, without Spark and without reading any data.

    The model is compiled, or opened where the user's cache or `run.artifact` has it.

    Args:
        config: the settings; the key that they name is read and checked, except a platform's secret.
        progress: progress callback, called with each step.

    Raises:
        SettingsError: a parameter does not fit the lexicon; the key cannot be read or is too short, or others may read its file.
        DataError: the lexicon or the artifact is missing, damaged or changed.

    Examples:
        >>> for step in dp.plan(dp.load_config("reviews.yaml")).as_dict()["steps"][:2]:
        ...     print(step)
        read /data/reviews (delta)
        check that id is unique and never NULL (a pass over that column)
    """
    privatizer, artifact = prepare(config, progress)
    read_key(config.key)
    certificate = certificate_of(artifact)
    facts = {
        "settings": _settings(config),
        "guarantee": privatizer.guarantee(of_rows=True).as_dict(),
        "certificate": certificate,
        "disclosure": disclosure(planned_facts(config, privatizer, certificate)).as_dict(),
        "steps": _steps(config),
        "writes": _writes(config),
        "artifact": {"folder": str(artifact), "fingerprint": privatizer.fingerprint},
    }
    return Plan(facts)


def _settings(config: RunConfig) -> dict[str, Any]:
    """Return the settings without a condition on the text, which may hold private words."""
    settings = config.as_dict()
    if filters_on_text(settings):
        settings["input"] = {**settings["input"], "where": _NOT_SHOWN}
    return settings


def _steps(config: RunConfig) -> list[str]:
    source, target = config.input, config.output
    where = _settings(config)["input"]["where"]
    read = f"read {source.table or source.path} ({'catalog' if source.table else source.format})"
    others = target.other_columns
    along = {"keep": "all other columns go along", "drop": "no other column goes along"}.get(
        str(others), f"beside them only {', '.join(others)}"
    )
    if config.is_stream:
        read = (
            read.replace("read", "read what was added to", 1)
            + f" since {config.checkpoint} was last written to"
        )
    steps = [read + (f" where {where}" if where else "")]
    if config.is_stream:
        steps[:0] = [
            f"compare key, settings, model and source with those that {config.checkpoint} began with"
        ]
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
        scopes = (
            f"{config.audit.consistency_scopes:,} {'records' if config.consistency == 'record' else 'rows'}"
        )
        joined = "" if config.row_key else "; not possible without a row_key"
        steps.append(f"check on {scopes} that equal words have equal replacements{joined}")
    return [*steps, "compare the counts with the commit, and write the account"]


def _micro_batches(config: RunConfig) -> str:
    most = f" of at most {config.stream.max_files:,} files" if config.stream.max_files else ""
    if config.mode == "incremental":
        return f"{most} until nothing is left"
    return f"{most}, every {config.stream.trigger or TRIGGER} until it is stopped"


def _writes(config: RunConfig) -> list[dict[str, str]]:
    place = config.output.table or config.output.path or ""
    ledger = config.ledger.path or f"{config.shareable}/ledger"
    return [
        {"what": "the sanitized Delta table", "where": place, "share": "yes, with the disclosure statement"},
        {"what": "runs: settings, guarantee, disclosure", "where": str(config.shareable), "share": "yes"},
        {"what": "ledger: what was spent on which input", "where": ledger, "share": "yes"},
        {"what": "metrics: depend on the private text", "where": str(config.restricted), "share": "no"},
        *(
            [{"what": "the checkpoint: what was read", "where": str(config.checkpoint), "share": "no"}]
            if config.is_stream
            else []
        ),
    ]


def plan_text(planned: Mapping[str, Any], columns: int = WIDTH) -> str:
    """Write a plan for a person, in lines of so many columns."""
    settings = yaml.safe_dump(planned["settings"], sort_keys=False, allow_unicode=True, width=100)
    parts = ["SETTINGS IN EFFECT", settings.rstrip(), "", "WHAT WOULD HAPPEN"]
    parts += [
        hanging(f"  {number}. ", step, columns) for number, step in enumerate(planned["steps"], start=1)
    ]
    parts += ["", "WHAT WOULD BE WRITTEN"]
    for place in planned["writes"]:
        parts.append(f"  {place['where']}")
        parts.append(hanging("    ", f"{place['what']} (to be shared: {place['share']})", columns))
    guarantee = planned["guarantee"]
    promise = hanging("  ", f"{guarantee['sentence']} [{guarantee['status']}]", columns)
    found = (planned.get("certificate") or {}).get("sentence", "none was made; `dptext certify` makes one")
    parts += ["", "GUARANTEE", promise, hanging("  certificate: ", found, columns), "", "DISCLOSURE"]
    for section in planned["disclosure"]["sections"]:
        parts.append(f"  {section['heading']}")
        parts += [hanging("    - ", sentence, columns) for sentence in section["sentences"]]
    parts += [
        "",
        hanging("", "No data was read, so columns, keys and target were not checked.", columns),
        "Nothing was written but the model:",
        planned["artifact"]["folder"],
    ]
    return "\n".join(parts)
