"""The registered mechanisms as values: guarantee, cost, certificate, and parameters with defaults and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from dptext_spark.mechanisms import MECHANISMS, Mechanism, mechanism_named
from dptext_spark.mechanisms.parameters import Parameter, parameters_of
from dptext_spark.report.terminal.console import hanging
from dptext_spark.runtime.record import Json, Record

LEAST_TEXT = 40  # columns beside the parameters' names; with less, what is said of them stands below


@dataclass(frozen=True)
class DescribedParameter(Record):
    """A parameter of a mechanism, its default, and what its declaration says."""

    name: str
    default: Any
    declared: Parameter

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is None and not self.declared.null

    @property
    def head(self) -> str:
        """`name = default` as YAML writes it."""
        if self.required:
            return f"{self.name} (required)"
        return f"{self.name} = {'null' if self.default is None else self.default}"

    def as_dict(self) -> dict[str, Json]:
        """Return it, JSON-able."""
        named: dict[str, Json] = {"name": self.name, "default": self.default, "required": self.required}
        return {**named, **self.declared.as_dict()}


@dataclass(frozen=True)
class DescribedMechanism(Record):
    """A mechanism.

    Attributes:
        name: in the settings.
        paper: that it is of.
        guarantee: that it gives, in words.
        cost: a class, in words.
        measured: an order of magnitude; None where no record has one.
        certificate: how it is certified, in words.
        parameters: in order.
    """

    name: str
    paper: str
    guarantee: str
    cost: str
    measured: str | None
    certificate: str
    parameters: tuple[DescribedParameter, ...]

    @classmethod
    def of(cls, registered: str, kind: type[Mechanism]) -> DescribedMechanism:
        """Describe a mechanism by the name that it is registered under."""
        defaults = {field.name: field.default for field in fields(kind)}
        declared = parameters_of(kind).items()
        certified_by = kind.certified_by or kind.sampler.certified_by
        parameters = tuple(DescribedParameter(name, defaults[name], one) for name, one in declared)
        return cls(
            registered, kind.paper, kind.protects, kind.sampler.cost, kind.measured, certified_by, parameters
        )

    def lines(self, columns: int) -> Iterator[str]:
        """Write it for a person, in lines of so many columns."""
        yield self.name
        measured = f" (measured: {self.measured})" if self.measured else ""
        said = {"paper": self.paper, "guarantee": self.guarantee, "cost": f"{self.cost}{measured}"}
        for name, text in {**said, "certificate": self.certificate}.items():
            yield hanging(f"  {name:<13}", text, columns)
        heads = [f"    {one.head}" for one in self.parameters]
        indent = max(map(len, heads)) + 2
        for head, one in zip(heads, self.parameters, strict=True):
            text = f"{one.declared.meaning} Valid: {one.declared.valid}."
            if columns - indent >= LEAST_TEXT:
                yield hanging(f"{head:<{indent}}", text, columns)
            else:
                yield head
                yield hanging(" " * 8, text, columns)


def catalogue() -> list[DescribedMechanism]:
    """Return all mechanisms that are registered."""
    return [DescribedMechanism.of(name, kind) for name, kind in MECHANISMS.items()]


def described(name: str) -> DescribedMechanism:
    """Return one mechanism.

    Raises:
        SettingsError: there is no such mechanism.
    """
    return DescribedMechanism.of(name, mechanism_named("name", name))


def catalogue_text(mechanisms: Iterable[DescribedMechanism], columns: int) -> str:
    """Write mechanisms for a person, in lines of so many columns."""
    return "\n\n".join("\n".join(one.lines(columns)) for one in mechanisms)
