"""`dptext doctor`: will a run work here?"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dptext_spark.cli.options import Json, Override
from dptext_spark.errors import RunError
from dptext_spark.report.terminal.console import progress, show, write, write_json


def doctor(
    config: Annotated[
        Path | None,
        typer.Argument(help="The settings of a run. Without: the machines alone, no key, input or output."),
    ] = None,
    overrides: Override = None,
    as_json: Json = False,
) -> None:
    """Check Spark, its machines and what the settings name, in a minute: what a run would stumble over, and the cure."""
    from dptext_spark.config.load import load_config
    from dptext_spark.report.terminal.doctor import table_of, verdict
    from dptext_spark.spark import doctor as examine

    began = time.perf_counter()
    settings = None if config is None else load_config(config, overrides or ())
    with progress() as say:
        findings = examine(settings, progress=lambda step: say(step, None))
    seconds = time.perf_counter() - began
    failed = any(found.status == "fail" for found in findings)
    if as_json:
        checks = [asdict(found) for found in findings]
        write_json({"failed": failed, "seconds": round(seconds, 1), "checks": checks})
    else:
        show(table_of(findings))
        write(verdict(findings, seconds))
    if failed:
        raise typer.Exit(RunError.exit_code)
