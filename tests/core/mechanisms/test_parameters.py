"""Parameters are declared once: what is valid, the message, and the mechanisms' own declarations."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, Literal

import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import MECHANISMS, Mechanism
from dptext_spark.mechanisms.parameters import Parameter, choice, integer, number, parameters_of
from dptext_spark.runtime.validation import problems_of

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
    for value in good:
        assert not [*problems_of(replace(Sample(), **{name: value}), "x")]
    for wrong in (*bad, *NO_NUMBERS):
        (problem,) = problems_of(replace(Sample(), **{name: wrong}), "x")
        assert problem.startswith(f"x.{name}: ")
        assert problem.endswith(f" is not valid. Choose {valid}.")


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
    low, high = parameter.limits.min, parameter.limits.max
    match parameter.kind:
        case "number":
            return [
                math.nextafter(low, -math.inf),
                math.inf if high is None else math.nextafter(high, math.inf),
            ]
        case "integer":
            return [low - 1, high + 1]
        case "choice":
            return ["", None]
    return [-1, 1.5, "", ()]


DEFAULTS = {
    "custext": (1.0, 20, "balanced", "cosine", "join", "published", False, "none"),
    "diffractor": (1.0, "geometric", 1, 0, "none", 0.001, "published", "none"),
    "santext": (1.0, "none", 0.2, "published", "none"),
    "tem": (1.0, 0.001, None, "published", "none"),
}
CLIPPED = ("laplace", "gaussian", "truncated_laplace")
NOISY = (*CLIPPED, "mvc", "mahalanobis", "vickrey", "projection")
SHARE = (-0.1, 1.1, "0.5", False)
ANY = (math.nan, math.inf, -math.inf, True, "1", [1], 10**400)  # right for no field
REFUSED: list[tuple[str, str, tuple[object, ...]]] = [
    *((name, "epsilon", (-1, -1e-300, 5e-324, 1e-320, 9.9e-7, False, 1j, -(10**400))) for name in MECHANISMS),
    *((name, "epsilon", (0, 0.0)) for name in MECHANISMS if name != "custext"),
    ("custext", "k", (0, 1, -3, 4097, 10**9, 20.0, "20")),
    ("custext", "mapping", ("balance", "agressive", 1, "", ["balanced"])),
    ("custext", "metric", ("euclid", "Cosine", 1, "", ["balanced"])),
    ("custext", "remainder", ("joined", 1, "", ["balanced"])),
    ("diffractor", "lists", (0, -1, 65, 1.0)),
    ("diffractor", "list_seed", (-1, 2**63, 0.0, "0", False)),
    ("diffractor", "beta", (0, 1, 0.0, 1.0, -0.1, 1.1, "0.1")),
    ("diffractor", "form", ("geo", "geometrical", "TEM", "", 1, ["tem"])),
    ("diffractor", "preset", ("L3", "l0", 0, "")),
    (
        "santext",
        "sensitive",
        (0, -0.5, 1.01, "all", "", {"a": 1}, 1j, [], ["one"], ["a", ""], ["a", 5], [None] * 2),
    ),
    ("santext", "p", (0, 1e-7, -1, 1.1, "0.2")),
    ("tem", "beta", (0, -0.1, 0.51, 1, "0.1")),
    ("tem", "gamma", (0, -1.0, "5", [5])),
    ("vickrey", "t", SHARE),
    ("vickrey", "lam", SHARE),
    ("vickrey", "noise", ("laplace", "Calibrated", "", 1)),
    ("mahalanobis", "lam", SHARE),
    ("projection", "m", (0, -3, 4097, 2.0, "5")),
    ("projection", "seed", (-1, 2**63, 0.5, "7", False)),
    ("truncated_gumbel", "unsafe", ("yes",)),
    *((name, "clip", (0, -1.0)) for name in CLIPPED),
    *((name, "snap", ("Clipped", 1)) for name in CLIPPED),
    *((name, "delta", (0, 0.0, 1.0, 1, -0.1, 2.0, "0.1")) for name in CLIPPED[1:]),
    *((name, "calibration", ("exact",)) for name in CLIPPED[1:]),
    *((name, "calibration", ("best",)) for name in DEFAULTS),
    *((name, "search", ("hnsw", "annoy", "IVF", 1, ["ivf"])) for name in NOISY),
]


@pytest.mark.parametrize(("name", "field", "values"), REFUSED)
def test_bad_values(name: str, field: str, values: tuple[object, ...]) -> None:
    null = parameters_of(MECHANISMS[name])[field].as_dict()["null"]
    needed = {"m": 3} if name == "projection" else {}
    for value in (*values, *ANY, *(() if null else (None,))):
        with pytest.raises(SettingsError, match=rf"^mechanism\.{field}: .*(valid|two words or more)"):
            MECHANISMS[name](**(needed | {field: value}))


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name: str) -> None:
    assert astuple(MECHANISMS[name]()) == DEFAULTS[name]
