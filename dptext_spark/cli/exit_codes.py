"""How a command ends: its exit code, and what may be said of an error."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable

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

FAILED = RunError.exit_code
INTERRUPTED = 130
EXIT_CODES = {
    0: "done",
    SettingsError.exit_code: "bad settings: nothing was written",
    DataError.exit_code: "bad data: nothing was committed",
    RunError.exit_code: "the run failed or was refused before its commit",
    CountMismatchError.exit_code: "the run committed, but its counts or its consistency audit do not agree: do not share",
    RecordingError.exit_code: "the run committed, but its account failed: run again with the same run.id",
    BrokenRequirementError.exit_code: "a requirement is broken, of the settings or of the audit: do not publish the table",
    NoRowsError.exit_code: "the input has no row: nothing was committed or spent",
}
_KINDS = {
    SettingsError.exit_code: "bad settings",
    DataError.exit_code: "bad data",
    RunError.exit_code: "failed",
    CountMismatchError.exit_code: "mismatch",
    RecordingError.exit_code: "not accounted",
    BrokenRequirementError.exit_code: "requirement broken",
    NoRowsError.exit_code: "no row",
}


def ended(command: Callable[[], int | None], *, debug: bool = False, as_json: bool = False) -> int:
    """Run a command and return its exit code; an error is said on stderr, without a word of the data.

    Args:
        command: returns an exit code or None for 0.
        debug: also print the traceback, which may show private text.
        as_json: also print the error as a JSON document on stdout.
    """
    try:
        return command() or 0
    except KeyboardInterrupt:
        _say("interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of stdout went away, as `head` does; Python would complain again when it closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        code, message = _said(error)
        _say(message)
        if as_json:
            sys.stdout.write(json.dumps({"exit_code": code, "error": message}, ensure_ascii=False) + "\n")
        if debug:
            _say("--debug: what follows may show private text.")
            traceback.print_exc()
        return code


def _said(error: Exception) -> tuple[int, str]:
    """Return the exit code and the message of an error."""
    if not isinstance(error, DPTextError):
        kind = type(error).__name__
        hint = "Its text is not shown, for it may hold private words; `dptext --debug ...` shows it."
        return FAILED, f"failed: an unexpected {kind}. {hint}"
    code = error.exit_code if error.exit_code in _KINDS else FAILED
    return code, f"{_KINDS[code]}: {error}"


def _say(line: str) -> None:
    sys.stderr.write(f"dptext: {line}\n")
