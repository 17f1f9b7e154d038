"""`dptext run` does the job, or shows what it would do; `demo` does it on a sample, `doctor` and `jobs` prepare it."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dptext_spark.cli import Json, Override, end_where_broken, settings_of
from dptext_spark.demo import TICKETS
from dptext_spark.errors import DPTextError, RunError
from dptext_spark.report.terminal.console import PRICE, Screen, progress, show, write, write_json

if TYPE_CHECKING:
    from dptext_spark.config.model import RunConfig
    from dptext_spark.model.dry_run import Checked
    from dptext_spark.report.facts import Example
    from dptext_spark.report.terminal.plan import Plan
    from dptext_spark.spark.job.job import RunResult


def run(
    config: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="The settings, a YAML file; conf/ holds examples. Or a style, strict, balanced or papers, with --set.",
        ),
    ],
    overrides: Override = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check schemas, keys and targets, and show the plan; write nothing."),
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

    file = settings_of("run", config)
    settings = load_config(file, overrides or ())
    if dry_run:
        return _plan(settings, as_json)
    from dptext_spark.report.terminal.summary import summary
    from dptext_spark.spark.runner import run

    with progress() as say:
        report = run(settings, progress=lambda step: say(step, None))
    pair = _pair(settings, report) if internal and not as_json else None
    screen = summary(
        report.outcome, internal=internal, price=price, verdict=report.verdict, pair=pair, settings=str(file),
        overrides=overrides or (),
    )  # fmt: skip
    show(screen, report.as_dict(internal=internal) if as_json else None)
    end_where_broken(report.broken, f"the table of run {report.outcome.run_id}")


def _pair(settings: RunConfig, result: RunResult) -> Example | str | None:
    """Return a row before and after, or why there is none; None where nothing was written now."""
    from dptext_spark.spark.run_report import first_pair

    if result.status not in ("succeeded", "recovered") or settings.is_stream:
        return None
    try:
        return first_pair(settings, result.run_id)
    except DPTextError as error:
        return str(error)


def planned(settings: RunConfig) -> tuple[Plan, Checked]:
    """Check a run, and return what it would do."""
    from dptext_spark.report.terminal.plan import plan
    from dptext_spark.spark.runner import dry_run

    with progress() as say:
        checked = dry_run(settings, lambda step: say(step, None))
        return plan(settings, say), checked


def _plan(settings: RunConfig, as_json: bool) -> None:
    from dptext_spark.report.terminal.plan import as_record

    plan, checked = planned(settings)
    show(plan.screen(checked), as_record(plan, checked) if as_json else None)


def demo(
    folder: Annotated[
        Path | None, typer.Argument(help="Where to write; a new or empty folder. Default: dptext-demo.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, max=TICKETS, help="Tickets of the sample table.")] = TICKETS,
    as_json: Json = False,
) -> None:
    """Write a sample table of support tickets, sanitize it on local Spark, and show what came out."""
    with progress() as say:
        say("loading libraries", None)
        from dptext_spark.demo.demo import as_record, screen
        from dptext_spark.demo.demo import demo as run_demo

        made = run_demo(folder, rows, say)
    show(screen(made), as_record(made) if as_json else None)


def doctor(
    config: Annotated[
        Path | None,
        typer.Argument(help="The settings of a run. Without: the machines alone, no key, input or output."),
    ] = None,
    overrides: Override = None,
    as_json: Json = False,
) -> None:
    """Check Spark, its machines and what the settings name, in a minute: what a run would stumble over, and the cure."""
    from dptext_spark.config.load import load_config
    from dptext_spark.report.terminal.plan import checks as screen
    from dptext_spark.spark import doctor as examine

    began = time.perf_counter()
    settings = None if config is None else load_config(config, overrides or ())
    with progress() as say:
        findings = examine(settings, progress=lambda step: say(step, None))
    seconds = time.perf_counter() - began
    failed = any(finding.status == "fail" for finding in findings)
    checks = [asdict(finding) for finding in findings]
    document = {"failed": failed, "seconds": round(seconds, 1), "checks": checks}
    show(screen(findings, seconds), document if as_json else None)
    if failed:
        raise typer.Exit(RunError.exit_code)


def jobs(
    name: Annotated[str | None, typer.Argument(help="One job: print its path alone.")] = None,
    conf: Annotated[
        bool, typer.Option("--conf", help="Print the folder of the commented settings and Spark's defaults.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the jobs for spark-submit: spark-submit $(dptext jobs privatize) SETTINGS.yaml."""
    from dptext_spark.runtime.paths import first_line, folder_of, job_file, jobs_by_name

    if as_json:
        return write_json(
            {"conf": str(folder_of("conf")), "jobs": {k: str(v) for k, v in jobs_by_name().items()}}
        )
    if conf:
        return write(str(folder_of("conf")))
    if name is not None:
        return write(str(job_file(name)))
    show(
        Screen(
            "Jobs for spark-submit",
            [(name, first_line(file)) for name, file in jobs_by_name().items()],
            places=[("path", str(folder_of("jobs")))],
            next="spark-submit $(dptext jobs NAME) SETTINGS.yaml",
        )
    )
