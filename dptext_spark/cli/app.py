"""The command line, `dptext`. Figures go to stdout, progress and errors to stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from dptext_spark._version import __version__
from dptext_spark.cli.audit import audit
from dptext_spark.cli.calibrate import calibrate
from dptext_spark.cli.certify import certify
from dptext_spark.cli.compare import compare
from dptext_spark.cli.demo import demo
from dptext_spark.cli.doctor import doctor
from dptext_spark.cli.exit_codes import EXIT_CODES, ended
from dptext_spark.cli.jobs import jobs
from dptext_spark.cli.ledger import ledger
from dptext_spark.cli.lexicon import lexicon_app
from dptext_spark.cli.mechanisms import mechanisms
from dptext_spark.cli.preview import preview
from dptext_spark.cli.report import report
from dptext_spark.cli.run import run
from dptext_spark.cli.start import start
from dptext_spark.report.terminal.console import write

app = typer.Typer(
    name="dptext",
    help="Replace the words of private text by differentially private draws.",
    epilog="Exit codes: " + "; ".join(f"{code} {said}" for code, said in EXIT_CODES.items()) + ".",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    demo, start, run, preview, certify, audit, report, ledger, calibrate, compare, mechanisms, doctor, jobs,
):  # fmt: skip
    app.command()(command)
app.add_typer(lexicon_app, name="lexicon")


def _version(wanted: bool) -> None:
    if wanted:
        write(__version__)
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Tracebacks, which may show private text.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Declare what stands before a command; `main` takes --debug wherever it stands."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code (see `dptext --help`).

    Args:
        arguments: what follows the program's name; None takes them from the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given

    def command() -> int:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        try:
            app([item for item in given if item != "--debug"], prog_name="dptext")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0
        return 0

    return ended(command, debug=debug, as_json="--json" in given)


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
