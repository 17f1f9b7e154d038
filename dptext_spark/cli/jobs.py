"""`dptext jobs`: where the files for spark-submit are."""

from __future__ import annotations

from typing import Annotated

import typer

from dptext_spark.cli.options import Json
from dptext_spark.report.terminal.console import width, write, write_json


def jobs(
    name: Annotated[str | None, typer.Argument(help="One job: print its path alone.")] = None,
    conf: Annotated[
        bool, typer.Option("--conf", help="Print the folder of the commented settings and Spark's defaults.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the jobs for spark-submit: spark-submit $(dptext jobs privatize) SETTINGS.yaml."""
    from dptext_spark.report.terminal.console import hanging
    from dptext_spark.runtime.paths import first_line, folder_of, job_file, jobs_by_name

    if as_json:
        return write_json(
            {"conf": str(folder_of("conf")), "jobs": {k: str(v) for k, v in jobs_by_name().items()}}
        )
    if conf:
        return write(str(folder_of("conf")))
    if name is not None:
        return write(str(job_file(name)))
    for file in jobs_by_name().values():
        write(f"{file}\n{hanging('    ', first_line(file), width())}")
