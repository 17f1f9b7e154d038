"""`dptext lexicon`: show or import one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dptext_spark.cli import Json
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.report.terminal.console import Screen, progress, show
from dptext_spark.runtime.progress import counted

if TYPE_CHECKING:
    from dptext_spark.lexicon.lexicon import Lexicon

lexicon_app = typer.Typer(help="Show or import a lexicon.", no_args_is_help=True)


@lexicon_app.command("info")
def lexicon_info(
    source: Annotated[str, typer.Argument(help="`default`, or a saved lexicon's folder.")] = "default",
    as_json: Json = False,
) -> None:
    """Show a lexicon: words, dimensions, metric, fingerprint, and what reading it dropped."""
    from dptext_spark.lexicon.lexicon import PACKAGED, Lexicon

    if Path(source).is_file():
        raise DataError(f"source: {source!r} is a file, no saved lexicon; `dptext lexicon import` saves one.")
    packaged = source == PACKAGED
    _describe(Lexicon.default() if packaged else Lexicon.open(source), as_json, version=packaged)


@lexicon_app.command("import")
def lexicon_import(
    file: Annotated[Path, typer.Argument(help="GloVe, word2vec or fastText .vec; .gz too")],
    folder: Annotated[Path, typer.Argument(help="Where to save it: a new folder.")],
    format: Annotated[str, typer.Option(help="The file's format; auto: by its first bytes.")] = "auto",
    limit: Annotated[int | None, typer.Option(help="Stop after this many words.")] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="Keep only the words of this text file, one a line.")
    ] = None,
    tokenizer: Annotated[str, typer.Option(help="words or whitespace.")] = "words",
    metric: Annotated[str, typer.Option(help="cosine or euclidean.")] = "cosine",
    as_json: Json = False,
) -> None:
    """Read word vectors from a file and save them as a lexicon, to be named as lexicon.source."""
    from dptext_spark.lexicon.lexicon import Lexicon

    with progress() as say:
        found = Lexicon.read(
            file,
            format=format,
            limit=limit,
            vocabulary=vocabulary,
            tokenizer=tokenizer,  # type: ignore[arg-type]  # read() refuses what it does not know
            metric=metric,  # type: ignore[arg-type]  # likewise
            progress=counted("reading", say),
        )
        found.save(folder)
    _describe(found, as_json, folder)


@lexicon_app.command(
    "build-default", hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def lexicon_build_default() -> None:
    """Refuse what a checkout does."""
    raise SettingsError("lexicon build-default: no command of the package; run `make lexicon` in a checkout.")


def _describe(lexicon: Lexicon, as_json: bool, folder: Path | None = None, version: bool = False) -> None:
    from dptext_spark.lexicon.lexicon import PACKAGED_VERSION

    facts: dict[str, Any] = {
        "name": lexicon.name,
        "words": len(lexicon),
        "dimensions": lexicon.dimensions,
        "metric": lexicon.metric,
        "fingerprint": lexicon.fingerprint,
        "prior": lexicon.prior.name,
        "counts": None if lexicon.counts is None else asdict(lexicon.counts),
    }
    if version:
        facts["version"] = PACKAGED_VERSION
    if folder is not None:
        facts["folder"] = str(folder)
    flat = {**facts, **(facts["counts"] or {}), "counts": None}
    rows = [
        (name.replace("_", " "), f"{value:,}" if type(value) is int else str(value))
        for name, value in flat.items()
        if value is not None and not isinstance(value, dict)
    ]
    show(Screen(f"The lexicon {lexicon.name}", rows), facts if as_json else None)
