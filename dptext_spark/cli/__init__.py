"""The commands of `dptext`, and the options that several commands take.

A command imports its dependencies when it runs: `--help` stays quick, and only commands on tables need Spark.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

_SET = typer.Option(
    "--set", "-s", metavar="A.B=VALUE", help="Override a setting, not the key's; may be repeated."
)
Override = Annotated[list[str] | None, _SET]
Config = Annotated[Path | None, typer.Option("--config", "-c", help="Settings, a YAML file.")]


def settings_in(command: str, source: str, **beside: object) -> Path | None:
    """Return the file of settings that a command is given; None for any other argument.

    `beside` are values of options that settings decide.

    Raises:
        SettingsError: the file is not there, or such an option is; with the full command to use instead.
    """
    from dptext_spark.config.file import is_settings
    from dptext_spark.errors import SettingsError

    shown = f"dptext {command} {shlex.quote(source)}"
    if not is_settings(source):
        return None
    if not Path(source).exists():
        raise SettingsError(
            f"settings: {source!r} does not exist. Write it by dptext start TABLE --to {shlex.quote(source)}, "
            f"then use {shown}."
        )
    options = ", ".join(f"--{name}" for name, value in beside.items() if value is not None)
    if options:
        raise SettingsError(f"{options}: not valid with {source!r}, because that file sets it. Use {shown}.")
    return Path(source)


def settings_of(command: str, source: str) -> Path:
    """Return the file of settings that a command is given, or that of the style of that name.

    Raises:
        SettingsError: it is not there, or is a table; with the full commands to use instead.
    """
    from dptext_spark.config.styles import STYLES, file_for, file_of_style
    from dptext_spark.errors import SettingsError, did_you_mean

    file = settings_in(command, str(file_of_style(Path(source))))
    if file is None:
        named = shlex.quote(file_for(source))
        raise SettingsError(
            f"settings: {source!r} is not a file of settings.{did_you_mean(source, STYLES)} For a table, use dptext start "
            f"{shlex.quote(source)} to write {named}, then dptext {command} {named}."
        )
    return file


def end_where_broken(broken: Sequence[str], table: str) -> None:
    """End the command with its exit code where requirements are broken, and say which."""
    from dptext_spark.errors import BrokenRequirementError
    from dptext_spark.report.console import write_error

    if broken:
        write_error(f"requirement broken: {'; '.join(dict.fromkeys(broken))}. Do not publish {table}.")
        raise typer.Exit(BrokenRequirementError.exit_code)
