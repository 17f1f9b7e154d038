"""Results of a run: `dptext audit` compares a table with its source, `report` writes a page, `ledger` shows the spending."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dptext_spark.audit.options import AuditOptions, ReportOptions, takes
from dptext_spark.cli import Override, end_where_broken, settings_in
from dptext_spark.errors import SettingsError
from dptext_spark.report.console import JSON, progress, show, write, write_json


@takes(AuditOptions, is_command=True)
def audit(
    table: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TABLE",
            help="The settings of a run. With --against: a table of any tool, a Delta or Parquet folder or a catalog name.",
        ),
    ],
    *,
    against: Annotated[
        str | None, typer.Option("--against", metavar="SOURCE", help="The source of TABLE.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="The settings that made TABLE; without them, no attacks."),
    ] = None,
    overrides: Override = None,
    options: AuditOptions,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan of the audit; read no data.")
    ] = False,
) -> None:
    """Compare a written table with its source on Spark: kept words, success of attacks, remaining use."""
    from dptext_spark.audit.audit_plan import AuditPlan
    from dptext_spark.config.load import load_config, load_model_config
    from dptext_spark.report.summary import audit_plan, table_audit

    file = settings_in("audit", table, against=against, config=config)
    if file is not None:
        plan = AuditPlan.of_run(load_config(file, overrides or ()), options)
    elif against is None:
        settings = "FILE" if config is None else shlex.quote(str(config))
        raise SettingsError(
            f"--against: none given with the table {table!r}. Use dptext audit {settings}, or dptext audit "
            f"{shlex.quote(table)} --against SOURCE --config {settings} (without --config for another tool's table)."
        )
    else:
        model = None if config is None else load_model_config(config, overrides or ())
        plan = AuditPlan.of(table, against, model, options)
    if dry_run:
        return show(audit_plan(plan), plan.as_dict())
    with progress() as say:
        say("loading what reads tables", None)
        from dptext_spark.spark.audit_job import audit_table

        finding = audit_table(plan, progress=lambda step: say(step, None))
    show(table_audit(finding), finding.as_dict())
    end_where_broken(finding.broken, finding.table)


@takes(ReportOptions, is_command=True)
def report(
    source: Annotated[
        str,
        typer.Argument(metavar="FILE|FOLDER", help="The settings of a run, or its account, <target>_audit."),
    ],
    *,
    run: Annotated[
        str, typer.Option(metavar="ID", help="The run. Default: the newest that succeeded.")
    ] = "latest",
    overrides: Override = None,
    out: Annotated[
        Path | None, typer.Option(help="The page. Default: in the run's restricted folder.")
    ] = None,
    options: ReportOptions,
    public_text: Annotated[
        Path | None, typer.Option(help="A public text for the contextual adversary, a record a line.")
    ] = None,
    statement: Annotated[
        str | None,
        typer.Option(help="Print only the disclosure statement, as md, html or json; write no file."),
    ] = None,
) -> None:
    """Write an HTML page about a run, with two pages for the signature first. RESTRICTED without --public."""
    from dptext_spark.config.load import load_config
    from dptext_spark.errors import require_choice
    from dptext_spark.report.audits_section import read_lines
    from dptext_spark.report.facts import STATEMENTS
    from dptext_spark.spark.session import require_pyspark

    if statement is not None:
        require_choice("statement", statement, STATEMENTS)
    settings_file = settings_in("report", source)
    is_folder = Path(source).is_dir()
    if settings_file is None and not (Path(source, "shareable").is_dir() if is_folder else "/" in source):
        folder = f"dptext report {shlex.quote(source.rstrip('/').removesuffix('_audit'))}_audit"
        by_id = f"dptext report FILE --run {shlex.quote(source)}"
        raise SettingsError(
            f"report: {source!r} is neither a file of settings nor the account of a run. Use dptext report FILE, or "
            f"{folder if is_folder else by_id}."
        )
    require_pyspark()
    from dptext_spark.spark import report as report_on

    settings = None if settings_file is None else load_config(settings_file, overrides or ())
    account = source if settings_file is None else None
    is_public = options.public or statement is not None  # a statement is for outside
    options = replace(
        options, public=is_public, public_text=read_lines(public_text), examine=statement is None
    )
    with progress() as say:
        written = report_on(run, settings, audit=account, options=options, progress=say)
    if statement is not None:
        return write(written.statement(statement))
    file = written.save(out)
    if JSON.get():
        write_json({"file": str(file), **written.as_dict()})
    else:
        write(f"{file}")
    end_where_broken(written.broken, "the table of this run")


def ledger(
    path: Annotated[
        str, typer.Argument(metavar="FILE|FOLDER", help="The settings of a run, a ledger, or an input.")
    ],
) -> None:
    """Show what all releases of each input have spent on one word of each column."""
    from dptext_spark.spark.session import require_pyspark

    require_pyspark()
    with progress() as say:
        say("loading what reads tables", None)
        from dptext_spark.report.summary import spent
        from dptext_spark.spark.job.entries import read

        balances = read(path, progress=lambda step: say(step, None))
    inputs = {"ledger": path, "inputs": [balance.as_dict() for balance in balances]}
    show(spent(balances), inputs)
