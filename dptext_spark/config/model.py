"""The settings as typed sections: each field of the right type, each value in its range.

Agreement between sections is checked where they are read (:mod:`dptext_spark.config.load`). The sections `mechanism` and `policy`
are the dataclasses themselves: their fields, choices and ranges are not repeated here. :class:`ModelConfig` describes a
privatizer; :class:`RunConfig` adds input and output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, InstanceOf, PlainValidator, ValidationInfo, model_validator

from dptext_spark.config.condition import Condition, reads_hidden
from dptext_spark.config.file import is_harmless
from dptext_spark.config.requirements import Requirement
from dptext_spark.config.sections import (
    Approval,
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
from dptext_spark.config.values import (
    ALLOW_UNKNOWN,
    MOST_COLUMNS,
    of_runs_apart,
    parse_budget,
    parse_lists,
    parse_mechanism,
    parse_policy,
    parse_requirements,
    parse_row_key,
    parse_section,
    parse_selection,
)
from dptext_spark.errors import SettingsError
from dptext_spark.importance.budget import Budget
from dptext_spark.importance.levels import Importance
from dptext_spark.lexicon.lexicon import PACKAGED_VERSION
from dptext_spark.mechanisms import Mechanism
from dptext_spark.runtime.display import cut, line
from dptext_spark.text.names.search import NO_SEARCH, ListSources
from dptext_spark.text.policy import Policy

STREAMS = ("incremental", "streaming")
HIDDEN = "(hidden)"  # in the place of a value that is not shown
TRIGGER = "10 seconds"  # of streaming, where none is named
AUDITED_ROWS = 1000  # about how many rows, in whole records, a run checks against its input


def other_lexicon(then: int, now: int) -> str:
    """Describe a change of the packaged lexicon and its consequences."""
    return f"lexicon.version ({then} then, {now} now): the packaged lexicon has changed, so that the same key gives other draws"


def columns_along(named: str | Sequence[str], row_key: str | None) -> tuple[str, ...] | None:
    """Return the columns that go along with the texts: the row key and the named ones; None for all.

    Args:
        named: output.other_columns.
        row_key: of the settings.
    """
    if named == "keep":
        return None
    along = () if row_key is None else (row_key,)
    return tuple(dict.fromkeys((*along, *(() if named == "drop" else named))))


class ModelConfig(Section):
    """Settings of a privatizer: lexicon, mechanism, policy, level of consistency."""

    # Its sections are merged with the settings first. None in Python, where sections have their own defaults.
    style: Literal["balanced", "strict", "papers"] | None = None
    consistency: Literal["token", "record", "dataset"] = "token"
    lexicon: Annotated[LexiconSource, BeforeValidator(parse_section)] = LexiconSource()
    mechanism: Annotated[InstanceOf[Mechanism], BeforeValidator(parse_mechanism)] = Field(
        default_factory=lambda: parse_mechanism(None)
    )
    policy: Annotated[InstanceOf[Policy], BeforeValidator(parse_policy)] = Policy()
    importance: Annotated[InstanceOf[Importance] | None, BeforeValidator(parse_selection)] = None
    budget: Annotated[InstanceOf[Budget] | None, BeforeValidator(parse_budget)] = None
    # `mask` and `keep` of the policy.
    lists: Annotated[InstanceOf[ListSources], BeforeValidator(parse_lists)] = ListSources()
    # Also in the section `policy`: whether a run continues if most words are unknown. It changes no draw.
    allow_unknown: bool = False
    run: Annotated[Run, BeforeValidator(parse_section)] = Run()
    key: Annotated[Key, BeforeValidator(parse_section)] = Key()

    def __repr__(self) -> str:
        """Return mechanism, policy and level; neither places nor lists."""
        return line(
            type(self).__name__, cut(repr(self.mechanism), 80), cut(repr(self.policy), 60), self.consistency
        )

    __str__ = __repr__

    @model_validator(mode="before")
    @classmethod
    def _of_runs_apart(cls, values: object) -> object:
        return of_runs_apart(values)

    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Return the mechanism of each level of importance; the only one if there is one level or all words are drawn."""
        return (self.mechanism,) if self.importance is None else self.importance.mechanisms(self.mechanism)

    def without_context(self) -> ModelConfig:
        """Return the settings with a mechanism whose draws do not depend on the word before them."""
        return self.model_copy(update={"mechanism": self.mechanism.without_context()})

    @property
    def lexicon_version(self) -> int | None:
        """The version of the packaged lexicon; None where it is not used, or where an artifact alone defines the words."""
        by_artifact = self.run.artifact is not None and "lexicon" not in self.model_fields_set
        return PACKAGED_VERSION if self.lexicon.is_packaged and not by_artifact else None

    def spec(self) -> dict[str, Any]:
        """Return the settings that an artifact is made from, JSON-able."""
        values = self.as_dict()
        names = ("lexicon", "mechanism", "policy", "consistency", "importance", "budget")
        recipe = {name: values[name] for name in names if name in values}
        of_runs = {*self.lists.as_dict(), ALLOW_UNKNOWN}
        if (
            recipe["policy"].get("names") == NO_SEARCH
        ):  # a model without a search has one recipe, with a style and without
            of_runs.add("names")
        if self.lexicon.is_packaged:
            recipe["lexicon"]["version"] = self.lexicon_version
        return {
            **recipe,
            "policy": {name: value for name, value in recipe["policy"].items() if name not in of_runs},
        }

    def as_dict(self) -> dict[str, Any]:
        """Return all settings with their defaults, JSON-able, without secrets."""
        values = self.model_dump(
            mode="json", exclude={"mechanism", "policy", "importance", "budget", "lists", ALLOW_UNKNOWN}
        )
        if self.style is None:  # unused settings leave no trace
            del values["style"]
        for name in ("prior", "exclude"):
            if getattr(self.lexicon, name) is None:
                del values["lexicon"][name]
        values["mechanism"] = self.mechanism.as_dict()
        values["importance"] = None if self.importance is None else self.importance.as_dict()
        if self.budget is not None:  # unused settings leave no trace
            values["budget"] = self.budget.as_dict()
        words = self.policy.stop_word_list
        values["policy"] = self.policy.as_dict() | {"stop_word_list": words if words is None else list(words)}
        if self.style is not None:  # which would else add its own search where these settings are read again
            values["policy"].setdefault("names", NO_SEARCH)
        values["policy"] |= self.lists.as_dict()
        if self.allow_unknown:  # unused settings leave no trace
            values["policy"][ALLOW_UNKNOWN] = True
        return values


class RunConfig(ModelConfig):
    """Everything that a run reads, does and writes.

    Examples:
        >>> config = dp.load_config("reviews.yaml")
        >>> config.columns, config.shareable
        (('body',), '/data/reviews_sanitized_audit/shareable')
    """

    input: Input
    columns: Annotated[tuple[Name, ...], Field(strict=False, min_length=1, max_length=MOST_COLUMNS)]
    row_key: Annotated[Name | None, BeforeValidator(parse_row_key)] = None
    record_key: Name | None = None
    output: Output
    audit: Annotated[Audit, BeforeValidator(parse_section)] = Audit()
    ledger: Annotated[Ledger, BeforeValidator(parse_section)] = Ledger()
    mode: Literal["batch", "incremental", "streaming"] = "batch"
    stream: Annotated[Stream, BeforeValidator(parse_section)] = Stream()
    # Neither changes a draw or is written to an account; `as_dict` leaves both out.
    require: Annotated[tuple[Requirement[str], ...], PlainValidator(parse_requirements)] = Field(
        (), exclude=True
    )
    approval: Annotated[Approval, BeforeValidator(parse_section)] = Field(Approval(), exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _by_one_door(cls, given: Any, info: ValidationInfo) -> Any:
        """Refuse settings that are made by hand: no style was merged with them, and no row key asked for."""
        if info.context is None:
            raise SettingsError(
                "RunConfig: built directly, without a style and without the checks of the settings. Use load_config(FILE, "
                "OVERRIDES), or load_config(overrides=[...]) without a file."
            )
        return given

    @model_validator(mode="before")
    @classmethod
    def _streams_append(cls, given: Any) -> Any:
        """Let a stream append by default: it has no other way to write."""
        output = given.get("output") if isinstance(given, Mapping) else None
        if isinstance(output, Mapping) and given.get("mode") in STREAMS and "mode" not in output:
            return {**given, "output": {**output, "mode": "append"}}
        return given

    @property
    def other_columns(self) -> tuple[str, ...] | None:
        """Further columns of the output besides the texts; None for all."""
        return columns_along(self.output.other_columns, self.row_key)

    @property
    def hides_where(self) -> bool:
        """True if `input.where` reads a column that is sanitized or left out: then only column names are shown."""
        return reads_hidden(self.input.where, self.columns, self.other_columns)

    @property
    def shown_where(self) -> Condition | None:
        """The condition on the input as it may be shown."""
        where = self.input.where
        return dict.fromkeys(where, HIDDEN) if where and self.hides_where else where

    @property
    def is_stream(self) -> bool:
        """True if the run reads only rows that were added to the source."""
        return self.mode in STREAMS

    @property
    def checkpoint(self) -> str | None:
        """The folder that remembers the progress of a stream; None in a batch run, or if only a catalog name is known."""
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
        """Return all settings with their defaults, JSON-able, without secrets: of the reader's options only harmless values.

        Where `input.where` reads a column that is not released unchanged, only its columns are named.

        Requirements and approval are left out: they do not define a run.
        """
        values = super().as_dict()
        options = values["input"]["options"]
        values["input"]["options"] = {
            name: value if is_harmless(name, value) else HIDDEN for name, value in options.items()
        }
        values["input"]["where"] = self.shown_where
        order = (
            "input", "columns", "row_key", "record_key", "style", "consistency", "lexicon", "mechanism", "policy", "importance",
            "budget", "output", "key", "run", "audit", "ledger", "mode", "stream",
        )  # fmt: skip
        return {name: values[name] for name in order if name in values}
