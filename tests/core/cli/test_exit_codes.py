"""How commands end: exit codes, one clear line, and never a word of the data."""

from __future__ import annotations

import pytest

from dptext_spark.cli.app import EXIT_CODES, INTERRUPTED, ended
from dptext_spark.errors import (
    BrokenRequirementError,
    CountMismatchError,
    DataError,
    DPTextError,
    NoRowsError,
    RecordingError,
    RunError,
    SettingsError,
)


def failing(error: BaseException) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (SettingsError, 2, "bad settings"),
        (DataError, 3, "bad data"),
        (RunError, 4, "failed"),
        (CountMismatchError, 5, "mismatch"),
        (RecordingError, 6, "not accounted"),
        (BrokenRequirementError, 7, "requirement broken"),
        (NoRowsError, 8, "no row"),
        (DPTextError, 4, "failed"),
    ],
)
def test_each_kind_of_error_has_its_code(
    error: type[DPTextError], code: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(lambda: failing(error("field: x given; valid: y."))) == code
    assert capsys.readouterr() == ("", f"dptext: {kind}: field: x given; valid: y.\n")
    assert code in EXIT_CODES


def test_no_ending_says_that_a_run_committed_and_did_not() -> None:
    for code, said in EXIT_CODES.items():
        before = "nothing was" in said or "before its commit" in said
        assert before == (code in (2, 3, 4, 8))
        assert ("the run committed" in said) == (code in (5, 6))


def test_an_unexpected_error_is_named_by_its_type_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(lambda: failing(KeyError("marker"))) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert "an unexpected KeyError" in err
    assert "--debug" in err
    assert "marker" not in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(lambda: failing(KeyError("marker")), debug=True) == 4
    err = capsys.readouterr().err
    assert err.index("may show private text") < err.index("Traceback") < err.index("marker")


def test_a_command_that_returns_is_done() -> None:
    assert ended(lambda: None) == 0
    assert ended(lambda: 7) == 7


def test_an_interruption_is_no_failure_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(lambda: failing(KeyboardInterrupt())) == INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err
