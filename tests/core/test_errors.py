"""The error tree: exit codes that differ, messages that name the field and suggest."""

from __future__ import annotations

import pickle

import pytest

from dptext_spark import errors
from dptext_spark.errors import (
    BrokenRequirementError,
    CountMismatchError,
    DataError,
    DPTextError,
    NoRowsError,
    RecordingError,
    RunError,
    SettingsError,
    did_you_mean,
    require_choice,
    unknown,
)

CODES = {
    DPTextError: 1,
    SettingsError: 2,
    DataError: 3,
    RunError: 4,
    CountMismatchError: 5,
    RecordingError: 6,
    BrokenRequirementError: 7,
    NoRowsError: 8,
}


def test_every_error_has_an_exit_code_of_its_own() -> None:
    tree = {v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, Exception)}
    assert {error: error.exit_code for error in tree} == CODES
    assert all(issubclass(error, DPTextError) for error in tree)
    assert not issubclass(DPTextError, ValueError)


def test_errors_travel_between_processes() -> None:
    again = pickle.loads(pickle.dumps(DataError("row_key: 3 NULLs.")))
    assert type(again) is DataError
    assert str(again) == "row_key: 3 NULLs."


def test_a_name_outside_the_list() -> None:
    error = unknown("mechanism.name", "custxt", ["custext", "santext"])
    assert isinstance(error, SettingsError)
    assert str(error) == (
        "mechanism.name: 'custxt' is not known; valid: custext, santext. Did you mean 'custext'?"
    )
    assert str(unknown("a", 7, iter(["x", "y"]))) == "a: 7 is not known; valid: x, y."


@pytest.mark.parametrize(
    ("given", "suggestion"),
    [
        ("balance", " Did you mean 'balanced'?"),
        ("Balanced", " Did you mean 'balanced'?"),
        ("zzz", ""),
        (None, ""),
        ("", ""),
    ],
)
def test_suggestions(given: object, suggestion: str) -> None:
    assert did_you_mean(given, ["aggressive", "balanced", "conservative"]) == suggestion


def test_choices() -> None:
    require_choice("a.b", "x", iter(["x", "y"]))
    for given in ("z", None, 1, True, ["x"], b"x"):
        with pytest.raises(SettingsError, match=r"a\.b: .*valid: x, y"):
            require_choice("a.b", given, ("x", "y"))
