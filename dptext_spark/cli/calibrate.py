"""`dptext calibrate`: the largest ε that meets a requirement."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dptext_spark.cli.options import Config, Json, Override
from dptext_spark.report.terminal.console import progress, width, write, write_json


def calibrate(
    require: Annotated[
        list[str],
        typer.Option(
            "--require",
            "-r",
            metavar="REQUIREMENT",
            help="What must hold over the words of the lexicon, such as 'N_w max <= 0.5', 'S_w min >= 10', 'S_w[1000] p5 >= 20' "
            "or 'bayes token <= 0.3' (the share of replaced words that the best guess finds; 'bayes names': of the names that "
            "public lists hold, 'bayes words': of those of --words); may be repeated.",
        ),
    ],
    config: Config = None,
    overrides: Override = None,
    low: Annotated[float, typer.Option(help="The smallest ε to look at.")] = 0.01,
    high: Annotated[float, typer.Option(help="The largest ε to look at.")] = 100.0,
    steps: Annotated[
        int | None, typer.Option(help="How many ε to look at. Default: 24, or 12 where compiling takes long.")
    ] = None,
    sample: Annotated[
        int, typer.Option(help="How many words to draw from, where the mechanism has no law.")
    ] = 50,
    words: Annotated[
        Path | None,
        typer.Option(
            help="A text file of words that matter, such as names, one a line: what 'bayes words' is about."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the largest ε whose figures meet what is required, for the worst word of the lexicon, and show the curve."""
    from dptext_spark.audit.deniability.find_epsilon import calibrate as search
    from dptext_spark.config.load import load_model_config
    from dptext_spark.config.values import read_lines
    from dptext_spark.report.terminal.calibration import calibration_text

    settings = load_model_config(config, overrides or ())
    given = None if words is None else read_lines("--words", str(words))
    with progress() as say:
        found = search(
            settings, require, low=low, high=high, steps=steps, sample=sample, words=given, progress=say
        )
    if as_json:
        write_json(found.as_dict())
    else:
        write(calibration_text(found, width()))
