"""`dptext compare`: mechanisms where attacks succeed equally."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dptext_spark.cli.options import Config, Json, Override
from dptext_spark.report.terminal.console import progress, width, write, write_json


def compare(
    mechanisms: Annotated[
        str,
        typer.Option(
            help="Names with commas between them, each with settings behind colons: custext,diffractor:form=tem."
        ),
    ],
    epsilons: Annotated[
        list[str],
        typer.Option(
            help="Numbers with commas between them, ascending; NAME=NUMBERS for one mechanism. May be repeated."
        ),
    ],
    public: Annotated[
        Path, typer.Option(help="What the adversary knows of the language: a text, a record a line.")
    ],
    private: Annotated[Path, typer.Option(help="What is to be protected: a text, a record a line.")],
    language: Annotated[
        Path | None,
        typer.Option(
            help="A third text, public, a record a line: its word pairs judge the word order of what is released."
        ),
    ] = None,
    config: Config = None,
    overrides: Override = None,
    lexicon: Annotated[
        str | None, typer.Option(help="`default`, a saved lexicon, or a file of word vectors.")
    ] = None,
    labels: Annotated[
        str, typer.Option(help="Where the label of a tab-separated line stands: first, last or none.")
    ] = "none",
    public_labels: Annotated[
        str | None, typer.Option(help="The same of the public text, where it differs from --labels.")
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(help="Levels of risk to compare at, such as 0.1,0.2,0.5. Default: round ones."),
    ] = None,
    records: Annotated[
        int, typer.Option(help="Records of the private text that are replaced, evenly spaced.")
    ] = 4_000,
    attacked: Annotated[int, typer.Option(help="Records of those that are attacked in context.")] = 1_000,
    words: Annotated[
        int,
        typer.Option(help="Words that the adversary considers where laws cannot be read (truncated Gumbel)."),
    ] = 500,
    draws: Annotated[int, typer.Option(help="Draws of each of them, where there is no law.")] = 100,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|PACKAGE",
            help="A BERT: also compare sentence embeddings. It reads all records again at each ε.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder for compare.html."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare mechanisms where attacks succeed equally, because ε means another thing for each: which keeps most of the text?"""
    from dptext_spark.audit.comparison.compare import compare as run_comparison
    from dptext_spark.audit.comparison.spec import ComparisonSpec
    from dptext_spark.config.load import load_model_config
    from dptext_spark.errors import require_extra
    from dptext_spark.report.comparison import comparison_page, comparison_text, write_private
    from dptext_spark.text.records import read_records

    if out is not None:
        require_extra("audit", "jinja2", "matplotlib")
    chosen = [] if lexicon is None else [f"lexicon.source={lexicon}"]
    settings = load_model_config(config, [*(overrides or ()), *chosen])
    asked = ComparisonSpec.of(
        settings,
        mechanisms,
        epsilons,
        levels,
        encoder,
        few=words,
        draws=draws,
        attacked=attacked,
        records=records,
    )
    known = read_records(public, "public", labels if public_labels is None else public_labels)
    secret = read_records(private, "private", labels)
    third = None if language is None else read_records(language, "language")
    with progress() as say:
        found = run_comparison(settings, asked, known, secret, language=third, progress=say)
    if out is not None:
        write_private(out / "compare.html", comparison_page(found))
    if as_json:
        write_json(found.as_dict())
    else:
        write(comparison_text(found, width()))
