"""`dptext ledger`: what was spent on which input."""

from __future__ import annotations

from typing import Annotated

import typer

from dptext_spark.cli.options import Json
from dptext_spark.report.terminal.console import progress, width, write, write_json


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
        from dptext_spark.report.terminal.ledger import spent_text
        from dptext_spark.spark.reporting.ledger import read

        found = read(path, progress=lambda step: say(step, None))
    if as_json:
        return write_json({"ledger": path, "inputs": [balance.spending.as_dict() for balance in found]})
    write(spent_text(found, width()))
