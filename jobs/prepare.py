"""Compile lexicon and mechanism into an artifact, with machine code: `prepare.py SETTINGS.yaml FOLDER [--set A.B=VALUE]...`."""

from __future__ import annotations

import argparse

from dptext_spark.cli.app import ended
from dptext_spark.config.load import load_model_config
from dptext_spark.model.compile import compile_with_code
from dptext_spark.report.console import progress, write


def main(arguments: list[str] | None = None) -> int:
    """Write the artifact, for `run.artifact` to name; print what `run.artifact_fingerprint` names it by; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", metavar="settings", help="the settings of a run, or of the model only")
    parser.add_argument("folder", help="where the artifact goes: a new folder, or the same artifact's")
    parser.add_argument("--set", action="append", default=[], dest="sets", metavar="A.B=VALUE")
    parser.add_argument("--no-code", action="store_false", dest="code", help="make no machine code")
    given = parser.parse_args(arguments)

    def prepare() -> None:
        with progress() as say:
            write(compile_with_code(load_model_config(given.file, given.sets), given.folder, say, given.code))

    return ended(prepare)


if __name__ == "__main__":
    raise SystemExit(main())
