"""A first look: `dptext preview` at one sentence, without Spark, or at rows; `start` from a table to settings."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dptext_spark.cli import Config, Override, settings_in
from dptext_spark.errors import SettingsError, require_choice
from dptext_spark.report.console import LOADING, RESTRICTED, progress, show

if TYPE_CHECKING:
    from dptext_spark.config.sections import Input
    from dptext_spark.model.privatizer import Privatizer
    from dptext_spark.model.table_files import AsText, TableSample
    from dptext_spark.runtime.display import Progress


def sample_of(
    table: str | Input, format: str | None, as_text: AsText | None, say: Progress, columns: Sequence[str] = ()
) -> TableSample:
    """Read a sample of a table by Spark; see :func:`dptext_spark.spark.table_sample.read_sample`."""
    from dptext_spark.spark.session import require_pyspark

    require_pyspark()
    from dptext_spark.spark.table_sample import read_sample

    return read_sample(table, format, as_text, lambda step: say(step, None), columns=columns)


ROWS = 5  # shown
FINDER = "strict"  # the style that looks for dates and for names, too, and masks them


def start(
    table: Annotated[
        str,
        typer.Argument(
            help="A file or folder (Parquet, CSV, JSON lines, Delta), a remote path, or a catalog name, in this order."
        ),
    ],
    style: Annotated[
        str, typer.Option(help="Style of the settings: balanced, strict or papers.")
    ] = "balanced",
    to: Annotated[
        Path | None,
        typer.Option(help="A new file for the settings. Default: TABLE's name.yaml in this folder."),
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--column", help="A text column; may be repeated. Default: detected.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="delta, parquet, csv, tsv, json or text. Default: by the file names.")
    ] = None,
    separator: Annotated[str | None, typer.Option(help="Separator of CSV fields. Default: detected.")] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether CSV files begin with column names. Default: detected."
        ),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of CSV or JSON, such as ISO-8859-1. Default: UTF-8.")
    ] = None,
) -> None:
    """Write settings for a table, and show five of its rows in three styles. RESTRICTED output."""
    with progress(LOADING) as say:
        from dptext_spark.config import styles
        from dptext_spark.config.load import parse_model_config
        from dptext_spark.model.compile import prepare
        from dptext_spark.model.first_look import columns_of, look
        from dptext_spark.model.table_files import AsText
        from dptext_spark.report import before_and_after as screens

        require_choice("--style", style, styles.STYLES)
        if settings_in("release", table) is not None:
            command = f"dptext release {shlex.quote(table)}"
            raise SettingsError(f"table: {table!r} holds settings. Name the table itself, or use {command}.")
        file = Path(styles.file_for(table)) if to is None else to
        styles.refuse_existing(file)
        sample = sample_of(table, format, AsText(separator, header, encoding), say)
        of = columns_of(sample, columns or ())
        named = styles.TableSettings(
            sample.path, sample.format, of.texts, of.row_key, of.row_keys, of.record_keys, of.others + of.nested,
            of.attributes, sample.options, sample.is_name,
        )  # fmt: skip
        styles.settings_file(named, style)  # names that no settings can have are refused now
        models = {name: prepare(parse_model_config({"style": name}), say)[0] for name in styles.STYLES}
        say("checking the columns", None)
        first_look = look(sample, of, models, style, FINDER, ROWS)
    has_names = any(kind.startswith("names") for kind, _ in first_look.found)
    named = replace(named, is_foreign=first_look.unknown.is_mostly_unknown, has_names=has_names)
    text, _ = styles.settings_file(named, style)
    styles.write_new(file, text)
    document = {**screens.look_record(sample, first_look), "style": style, "settings": str(file)}
    show(screens.look(sample, first_look, str(file), style), document)


MOST_ROWS = 100


def preview(
    text: Annotated[str | None, typer.Argument(help="A sentence, in quotes.")] = None,
    config: Config = None,
    overrides: Override = None,
    source: Annotated[
        str | None,
        typer.Option("--input", help="Show rows of this table, as --config reads it. RESTRICTED output."),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, max=MOST_ROWS, help="Number of rows to show.")] = 20,
) -> None:
    """Show replacements for one sentence (without Spark) or rows of a table, by a fresh key; write nothing."""
    if (text is None) == (source is None):
        raise SettingsError("preview: give either a sentence or --input.")
    with progress(LOADING) as say:
        from dptext_spark.config.load import load_model_config
        from dptext_spark.config.locations import absolute
        from dptext_spark.model.compile import prepare
        from dptext_spark.model.preview import preview as draw
        from dptext_spark.report.before_and_after import sentence
        from dptext_spark.text.names.name_lists import NameLists

        settings = load_model_config(config, overrides or ())
        # With fluent draws the sentence is also drawn without, at the same ε.
        both = text is not None and settings.mechanism.reads_context and settings.run.artifact is None
        sample = None
        if source is not None:
            own, columns = getattr(settings, "input", None), getattr(settings, "columns", ())
            if own is None or (own.table != source and own.path != absolute(source)):
                own = source
            sample = sample_of(own, None, None, say, columns)
        privatizer, _ = prepare(settings, say)
        plain = prepare(settings.without_context(), say)[0] if both else None
    left: tuple[str, ...] = ()
    if settings.lists:
        stop_words = privatizer.policy.kept_words()
        lists, left = NameLists.of_files(settings.lists, privatizer.vocabulary, stop_words)
        if lists.matcher is not None:
            privatizer = privatizer.with_names(lists.matcher)
            plain = None if plain is None else plain.with_names(lists.matcher)
    if sample is not None:
        return _rows(sample, columns, privatizer, rows, left)
    assert text is not None
    result = replace(draw(privatizer, text), lists_left_out=left)
    if plain is not None:
        result = replace(result, plain=draw(plain, text).output)
    show(sentence(result), result.as_dict())


def _rows(
    sample: TableSample, named: Sequence[str], privatizer: Privatizer, rows: int, left: tuple[str, ...]
) -> None:
    """Show rows of a file before and after."""
    from dptext_spark.model.first_look import THROWN_AWAY, columns_of, shown_rows
    from dptext_spark.report.before_and_after import rows_of, rows_record

    shown = shown_rows(sample, columns_of(sample, named).texts, {"after": privatizer}, rows)
    document = {
        "restricted": RESTRICTED,
        "assumed": list(sample.assumed),
        "rows": rows_record(shown),
        "note": THROWN_AWAY,
        **({"lists_left_out": list(left)} if left else {}),
    }
    show(rows_of(sample, shown, left), document)
