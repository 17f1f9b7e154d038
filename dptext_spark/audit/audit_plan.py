"""The plan of an audit of a written table, settled before a byte is read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dptext_spark.audit import table_audit
from dptext_spark.audit.attacks.attacked_text import Level
from dptext_spark.audit.options import AuditOptions
from dptext_spark.config.load import parse_model_config
from dptext_spark.config.locations import TABLE, holds_credentials, inside, same_path, same_table
from dptext_spark.config.model import ModelConfig, RunConfig
from dptext_spark.config.requirements import (
    ATTACKS,
    FREQUENCY,
    MEANING,
    Requirement,
    is_audited,
    named_requirement,
    split_subject,
)
from dptext_spark.config.sections import Input
from dptext_spark.disclosure.statement import not_audited
from dptext_spark.encoder.weights import require_encoders
from dptext_spark.errors import SettingsError, require_choice
from dptext_spark.runtime.validation import Json

FORMATS = ("delta", "parquet", "csv", "tsv", "json", "text")  # of a source, as `input.format` has them
TABLES = ("delta", "parquet")
NO_SETTINGS = (
    "attacks, and which words the policy draws: without --config the settings of the table are unknown, "
    "and all words of the packaged lexicon count as drawn"
)


BY_PLACE = (
    "whether rows belong together: without a row_key, rows are paired by file and place. A table that "
    "was sorted or shuffled is paired wrongly, and aligned_share is small"
)


CHOSEN = (
    "attacks, and the check that equal words of a record have one replacement: importance drew some "
    "words only, and the audit does not know which"
)


class TableLocation(NamedTuple):
    """A table by path or by catalog name; the other is empty."""

    path: str
    name: str

    def is_at(self, path: str | None, name: str | None) -> bool:
        """Check whether this is the table of a path, or of a name."""
        if self.path:
            return bool(path) and same_path(str(path), self.path)
        return bool(name) and same_table(str(name), self.name)


@dataclass(frozen=True, kw_only=True)
class AuditPlan(AuditOptions):
    """Plan of an audit: the options, completed by the settings, with their consequences.

    Attributes:
        row_key: of both; None joins rows by the name of their file and their place in it, where both tables keep them.
        similarity: whether the texts of both tables are compared; with a label they are.
        model: the settings of the model; those of the packaged lexicon where none were given.
        chosen: whether only some words were drawn, as importance chose; the model is then that of all words.
        required: what the settings require of the table beside `limits`: such a figure may go without being measured.
        read_as: how the source is read, where it is no Delta or Parquet table, or the run read some of its rows; else None.
    """

    table: str
    source: str
    model: ModelConfig
    has_settings: bool
    metrics: str
    chosen: bool
    limits: tuple[Requirement[str], ...] = ()
    required: tuple[Requirement[str], ...] = ()
    read_as: Input | None = None

    @property
    def level(self) -> Level:
        """The level of consistency that the settings name."""
        return self.model.consistency

    @property
    def attacked(self) -> bool:
        """True if attacks are made: this takes knowledge of the drawn words and of their law."""
        return self.has_settings and not self.chosen

    @property
    def left_out(self) -> tuple[str, ...]:
        """The figures that are not measured, with the reasons."""
        by_place = () if self.row_key else (BY_PLACE,)
        if self.chosen:
            return (CHOSEN, *by_place)
        return by_place if self.has_settings else (NO_SETTINGS, *by_place)

    @property
    def values(self) -> dict[str, str]:
        """The label and attribute columns, by the option that names them."""
        named = {"label": self.label, "attribute": self.attribute}
        return {option: column for option, column in named.items() if column is not None}

    @property
    def looks_at_texts(self) -> bool:
        """True if texts of the sample are looked at, and not counts of their words alone."""
        return bool(self.similarity or self.values or self.encoder or self.masked_model)

    @property
    def of_source(self) -> dict[str, str | None]:
        """The columns that only the source needs to have, by the option that names them."""
        return {"record_key": self.record_key, "author": self.author, **self.values}

    @property
    def asked(self) -> list[str]:
        """The figures among a number of candidates that requirements name."""
        subjects = (limit.subject for limit in (*self.limits, *self.required))
        return [subject for subject in dict.fromkeys(subjects) if split_subject(subject)[1] is not None]

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of the figures that this audit has."""
        asked = {
            ATTACKS: self.attacked,
            FREQUENCY: self.attacked and self.level == "dataset",
            table_audit.LISTED: self.names,
            table_audit.LABEL: self.label,
            table_audit.ATTRIBUTE: self.attribute,
            table_audit.SIMILARITY: self.similarity,
            table_audit.ENCODED: self.encoder,
            table_audit.MASKED: self.masked_model,
            table_audit.BY_TEXTS: self.queries,
            table_audit.BY_LAW: self.queries and self.attacked,
            table_audit.BY_AUTHOR: self.queries and self.author,
        }
        without = {name for names, is_asked in asked.items() if not is_asked for name in names}
        return tuple(name for name in MEANING if name not in without)

    @staticmethod
    def target(place: str) -> TableLocation:
        """Return a table as a path or a catalog name: names have no slash, and are no folder here."""
        is_name = re.fullmatch(TABLE, place) is not None and not os.path.exists(place)
        return TableLocation("", place) if is_name else TableLocation(place, "")

    @classmethod
    def of(cls, table: str, source: str, config: ModelConfig | None, options: AuditOptions) -> AuditPlan:
        """Settle the comparison; the settings supply missing options.

        Args:
            table: the written table, a folder or a name.
            source: what it was made from, the same way.
            config: the settings of the model that wrote the table; without them nothing is attacked.
            options: what the audit is asked for.

        Raises:
            SettingsError: no columns, a label that is a text or a key, an invalid requirement, or no place for the metrics. Also
                an encoder that is neither folder nor package, or whose extra is not installed.
            DataError: a folder that holds no encoder that is supported.
        """
        run = config if isinstance(config, RunConfig) else None
        columns = tuple(options.columns) or (run.columns if run else ())
        if not columns:
            raise SettingsError("columns: none given. Use --columns NAME for each text column, or --config.")
        keys = {
            "row_key": options.row_key or (run.row_key if run else None),
            "record_key": options.record_key or (run.record_key if run else None),
        }
        for name, key in keys.items():
            if key in columns:
                raise SettingsError(f"{name}: {key!r} is a text column. Name another column.")
        _require_classes(options, columns, keys)
        model = config or parse_model_config({"policy": {"stop_words": "draw"}})
        metrics = _metrics(table, options.out, run)
        _require_apart(table, source, metrics)
        require_encoders(options.encoder, options.masked_model)
        limits = [named_requirement(text, tuple(MEANING), "an audit") for text in options.require]
        of_run = () if run is None else run.require
        similar = options.label is not None or any(
            limit.subject in table_audit.SIMILARITY for limit in (*limits, *of_run)
        )
        settled = {"columns": columns, **keys, "similarity": options.similarity or similar}
        plan = cls(
            **{**vars(options), **settled},
            table=table,
            source=source,
            model=model.model_copy(update={"importance": None}),
            has_settings=config is not None,
            metrics=metrics,
            chosen=model.importance is not None,
        )
        read_as = _read_as(cls.target(source), options.against_format, run)
        for limit in limits:
            plan.require_measured(limit)
        if plan.has_settings and plan.level != "token" and not plan.chosen:
            # What the settings promise is required without being asked.
            limits.append(Requirement(f"{plan.level}_broken_groups", "<=", 0.0))
        required = tuple(limit for limit in of_run if is_audited(limit.subject) and limit not in limits)
        for limit in required:
            if table_audit.options_for([limit.subject]):
                plan.require_measured(limit)
        return replace(plan, limits=tuple(limits), required=required, read_as=read_as)

    @classmethod
    def of_run(cls, run: RunConfig, options: AuditOptions) -> AuditPlan:
        """Settle the comparison from the settings of a run alone: its target with its input.

        Raises:
            SettingsError: as :meth:`of`, or nothing joins the rows of the two.
        """
        unaudited = not_audited(options.row_key or run.row_key)
        if unaudited:
            raise SettingsError(f"row_key: {unaudited}.")
        if run.output.mode == "append" or run.is_stream:  # the target has rows of earlier inputs
            options = replace(options, partial=True)
        target, source = run.output, run.input
        return cls.of(str(target.path or target.table), str(source.path or source.table), run, options)

    def require_measured(self, limit: Requirement[str]) -> None:
        """Refuse a requirement on a figure that this audit does not have.

        Raises:
            SettingsError: the message names the option that measures it.
        """
        name, _ = split_subject(limit.subject)
        if name in self.figures:
            return
        needs = table_audit.options_for([name])
        if not needs and name.startswith(("linkage_", "singled_")) and not self.queries:
            needs = ["queries of 1 or more"]
        elif not needs and not self.has_settings:
            needs = ["--config FILE"]
        raise SettingsError(
            f"require: '{limit}' needs {name}, and this audit does not measure it. Use "
            f"{', or '.join([*needs, 'leave the requirement out'])}."
        )

    def as_dict(self) -> dict[str, Json]:
        """Return the plan as a dry run shows it, JSON-able."""
        plain = (
            "table",
            "source",
            "row_key",
            "record_key",
            "label",
            "attribute",
            "author",
            "queries",
            "encoder",
            "masked_model",
            "names",
            "sample",
        )
        return {
            **{name: getattr(self, name) for name in (*plain, "partial", "metrics")},
            "columns": list(self.columns),
            "mechanism": self.model.as_dict()["mechanism"] if self.has_settings else None,
            "consistency": self.level if self.has_settings else None,
            "label_rows": self.label_rows if self.values else None,
            "figures": {name: MEANING[name] for name in self.figures},
            "requirements": [str(limit) for limit in self.limits],
            **({"required": [str(limit) for limit in self.required]} if self.required else {}),
            "left_out": list(self.left_out),
        }


def _metrics(table: str, out: str | None, run: RunConfig | None) -> str:
    """Return the folder of the metrics: the one that is named, that of the run that wrote the table, or beside the table."""
    if out is not None:
        return f"{out.rstrip('/')}/metrics"
    place = AuditPlan.target(table)
    if run is not None and run.restricted is not None and place.is_at(run.output.path, run.output.table):
        return f"{run.restricted}/metrics"
    if place.name:
        raise SettingsError(
            "out: none given, and a table by name has no folder for restricted figures. Use --out FOLDER."
        )
    return f"{place.path.rstrip('/')}_audit/restricted/metrics"


def _read_as(place: TableLocation, named: str | None, run: RunConfig | None) -> Input | None:
    """Return the way to read the source: as its format says, or as the settings say whose input it is."""
    if named is not None:
        if place.name:
            raise SettingsError(
                f"against_format: {named!r} is not valid with the catalog name {place.name!r}. Leave it out, because "
                "the catalog knows the format."
            )
        require_choice("against_format", named, FORMATS)
    of_run = run.input if run is not None and place.is_at(run.input.path, run.input.table) else None
    if named is not None:
        is_told = of_run is not None and of_run.format == named
        return of_run if is_told else Input.model_validate({"path": place.path, "format": named})
    # Only what the formats of tables do not tell is taken from the settings, and which rows the run read.
    is_told = of_run is not None and (of_run.format not in TABLES or of_run.where is not None)
    return of_run if is_told else None


def _require_classes(options: AuditOptions, columns: Sequence[str], keys: Mapping[str, str | None]) -> None:
    """Refuse labels that are the text or identify it, and an author whom nobody looks for."""
    if options.author is not None and not options.queries:
        raise SettingsError(
            f"author: {options.author!r} needs linkage, and queries: 0 leaves linkage out. Use 1 or more."
        )
    roles = dict.fromkeys(columns, "a text column")
    roles |= {key: f"the {name}" for name, key in keys.items() if key is not None}
    for option, column in (
        ("label", options.label),
        ("attribute", options.attribute),
        ("author", options.author),
    ):
        if column in roles and not (option == "author" and column == keys["record_key"]):
            raise SettingsError(
                f"{option}: {column!r} is {roles[column]}. Name another column of the source."
            )


def _require_apart(table: str, source: str, metrics: str) -> None:
    """Refuse a table that is its own source, and metrics inside either."""
    audited, other = AuditPlan.target(table), AuditPlan.target(source)
    if audited.is_at(other.path, other.name):
        raise SettingsError(f"against: {source!r} is the table itself. Name the source of the table.")
    for field, place in (("table", audited.path), ("against", other.path), ("out", metrics)):
        if place and holds_credentials(place):
            raise SettingsError(f"{field}: the path holds a password or a signature. Use a path without.")
        if field != "out" and place and (same_path(metrics, place) or inside(metrics, place)):
            raise SettingsError(f"out: {metrics!r} is inside the table of `{field}`. Name a separate folder.")
