"""The command line, `dptext`. Figures go to stdout, progress and errors to stderr.

A command ends with an exit code, and an error says no word of the data.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from dptext_spark._version import __version__
from dptext_spark.cli.audit_commands import audit, ledger, report
from dptext_spark.cli.model_commands import calibrate, certify, compare, lexicon_app, mechanisms
from dptext_spark.cli.preview_commands import preview, start
from dptext_spark.cli.run_commands import demo, doctor, jobs, release, run
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
from dptext_spark.report.console import FULL, JSON, write

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

    `debug` also prints the traceback, which may show private text; `as_json` also prints the error as JSON on stdout.
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
            _say("--debug: the traceback may show private text.")
            traceback.print_exc()
        return code


def _said(error: Exception) -> tuple[int, str]:
    """Return the exit code and the message of an error."""
    if not isinstance(error, DPTextError):
        kind = type(error).__name__
        hint = "Its text is not shown, because it may hold private words. `dptext --debug ...` shows it."
        return FAILED, f"failed: an unexpected {kind}. {hint}"
    code = error.exit_code if error.exit_code in _KINDS else FAILED
    return code, f"{_KINDS[code]}: {error}"


def _say(line: str) -> None:
    sys.stderr.write(f"dptext: {line}\n")


# Options that left, by command and by their names, and what to do instead.
_RESTRICTED = "a report shows restricted figures, and with --public leaves them out; `require` judges them"
_ALONE = "the settings stand alone: `dptext {command} FILE`"
_STEP = "the single steps take it: `dptext run FILE`, `dptext audit FILE {option} ...`, `dptext report FILE`"
_AS_START = "settings say it: `dptext start TABLE` writes some, `dptext preview --config FILE --input TABLE` takes them"
_IN_PYTHON = "a default serves; in Python `{function}` takes it"
_SIZES = _IN_PYTHON.format(function="audit.ComparisonSpec.of")
_SEARCH = _IN_PYTHON.format(function="audit.calibrate")
_AUDIT = _IN_PYTHON.format(function="dps.audit")
_LEFT = {
    "audit --annotations": "`python -m benchmarks labelled` of a checkout counts names of labelled texts",
    "audit --label-rows --queries --sample": _AUDIT,
    "calibrate --high --low --sample --steps": _SEARCH,
    "compare --attacked --draws --levels --records --words": _SIZES,
    "compare --lexicon": "it is a setting: --set lexicon.source=FOLDER",
    "compare --public-labels": "--labels takes both: --labels PRIVATE,PUBLIC",
    "demo --rows": "the sample has one size; `dptext start TABLE` looks at a table of yours",
    "doctor --config": _ALONE,
    "jobs --conf": "`dptext jobs conf` prints the folder",
    "ledger --config": _ALONE,
    "lexicon --format": "the first bytes tell it; in Python `dp.Lexicon.read` takes it",
    "preview --column --encoding --format --header --no-header --separator": _AS_START,
    "preview --top": "four candidates are listed; in Python `dp.preview` takes it",
    "release --attribute --author --encoder --label --masked-model --names --require --similarity": _STEP,
    "release --config": _ALONE,
    "report --audit": "the folder stands alone: `dptext report FOLDER`",
    "report --config": "the settings stand alone: `dptext report FILE`, with --run ID for an earlier run",
    "report --internal --most-names --most-words --publish": _RESTRICTED,
    "run --config": _ALONE,
    "run --price": "`dptext run FILE --full` shows the core-hours of 5 TB; multiply them by your price",
}


def _check_left(arguments: Sequence[str]) -> None:
    """Check that no option is one of those that left."""
    command = next((item for item in arguments if not item.startswith("-")), "")
    options = {item.partition("=")[0] for item in arguments}
    for left, instead in _LEFT.items():
        name, *names = left.split()
        for option in options.intersection(names) if name == command else ():
            raise SettingsError(
                f"{option}: no such option; {instead.format(command=command, option=option)}."
            )


app = typer.Typer(
    name="dptext",
    help="Replace the words of private text by differentially private draws.",
    epilog="Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()) + ".",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    demo, start, release, run, preview, certify, audit, report, ledger, calibrate, compare, mechanisms, doctor, jobs,
):  # fmt: skip
    app.command()(command)
app.add_typer(lexicon_app, name="lexicon")
for registered in (*app.registered_commands, *lexicon_app.registered_commands):
    registered.epilog = "Every command also takes --debug, --full and --json: `dptext --help`."


def _version(wanted: bool) -> None:
    if wanted:
        write(__version__)
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Print tracebacks, which may show private text.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Print everything; by default at most 40 lines.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of a screen.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Declare the options of every command; `main` takes them at any place."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code (see `dptext --help`).

    Args:
        arguments: what follows the program's name; None takes them from the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug, as_json = "--debug" in words, "--json" in words
    FULL.set("--full" in words)
    JSON.set(as_json)

    def command() -> int:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        _check_left(words)
        # What Java's second compiler gains comes too late for a command.
        os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
        try:
            app([item for item in words if item not in ("--debug", "--full", "--json")], prog_name="dptext")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0
        return 0

    return ended(command, debug=debug, as_json=as_json)


def job(arguments: Sequence[str] | None = None) -> None:
    """Run the command line as a job of a platform that calls a function: return on success, else raise SystemExit.

    Raises:
        SystemExit: the exit code is not 0; a platform that ignores what is returned must not take that for a success.
    """
    code = main(arguments)
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    sys.exit(main())
