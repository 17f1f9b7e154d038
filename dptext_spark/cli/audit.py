"""What a run wrote: `dptext audit` compares a table with its source, `report` writes a page, `ledger` shows what was spent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dptext_spark.audit.options import AuditOptions, ReportOptions, takes
from dptext_spark.cli import Json, Override
from dptext_spark.errors import BrokenRequirementError
from dptext_spark.report.terminal.console import progress, width, write, write_error, write_json


@takes(AuditOptions, is_command=True)
def audit(
    table: Annotated[
        str, typer.Argument(help="A written table, ours or anyone's: Delta or Parquet folder, or name.")
    ],
    against: Annotated[str, typer.Option("--against", help="The table that it was made from.")],
    *,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="The settings it was made with; without them, no attacks."),
    ] = None,
    overrides: Override = None,
    options: AuditOptions,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be compared; read no data.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Audit a written table against its source on Spark: what it keeps, how well it is attacked, what it is still good for."""
    from dptext_spark.audit.table.plan import AuditPlan
    from dptext_spark.config.load import load_model_config
    from dptext_spark.report.terminal.table_audit import audit_plan_text, table_audit_text

    settings = None if config is None else load_model_config(config, overrides or ())
    plan = AuditPlan.of(table, against, settings, options)
    if dry_run:
        return write_json(plan.as_dict()) if as_json else write(audit_plan_text(plan, width()))
    with progress() as say:
        say("loading what reads tables", None)
        from dptext_spark.spark.auditing.audit import audit_table

        found = audit_table(plan, progress=lambda step: say(step, None))
    if as_json:
        write_json(found.as_dict())
    else:
        write(table_audit_text(found, width()))
    if found.broken:
        write_error(f"requirement broken: {'; '.join(found.broken)}. Do not publish {found.table}.")
        raise typer.Exit(BrokenRequirementError.exit_code)


@takes(ReportOptions, is_command=True)
def report(
    run_id: Annotated[
        str, typer.Argument(metavar="RUN", help="A run id, or latest: the newest that succeeded.")
    ],
    *,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="The settings of the run.")] = None,
    overrides: Override = None,
    audit: Annotated[
        str | None, typer.Option(help="In place of --config: the folder <target>_audit.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file. Default: report-RUN.html.")] = None,
    options: ReportOptions,
    public_text: Annotated[
        Path | None, typer.Option(help="A public text, a record a line, for the contextual adversary.")
    ] = None,
    statement: Annotated[
        str | None,
        typer.Option(help="Print only the disclosure statement: md, html or json. Writes no file."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write one offline HTML file about a run: verdict, guarantee, disclosure, attacks, deniability, utility, counters."""
    from dptext_spark.config.load import load_config
    from dptext_spark.errors import require_choice
    from dptext_spark.report.results import STATEMENTS
    from dptext_spark.report.sections.model_attacks import read_lines
    from dptext_spark.spark.session.session import require_pyspark

    if statement is not None:
        require_choice("statement", statement, STATEMENTS)
    require_pyspark()
    from dptext_spark.spark import report as report_on

    settings = None if config is None else load_config(config, overrides or ())
    options = replace(options, public_text=read_lines(public_text), examine=statement is None)
    with progress() as say:
        found = report_on(run_id, settings, audit=audit, options=options, progress=say)
    if statement is not None:
        return write(found.statement(statement))
    file = found.save(out)
    if as_json:
        write_json({"file": str(file), **found.as_dict()})
    else:
        write(f"{file}")
    if found.broken:
        write_error(f"requirement broken: {'; '.join(found.broken)}. Do not publish the table of this run.")
        raise typer.Exit(BrokenRequirementError.exit_code)


def ledger(
    path: Annotated[
        str, typer.Argument(help="A ledger, an input or a file of settings (.yaml), whose ledger is shown.")
    ],
    as_json: Json = False,
) -> None:
    """Show what all releases of each input have spent on one word of each column."""
    from dptext_spark.spark.session.session import require_pyspark

    require_pyspark()
    with progress() as say:
        say("loading what reads tables", None)
        from dptext_spark.report.terminal.summary import spent_text
        from dptext_spark.spark.job.entries import read

        found = read(path, progress=lambda step: say(step, None))
    if as_json:
        return write_json({"ledger": path, "inputs": [balance.spending.as_dict() for balance in found]})
    write(spent_text(found, width()))
