"""`dptext audit`: a written table against its source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dptext_spark.cli.options import Json, Override
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
        int, typer.Option(min=1, help="About how many rows to learn from; above 10,000, Spark ML learns.")
    ] = 10_000,
    names: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Names, one a line: how many of them stand in the table as they were."
        ),
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labelled texts of the source, CoNLL or spans: how many of their names are found, and how many stayed.",
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
        names=None if names is None else str(names), annotations=None if annotations is None else str(annotations),
        internal=internal, against_format=against_format,
    )  # fmt: skip
    if dry_run:
        return write_json(plan.as_dict()) if as_json else write(audit_plan_text(plan, width()))
    with progress() as say:
        say("loading what reads tables", None)
        from dptext_spark.spark.auditing.audit import audit_by_command

        found = audit_by_command(plan, lambda step: say(step, None))
    if as_json:
        write_json(found.as_dict())
    else:
        write(table_audit_text(found, width()))
    if found.broken:
        write_error(f"requirement broken: {'; '.join(found.broken)}. Do not publish {found.table}.")
        raise typer.Exit(BrokenRequirementError.exit_code)
