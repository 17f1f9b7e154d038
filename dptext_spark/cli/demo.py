"""`dptext demo`: the main job on a sample table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dptext_spark.cli.options import Json
from dptext_spark.demo import TICKETS
from dptext_spark.report.terminal.console import progress


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
        from dptext_spark.demo.demo import demo as run_demo
        from dptext_spark.demo.demo import show

        made = run_demo(folder, rows, say)
    show(made, as_json)
