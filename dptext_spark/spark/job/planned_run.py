"""The plan of a run: all that was checked and prepared before the first byte is written.

It sets the size of a worker's batch, in rows and in bytes. Keys and output are checked here.
"""

from __future__ import annotations

import json
import platform
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import NamedTuple
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dptext_spark._version import __version__
from dptext_spark.config.condition import Condition, typed_condition
from dptext_spark.config.locations import inside, spelled
from dptext_spark.config.model import HIDDEN, RunConfig
from dptext_spark.config.sections import Input
from dptext_spark.config.values import ALLOW_UNKNOWN
from dptext_spark.disclosure.facts import RunFacts, RunRecord, ShownSettings
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.model.certificate import Certificate
from dptext_spark.model.privatizer import ENGINE_VERSION, Privatizer
from dptext_spark.model.record import record_account
from dptext_spark.model.table_checks import SchemaFit, check_partitions
from dptext_spark.model.table_schema import Parts, beside_texts, resolve_all, without
from dptext_spark.model.target_checks import (
    Commit,
    check_releases,
    check_schema,
    check_writable,
    holds_other_files,
    is_the_input,
    places_written,
)
from dptext_spark.randomness import RunKey
from dptext_spark.spark.column_function import Identity, UdfSpec, applied
from dptext_spark.spark.job import runs
from dptext_spark.spark.nested_columns import Path, paths_of, quoted, schema_of
from dptext_spark.spark.run_lists import NO_LISTS, RunLists, ShippedLists
from dptext_spark.spark.ship import ship_for
from dptext_spark.spark.tables import DeltaDetail, Target, history, holds_files, is_no_table, on_disk, opened

SAMPLE_ROWS = 1_000


@dataclass(frozen=True)
class MicroBatch:
    """The place of a micro-batch in its stream.

    Attributes:
        stream: the run id of the stream.
        number: of the micro-batch, from 0.
        recent: how many of the target's newest commits to read; None: all. Reading a long history costs more than a batch.
        dropped: rows left out because their key came again; None where none are.
        is_unseen: it is the first, and where the stream began there was too little text to tell its language.
        is_begun: it was in the table of runs when this start of the stream began. Spark lets no other process begin one since.
    """

    stream: str
    number: int
    recent: int | None = None
    dropped: int | None = None
    is_unseen: bool = False
    is_begun: bool = False

    @property
    def run_id(self) -> str:
        """The run id of the micro-batch."""
        return f"{self.stream}.{self.number}"


@dataclass(frozen=True)
class Place:
    """Places that a run writes to.

    Attributes:
        target: the sanitized table.
        runs: folder of the shareable `runs` table.
        metrics: folder of the restricted `metrics` table.
        ledger: folder of the budget ledger, which several targets may share.
    """

    target: Target
    runs: str
    metrics: str
    ledger: str


class TextSizes(NamedTuple):
    """Bytes of text in a row, over the first rows of an input: their number, fewer than `SAMPLE_ROWS` being all."""

    rows: int
    average: float
    largest: float


def text_sizes(df: DataFrame, paths: Sequence[Path]) -> TextSizes:
    """Look at the texts in the first rows of an input: Spark reads no more of its partitions than hold them."""
    sizes = [F.coalesce(path.size, F.lit(0)) for path in paths]
    total = sizes[0]
    for size in sizes[1:]:
        total = total + size
    lengths = [int(row[0]) for row in df.select(total).limit(SAMPLE_ROWS).collect()]
    return TextSizes(len(lengths), sum(lengths) / max(1, len(lengths)), float(max(lengths, default=0)))


@dataclass(frozen=True, eq=False)
class RunPlan:
    """A validated run before its first byte is written."""

    spark: SparkSession
    config: RunConfig
    run_id: str
    key: RunKey
    key_kind: str
    privatizer: Privatizer
    folder: str
    df: DataFrame
    input_version: str
    corrupt: int | None
    identity: Identity
    place: Place
    kept: list[str]
    compiled: int
    certificate: Certificate | None
    dropped: frozenset[Parts] = frozenset()  # fields next to nested texts that are left out
    stream: MicroBatch | None = None
    bound: ShownSettings | None = None  # of a stream, which binds its micro-batches
    lists: RunLists | None = None  # of names
    rows: int | None = None  # of the input at most, where its key was checked; 0 where it has none
    detail: DeltaDetail | None = None  # of the input's table, where it is one and was looked at
    # Of this process: its commit bears it, for another process may have begun the same command at the same moment.
    attempt: str = field(default_factory=lambda: secrets.token_hex(8))

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """Paths of the texts."""
        return tuple(paths_of(self.df.schema, self.config.columns))

    @cached_property
    def sizes(self) -> TextSizes:
        """Bytes of text in a row, over the first rows: one small job."""
        return text_sizes(self.df, self.paths)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of a drawn word: words are chosen over all texts of a row."""
        return self.privatizer.guarantee(of_rows=True)

    @cached_property
    def facts(self) -> RunFacts:
        """Facts that are known before and during the run."""
        known = RunFacts.planned(
            self.config, self.privatizer, self.certificate, record_account(self.privatizer)
        )
        return replace(
            known,
            key_kind=self.key_kind,
            identity=self.identity.kind,
            run_id=self.run_id,
            compiled_loops=self.compiled,
            input=str(self.config.input.table or self.config.input.path),
            output=str(self.place.target),
            runs=self.place.runs,
            metrics=self.place.metrics,
            versions=self._versions(),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the texts."""
        return tuple(path.name for path in self.paths)

    @property
    def others(self) -> list[str]:
        """Parts that are released unchanged: other columns, other fields of columns that hold text, the keys of maps."""
        fields, keys = beside_texts(schema_of(self.df.schema), self.paths)
        whole = [name for name in self.kept if name not in {path.root for path in self.paths}]
        inside = [spelled(field) for field in fields if field not in self.dropped]
        return [*whole, *inside, *(f"{name} (its keys)" for name in keys)]

    def drawn(self) -> tuple[DataFrame, UdfSpec]:
        """Return the input with the function's result for each row, and the parameters of the workers.

        Nothing runs until Spark is asked for rows.
        """
        spec = UdfSpec(
            columns=self.columns,
            shipped=ship_for(self.spark, self.folder, self.config),
            key=self.key.delivered(),
            run_id=self.run_id,
            has_row_id=self.identity.row is not None,
            has_record_id=self.identity.record is not None,
            weights=() if self.config.importance is None else self.config.importance.weights,
            names=self.names(),
        )
        return applied(self.df, spec, self.config.run.udf, self.identity.row, self.identity.record), spec

    def names(self) -> ShippedLists:
        """Return the lists of names for the workers; the first call ships them."""
        return NO_LISTS if self.lists is None else self.lists.shipped(self.spark)

    def commits(self) -> list[Commit]:
        """Return the target's commits, newest first; for a stream only the newest, if these must include the wanted one."""
        return history(self.spark, self.place.target, None if self.stream is None else self.stream.recent)

    @property
    def transaction(self) -> tuple[str, str]:
        """The application and version by which Delta takes a write once: a run's own, or a stream's with the micro-batch."""
        if self.stream is None:
            return f"dptext-{self.run_id}", "1"
        return f"dptext-{self.stream.stream}", str(self.stream.number)

    def shown_settings(self, run_id: str) -> ShownSettings:
        """Return the settings for a shareable row, without secrets or values that may differ between two starts."""
        # Job options, limits and the ledger's place may change before a run finishes.
        shown = {**self.config.as_dict(), "lexicon": self.config.spec()["lexicon"]}
        shown |= dict.fromkeys(("run", "key", "ledger"))
        shown["policy"] = {name: value for name, value in shown["policy"].items() if name != ALLOW_UNKNOWN}
        source, options = self.config.input, shown["input"]["options"]
        # A plain digest of a value that is not shown could be guessed: it is bound by the key.
        bound = {
            name: self._hidden(f"option {run_id} {name} {source.options[name]}")
            for name, value in options.items()
            if value == HIDDEN
        }
        where = self.where
        if where is not None and self.config.hides_where:
            where = {name: self._hidden(f"where {run_id} {name} {json.dumps(where[name])}") for name in where}
        shown["input"] = {**shown["input"], "options": {**options, **bound}, "where": where}
        return self._with_lists(ShownSettings(shown))

    def _with_lists(self, settings: ShownSettings) -> ShownSettings:
        """Return settings with the facts of the lists of names."""
        if self.lists is None:
            return settings
        scope = self.run_id if self.stream is None else self.stream.stream
        policy = {**settings.values["policy"], **self.lists.lists.shown(self.key, scope)}
        return ShownSettings({**settings.values, "policy": policy})

    @cached_property
    def where(self) -> Condition | None:
        """The condition on the input by the types of its columns: equal conditions are equal here."""
        return typed_condition(self.config.input.where, schema_of(self.df.schema))

    def _hidden(self, value: str) -> str:
        """Return the substitute of a hidden value: it binds the value by the key."""
        return f"(hidden; {self.key.commitment(value)[:32]})"

    def record(self, status: str, started: float) -> RunRecord:
        """Return the row of `runs` that binds the run."""
        # A micro-batch is bound to the stream's settings, and to the lists that it was given.
        settings = self.shown_settings(self.run_id) if self.bound is None else self._with_lists(self.bound)
        certificate = self.certificate
        return RunRecord(
            run_id=self.run_id,
            status=status,
            started_at=runs.utc(started),
            config=settings.text,
            guarantee=json.dumps(self.guarantee.as_dict()),
            certificate=None if certificate is None else json.dumps(certificate.as_dict(), sort_keys=True),
            key_commitment=self.key.commitment(self.run_id),
            key_kind=self.key_kind,
            artifact=self.privatizer.fingerprint,
            input=str(self.config.input.table or self.config.input.path),
            input_version=self.input_version,
            identity=self.identity.kind,
            output=str(self.place.target),
            versions=json.dumps(self._versions()),
        )

    def _versions(self) -> dict[str, str]:
        """Return the versions that the run works with, those of its providers by their import paths."""
        looked = (provider.record for provider in self.privatizer.imported)
        return {
            **versions(),
            **{record.path: f"{record.name}, version {record.version}" for record in looked},
        }


def versions() -> dict[str, str]:
    """Return the versions that a run worked with."""
    return {
        "dptext_spark": __version__,
        "engine": ENGINE_VERSION,
        **{name: _installed(name) for name in ("pyspark", "delta-spark")},
        "python": platform.python_version(),
    }


def _installed(package: str) -> str:
    try:
        return installed(package)
    except PackageNotFoundError:  # a client of Spark Connect needs no Delta Lake of its own
        return "not here"


BATCH_BYTES = 32 << 20
BATCH_ROWS = 50_000
ROWS, BYTES = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch"


def batch_rows(plan: RunPlan) -> int:
    """Return the rows of a batch: as many as make `BATCH_BYTES`, and at most the session's own setting."""
    named = int(plan.spark.conf.getAll.get(ROWS, 0))  # 0 and less are no bound
    most = min(named, BATCH_ROWS) if named > 0 else BATCH_ROWS
    average, largest = plan.sizes.average, plan.sizes.largest
    return max(1, min(most, int(BATCH_BYTES / max(average, largest / 8, 1.0))))


@contextmanager
def batched(plan: RunPlan) -> Iterator[None]:
    """Bound the batches of the session for the length of a pass over the text, and set it back afterwards."""
    conf = plan.spark.conf
    limits = {ROWS: str(batch_rows(plan)), BYTES: str(2 * BATCH_BYTES)}
    before = {name: conf.getAll.get(name) for name in limits}
    for name, value in limits.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                conf.unset(name)
            else:
                conf.set(name, old)


def place_of(config: RunConfig, ledger: str = "") -> Place:
    """Return the places of a run: the two audit folders are beside the target unless they are named.

    Raises:
        SettingsError: a target by name without named audit folders.
    """
    target = Target(path=config.output.path or "", name=config.output.table or "")
    shareable, restricted = config.shareable, config.restricted
    if not shareable or not restricted:
        raise SettingsError(
            "audit.shareable and audit.restricted: output.table is a catalog name. Name both folders."
        )
    return Place(target, f"{shareable}/runs", f"{restricted}/metrics", ledger or config.ledger.place or "")


def check_output(
    spark: SparkSession, config: RunConfig, df: DataFrame, fit: SchemaFit, commits: Sequence[Commit], *, persistent: bool,
    source: DeltaDetail | None = None,
) -> None:  # fmt: skip
    """Refuse a target that would lose data, keep raw text, or release records again unasked, and places that cannot be written.

    A `persistent` key outlives the run, so that equal runs draw equal noise.

    Raises:
        RunError: the target exists under mode `error`.
        SettingsError: what the settings must name first; the target is the input, or something else than a Delta table.
        DataError: the target does not take the output's columns or partitions.
    """
    place, schema = place_of(config), schema_of(df.schema)
    target = delta_detail(spark, place.target) if commits else None
    partitions = None if target is None else target.partitions
    check_partitions(config.output.partition_by, schema, fit.kept, fit.paths, partitions)
    if not commits:
        _check_vacant(spark, place)
    else:
        _check_not_the_input(spark, config, df, target, source)
        if check_releases(config, str(place.target), commits, persistent=persistent):
            before = schema_of(opened(spark, place.target).schema)
            roots = {path.root for path in resolve_all(schema, config.columns)}
            check_schema(before, without(schema, fit.kept, fit.dropped), roots, fit.kept, config.output.mode)
    # Of other folders than this machine's nothing is known here.
    check_writable({field: path for field, path in places_written(config).items() if on_disk(spark, path)})


def _check_vacant(spark: SparkSession, place: Place) -> None:
    """Refuse a name or folder that holds something other than a Delta table: raw files would lie next to the output."""
    target = place.target
    if target.name and spark.catalog.tableExists(target.name):
        raise SettingsError(
            f"output.table: {target.name!r} is a view or no Delta table. Use a new name, or a Delta table."
        )
    if target.path and holds_files(spark, target.path):
        # Remains of an unfinished run may stay: they are known, and in no version of the table.
        if runs.is_unfinished(spark, place.runs, target.path):
            return
        raise holds_other_files(target.path)


def _check_not_the_input(
    spark: SparkSession,
    config: RunConfig,
    df: DataFrame,
    target: DeltaDetail | None,
    source: DeltaDetail | None,
) -> None:
    """Refuse the input as target if names and paths hide it: by a catalog name and by its path, or through a view."""
    source = source or detail_of_input(spark, config.input)
    if source is not None and target is not None:
        same = source.id == target.id
    else:
        same = target is not None and any(
            inside(name, target.location) for file in df.inputFiles() for name in (file, unquote(file))
        )
    if same:
        raise is_the_input(config, str(config.output.table or config.output.path))


def delta_detail(spark: SparkSession, target: Target) -> DeltaDetail | None:
    """Return the detail of a Delta table; None for a view or another format."""
    try:
        row = spark.sql(f"DESCRIBE DETAIL {target.sql}").first()
    except PySparkException as error:
        if is_no_table(error):
            return None
        raise
    if row is None or row["format"] != "delta":
        return None
    files = row.asDict().get("numFiles")
    return DeltaDetail(
        row["id"], row["location"], list(row["partitionColumns"]), int(row["minReaderVersion"]), files
    )


def detail_of_input(spark: SparkSession, source: Input) -> DeltaDetail | None:
    """Return the detail of an input; None where it is no Delta table: files of another format, or a view."""
    if not source.table and source.format != "delta":
        return None
    return delta_detail(spark, Target(path=source.path or "", name=source.table or ""))


def check_keys(df: DataFrame, row_key: str | None, record_key: str | None) -> int:
    """Refuse key columns that hold NULLs, and a row key that repeats. One pass, with a shuffle of the row key.

    Returns:
        The number of rows.

    Raises:
        DataError: with the number of rows concerned.
    """
    counts = [F.count(quoted(name)) for name in (row_key, record_key) if name]
    distinct = [F.countDistinct(quoted(row_key))] if row_key else []
    row = df.agg(F.count(F.lit(1)), *counts, *distinct).first()
    assert row is not None
    rows, *figures = (int(figure) for figure in row)
    if row_key:
        require_key("row_key", row_key, rows, figures.pop(0), figures.pop())
    if record_key:
        require_key("record_key", record_key, rows, figures[0])
    return rows


def require_key(field: str, name: str, rows: int, held: int, distinct: int | None = None) -> None:
    """Refuse a key column by its counts.

    Of `rows` rows `held` have a value; `distinct` is None where values may repeat.

    Raises:
        DataError: with the number of rows concerned.
    """
    if rows != held:
        raise DataError(f"{field}: column {name!r} is NULL in {rows - held:,} of {rows:,} rows. Fill it.")
    if distinct is not None and distinct != rows:
        raise DataError(
            f"{field}: column {name!r} has {distinct:,} distinct values in {rows:,} rows. Name a unique "
            "column, or leave row_key out."
        )
