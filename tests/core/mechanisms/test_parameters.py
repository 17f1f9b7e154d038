"""Parameters are declared once: what is valid, the message, and the mechanisms' own declarations."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import fields, replace
from typing import Any

import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import MECHANISMS, TEM, Mechanism
from dptext_spark.mechanisms.parameters import Parameter, parameters_of

NO_NUMBERS = (math.nan, math.inf, -math.inf, "1", None, True, [1], 10**400)


def test_what_is_declared_is_what_is_told() -> None:
    told = {name: parameter.as_dict() for name, parameter in parameters_of(TEM).items()}
    assert told["beta"] == {
        "type": "number",
        "null": False,
        "min": 0,
        "min_excluded": True,
        "max": 0.5,
        "max_excluded": False,
        "choices": None,
        "valid": "a number above 0 and at most 0.5",
        "meaning": parameters_of(TEM)["beta"].meaning,
    }
    assert told["gamma"]["max"] is None
    assert told["gamma"]["null"] is True
    assert told["remap"]["choices"] == ["none", "bayes"]
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
        needed = {"m": 3} if kind.name == "projection" else {}
        for name, parameter in parameters_of(kind).items():
            for wrong in (*outside(name, parameter), object(), {}, b"", *(() if parameter.null else (None,))):
                with pytest.raises(SettingsError, match=rf"^mechanism\.{name}: .*(valid|two words or more)"):
                    kind(**(needed | {name: wrong}))

    def test_a_number_is_in_its_range_or_refused_with_it(self, kind: type[Mechanism]) -> None:
        declared = {n: p for n, p in parameters_of(kind).items() if p.kind in ("number", "integer")}
        made = kind(**({"m": 3} if kind.name == "projection" else {}))
        for name, parameter in declared.items():
            for value in inside(parameter):
                assert getattr(replace(made, **{name: value}), name) == value
            with pytest.raises(SettingsError) as caught:
                replace(made, **{name: -1})
            assert str(caught.value) == f"mechanism.{name}: -1 is not valid. Choose {parameter.valid}."
        numbers = {name: parameter.valid for name, parameter in declared.items()}
        least = "0 (uniform), or a finite number" if kind.name == "custext" else "a finite number"
        assert numbers.pop("epsilon") == f"{least}, 0.000001 or greater"
        assert numbers == NUMBERS.get(kind.name, {})


def inside(parameter: Parameter) -> list[Any]:
    """The ends of a range and a number beside those that are left out."""
    low, low_excluded, high, high_excluded = parameter.limits
    least = 1e-300 if low_excluded else low
    return [least, sys.float_info.max if high is None else math.nextafter(high, 0) if high_excluded else high]


def outside(name: str, parameter: Parameter) -> list[Any]:
    low, low_excluded, high, high_excluded = parameter.limits
    match parameter.kind:
        case "number":
            least = low if low_excluded else math.nextafter(low, -math.inf)
            most = math.inf if high is None else high if high_excluded else math.nextafter(high, math.inf)
            gap = (-1, -1e-300, 5e-324, 9.9e-7) if name == "epsilon" else ()
            gap += (0, 0.0) if gap and "uniform" not in parameter.valid else ()
            return [least, most, 1j, False, *gap, *(wrong for wrong in NO_NUMBERS if wrong is not None)]
        case "integer":
            return [low - 1, high + 1, float(low), str(low), True, [low], math.nan, 10**400]
        case "choice":
            return ["", 1, True, math.nan, ["published"], f"{parameter.choices[0]}s"]  # type: ignore[index]
    lists = [[], ["one"], ["a", ""], ["a", 5], [None] * 2] if parameter.words else []
    lists += [0, 1.01, True, math.inf, 10**400] if parameter.words else []
    return [-1, 1.5, "", (), "all", 1j, math.nan, *lists]


BETA, SHARE = "a number above 0 and below 1", "a number from 0 to 1"
SEED = f"an integer from 0 to {2**63 - 1}"
CLIP = {"clip": "a finite number, greater than 0"}
NUMBERS = {
    "custext": {"k": "an integer from 2 to 4096"},
    "santext": {"p": "a number from 0.000001 to 1"},
    "tem": {"beta": "a number above 0 and at most 0.5", "gamma": "null, or a finite number above 0"},
    "diffractor": {"lists": "an integer from 1 to 64", "list_seed": SEED, "beta": BETA},
    "mahalanobis": {"lam": SHARE},
    "vickrey": {"t": SHARE, "lam": SHARE},
    "projection": {"m": "an integer from 1 to 4096", "seed": SEED},
    "laplace": CLIP,
    "gaussian": CLIP | {"delta": f"null, or {BETA}"},
    "truncated_laplace": CLIP | {"delta": f"null, or {BETA}"},
}
