"""Parameters are declared once: what is valid, the message, and the mechanisms' own declarations."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, fields
from typing import Any, Literal

import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import MECHANISMS, CusText, Mechanism
from dptext_spark.mechanisms.parameters import (
    Choice,
    Integer,
    Number,
    Parameter,
    choice,
    integer,
    number,
    parameters_of,
)

Form = Literal["round", "flat"]


@dataclass(frozen=True)
class Sample:
    wide: float = number(1.0, "Any.", above=0)
    zero: float = number(1.0, "Any.", zero="uniform")
    share: float = number(0.5, "A share.", most=1)
    half: float = number(0.5, "A share.", above=0, most=0.5)
    open: float = number(0.5, "A share.", above=0, below=1)
    tiny: float = number(0.5, "A share.", least=1e-6, below=1)
    free: float | None = number(None, "Any.", above=0, null=True)
    count: int = integer(3, "A number.", least=2, most=2**63 - 1)
    form: Form = choice(Form, "round", "A form.")  # noqa: RUF009


DECLARED = parameters_of(Sample)
LARGEST = sys.float_info.max
NO_NUMBERS = (math.nan, math.inf, -math.inf, "1", None, True, [1], 10**400)


@pytest.mark.parametrize(
    ("name", "good", "bad", "valid"),
    [
        ("wide", (1e-300, 3, LARGEST), (0, -1e-300), "a finite number, greater than 0"),
        ("zero", (0, 1e-300, LARGEST), (-1e-300,), "a finite number, 0 (uniform) or greater"),
        ("share", (0, 1, 0.3), (-1e-9, 1.0000001), "a number from 0 to 1"),
        ("half", (1e-9, 0.5), (0, 0.51), "a number above 0 and at most 0.5"),
        ("open", (1e-9, 0.999), (0, 1), "a number above 0 and below 1"),
        ("tiny", (1e-6, 0.999), (9.99e-7, 1), "a number from 0.000001 and below 1"),
    ],
)
def test_a_number_is_in_its_range_or_refused_with_it(
    name: str, good: tuple[float, ...], bad: tuple[float, ...], valid: str
) -> None:
    parameter = DECLARED[name]
    for value in good:
        assert parameter.problem("mechanism.x", value) is None
    for wrong in (*bad, *NO_NUMBERS):
        assert parameter.problem("mechanism.x", wrong) == f"mechanism.x: {wrong!r} given; valid: {valid}."


def test_null_is_valid_only_where_it_is_declared() -> None:
    free = DECLARED["free"]
    assert free.problem("x", None) is None
    assert free.problem("x", 0) == "x: 0 given; valid: null, or a finite number above 0."


def test_an_integer_is_no_float_and_no_boolean() -> None:
    for value in (2, 2**63 - 1):
        assert DECLARED["count"].problem("x", value) is None
    for wrong in (1, 2**63, 2.0, True, "2", None):
        said = DECLARED["count"].problem("x", wrong)
        assert said == f"x: {wrong!r} given; valid: an integer from 2 to {2**63 - 1}."


def test_a_choice_suggests_the_closest() -> None:
    form = DECLARED["form"]
    assert form.problem("x", "flat") is None
    assert form.problem("x", "rund") == "x: 'rund' is not known; valid: round, flat. Did you mean 'round'?"
    for wrong in (None, ["flat"], 1):
        said = form.problem("x", wrong)
        assert said is not None
        assert said.startswith(f"x: {wrong!r} is not known; valid: round, flat.")


def test_what_is_declared_is_what_is_told() -> None:
    told = {name: parameter.as_dict() for name, parameter in DECLARED.items()}
    assert told["half"] == {
        "type": "number",
        "null": False,
        "min": 0,
        "min_excluded": True,
        "max": 0.5,
        "max_excluded": False,
        "choices": None,
        "valid": "a number above 0 and at most 0.5",
        "meaning": "A share.",
    }
    assert told["wide"]["max"] is None
    assert told["free"]["null"] is True
    assert (told["count"]["min"], told["count"]["max"]) == (2, 2**63 - 1)
    assert told["form"]["choices"] == ["round", "flat"]
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize("kind", MECHANISMS.values(), ids=list(MECHANISMS))
class TestMechanisms:
    def test_every_field_is_declared_and_explained(self, kind: type[Mechanism]) -> None:
        declared = parameters_of(kind)
        assert list(declared) == [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
        assert all(parameter.meaning.endswith(".") for parameter in declared.values())
        for name in declared:
            assert f"    {name}: " in (kind.__doc__ or "")

    def test_a_value_outside_its_declaration_is_refused_by_name(self, kind: type[Mechanism]) -> None:
        for name, parameter in parameters_of(kind).items():
            for wrong in (*outside(parameter), object(), {}, b""):
                with pytest.raises(SettingsError, match=rf"^mechanism\.{name}: "):
                    kind(**({"m": 3} if kind.name == "projection" else {}) | {name: wrong})


def outside(parameter: Parameter) -> list[Any]:
    match parameter:
        case Number(low=low, high=high):
            return [
                math.nextafter(low, -math.inf),
                math.inf if high is None else math.nextafter(high, math.inf),
            ]
        case Integer(low=low, high=high):
            return [low - 1, high + 1]
        case Choice():
            return ["", None]
    return [-1, 1.5, "", ()]


def test_the_docstring_explains_the_parameters_once() -> None:
    said = CusText.__doc__ or ""
    assert said.count("Attributes:") == 1
    assert "from all. Valid: an integer from 2 to 4096." in said
