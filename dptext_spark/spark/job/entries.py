"""The ledger's table: entries are read, decided upon and appended in isolation. No row ever changes.

Two runs cannot both pass a limit. A reservation is an append whose transaction names the number of reservations before it. If
another one came first, Delta skips or refuses the append, and the run decides anew. The version would not do, for a settlement
also makes one: two runs that decide before and after it name two versions, and neither hinders the other. A log store that
renames files on a local disk does not exclude other processes, so there a lock of the operating system does. After each append
the history is read again: only a visible entry counts.

An entry names the release that it pays for: the input with its version, and the draws. One reading of the table gives people the
ε of all releases of each input.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dptext_spark.config.file import is_settings
from dptext_spark.config.load import load_config
from dptext_spark.config.locations import absolute, normal_path, normal_table
from dptext_spark.config.model import RunConfig
from dptext_spark.config.sections import FIELDS, FOLDER, NAME, Input, Ledger, is_table_name, ledger_place
from dptext_spark.config.values import briefly
from dptext_spark.errors import DataError, DPTextError, SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.levels import NOT_OF_THE_DISTANCE
from dptext_spark.ledger.balance import Balance, balances
from dptext_spark.ledger.entry import TABLE, VOID, Book, Decision, Entry
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import Mechanism
from dptext_spark.model.artifact import Manifest
from dptext_spark.model.privatizer import ENGINE_VERSION, Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import Steps, silent
from dptext_spark.spark.job.planned_run import RunPlan, detail_of_input
from dptext_spark.spark.job.runs import retry_on_conflict
from dptext_spark.spark.schemas import LEDGER, PROPERTIES, frame_of
from dptext_spark.spark.session import spark_session, step
from dptext_spark.spark.spark_errors import reduced, reported
from dptext_spark.spark.tables import (
    DeltaDetail,
    Target,
    checked_table,
    delta_version,
    escaped,
    escaped_if_there,
    history,
    holds_files,
    listed,
    on_disk,
    opened,
    opened_if_there,
)


@dataclass(frozen=True)
class Source:
    """The input of a run.

    Attributes:
        place: one spelling of its place under all its names; `table:` and a name where it has no place.
        table_id: identifier of a Delta table; None for other inputs.
        version: the version that was read, for a Delta table with a digest of its log entry; with the run id where no version
            shows a change of the input.
        spelled: Spark's spelling of the place, a part of file names.
    """

    place: str
    table_id: str | None
    version: str
    spelled: str


def source_of(plan: RunPlan) -> Source:
    """Identify the input of a run; see :func:`source_at`."""
    return source_at(plan.spark, plan.config.input, plan.df, plan.input_version, plan.run_id, plan.detail)


def source_at(
    spark: SparkSession, source: Input, df: DataFrame, version: str, run_id: str, detail: DeltaDetail | None
) -> Source:
    """Identify an input: the same table by its path and by its name, at any time.

    The id of the releasing run replaces an unknown version.
    """
    table = detail or detail_of_input(spark, source)
    if table is not None:
        content = content_of(spark, table.location, version)
        return Source(normal_path(table.location), table.id, content, table.location)
    files = df.inputFiles()
    local = bool(files) and all(urlparse(name).scheme in ("", "file") for name in files)
    unsure = f"{version} ({run_id})"
    if source.path:
        is_name = escaped_if_there(spark, source.path) != source.path
        place = _whole(source.path, files[0] if files else "", is_name)
        return Source(normal_path(place), None, version if local else unsure, source.path)
    location = _location(spark, Target(name=str(source.table)))
    if location is None:  # a view: its rows may change without a new version
        name = normal_table(str(source.table))
        return Source(f"{TABLE}{name}", None, unsure, name)
    return Source(normal_path(location), None, version if local else unsure, location)


def content_of(spark: SparkSession, location: str, version: str) -> str:
    """Return a version of a Delta table with a digest of its log entry.

    A table that was restored from a backup of its files, and then changed, has its identifier and its versions again, with
    another content. If the entry cannot be read as a file, its row of the history is taken; if the log was cleaned up, the
    version alone.

    Of a micro-batch, `delta:FROM..TO`, it is the entry of the last version.
    """
    number = int(re.split(r"[:.]+", version)[-1])
    try:
        log = spark.read.option("wholetext", "true").text(
            escaped(f"{location.rstrip('/')}/_delta_log/{number:020d}.json")
        )
        row = log.select(F.sha2("value", 256)).first()
    except PySparkException:
        told = spark.sql(f"DESCRIBE HISTORY {Target(path=location).sql}").where(F.col("version") == number)
        what = F.struct("timestamp", "operation", "operationParameters", "operationMetrics")
        row = told.select(F.sha2(F.to_json(what), 256)).first()
    return version if row is None else f"{version} {row[0][:16]}"


def release_of(plan: RunPlan, source: Source, column: str, run_id: str) -> str:
    """Name the draws of a column: the name holds all that may change a draw (concepts/mechanisms, Draws), except the key.

    Args:
        plan: the run.
        source: its input.
        column: the text column. At record and dataset level a word has the same draw in every column. Where importance chooses
            words, the choice depends on all columns.
        run_id: that the draws of token level are for: of the run, or of the stream that the records are added to.
    """
    config = plan.config
    drawn = ReleaseSpec(
        model=plan.privatizer,
        column=column,
        run_id=run_id,
        identity=tuple(_identity(plan, source, record=config.consistency == "record")),
        chosen_in=plan.columns if config.importance is not None or config.budget is not None else (),
    )
    return drawn.release(plan.key, config.input, source)


@dataclass(frozen=True, eq=False)
class ReleaseSpec:
    """Everything that the draws of a text column depend on, except the key.

    Attributes:
        model: that draws; of it the level and the fingerprint.
        column: the text column.
        run_id: input of token-level draws.
        identity: identity of rows or records.
        chosen_in: the columns in which importance chooses words together; none where all words are drawn.
    """

    model: Privatizer
    column: str
    run_id: str
    identity: tuple[str | None, ...]
    chosen_in: tuple[str, ...] = ()

    def release(self, key: RunKey, read: Input, source: Source) -> str:
        """Name the draws under a key, of an input that is read so, and lies there."""
        level = self.model.consistency
        parts: list[Any] = ["release", self.model.fingerprint, ENGINE_VERSION, level]
        if level == "token":
            parts += [self.run_id, self.column]
        if level != "dataset":
            parts.append(list(self.identity))
        if self.chosen_in:  # words are chosen over all columns together
            parts.append(["columns", *self.chosen_in])
        if source.table_id is None:  # options decide how files are read, so that the text may be another
            parts += [read.format, dict(sorted(read.options.items()))]
        return key.commitment(json.dumps(parts, sort_keys=True))


def metric_of(guarantee: Guarantee, mechanism: Mechanism, made: Manifest) -> str:
    """Name a distance so that equal names are equal distances: by the lexicon and, but for the Euclidean, the mechanism."""
    made_from: list[Any] = [made.spec.get("lexicon_fingerprint", made.fingerprint)]
    if guarantee.metric != "euclidean":
        parameters = mechanism.as_dict().items()
        made_from.append({name: value for name, value in parameters if name not in NOT_OF_THE_DISTANCE})
    return _metric_name(guarantee, made_from)


def metric_of_model(guarantee: Guarantee, model: Privatizer) -> str:
    """Name the distance of a model without known settings: as in a run if it is by the lexicon, else its own."""
    if guarantee.metric == "euclidean" and isinstance(model.lexicon, Lexicon):
        return _metric_name(guarantee, [model.lexicon.fingerprint])
    return _metric_name(guarantee, [model.fingerprint])


def _metric_name(guarantee: Guarantee, made_from: list[Any]) -> str:
    digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]
    return f"{guarantee.metric}, space {digest}"


def shown_mechanism(config: RunConfig) -> str:
    """Return the settings' mechanism, the choice of words and the engine as JSON; lists of words by length and digest."""
    shown = {
        name: briefly(value) if isinstance(value, list) else value
        for name, value in config.mechanism.as_dict().items()
    }
    if config.importance is not None:
        shown["importance"] = config.importance.as_dict()
    if config.budget is not None:
        shown["budget"] = config.budget.as_dict()
    shown["engine"] = ENGINE_VERSION
    return json.dumps(shown, ensure_ascii=False)


def _identity(plan: RunPlan, source: Source, *, record: bool) -> list[Any]:
    """Return the identity of rows or records: another one gives the same words other draws."""
    config, kind = plan.config, plan.identity.kind
    if record and config.record_key:
        return ["record_key", config.record_key]
    if kind == "row_key":
        return ["row_key", config.row_key]
    if kind == "file_row":
        return [kind, source.spelled]
    return [kind, source.spelled, plan.where]


def _whole(path: str, file: str, is_name: bool) -> str:
    """Return a path up to its first wildcard, unless it is a name; a path without a store gets the one where Spark found it."""
    for wildcard in "" if is_name else "*?[{":
        path = (
            path.split(wildcard)[0]
            if wildcard not in path
            else path[: path.index(wildcard)].rpartition("/")[0]
        )
    address = urlparse(file)
    if address.scheme not in ("", "file") and not urlparse(path).scheme:
        return f"{address.scheme}://{address.netloc}{path}"
    return path or "/"


def _location(spark: SparkSession, target: Target) -> str | None:
    """Return the location of a table of another format; None for a view."""
    try:
        row = spark.sql(f"DESCRIBE DETAIL {target.sql}").select("location").first()
    except PySparkException:
        return None
    return None if row is None or not row[0] else str(row[0])


Decided = TypeVar("Decided")
APP = "dptext-ledger"
RECENT = 100  # commits that are searched for ours
LARGEST = 1_000_000  # bytes of a data file of the first commit, which holds the entries of one run
_DATA_FILE = re.compile(r"/part-\d{5}-[0-9a-f-]{36}-c\d{3}\.\w+\.parquet$")


def entries_of(spark: SparkSession, path: str) -> Book:
    """Read a ledger; the version of a missing one is -1.

    Raises:
        DataError: it is no ledger, a damaged one, or one of another schema version.
    """
    target = Target.of_ledger(path)
    version = delta_version(spark, target)
    if version is None:
        check_vacant(spark, path)
        return Book(-1, [], [])
    return book_of(opened(spark, target, version), path, version)


def ledger_of(spark: SparkSession, source: Input, settings: Ledger) -> str:
    """Return the ledger that counts the releases of an input, as runs, streams, functions of SQL and reports find it."""
    return ledger_place(
        source,
        settings,
        lambda folder: opened_if_there(spark, folder) is not None,
        lambda: f"{spark.catalog.currentCatalog()}.{spark.catalog.currentDatabase()}",
    )


def check_ledger_writable(spark: SparkSession, source: Input, path: str, *, dry: bool = False) -> None:
    """Try to write to a ledger, before anything is read.

    On disks of this machine a file without a name is made. Elsewhere the ledger gets a commit without a row. Nothing is tried for
    a missing input: its reader reports that. A `dry` trial writes no commit.

    Raises:
        SettingsError: it cannot be written, such as on read-only storage.
        DataError: as :func:`entries_of`.
    """
    try:
        if not is_table_name(path) and on_disk(spark, path):
            folder = normal_path(path)
            while not os.path.lexists(folder):
                folder = os.path.dirname(folder)
            tempfile.TemporaryFile(dir=folder).close()
        elif not dry and _is_there(spark, source):
            book = entries_of(spark, path)
            _write(spark, path, [], {}, new=book.version < 0)
    except DPTextError:
        raise
    except Exception as error:
        told = error.strerror if isinstance(error, OSError) else reduced(error, [])
        raise SettingsError(
            f"{FIELDS}: the ledger {path!r} cannot be written ({told}), and each run needs one. Set "
            "ledger.path or ledger.table to a place that can be written. Nothing was read."
        ) from None


def check_single_ledger(
    spark: SparkSession, source: Input, settings: Ledger, place: str, table_id: str | None
) -> None:
    """Check that a table by name was not counted elsewhere: by its path, in the ledger that is nearest to that.

    Raises:
        SettingsError: it was, and the two ledgers would not add.
    """
    if source.table is None or settings.place is not None or place.startswith(TABLE):
        return
    try:
        other = ledger_of(spark, Input(path=place), Ledger())
        entries = entries_of(spark, other).of_input(place, table_id).entries
    except PySparkException:  # a catalog that keeps folders from its users: nobody counted by them
        return
    if any(entry.status != VOID for entry in entries):
        raise SettingsError(
            f"{FIELDS}: none given, so {ledger_of(spark, source, settings)!r} would count {source.table!r}. But "
            f"{other!r} counted this table by its path, and the two do not add up. Set ledger.path: {other}, or one "
            "ledger.path or ledger.table in all settings that read the table. Nothing was written to the target."
        )


def _is_there(spark: SparkSession, source: Input) -> bool:
    if source.table is not None:
        return bool(spark.catalog.tableExists(source.table))
    path = str(source.path)
    return any(sign in path for sign in "*?[{") or holds_files(spark, path)  # of a pattern that is not known


def check_vacant(spark: SparkSession, path: str) -> None:
    """Check that a folder without a log holds nothing, except the remains of a ledger's failed first commit.

    A process that is killed in that commit, or a full disk, leaves a data file, or a part of one.

    Raises:
        DataError: it holds other files.
    """
    if is_table_name(path):
        if spark.catalog.tableExists(path):
            raise DataError(f"ledger.table: {path!r} is a view or no Delta table. Name another table.")
        return
    if not holds_files(spark, path):
        return
    files = listed(spark, path)
    names = files.inputFiles()
    # Spark skips a file whose checksum does not agree: it is torn, and so is one without a footer.
    small = listed(spark, path, ignoreCorruptFiles="true").where(F.col("length") <= LARGEST)
    large = files.where(F.col("length") > LARGEST).limit(1)
    folders = {name.rpartition("/")[0] for name in names}
    if (
        len(folders) > 1
        or not all(_DATA_FILE.search(name) for name in names)
        or large.count()
        or not all(_is_of_ledger(row["content"]) for row in small.select("content").toLocalIterator())
    ):
        raise DataError(f"ledger.path: {path!r} holds other files and no ledger. Name another folder.")


def _is_of_ledger(content: bytes) -> bool:
    """Check that a Parquet file has the columns of a ledger, or is torn and so holds no table."""
    try:
        columns = pq.read_schema(pa.BufferReader(content)).names
    except pa.ArrowInvalid:
        return True
    return set(LEDGER.fieldNames()) <= set(columns)


def book_of(table: DataFrame, path: str, version: int) -> Book:
    """Read the rows of a ledger's table."""
    return Book.of(version, _columns(checked_table(table, path)))


def _columns(table: DataFrame) -> dict[str, list[Any]]:
    """Return the columns of a table with the values of `collect`, at a fraction of its time."""
    columns: dict[str, list[Any]] = {}
    for name, column in zip(table.columns, table.toArrow().columns, strict=True):
        if pa.types.is_timestamp(column.type):
            instants = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
            columns[name] = [None if instant is None else _local(instant) for instant in instants]
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            columns[name] = column.to_numpy().tolist()
        else:
            columns[name] = column.to_pylist()
    return columns


def _local(instant: int) -> datetime:
    """Return microseconds since the epoch as the time of this machine."""
    return datetime.fromtimestamp(instant // 1_000_000).replace(microsecond=instant % 1_000_000)


def appended(
    spark: SparkSession, path: str, decide: Callable[[Book], tuple[list[Entry | Decision], Decided]]
) -> Decided:
    """Append the rows that `decide` chooses by the present entries; return its second result.

    Raises:
        DataError: as :func:`entries_of`.
        RunError: others kept changing the ledger; also what `decide` raises.
    """
    if path.startswith("/") and not os.path.exists(normal_path(path)):
        decide(Book(-1, [], []))  # a refusal leaves nothing behind, not even a folder

    def once() -> tuple[Decided] | None:
        book = entries_of(spark, path)
        rows, decided = decide(book)
        if rows:
            for row in rows:
                type(row).of(vars(row))  # a row that is damage to whoever reads it is not written
            # Skipped or refused where another reservation came since.
            metadata, number = json.dumps({APP: rows[0].attempt}), str(book.attempts + 1)
            transaction = {"userMetadata": metadata, "txnAppId": APP, "txnVersion": number}
            _write(spark, path, rows, transaction, new=book.version < 0)
            # By the log's files and not by a cache: only then did no other reservation come first.
            commits = history(spark, Target.of_ledger(path), RECENT)
            if not any(rows[0].attempt in (commit.metadata or "") for commit in commits):
                return None
        return (decided,)

    return retry_on_conflict(path, once)[0]


def add(spark: SparkSession, path: str, rows: list[Entry]) -> None:
    """Append rows that settle entries which are there. It cannot come too late, so that nothing is decided on.

    Raises:
        RunError: others kept changing the ledger.
    """

    def once() -> tuple[()]:
        _write(spark, path, rows, {})
        return ()

    if rows:
        retry_on_conflict(path, once)


def _write(
    spark: SparkSession,
    path: str,
    rows: Sequence[Entry | Decision],
    commit: dict[str, str],
    *,
    new: bool = False,
) -> None:
    """Append rows; a `new` table by name is made first, for Delta leaves metadata out of the commit that makes one."""
    values = [tuple(vars(entry).get(name) for name in LEDGER.fieldNames()) for entry in rows]
    frame = frame_of(spark, values, LEDGER)
    # The table's first commit makes it one that nobody can change a row of by mistake.
    properties = {**PROPERTIES, "delta.appendOnly": "true"}
    if not is_table_name(path):
        writer = frame.write.format("delta").mode("append").options(**properties, **commit)
        return writer.save(path)
    name = Target(name=path).sql
    if new and not spark.catalog.tableExists(path):
        creator = frame.limit(0).writeTo(name).using("delta")
        for key, value in properties.items():
            creator = creator.tableProperty(key, value)
        creator.create()
    frame.writeTo(name).options(**commit).append()


NEWEST = 0  # any version that is one: nothing is decided on it


def read(path: str, spark: SparkSession | None = None, progress: Steps | None = None) -> list[Balance]:
    """Read the spent ε of each input from a ledger.

    Args:
        path: its folder or catalog name; or an input, or a file of settings, whose ledger is read.
        spark: a session; None takes the active one, or starts a local one.
        progress: progress callback, called with each step.

    Raises:
        SettingsError: there is none.
        DataError: the table is no ledger, or one of another schema version.
    """
    say = progress or silent
    config = load_config(path) if is_settings(path) else None
    place = path if is_table_name(path) and not os.path.exists(path) and "." in path else absolute(path)
    if spark is None:
        say("starting Spark")
    session = spark or spark_session()
    with reported(session), step(session, say, "reading the ledger"):
        place, book = _book_at(session, place, config)
    if book is None:
        raise SettingsError(
            f"ledger: {place!r} has no ledger. Name a ledger, its input, or the settings of a run. The ledger is the "
            f"nearest {FOLDER} in a parent folder of the input, {NAME} in its schema, or ledger.path or ledger.table."
        )
    return balances(book.entries, place, book.decisions)


def _book_at(spark: SparkSession, place: str, config: RunConfig | None) -> tuple[str, Book | None]:
    """Read the ledger at a place, or that of the input or of the settings there; None where there is none."""
    if config is not None:
        place = ledger_of(spark, config.input, config.ledger)
        return place, _read(spark, place)
    source = Input(table=place) if is_table_name(place) else Input(path=place)
    of_input = ledger_of(spark, source, Ledger())
    try:
        book = _read(spark, place)
    except DataError:
        book = _read(spark, of_input)
        if book is None:
            raise
        return of_input, book
    return (place, book) if book is not None else (of_input, _read(spark, of_input))


def _read(spark: SparkSession, path: str) -> Book | None:
    """Read the table as it is now; None where there is none. Its log is read once, its history not at all."""
    table = opened_if_there(spark, Target.of_ledger(path))
    return None if table is None else book_of(table, path, NEWEST)
