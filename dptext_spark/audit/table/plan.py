"""What an audit of a written table compares, settled before a byte is read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from dptext_spark.audit.attacks.tokens import Level
from dptext_spark.audit.table.metrics import (
    ATTRIBUTE,
    ENCODED,
    LABEL,
    LISTED,
    MASKED,
    SIMILARITY,
    table_requirement,
)
from dptext_spark.config.load import load_model_config, parse_model_config
from dptext_spark.config.locations import TABLE, holds_credentials, inside, same_path, same_table
from dptext_spark.config.model import ModelConfig, RunConfig
from dptext_spark.config.requirements import ATTACKS, FREQUENCY, MEANING, Requirement
from dptext_spark.config.sections import Input
from dptext_spark.encoder.weights import require_encoders
from dptext_spark.errors import SettingsError, require_choice
from dptext_spark.runtime.record import Json

SAMPLE, LABEL_ROWS = 2_000, 10_000
FORMATS = ("delta", "parquet", "csv", "tsv", "json", "text")  # of a source, as `input.format` has them
TABLES = ("delta", "parquet")
NO_SETTINGS = (
    "attacks, and which words the policy draws: without --config nothing is known of how the table was made; all words of the "
    "packaged lexicon count as words to draw"
)


BY_PLACE = (
    "whether rows belong together: without a row_key they are paired by the name of their file and their place in it, and a "
    "table that was sorted or shuffled since is paired wrongly; aligned_share is small then"
)


CHOSEN = (
    "attacks, and the check that equal words of a record have one replacement: with importance only some words were drawn, and "
    "neither knows which"
)


class Place(NamedTuple):
    """A table by path or by catalog name; the other is empty."""

    path: str
    name: str


@dataclass(frozen=True)
class AuditPlan:
    """What is compared.

    Attributes:
        table: that is audited, a path or a catalog name.
        source: that it was made from.
        columns: the text columns, by the same names in both.
        row_key: of both; None joins rows by the name of their file and their place in it, where both tables keep them.
        record_key: of the source; None where each row is a record.
        model: the settings of the model; those of the packaged lexicon where none were given.
        given: whether settings were given.
        label: a column of the source that a classifier learns to predict; None leaves it out.
        attribute: a column of the source that an adversary guesses from the text; None leaves it out.
        similarity: whether the texts of both tables are compared; with a label they are.
        encoder: a folder or a package of an encoder that compares them, too; None leaves it out.
        masked_model: as that, of a masked language model that attacks the texts.
        label_rows: how many rows, about, classifiers look at.
        sample: how many rows, about, consistency, similarity and attacks look at.
        partial: whether rows that only one of the tables has are allowed.
        limits: what is required of the figures.
        metrics: the folder of the table of metrics.
        chosen: whether only some words were drawn, as importance chose; the model is then that of all words.
        names: a file of names, an entry a line, that are counted; None leaves it out.
        internal: whether the words of names that stayed most are shown, which are private text.
        required: what the settings require of the table beside `limits`: such a figure may go without being measured.
        read_as: how the source is read, where it is no Delta or Parquet table; None for such a one.
    """

    table: str
    source: str
    columns: tuple[str, ...]
    row_key: str | None
    record_key: str | None
    model: ModelConfig
    given: bool
    label: str | None
    attribute: str | None
    similarity: bool
    encoder: str | None
    masked_model: str | None
    label_rows: int
    sample: int
    partial: bool
    limits: tuple[Requirement[str], ...]
    metrics: str
    chosen: bool = False
    names: str | None = None
    internal: bool = False
    required: tuple[Requirement[str], ...] = ()
    read_as: Input | None = None

    @property
    def level(self) -> Level:
        """The level of consistency that the settings name."""
        return self.model.consistency

    @property
    def attacked(self) -> bool:
        """Whether attacks are made: only where it is known which words were drawn, and how."""
        return self.given and not self.chosen

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is not measured, and why."""
        by_place = () if self.row_key else (BY_PLACE,)
        if self.chosen:
            return (CHOSEN, *by_place)
        return by_place if self.given else (NO_SETTINGS, *by_place)

    @property
    def values(self) -> dict[str, str]:
        """The label and attribute columns, by the option that names them."""
        named = {"label": self.label, "attribute": self.attribute}
        return {option: column for option, column in named.items() if column is not None}

    @property
    def looks_at_texts(self) -> bool:
        """Whether texts of the sample are looked at, and not counts of their words alone."""
        return bool(self.similarity or self.values or self.encoder or self.masked_model)

    @property
    def of_source(self) -> dict[str, str | None]:
        """The columns that only the source needs to have, by the option that names them."""
        return {"record_key": self.record_key, **self.values}

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of the figures that this audit has."""
        asked = {
            ATTACKS: self.attacked,
            FREQUENCY: self.attacked and self.level == "dataset",
            LISTED: self.names,
            LABEL: self.label,
            ATTRIBUTE: self.attribute,
            SIMILARITY: self.similarity,
            ENCODED: self.encoder,
            MASKED: self.masked_model,
        }
        without = {name for names, wanted in asked.items() if not wanted for name in names}
        return tuple(name for name in MEANING if name not in without)

    @staticmethod
    def target(place: str) -> Place:
        """Return a table as a path or a catalog name: names have no slash, and are no folder here."""
        is_name = re.fullmatch(TABLE, place) is not None and not os.path.exists(place)
        return Place("", place) if is_name else Place(place, "")

    @classmethod
    def of(
        cls,
        table: str,
        source: str,
        *,
        columns: Sequence[str] = (),
        row_key: str | None = None,
        record_key: str | None = None,
        config: Path | ModelConfig | None = None,
        overrides: Sequence[str] = (),
        label: str | None = None,
        attribute: str | None = None,
        similarity: bool = False,
        encoder: str | None = None,
        masked_model: str | None = None,
        label_rows: int = LABEL_ROWS,
        require: Sequence[str] = (),
        sample: int = SAMPLE,
        partial: bool = False,
        out: str | None = None,
        names: str | None = None,
        internal: bool = False,
        against_format: str | None = None,
    ) -> AuditPlan:
        """Settle what is compared; what is not given is taken from the settings: a file with overrides, or those of a run.

        Args:
            table: the written table, a folder or a name.
            source: what it was made from, the same way.
            columns: the text columns.
            row_key: the column that identifies a row in both; None, in the settings too, joins them by file and place.
            record_key: the column of the source whose equal values form one record.
            config: the settings of the model that wrote the table, or a file of them; without them nothing is attacked.
            overrides: settings of that file that are changed, each as `name=value`.
            label: a column of the source that a classifier learns to predict.
            attribute: a column of the source that an adversary guesses from the text.
            similarity: whether the texts are compared; with a label they are.
            encoder: a folder or a package of an encoder that compares them, too.
            masked_model: as that, of a masked language model that attacks the texts.
            label_rows: how many rows, about, classifiers look at.
            require: what is required of the figures, each such as `original_share <= 0.6`.
            sample: how many rows, about, consistency, similarity and attacks look at.
            partial: whether rows that only one of the tables has are allowed.
            out: the folder of the metrics; that of the settings, or `<table>_audit/restricted`, if None.
            names: a file of names, an entry a line, that are counted in both tables.
            internal: whether the words of names that stayed most are shown.
            against_format: the format of the source, as `input.format` names it; None for that of the settings where the source
                is their input (with its options and its condition), else Delta or Parquet, whichever it is.

        Raises:
            SettingsError: no columns, a label that is a text or a key, an invalid requirement, or no place for
                the metrics; overrides of settings that are not read from a file; an encoder that is neither folder nor package,
                or whose extra is not installed.
            DataError: a folder that holds no encoder that is supported.
        """
        if isinstance(config, ModelConfig) and overrides:
            raise SettingsError(
                f"overrides: {list(overrides)} given; valid: none, for settings that are no file."
            )
        model = (
            config
            if config is None or isinstance(config, ModelConfig)
            else load_model_config(config, overrides)
        )
        run = model if isinstance(model, RunConfig) else None
        columns = tuple(columns) or (run.columns if run else ())
        row_key = row_key or (run.row_key if run else None)
        if not columns:
            raise SettingsError(
                "columns: none given; valid: --columns NAME for each text column, or --config."
            )
        keys = {"row_key": row_key, "record_key": record_key or (run.record_key if run else None)}
        for name, key in keys.items():
            if key in columns:
                raise SettingsError(f"{name}: {key!r} is a text column; valid: another column.")
        _require_classes(label, attribute, columns, keys)
        plain = model or parse_model_config({"policy": {"stop_words": "draw"}})
        chosen = plain.importance is not None
        plain = plain.model_copy(update={"importance": None})
        level = plain.consistency if model else "token"
        metrics = _metrics(table, out, run)
        _require_apart(table, source, metrics)
        if sample < 1:
            raise SettingsError(f"sample: {sample} given; valid: 1 or more.")
        if not 1 <= label_rows <= LABEL_ROWS:
            raise SettingsError(
                f"label_rows: {label_rows:,} given; valid: 1 to {LABEL_ROWS:,}, classifiers learn from a sample on the driver."
            )
        require_encoders(encoder, masked_model)
        made = cls(
            table, source, tuple(columns), row_key, keys["record_key"], plain, model is not None, label, attribute,
            similarity or label is not None, encoder, masked_model, label_rows, sample, partial, (), metrics, chosen, names,
            internal,
        )  # fmt: skip
        read_as = _read_as(cls.target(source), against_format, run)
        limits = [table_requirement(text, made.figures) for text in require]
        if level != "token" and not chosen:  # what the settings promise is required without being asked
            limits.append(Requirement(f"{level}_broken_groups", "<=", 0.0))
        settled = () if run is None else run.require
        required = tuple(one for one in settled if one.subject in MEANING and one not in limits)
        return replace(made, limits=tuple(limits), required=required, read_as=read_as)

    def as_dict(self) -> dict[str, Json]:
        """Return what a dry run shows, JSON-able."""
        return {
            "table": self.table,
            "source": self.source,
            "columns": list(self.columns),
            "row_key": self.row_key,
            "record_key": self.record_key,
            "mechanism": self.model.as_dict()["mechanism"] if self.given else None,
            "consistency": self.level if self.given else None,
            "label": self.label,
            "attribute": self.attribute,
            "encoder": self.encoder,
            "masked_model": self.masked_model,
            "label_rows": self.label_rows if self.values else None,
            "names": self.names,
            "sample": self.sample,
            "partial": self.partial,
            "figures": {name: MEANING[name] for name in self.figures},
            "requirements": [str(limit) for limit in self.limits],
            **({"required": [str(one) for one in self.required]} if self.required else {}),
            "metrics": self.metrics,
            "left_out": list(self.left_out),
        }


def _metrics(table: str, out: str | None, run: RunConfig | None) -> str:
    """Return where the metrics go: the folder that is named, that of the run that wrote the table, or beside the table."""
    if out is not None:
        return f"{out.rstrip('/')}/metrics"
    place = AuditPlan.target(table)
    if run is not None and run.restricted is not None and _writes(run, place):
        return f"{run.restricted}/metrics"
    if place.name:
        raise SettingsError(
            "out: none given, and a table by name has no folder beside it; valid: --out FOLDER, for restricted figures."
        )
    return f"{place.path.rstrip('/')}_audit/restricted/metrics"


def _read_as(place: Place, given: str | None, run: RunConfig | None) -> Input | None:
    """Return how the source is read: as its format says, or as the settings say whose input it is."""
    if given is not None:
        if place.name:
            raise SettingsError(
                f"against_format: {given!r} given with the catalog name {place.name!r}; valid: none, for the catalog knows it."
            )
        require_choice("against_format", given, FORMATS)
        of_run = run is not None and run.input.path is not None and same_path(run.input.path, place.path)
        if run is not None and of_run and run.input.format == given:
            return run.input
        return Input.model_validate({"path": place.path, "format": given})
    if run is None:
        return None
    if place.name:
        is_input = run.input.table is not None and same_table(run.input.table, place.name)
    else:
        is_input = run.input.path is not None and same_path(run.input.path, place.path)
    # Only what the formats of tables do not tell is taken from the settings.
    return run.input if is_input and run.input.format not in TABLES else None


def _writes(run: RunConfig, place: Place) -> bool:
    if place.path:
        return run.output.path is not None and same_path(run.output.path, place.path)
    return run.output.table is not None and same_table(run.output.table, place.name)


def _require_classes(
    label: str | None, attribute: str | None, columns: Sequence[str], keys: Mapping[str, str | None]
) -> None:
    """Refuse labels that are the text or identify it."""
    for option, column in (("label", label), ("attribute", attribute)):
        if column is not None and column in columns:
            raise SettingsError(
                f"{option}: {column!r} is a text column; valid: another column of the source."
            )
        for name, key in keys.items():
            if column is not None and column == key:
                raise SettingsError(
                    f"{option}: {column!r} is the {name}; valid: another column of the source."
                )


def _require_apart(table: str, source: str, metrics: str) -> None:
    """Refuse a table that is its own source, and metrics inside either."""
    one, other = AuditPlan.target(table), AuditPlan.target(source)
    if (one.path and other.path and same_path(one.path, other.path)) or (
        one.name and other.name and same_table(one.name, other.name)
    ):
        raise SettingsError(
            f"against: {source!r} is the table itself; valid: the table that it was made from."
        )
    for field, place in (("table", one.path), ("against", other.path), ("out", metrics)):
        if place and holds_credentials(place):
            raise SettingsError(f"{field}: holds a password or a signature; valid: a path without.")
        if field != "out" and place and (same_path(metrics, place) or inside(metrics, place)):
            raise SettingsError(f"out: {metrics!r} lies in the table of `{field}`; valid: a separate folder.")
