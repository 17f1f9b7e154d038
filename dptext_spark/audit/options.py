"""Options of a table's audit, of a report and of a comparison: one frozen object each, from the command line to the work.

A field that the command line sets holds its help. The command and the function of the same name take the fields as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from typer import Option

from dptext_spark.errors import SettingsError

R = TypeVar("R")
MOST_LABEL_ROWS = 10_000  # classifiers learn on the driver
MOST_QUERIES = 1_000  # linkage looks for


def takes(kind: type[Any], *, is_command: bool = False) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Let a function take its argument `options` as the fields that build it, each a keyword argument.

    Args:
        kind: the dataclass of `options`; every field has a default.
        is_command: whether the function is a command: it has the fields that the command line sets, as typer reads them.
    """
    hints = get_type_hints(kind, include_extras=is_command)
    if is_command:
        hints = {name: _as_typer_reads(hint) for name, hint in hints.items() if get_origin(hint) is Annotated}

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        @wraps(function)
        def call(*arguments: Any, options: Any = None, **named: Any) -> R:
            values = {name: named.pop(name) for name in hints if name in named}
            # What the command line was not given is None.
            values = {name: value for name, value in values.items() if value is not None}
            return function(*arguments, options=options or kind(**values), **named)

        own = signature(function, eval_str=is_command)
        options = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=getattr(kind, name), annotation=hint)
            for name, hint in hints.items()
        ]
        expanded = (options if name == "options" else [argument] for name, argument in own.parameters.items())
        call.__signature__ = own.replace(parameters=list(chain(*expanded)))  # type: ignore[attr-defined]
        return call

    return decorate


def _as_typer_reads(hint: Any) -> Any:
    """Return the type of a field with its option; typer knows lists, and no other sequence."""
    plain, option = get_args(hint)
    if get_origin(plain) is get_origin(Sequence[str]):
        plain = list[get_args(plain)[0]] | None  # type: ignore[misc]
    return Annotated[plain, option]


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """Options of an audit of a written table; the settings supply missing ones.

    Attributes:
        queries: rows that linkage looks for among all others, 1,000 at most; 0 leaves linkage out.
        label_rows: about how many rows, 10,000 at most, classifiers learn from.
        sample: about how many rows consistency, similarity and attacks use.

    Raises:
        SettingsError: a sample of no rows, or of more than classifiers learn from.
    """

    against_format: Annotated[
        str | None,
        Option(
            metavar="FORMAT",
            help="Format of SOURCE, such as csv. Default: from settings with this input, else Delta or Parquet.",
        ),
    ] = None
    columns: Annotated[
        Sequence[str], Option("--columns", help="A text column; may be repeated. Default: from the settings.")
    ] = ()
    row_key: Annotated[
        str | None,
        Option(
            help="Column that identifies a row in both. Default: from the settings, else file and position."
        ),
    ] = None
    record_key: Annotated[str | None, Option(help="Source column whose equal values form one record.")] = None
    label: Annotated[
        str | None, Option(metavar="COLUMN", help="Source column that a classifier should still predict.")
    ] = None
    attribute: Annotated[
        str | None, Option(metavar="COLUMN", help="Source column that the text should not reveal.")
    ] = None
    author: Annotated[
        str | None,
        Option(metavar="COLUMN", help="Source column of authors: does another text of an author find a row?"),
    ] = None
    queries: int = MOST_QUERIES
    similarity: Annotated[
        bool, Option("--similarity", help="Compare both texts: ROUGE, BLEU, cosine. --label includes this.")
    ] = False
    encoder: Annotated[
        str | None,
        Option(
            metavar="FOLDER|PACKAGE",
            help="A BERT that compares the sampled texts: sentence embeddings, BERTScore.",
        ),
    ] = None
    masked_model: Annotated[
        str | None,
        Option(
            metavar="FOLDER|PACKAGE",
            help="A BERT that guesses masked words: two passes over a text for each of up to 2,000 words.",
        ),
    ] = None
    label_rows: int = MOST_LABEL_ROWS
    names: Annotated[
        str | None, Option(metavar="FILE", help="Names, one a line: count those that the table still holds.")
    ] = None
    internal: Annotated[
        bool,
        Option("--internal", help="Also show figures of names and the words that stayed most: private text."),
    ] = False
    require: Annotated[
        Sequence[str],
        Option(
            "--require",
            "-r",
            metavar="REQUIREMENT",
            help="A limit such as 'original_share <= 0.6'; may be repeated. Broken: exit code 7.",
        ),
    ] = ()
    sample: int = 2_000
    partial: Annotated[bool, Option("--partial", help="Accept rows that only one of the tables has.")] = False
    out: Annotated[
        str | None,
        Option(help="Folder of the metrics. Default: from the settings, else <TABLE>_audit/restricted."),
    ] = None

    def __post_init__(self) -> None:
        """Check the sizes of samples."""
        if self.sample < 1:
            raise SettingsError(f"sample: {self.sample} is not valid. Use 1 or more.")
        if not 0 <= self.queries <= MOST_QUERIES:
            raise SettingsError(f"queries: {self.queries} is not valid. Use 0 to {MOST_QUERIES:,}.")
        if not 1 <= self.label_rows <= MOST_LABEL_ROWS:
            raise SettingsError(
                f"label_rows: {self.label_rows} is not valid. Use 1 to {MOST_LABEL_ROWS:,}, because the driver "
                "trains the classifiers."
            )


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Contents of a run's report in addition to the shareable part.

    Attributes:
        public_text: lines of a public text, for the contextual adversary.
        examine: whether the model is opened and attacked; without, only the account is read.
    """

    public: Annotated[
        bool,
        Option("--public", help="Leave out figures that depend on the private text; the page may be shared."),
    ] = False
    with_examples: Annotated[
        bool, Option("--with-examples", help="Also show some records before and after: private text.")
    ] = False
    figures: Annotated[Sequence[Path], Option(help="JSON of an audit to show, too; may be repeated.")] = ()
    public_text: Sequence[str] = ()
    examine: bool = True

    def __post_init__(self) -> None:
        """Refuse private text on a page that may be shared."""
        if self.public and self.with_examples:
            raise SettingsError(
                "public: not valid with with_examples, because examples are private text. Choose one."
            )


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """Options for the thoroughness of a comparison.

    Attributes:
        records: records of the private text that are replaced, evenly spaced.
        attacked: how many of them are attacked in context.
        few: words that the adversary considers if no law can be read (truncated Gumbel).
        draws: draws of each of these words if the mechanism has no law.

    Raises:
        SettingsError: a size below 2.
    """

    records: int = 4_000
    attacked: int = 1_000
    few: int = 500
    draws: int = 100
    encoder: Annotated[
        str | None,
        Option(
            metavar="FOLDER|PACKAGE",
            help="A BERT that also compares sentence embeddings; it reads all records at each ε.",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Check the sizes."""
        for name in ("records", "attacked", "few", "draws"):
            if getattr(self, name) < 2:
                raise SettingsError(f"{name}: {getattr(self, name)} is not valid. Use 2 or more.")
