"""The commands of `dptext`, and the options that several of them take.

What a command needs is imported when it runs: `--help` stays quick, and only what works on tables needs Spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
_SET = typer.Option("--set", "-s", metavar="A.B=VALUE", help="Override a setting; never the key.")
Override = Annotated[list[str] | None, _SET]
Config = Annotated[Path | None, typer.Option("--config", "-c", help="A YAML file of settings.")]
# How a table of files is written, where Spark does not read it.
Format = Annotated[
    str | None, typer.Option(help="delta, parquet, csv, tsv, json or text. Default: by the files' names.")
]
Separator = Annotated[str | None, typer.Option(help="Of a CSV file's fields. Default: looked for.")]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether a CSV file's first line names columns. Default: looked for."
    ),
]
Encoding = Annotated[str | None, typer.Option(help="Of CSV or JSON, such as ISO-8859-1. Default: UTF-8.")]
