"""`dptext start`: from a table to settings, without Spark where pyarrow reads the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dptext_spark.cli.options import Encoding, Format, Header, Json, Separator
from dptext_spark.cli.tables import sample_of
from dptext_spark.report.terminal.console import progress, show, width, write, write_json

ROWS = 5  # shown
FINDER = "strict"  # the style that looks for dates and for names, too, and masks them


def start(
    table: Annotated[
        str,
        typer.Argument(
            help="A file or folder (Parquet, CSV, JSON lines, Delta), a remote path, or a catalog name. What is here wins."
        ),
    ],
    style: Annotated[
        str, typer.Option(help="What the settings protect like: balanced, strict or papers.")
    ] = "balanced",
    to: Annotated[
        Path | None,
        typer.Option(help="Where the settings go; never overwritten. Default: TABLE's name.yaml here."),
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--column", help="A text column; repeat it. Default: looked for.")
    ] = None,
    format: Format = None,
    separator: Separator = None,
    header: Header = None,
    encoding: Encoding = None,
    as_json: Json = False,
) -> None:
    """Look at a sample of a table, show five rows by three styles, write settings for `dptext run`. RESTRICTED output."""
    from dptext_spark.config.load import parse_model_config
    from dptext_spark.config.sections import STYLES
    from dptext_spark.config.styles import TableSettings, refuse_existing, settings_file, write_new
    from dptext_spark.errors import require_choice
    from dptext_spark.model.compile import prepare
    from dptext_spark.model.first_look import columns_of, look
    from dptext_spark.report.terminal.start import look_record, look_text, next_text, rows_shown

    require_choice("--style", style, STYLES)
    file = Path(_named(table)) if to is None else to
    refuse_existing(file)
    with progress() as say:
        say("reading a sample", None)
        sample = sample_of(table, format, separator, header, encoding, say)
        of = columns_of(sample, columns or ())
        named = TableSettings(
            sample.path, sample.format, of.texts, of.row_key, of.row_keys, of.record_keys, of.others + of.nested,
            sample.options, sample.is_name,
        )  # fmt: skip
        settings_file(named, style)  # names that no settings can have are refused now
        models = {name: prepare(parse_model_config({"style": name}), say)[0] for name in STYLES}
        say("looking at it", None)
        found = look(sample, of, models, style, FINDER, ROWS)
    text, _ = settings_file(replace(named, is_foreign=found.unknown.is_mostly_unknown), style)
    write_new(file, text)
    if as_json:
        return write_json({**look_record(sample, found), "style": style, "settings": str(file)})
    write(look_text(sample, found, width()))
    write("")
    show(rows_shown(found.rows))
    write(f"\nWrote {file} in the style {style}. {next_text(found, str(file))}")


def _named(table: str) -> str:
    """Return the name of the file of settings: that of the table, of a catalog name its last part."""
    place = Path(table)
    name = (
        place.resolve().name.split(".")[0]
        if place.exists() or "/" in table
        else table.split(".")[-1].strip("`")
    )
    return f"{name.replace('/', '_') or 'table'}.yaml"
