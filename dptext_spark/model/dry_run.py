"""What a dry run checks beside the input's schema, keys and targets, and what it says of them.

Spark is asked by the run's own rules: see :mod:`dptext_spark.spark.runner`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dptext_spark.config.load import require_lasting
from dptext_spark.config.model import RunConfig
from dptext_spark.model.table_files import large_files, on_one_core
from dptext_spark.model.table_schema import TextPath
from dptext_spark.text.names.name_table import WordList

NEW = "new"


@dataclass(frozen=True)
class Checked:
    """What a dry run looked at, and found in order.

    Attributes:
        read: of the input, in words.
        columns: of the input.
        kept: of them those that the target has, texts among them.
        target: what is there, in words; `new` where nothing is.
        open: what only the run can tell.
        slow: what takes longer than it has to, in words; empty where nothing does.
    """

    read: str
    columns: tuple[str, ...]
    kept: tuple[str, ...]
    target: str
    open: tuple[str, ...]
    slow: str = ""


def check_beside(config: RunConfig) -> None:
    """Check what no table tells: that a stream's key outlives it, and that files of lists of names can be read.

    Raises:
        SettingsError: there is no such key.
        DataError: a list cannot be read, or is none; no entry is shown.
    """
    if config.is_stream:
        require_lasting(config.key.kind, config.mode)
    for field, source in config.lists.named():
        if source.file is not None:
            WordList.read(field, source.file)


def reads_whole_files(config: RunConfig) -> bool:
    """Whether each file of the input is read on one core, however large: CSV whose fields may hold line breaks."""
    options = {name.lower(): value.lower() for name, value in config.input.options.items()}
    return config.input.format in ("csv", "tsv") and options.get("multiline", "true") == "true"


def slow_files(sizes: Mapping[str, int]) -> str:
    """Say how many files of these sizes are large; nothing where none is."""
    count = large_files(sizes)
    return on_one_core(count) if count else ""


def target_said(config: RunConfig, releases: int, *, made: bool) -> str:
    """Say what is in the place of the output, which was let pass."""
    if made:
        return "there, and empty"
    return f"there, with {releases:,} release{'' if releases == 1 else 's'} of runs; output.mode {config.output.mode}"


def only_the_run(config: RunConfig, paths: Sequence[TextPath] = ()) -> Iterator[str]:
    """Yield what no schema tells."""
    if not config.is_stream:
        yield "whether it has rows"
    if config.row_key is not None:
        yield f"whether {config.row_key} is unique and never NULL"
    if config.record_key is not None:
        yield f"whether {config.record_key} is never NULL"
    maps = [path.name for path in paths if path.over == "map"]
    if maps:
        yield f"whether a map of {', '.join(maps)} holds a key twice"
    if not config.allow_unknown:
        yield "whether the lexicon has most of the words"
    if config.input.path is not None and config.input.format in ("csv", "tsv", "json"):
        yield (
            "whether every record fits and is UTF-8"
            if config.input.format == "json"
            else ("whether every line fits, in its encoding")
        )
    if config.is_stream:
        yield "whether the checkpoint is of these settings"
    yield "what the ledger has left"
