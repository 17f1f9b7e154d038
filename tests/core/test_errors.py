"""The error tree: exit codes that differ, messages that name the field and suggest."""

from __future__ import annotations

import pickle

import pytest

from dptext_spark import errors
from dptext_spark.errors import DataError, DPTextError, SettingsError, did_you_mean, require_choice, unknown

NAMES = "DPText Settings Data Run CountMismatch Recording BrokenRequirement NoRows"
CODES = {f"{name}Error": code for code, name in enumerate(NAMES.split(), start=1)}


def test_every_error_has_an_exit_code_of_its_own() -> None:
    tree = {v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, Exception)}
    assert {error.__name__: error.exit_code for error in tree} == CODES
    assert set(errors.__all__) == set(CODES)
    assert all(issubclass(error, DPTextError) for error in tree)
    assert not issubclass(DPTextError, ValueError)


def test_errors_travel_between_processes() -> None:
    again = pickle.loads(pickle.dumps(DataError("row_key: 3 NULLs.")))
    assert type(again) is DataError
    assert str(again) == "row_key: 3 NULLs."


@pytest.mark.parametrize(
    ("given", "suggestion"),
    [
        ("balance", " Did you mean 'balanced'?"),
        ("Balanced", " Did you mean 'balanced'?"),
        ("zzz", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_a_name_outside_the_list_is_told_with_the_closest(given: object, suggestion: str) -> None:
    choices = ("aggressive", "balanced", "conservative")
    assert did_you_mean(given, [*choices]) == suggestion
    error = unknown("a.b", given, iter(choices))
    assert isinstance(error, SettingsError)
    assert str(error) == f"a.b: {given!r} is not valid. Choose {errors.either(choices)}.{suggestion}"


def test_choices() -> None:
    require_choice("a.b", "x", iter(["x", "y"]))
    for given in ("z", None, 1, True, ["x"], b"x"):
        with pytest.raises(SettingsError, match=r"a\.b: .*Choose x or y"):
            require_choice("a.b", given, ("x", "y"))
