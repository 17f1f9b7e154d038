"""`dptext mechanisms`: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer

from dptext_spark.cli.options import Json
from dptext_spark.report.terminal.console import width, write, write_json


def mechanisms(
    name: Annotated[str | None, typer.Argument(help="One mechanism. Default: all of them.")] = None,
    as_json: Json = False,
) -> None:
    """List the mechanisms: paper, guarantee, cost, certificate, parameters with defaults and ranges."""
    from dptext_spark.report.terminal.catalogue import catalogue, catalogue_text, described

    if as_json:
        return write_json(
            [one.as_dict() for one in catalogue()] if name is None else described(name).as_dict()
        )
    write(catalogue_text(catalogue() if name is None else [described(name)], width()))
