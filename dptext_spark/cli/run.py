"""`dptext run`: the job, or what it would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dptext_spark.cli.options import Json, Override
from dptext_spark.errors import BrokenRequirementError, DPTextError
from dptext_spark.report.terminal.console import PRICE, progress, width, write, write_error, write_json

if TYPE_CHECKING:
    from dptext_spark.config.model import RunConfig
    from dptext_spark.model.dry_run import Checked
    from dptext_spark.report.terminal.summary import Pair
    from dptext_spark.runtime.progress import Progress
    from dptext_spark.spark.job.job import RunResult


def run(
    config: Annotated[
        Path,
        typer.Argument(
            help="The settings, a YAML file; conf/ holds examples. Or a style, strict, balanced or papers, with --set."
        ),
    ],
    overrides: Override = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check schemas, keys and targets, and show the plan; write nothing."),
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="With --dry-run: all settings, steps and the whole disclosure.")
    ] = False,
    as_json: Json = False,
    internal: Annotated[
        bool, typer.Option("--internal", help="Also show figures that depend on the private text.")
    ] = False,
    price: Annotated[
        float, typer.Option(min=0.0, help="Price of a core-hour, to estimate what 5 TB would cost.")
    ] = PRICE,
) -> None:
    """Run the job: read a table, sanitize its text columns, write a Delta table and the account."""
    from dptext_spark.config.load import load_config
    from dptext_spark.config.styles import file_of_style
    from dptext_spark.errors import SettingsError

    if full and not dry_run:
        raise SettingsError(
            "--full: given without --dry-run, whose output it completes; valid: both, or neither."
        )
    file = file_of_style(config)
    settings = load_config(file, overrides or ())
    if dry_run:
        return _plan(settings, full, as_json)
    from dptext_spark.report.terminal.summary import summary
    from dptext_spark.spark.runner import run_by_command

    with progress() as say:
        report = run_by_command(settings, lambda step: say(step, None))
    if as_json:
        write_json(report.as_dict(internal=internal))
    else:
        pair = _pair(settings, report) if internal else None
        write(
            summary(
                report.outcome, internal=internal, price=price, columns=width(), verdict=report.verdict,
                pair=pair, settings=str(file), overrides=overrides or (),
            )
        )  # fmt: skip
    if report.broken:
        write_error(
            f"requirement broken: {'; '.join(report.broken)}. Do not publish the table of run {report.run_id}."
        )
        raise typer.Exit(BrokenRequirementError.exit_code)


def _pair(settings: RunConfig, result: RunResult) -> Pair | str | None:
    """Return a row before and after, or why there is none; None where nothing was written now."""
    from dptext_spark.report.terminal.summary import Pair
    from dptext_spark.spark.reporting.report import first_pair

    if result.status not in ("succeeded", "recovered") or settings.is_stream:
        return None
    try:
        found = first_pair(settings, result.run_id)
    except DPTextError as error:
        return str(error)
    return None if found is None else Pair(*found)


def _plan(settings: RunConfig, full: bool, as_json: bool) -> None:
    from dptext_spark.report.terminal import dry_run
    from dptext_spark.report.terminal.plan import plan

    with progress() as say:
        checked = _checked(settings, say)
        planned = plan(settings, say)
    if as_json:
        write_json(dry_run.as_record(planned, checked))
    elif full:
        write(dry_run.full(planned, checked, width()))
    else:
        write(dry_run.screen(planned, checked, width()))


def _checked(settings: RunConfig, say: Progress) -> Checked:
    """Check the run by its files, or by Spark where these do not tell."""
    from dptext_spark.errors import DataError
    from dptext_spark.model.dry_run import check_here
    from dptext_spark.model.tables.delta_log import NeedsSparkError

    say("reading schemas", None)
    try:
        return check_here(settings)
    except OSError as error:
        raise DataError(f"a file of the input or the target cannot be read ({error.strerror}).") from None
    except NeedsSparkError as why:
        say(f"asking Spark, for the input or the target {why}", None)
    from dptext_spark.spark.job.dry_run import check_by_spark

    return check_by_spark(settings, lambda step: say(step, None))
