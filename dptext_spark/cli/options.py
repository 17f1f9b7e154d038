"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
_SET = typer.Option("--set", "-s", metavar="A.B=VALUE", help="Override a setting; never the key.")
Override = Annotated[list[str] | None, _SET]
Config = Annotated[Path | None, typer.Option("--config", "-c", help="A YAML file of settings.")]
