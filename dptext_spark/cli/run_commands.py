"""Make a table: `dptext run` does the job or shows its plan, `release` adds the audit and the report.

`demo` does the job on a sample, `doctor` and `jobs` prepare it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dptext_spark.cli import Override, end_where_broken, settings_of
from dptext_spark.demo import TICKETS
from dptext_spark.errors import BrokenRequirementError, DPTextError, RunError, SettingsError, require_extra
from dptext_spark.report.console import JSON, LOADING, Screen, progress, show, write, write_error
from dptext_spark.runtime.display import Progress

if TYPE_CHECKING:
    from dptext_spark.audit.audit_plan import AuditPlan
    from dptext_spark.audit.table_audit import TableAudit
    from dptext_spark.config.model import RunConfig
    from dptext_spark.report.facts import Example
    from dptext_spark.runtime.validation import Json
    from dptext_spark.spark.job.job import RunResult
    from dptext_spark.spark.run_report import RunReport


def run(
    config: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Settings, a YAML file; conf/ holds examples. Or a style (strict, balanced, papers) with --set.",
        ),
    ],
    overrides: Override = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check schemas, keys and targets and show the plan; write nothing."),
    ] = False,
    internal: Annotated[
        bool, typer.Option("--internal", help="Also show figures that depend on the private text.")
    ] = False,
) -> None:
    """Sanitize the text columns of a table; write a Delta table and its account."""
    file, settings = _loaded("run", config, overrides)
    if dry_run:
        return show(*planned(settings))
    with progress() as say:
        from dptext_spark.report.summary import summary
        from dptext_spark.spark.runner import run

        report = run(settings, progress=lambda step: say(step, None))
    pair = _pair(settings, report) if internal and not JSON.get() else None
    screen = summary(
        report.outcome, internal=internal, verdict=report.verdict, pair=pair, settings=str(file),
        overrides=overrides or (),
    )  # fmt: skip
    show(screen, report.as_dict(internal=internal))
    end_where_broken(report.broken, f"the table of run {report.outcome.run_id}")


def _loaded(command: str, config: str, overrides: Override) -> tuple[Path, RunConfig]:
    """Return the file of settings that a command is given, and the settings."""
    with progress(LOADING):
        from dptext_spark.config.load import load_config

        file = settings_of(command, config)
        return file, load_config(file, overrides or ())


def _pair(settings: RunConfig, result: RunResult) -> Example | str | None:
    """Return a row before and after, or why there is none; None where nothing was written now."""
    from dptext_spark.spark.run_report import first_pair

    if result.status not in ("succeeded", "recovered") or settings.is_stream:
        return None
    try:
        return first_pair(settings, result.run_id)
    except DPTextError as error:
        return str(error)


def planned(settings: RunConfig) -> tuple[Screen, dict[str, Json]]:
    """Check a run, and return the screen and the record of its plan."""
    with progress() as say:
        from dptext_spark.report.run_plan import as_record, plan
        from dptext_spark.spark.runner import dry_run

        checked = dry_run(settings, lambda step: say(step, None))
        run_plan = plan(settings, say)
    return run_plan.screen(checked), as_record(run_plan, checked)


def demo(
    folder: Annotated[
        Path | None, typer.Argument(help="A new or empty folder for the output. Default: dptext-demo.")
    ] = None,
) -> None:
    """Sanitize a sample table of support tickets on local Spark, and show the result."""
    with progress(LOADING) as say:
        from dptext_spark.demo.demo import as_record, screen
        from dptext_spark.demo.demo import demo as run_demo

        result = run_demo(folder, TICKETS, say)
    show(screen(result), as_record(result))


def doctor(
    config: Annotated[
        Path | None, typer.Argument(help="The settings of a run. Default: check the machines alone.")
    ] = None,
    overrides: Override = None,
) -> None:
    """Check Spark, its machines and the settings in a minute, and name a cure for each problem."""
    began = time.perf_counter()
    with progress(LOADING) as say:
        from dptext_spark.config.load import load_config
        from dptext_spark.report.run_plan import checks as screen
        from dptext_spark.spark import doctor as examine

        settings = None if config is None else load_config(config, overrides or ())
        findings = examine(settings, progress=lambda step: say(step, None))
    seconds = time.perf_counter() - began
    failed = any(finding.status == "fail" for finding in findings)
    checks = [asdict(finding) for finding in findings]
    document = {"failed": failed, "seconds": round(seconds, 1), "checks": checks}
    show(screen(findings, seconds), document)
    if failed:
        raise typer.Exit(RunError.exit_code)


def jobs(
    name: Annotated[
        str | None,
        typer.Argument(
            help="One job: print its path alone. Or conf: print the folder of commented settings."
        ),
    ] = None,
) -> None:
    """Show the jobs for spark-submit: spark-submit $(dptext jobs privatize) SETTINGS.yaml."""
    from dptext_spark.runtime.paths import first_line, folder_of, job_file, jobs_by_name

    if name == "conf":
        return write(str(folder_of("conf")))
    if name is not None:
        return write(str(job_file(name)))
    show(
        Screen(
            "Jobs for spark-submit",
            [(name, first_line(file)) for name, file in jobs_by_name().items()],
            places=[("path", str(folder_of("jobs")))],
            next="spark-submit $(dptext jobs NAME) SETTINGS.yaml",
        ),
        {"conf": str(folder_of("conf")), "jobs": {name: str(file) for name, file in jobs_by_name().items()}},
    )


def release(
    config: Annotated[
        str, typer.Argument(metavar="FILE", help="Settings, a YAML file; `dptext start TABLE` writes one.")
    ],
    overrides: Override = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the run and show both plans; write nothing.")
    ] = False,
) -> None:
    """Release a table: `dptext run FILE`, `dptext audit FILE` and `dptext report FILE` in one.

    The exit code is that of the first step that failed. After a broken requirement (7) the report is still written.
    """
    file, settings = _loaded("release", config, overrides)
    from dptext_spark.report.summary import summary, words_of
    from dptext_spark.spark.session import require_pyspark

    command = words_of(str(file), overrides or ())
    plan, left_out = _audit(settings, command)
    require_extra("audit", "jinja2", "matplotlib")
    require_pyspark()
    if dry_run:
        return _dry_run(settings, plan, left_out)
    result, audited, report, page = _steps(settings, plan, command)
    if audited is not None:
        left_out = f"of {audited.table} against {audited.source}; figures in {audited.metrics} (restricted)"
    verdict = report.facts.verdict

    is_judged = verdict.judged or verdict.against
    screen = summary(result.outcome, verdict=verdict if is_judged else None)
    if not is_judged:
        nothing = ("verdict", "not decided: the settings have no requirement (`require`)")
        screen = replace(screen, rows=[nothing, *screen.rows])
    places = [
        *screen.places,
        ("audit", left_out),
        ("report", f"{page} (restricted; `dptext report {command} --public` writes one for outside)"),
    ]
    audit = (
        {"left_out": left_out} if audited is None else {"id": audited.audit_id, "metrics": audited.metrics}
    )
    steps = {"run": result.as_dict(), "audit": audit, "report": {"file": str(page)}}
    show(replace(screen, places=places), {**steps, "verdict": verdict.as_dict()})
    broken = [*result.broken, *(audited.broken if audited else ()), *report.broken]
    end_where_broken(broken, f"the table of run {result.run_id}")


def _audit(settings: RunConfig, command: str) -> tuple[AuditPlan | None, str]:
    """Return the audit that follows the run; or none, and why."""
    from dptext_spark.audit.audit_plan import AuditPlan
    from dptext_spark.audit.options import AuditOptions
    from dptext_spark.audit.table_audit import options_for
    from dptext_spark.config.requirements import COUNTED, is_audited
    from dptext_spark.disclosure.statement import not_audited

    names = {str(each): each.subject for each in settings.require if is_audited(each.subject)}
    options = " ".join(["", *options_for(names.values())])
    steps = f"dptext run {command}; dptext audit {command}{options}; dptext report {command}"
    if settings.is_stream:
        raise SettingsError(
            f"mode: {settings.mode!r} does not work with dptext release. Use mode: batch, or {steps}."
        )
    open_ended = [text for text, name in names.items() if " " in "".join(options_for([name]))]
    if open_ended:
        raise SettingsError(
            f"require: {'; '.join(open_ended)} needs options of an audit that no setting names. Drop it, or use {steps}."
        )
    unaudited = not_audited(settings.row_key)
    undecided = [text for text, name in names.items() if name not in COUNTED]
    if unaudited and undecided:
        raise SettingsError(
            f"require: {'; '.join(undecided)} needs an audit, and {unaudited}. Leave it out, or name a row_key."
        )
    if unaudited:
        return None, f"left out: {unaudited}"
    return AuditPlan.of_run(settings, AuditOptions()), ""


def _dry_run(settings: RunConfig, plan: AuditPlan | None, left_out: str) -> None:
    """Show what the run would do and what the audit would compare."""
    from dptext_spark.report.summary import audit_plan

    screen, run = planned(settings)
    audit = (
        ""
        if plan is None
        else f"{len(plan.figures)} figures against the input, to {plan.metrics} (restricted)"
    )
    more = [] if plan is None else [("what the audit would compare", audit_plan(plan).rows)]
    screen = replace(
        screen, places=[*screen.places, ("audit", audit or left_out)], more=[*screen.more, *more]
    )
    document = {"run": run, "audit": left_out if plan is None else plan.as_dict()}
    show(screen, document)


def _steps(
    settings: RunConfig, plan: AuditPlan | None, command: str
) -> tuple[RunResult, TableAudit | None, RunReport, Path]:
    """Do the three steps in one Spark session; return what each made, and the page."""
    result: RunResult | None = None
    audited: TableAudit | None = None
    try:
        with progress() as say:
            from dptext_spark.spark.audit_job import audit_table
            from dptext_spark.spark.run_report import report as report_on
            from dptext_spark.spark.runner import run

            result = run(settings, progress=_within("run", say))
            audited = None if plan is None else audit_table(plan, progress=_within("audit", say))
            report = report_on(result.run_id, settings, progress=_within("report", say))
            return result, audited, report, report.save()
    except DPTextError as error:
        if result is None:
            raise
        audit = "" if plan is None or audited is not None else f"dptext audit {command}; "
        write_error(
            f"run {result.run_id} is committed and accounted for. Still to do: {audit}dptext report {command}"
        )
        broken = dict.fromkeys([*result.broken, *(audited.broken if audited else ())])
        if broken:
            raise BrokenRequirementError(f"{'; '.join(broken)}. Then: {error}") from None
        raise


def _within(step: str, say: Progress) -> Callable[..., None]:
    """Return a progress callback that names the step of the release."""
    return lambda text, share=None: say(f"{step}: {text}", share)
