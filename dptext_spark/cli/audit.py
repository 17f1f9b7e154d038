"""What a run wrote: `dptext audit` compares a table with its source, `report` writes a page, `ledger` shows what was spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dptext_spark.cli import Json, Override
from dptext_spark.errors import BrokenRequirementError
from dptext_spark.report.terminal.console import progress, width, write, write_error, write_json


def audit(
    table: Annotated[
        str, typer.Argument(help="A written table, ours or anyone's: Delta or Parquet folder, or name.")
    ],
    against: Annotated[str, typer.Option("--against", help="The table that it was made from.")],
    against_format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="Of that table: delta, parquet, csv, tsv, json or text. Default: the settings' where it is their input.",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", help="A text column; may be repeated. Default: the settings'."),
    ] = None,
    row_key: Annotated[
        str | None,
        typer.Option(help="What identifies a row in both. Default: the settings', else file and place."),
    ] = None,
    record_key: Annotated[
        str | None, typer.Option(help="Source column whose equal values form one record.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="The settings it was made with; without them, no attacks."),
    ] = None,
    overrides: Override = None,
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The source's column that a classifier should still predict."),
    ] = None,
    attribute: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="A column of the source that nobody should be able to infer from the text."
        ),
    ] = None,
    similarity: Annotated[
        bool,
        typer.Option("--similarity", help="Compare both texts: ROUGE, BLEU, cosine; --label does so, too."),
    ] = False,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|PACKAGE",
            help="A BERT that compares both texts: sentence embeddings, BERTScore. Reads each text of the sample.",
        ),
    ] = None,
    masked_model: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|PACKAGE",
            help="A BERT that names masked words; costs two runs over a text for each of up to 2,000 words.",
        ),
    ] = None,
    label_rows: Annotated[
        int, typer.Option(min=1, help="About how many rows, of 10,000 at most, classifiers learn from.")
    ] = 10_000,
    names: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Names, one a line: how many of them stand in the table as they were."
        ),
    ] = None,
    internal: Annotated[
        bool,
        typer.Option(
            "--internal", help="Also figures of names, and private text: the words that stayed most."
        ),
    ] = False,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            "-r",
            metavar="REQUIREMENT",
            help="Such as 'original_share <= 0.6'; may be repeated. Broken: exit code 7.",
        ),
    ] = None,
    sample: Annotated[
        int, typer.Option(min=1, help="About how many rows to take for consistency, similarity and attacks.")
    ] = 2_000,
    partial: Annotated[
        bool, typer.Option("--partial", help="Allow rows that only one of the tables has.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(help="Folder of the metrics. Default: the settings', else <TABLE>_audit/restricted."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be compared; read no data.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Audit a written table against its source on Spark: what it keeps, how well it is attacked, what it is still good for."""
    from dptext_spark.audit.table.plan import AuditPlan
    from dptext_spark.report.terminal.table_audit import audit_plan_text, table_audit_text

    plan = AuditPlan.of(
        table, against, columns=columns or (), row_key=row_key, record_key=record_key, config=config,
        overrides=overrides or (), label=label, attribute=attribute, similarity=similarity, encoder=encoder,
        masked_model=masked_model, label_rows=label_rows, require=require or (), sample=sample, partial=partial, out=out,
        names=None if names is None else str(names), internal=internal, against_format=against_format,
    )  # fmt: skip
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


def report(
    run_id: Annotated[
        str, typer.Argument(metavar="RUN", help="A run id, or latest: the newest that succeeded.")
    ],
    config: Annotated[Path | None, typer.Option("--config", "-c", help="The settings of the run.")] = None,
    overrides: Override = None,
    audit: Annotated[
        str | None, typer.Option(help="In place of --config: the folder <target>_audit.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file. Default: report-RUN.html.")] = None,
    internal: Annotated[
        bool, typer.Option("--internal", help="Also figures that depend on the private text.")
    ] = False,
    with_examples: Annotated[
        bool, typer.Option("--with-examples", help="Also private text: some records before and after.")
    ] = False,
    figures: Annotated[
        list[Path] | None, typer.Option(help="The JSON of dptext audit, or of other audits, to be shown too.")
    ] = None,
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
    with progress() as say:
        found = report_on(
            run_id, settings, audit=audit, internal=internal, with_examples=with_examples, figures=tuple(figures or ()),
            public_text=read_lines(public_text), examine=statement is None, progress=say,
        )  # fmt: skip
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
