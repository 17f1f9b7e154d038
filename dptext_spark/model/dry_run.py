"""Whether a run would be refused: its input's schema, keys and targets, checked by the run's own rules and without its rows.

Files of this machine are read here; what needs Spark is for :mod:`dptext_spark.spark.runner`, which returns the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dptext_spark.config.checks import require_lasting
from dptext_spark.config.condition import typed_condition
from dptext_spark.config.locations import inside, normal_path
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DPTextError
from dptext_spark.model.tables.delta_log import LOG, NeedsSparkError, only_created, our_commits, read_log
from dptext_spark.model.tables.local_schema import LocalInput, files_in, is_here, read_schema
from dptext_spark.model.tables.schema import TextPath, without
from dptext_spark.model.tables.table_checks import Fit, check_header, check_input, check_partitions
from dptext_spark.model.tables.table_files import large_files, on_one_core
from dptext_spark.model.tables.target_checks import (
    check_releases,
    check_schema,
    check_writable,
    holds_other_files,
    is_the_input,
    places_written,
)
from dptext_spark.text.names.word_list import WordList

NEW = "new"


@dataclass(frozen=True)
class Checked:
    """What a dry run looked at, and found in order.

    Attributes:
        by: `pyarrow` or `Spark`.
        read: of the input, in words.
        columns: of the input.
        kept: of them those that the target has, texts among them.
        target: what is there, in words; `new` where nothing is.
        open: what only the run can tell.
        slow: what takes longer than it has to, in words; empty where nothing does.
    """

    by: str
    read: str
    columns: tuple[str, ...]
    kept: tuple[str, ...]
    target: str
    open: tuple[str, ...]
    slow: str = ""


def check_here(config: RunConfig) -> Checked:
    """Check a run whose input and output are files of this machine; nothing is written, and no row is read but JSON's first.

    Raises:
        NeedsSparkError: the input or the target is not of this machine, or written in a way that Spark alone knows.
        SettingsError, DataError, RunError: as the run would.
        OSError: a file cannot be read.
    """
    check_beside(config)
    target = config.output.path
    if target is None:
        raise NeedsSparkError("is written to a name in Spark's catalog")
    if any(source.table is not None for _, source in config.lists.named()):
        raise NeedsSparkError("has a list of names in Spark's catalog")
    if not all(map(is_here, places_written(config).values())):
        raise NeedsSparkError("is written to a place that is not on this machine")
    found = read_schema(config.input, config.columns)
    check_header(found.schema, config.input, config.columns)
    try:
        typed_condition(config.input.where, found.schema)
        fit = check_input(found.schema, config)
        there = _check_target(config, target, found, fit)
    except DPTextError:
        if not found.sure:
            raise NeedsSparkError("has more records than were looked at, and these do not fit") from None
        raise
    check_writable(places_written(config))
    sizes = {str(file): file.stat().st_size for file in found.files} if reads_whole_files(config) else {}
    return Checked(
        "pyarrow",
        found.said,
        found.schema.names,
        fit.kept,
        there,
        tuple(only_the_run(config, fit.paths)),
        slow_files(sizes),
    )


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


def _check_target(config: RunConfig, target: str, found: LocalInput, fit: Fit) -> str:
    """Check what is where the output goes; return it in words."""
    place = Path(normal_path(target))
    log = read_log(place) if place.is_dir() else None
    partitions = None if log is None else log.partitions
    check_partitions(config.output.partition_by, found.schema, fit.kept, fit.paths, partitions)
    if log is None:
        if place.exists() and files_in(place):
            if config.shareable is not None and Path(normal_path(config.shareable), "runs", LOG).exists():
                raise NeedsSparkError(
                    "is written to a folder with files, which an unfinished run may have left"
                )
            raise holds_other_files(target)
        return NEW
    source = found.log if found.log is not None else read_log(Path(normal_path(config.input.path or "")))
    by_files = any(inside(str(file), str(place)) for file in found.files)
    if by_files if source is None else source.id == log.id:
        raise is_the_input(config, target)
    if check_releases(config, target, log.commits, persistent=config.key.kind != "os"):
        roots = {path.root for path in fit.paths}
        check_schema(
            log.schema, without(found.schema, fit.kept, fit.dropped), roots, fit.kept, config.output.mode
        )
    return target_said(config, len(our_commits(log.commits)), made=only_created(log.commits))


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
