"""`dptext report`: one HTML file about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dptext_spark.cli.options import Json, Override
from dptext_spark.errors import BrokenRequirementError
from dptext_spark.report.terminal.console import progress, write, write_error, write_json


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
    publish: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=EPSILON",
            help="Publish a restricted count with noise; spends its ε each time, of names once.",
        ),
    ] = None,
    most_words: Annotated[
        int, typer.Option(min=1, help="Words of a record up to which the ε of --publish holds.")
    ] = 200,
    most_names: Annotated[
        int,
        typer.Option(min=1, help="Words of names of a record that --publish names_found, names_kept count."),
    ] = 10,
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
            run_id, settings, audit=audit, internal=internal, with_examples=with_examples, publish=tuple(publish or ()),
            most_words=most_words, most_names=most_names, figures=tuple(figures or ()), public_text=read_lines(public_text),
            examine=statement is None, progress=say,
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
