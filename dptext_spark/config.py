"""The settings of a run, validated in one place before a byte is read.

The sections `mechanism` and `policy` are the dataclasses themselves: their fields, choices and ranges are not
repeated here. :class:`ModelConfig` is what a privatizer is made of; :class:`RunConfig` adds what is read and
written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, InstanceOf, ValidationError, model_validator

from dptext_spark.mechanisms import Mechanism
from dptext_spark.settings.file import SECRET, override, read_settings
from dptext_spark.settings.locations import holds_credentials, inside, same_path, same_table
from dptext_spark.settings.names import parts_of, spelled
from dptext_spark.settings.problems import as_settings_error, problem
from dptext_spark.settings.sections import (
    Audit,
    Input,
    Key,
    Ledger,
    LexiconSource,
    Name,
    Output,
    Run,
    Section,
    Stream,
)
from dptext_spark.settings.values import mechanism_of, policy_of, section_of
from dptext_spark.text.policy import Policy

Self = TypeVar("Self", bound="ModelConfig")
STREAMS = ("incremental", "streaming")
TRIGGER = "10 seconds"  # of streaming, where none is named


class ModelConfig(Section):
    """What a privatizer is made of: lexicon, mechanism, policy, level of consistency."""

    consistency: Literal["token", "record", "dataset"] = "token"
    lexicon: Annotated[LexiconSource, BeforeValidator(section_of)] = LexiconSource()
    mechanism: Annotated[InstanceOf[Mechanism], BeforeValidator(mechanism_of)] = Field(
        default_factory=lambda: mechanism_of(None)
    )
    policy: Annotated[InstanceOf[Policy], BeforeValidator(policy_of)] = Policy()
    run: Annotated[Run, BeforeValidator(section_of)] = Run()
    key: Annotated[Key, BeforeValidator(section_of)] = Key()

    @model_validator(mode="after")
    def _fits_together(self: Self) -> Self:
        found = [*self._problems()]
        if found:
            raise problem("\n".join(found))
        return self

    def _problems(self) -> Iterable[str]:
        return _about_lexicons(self)

    @classmethod
    def of(cls: type[Self], settings: Mapping[str, Any]) -> Self:
        """Validate a dictionary of settings.

        Raises:
            SettingsError: names every setting that is not right, what was given and what is valid.
        """
        try:
            return cls.model_validate(dict(settings))
        except ValidationError as error:
            raise as_settings_error(error, cls) from None

    @classmethod
    def load(cls: type[Self], path: str | Path | None = None, overrides: Iterable[str] = ()) -> Self:
        """Read a YAML file (None: no file), apply `a.b=value` overrides, and validate.

        Raises:
            SettingsError: see :meth:`of` and :mod:`dptext_spark.settings.file`.
        """
        return cls.of(override({} if path is None else read_settings(path), overrides))

    def policy_object(self) -> Policy:
        """Return the policy."""
        return self.policy

    def spec(self) -> dict[str, Any]:
        """Return what an artifact is made from, JSON-able."""
        values = self.as_dict()
        return {name: values[name] for name in ("lexicon", "mechanism", "policy", "consistency")}

    def as_dict(self) -> dict[str, Any]:
        """Return all settings with their defaults, JSON-able, without secrets."""
        values = self.model_dump(mode="json", exclude={"mechanism", "policy"})
        fields = asdict(self.mechanism)  # type: ignore[call-overload]
        listed = {name: list(value) for name, value in fields.items() if isinstance(value, tuple)}
        values["mechanism"] = {"name": self.mechanism.name} | fields | listed
        words = self.policy.stop_word_list
        values["policy"] = asdict(self.policy) | {"stop_word_list": words if words is None else list(words)}
        return values


class RunConfig(ModelConfig):
    """Everything that a run reads, does and writes."""

    input: Input
    columns: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)]
    row_key: Name | None = None
    record_key: Name | None = None
    output: Output
    audit: Annotated[Audit, BeforeValidator(section_of)] = Audit()
    ledger: Annotated[Ledger, BeforeValidator(section_of)] = Ledger()
    mode: Literal["batch", "incremental", "streaming"] = "batch"
    stream: Annotated[Stream, BeforeValidator(section_of)] = Stream()

    @model_validator(mode="before")
    @classmethod
    def _streams_append(cls, given: Any) -> Any:
        """Let a stream append where the settings say nothing of it: it has no other way to write."""
        output = given.get("output") if isinstance(given, Mapping) else None
        if isinstance(output, Mapping) and given.get("mode") in STREAMS and "mode" not in output:
            return {**given, "output": {**output, "mode": "append"}}
        return given

    def _problems(self) -> Iterable[str]:
        return [
            *super()._problems(),
            *_about_columns(self),
            *_about_places(self),
            *_about_stream(self),
            *_about_ledger(self),
        ]

    @property
    def is_stream(self) -> bool:
        """Whether only what was added to the source is read."""
        return self.mode in STREAMS

    @property
    def checkpoint(self) -> str | None:
        """The folder that remembers what a stream has read; None in a batch run, or where only a catalog name is known."""
        if not self.is_stream or self.stream.checkpoint is not None or self.output.path is None:
            return self.stream.checkpoint
        return f"{self.output.path.rstrip('/')}_checkpoint"

    @property
    def shareable(self) -> str | None:
        """The folder of the audit tables that may be shared; None where only a catalog name is known."""
        return self._audit_folder("shareable")

    @property
    def restricted(self) -> str | None:
        """The folder of the audit tables that depend on the private text; None as above."""
        return self._audit_folder("restricted")

    def _audit_folder(self, name: str) -> str | None:
        named: str | None = getattr(self.audit, name)
        if named is not None or self.output.path is None:
            return named
        return f"{self.output.path.rstrip('/')}_audit/{name}"

    def as_dict(self) -> dict[str, Any]:
        """Return all settings with their defaults, JSON-able, without secrets."""
        values = super().as_dict()
        options = values["input"]["options"]
        values["input"]["options"] = {
            name: "(hidden)" if SECRET.search(name) else value for name, value in options.items()
        }
        order = ("input", "columns", "row_key", "record_key", "consistency", "lexicon", "mechanism", "policy")
        places = ("output", "key", "run", "audit", "ledger", "mode", "stream")
        return {name: values[name] for name in (*order, *places)}


def _about_lexicons(config: ModelConfig) -> Iterable[str]:
    """Yield what is wrong with the number of lexicons; where an artifact is named they need not be."""
    if config.run.artifact is not None and "lexicon" not in config.model_fields_set:
        return
    more, allowed = len(config.lexicon.more), config.mechanism.embeddings()
    if more + 1 in allowed:
        return
    preset = getattr(config.mechanism, "preset", "none")
    name = config.mechanism.name + ("" if preset == "none" else f" with preset {preset}")
    least, most = allowed[0] - 1, allowed[-1] - 1
    wanted = f"{least}" if least == most else f"{least} to {most}"
    valid = f"{wanted} further sources" if most else "leave it out"
    yield f"lexicon.more: {more} given, but mechanism {name} is compiled for {wanted} beside lexicon.source; valid: {valid}."


def _about_columns(config: RunConfig) -> Iterable[str]:
    """Yield what is wrong with the columns; Spark does not tell upper from lower case in their names."""
    lowered = [spelled(parts_of(column.lower()) or (column.lower(),)) for column in config.columns]
    for position, column in enumerate(config.columns):
        if lowered[position] in lowered[:position]:
            yield f"columns: {column!r} is named twice."
    for name in ("row_key", "record_key"):
        key = getattr(config, name)
        if key is not None and key.lower() in lowered:
            yield (
                f"{name}: {key!r} is a text column to sanitize; valid: another column, for a key stays in "
                "clear."
            )
    others = config.output.other_columns
    for column in others if isinstance(others, tuple) else ():
        if column.lower() in lowered:
            yield f"output.other_columns: {column!r} is one of `columns`, which are in the output anyway."
    yield from _about_partitions(config, lowered)
    if config.input.format == "text" and config.input.path is not None and config.columns != ("value",):
        yield f"columns: {list(config.columns)} given; valid: [value], the one column of format text."


def _about_partitions(config: RunConfig, texts: list[str]) -> Iterable[str]:
    """Yield what is wrong with the partition columns: their values name folders."""
    seen: set[str] = set()
    for column in config.output.partition_by:
        if column.lower() in texts:
            yield f"output.partition_by: {column!r} is a text column to sanitize; valid: another, for its values name folders."
        if column.lower() in seen:
            yield f"output.partition_by: {column!r} is named twice."
        seen.add(column.lower())


def _about_places(config: RunConfig) -> Iterable[str]:
    """Yield what is wrong with where things are read and written."""
    source, target = config.input, config.output
    if source.table and target.table and same_table(source.table, target.table):
        yield f"output.table: {target.table!r} is the input; valid: another table."
    places = {
        "input.path": source.path,
        "output.path": target.path,
        "audit.shareable": config.shareable,
        "audit.restricted": config.restricted,
        "stream.checkpoint": config.checkpoint,
    }
    sources = {"lexicon.source": config.lexicon.source}
    sources |= {f"lexicon.more[{n}].source": one.source for n, one in enumerate(config.lexicon.more)}
    for name, path in {**places, **sources}.items():
        if path is not None and holds_credentials(path):
            yield (
                f"{name}: holds a password or a signature; valid: a path without; use your platform's "
                "credentials."
            )
        if path is not None and path.startswith("~"):
            yield f"{name}: {path!r} begins with ~, which nobody expands here; valid: a whole path."
    known = [(name, path) for name, path in places.items() if path is not None]
    for position, (name, path) in enumerate(known):
        for other, against in known[:position]:
            if same_path(path, against):
                said = "the input" if other == "input.path" else other
                yield f"{name}: {path!r} is {said}; valid: another place."
            elif inside(path, against) or inside(against, path):
                yield f"{name}: {path!r} and {other} {against!r} lie inside each other; valid: places apart."


def _about_stream(config: RunConfig) -> Iterable[str]:
    """Yield what does not fit the mode: a stream needs a key that rows keep, a Delta source, and a place to remember."""
    if not config.is_stream:
        for name, default in Stream().model_dump().items():
            if getattr(config.stream, name) != default:
                given = getattr(config.stream, name)
                yield f"stream.{name}: {given!r} given with mode batch; valid: mode incremental or streaming."
        return
    mode, source = config.mode, config.input
    if config.row_key is None:
        yield f"row_key: none given; mode {mode} needs a unique column, for files and places change as a source grows."
    if source.path is not None and source.format != "delta":
        yield f"input.format: {source.format!r} given with mode {mode}; valid: delta, which knows what was added."
    if source.options:
        yield f"input.options: given with mode {mode}; valid: none; the settings of `stream` say how the source is read."
    if config.output.mode != "append":
        yield f"output.mode: {config.output.mode!r} given with mode {mode}; valid: append."
    if mode == "incremental" and config.stream.trigger is not None:
        yield (
            f"stream.trigger: {config.stream.trigger!r} given with mode incremental, which reads what is there and ends; "
            "valid: null, or mode streaming."
        )
    if config.checkpoint is None:
        yield "stream.checkpoint: none given; valid: a folder; needed where output.table is a catalog name."


def _about_ledger(config: RunConfig) -> Iterable[str]:
    """Yield what is wrong with where the ledger is: others may share it, so it lies in nobody's table."""
    path = config.ledger.path
    if path is None:
        return
    if holds_credentials(path):
        yield "ledger.path: holds a password or a signature; valid: a path without; use your platform's credentials."
    if path.startswith("~"):
        yield f"ledger.path: {path!r} begins with ~, which nobody expands here; valid: a whole path."
    places = {"input.path": config.input.path, "output.path": config.output.path}
    audits = {"audit.shareable": config.shareable, "audit.restricted": config.restricted}
    for name, place in {**places, **audits}.items():
        if place is None:
            continue
        beside = name == "audit.shareable" and inside(path, place) and not _is_audit_table(path, place)
        if not beside and (same_path(path, place) or inside(path, place) or inside(place, path)):
            yield f"ledger.path: {path!r} and {name} {place!r} lie inside each other; valid: places apart."


def _is_audit_table(path: str, shareable: str) -> bool:
    tables = (f"{shareable.rstrip('/')}/{name}" for name in ("runs", "published"))
    return any(same_path(path, table) or inside(path, table) for table in tables)


def load_model(path: str | Path | None = None, overrides: Iterable[str] = ()) -> ModelConfig:
    """Read what a privatizer is made of, from a file of a whole run or of these sections only.

    Raises:
        SettingsError: as :meth:`ModelConfig.load`.
    """
    settings = override({} if path is None else read_settings(path), overrides)
    whole = any(name in settings for name in ("input", "columns", "output"))
    return RunConfig.of(settings) if whole else ModelConfig.of(settings)
