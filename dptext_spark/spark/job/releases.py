"""What a release is, for the ledger: which input and version it reads, and which draws it makes."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dptext_spark.config.locations import normal_path, normal_table
from dptext_spark.config.model import RunConfig
from dptext_spark.config.sections import Input
from dptext_spark.config.values import briefly
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.levels import NOT_OF_THE_DISTANCE
from dptext_spark.ledger.entry import TABLE
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import Mechanism
from dptext_spark.model.artifact import Manifest
from dptext_spark.model.privatizer import ENGINE_VERSION, Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.spark.job.checks import detail_of_input
from dptext_spark.spark.job.plan import RunPlan
from dptext_spark.spark.tables import DeltaDetail, Target, escaped, escaped_if_there

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Source:
    """The input of a run.

    Attributes:
        place: one spelling of where it is, by whatever name it was called; `table:` and a name where it has no place.
        table_id: identifier of a Delta table; None for other inputs.
        version: what was read; of a Delta table with a digest of its log entry; with the run id where the input has no version
            that tells whether it changed.
        spelled: the place as Spark calls it, which is part of what a file is called.
    """

    place: str
    table_id: str | None
    version: str
    spelled: str


def source_of(plan: RunPlan) -> Source:
    """Find what the input of a run is; see :func:`source_at`."""
    return source_at(plan.spark, plan.config.input, plan.df, plan.input_version, plan.run_id, plan.detail)


def source_at(
    spark: SparkSession, source: Input, df: DataFrame, version: str, run_id: str, detail: DeltaDetail | None
) -> Source:
    """Find what an input is: the same table by its path and by its name, at whatever time.

    The run id of whoever releases it stands in the place of a version that is not known.
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
    if location is None:  # a view: what it selects may change without a new version
        name = normal_table(str(source.table))
        return Source(f"{TABLE}{name}", None, unsure, name)
    return Source(normal_path(location), None, version if local else unsure, location)


def content_of(spark: SparkSession, location: str, version: str) -> str:
    """Return a version of a Delta table with a digest of its log entry.

    A table that was restored from a backup of its files, and then changed, has its identifier and its versions again, with
    another content. What the history tells of the entry takes its place where it cannot be read as a file; the version stands
    alone where the log was cleaned up.

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
    """Name the draws of a column: whatever may change one of them is in it (concepts/mechanisms, Draws), and nothing of the key.

    Args:
        plan: the run.
        source: its input.
        column: the text column; at record and dataset level a word has the same draw in every column, and where importance
            chooses words, which are drawn depends on all columns.
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
    """What the draws of a text column hang on, beside the key.

    Attributes:
        model: that draws; of it the level and the fingerprint.
        column: the text column.
        run_id: that the draws of token level are for.
        identity: what tells rows or records apart.
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
        if self.chosen_in:  # words are chosen in all of them together
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
    """Name the distance of a model whose settings are not known: as a run does where that is by the lexicon, else its own."""
    if guarantee.metric == "euclidean" and isinstance(model.lexicon, Lexicon):
        return _metric_name(guarantee, [model.lexicon.fingerprint])
    return _metric_name(guarantee, [model.fingerprint])


def _metric_name(guarantee: Guarantee, made_from: list[Any]) -> str:
    digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]
    return f"{guarantee.metric}, space {digest}"


def shown_mechanism(config: RunConfig) -> str:
    """Return the mechanism of the settings, what chooses words and the engine as JSON; lists of words by length and digest."""
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
    """Return what tells rows or records apart: another one gives the same words other draws."""
    config, kind = plan.config, plan.identity.kind
    if record and config.record_key:
        return ["record_key", config.record_key]
    if kind == "row_key":
        return ["row_key", config.row_key]
    if kind == "file_row":
        return [kind, source.spelled]
    return [kind, source.spelled, plan.where]


def _whole(path: str, file: str, is_name: bool) -> str:
    """Return a path up to its first wildcard, unless it is a name, with the store that Spark found it in where it names none."""
    for wildcard in "" if is_name else "*?[{":
        path = (
            path.split(wildcard)[0]
            if wildcard not in path
            else path[: path.index(wildcard)].rpartition("/")[0]
        )
    found = urlparse(file)
    if found.scheme not in ("", "file") and not urlparse(path).scheme:
        return f"{found.scheme}://{found.netloc}{path}"
    return path or "/"


def _location(spark: SparkSession, target: Target) -> str | None:
    """Return where a table of another format lies; None for a view."""
    try:
        row = spark.sql(f"DESCRIBE DETAIL {target.sql}").select("location").first()
    except PySparkException:
        return None
    return None if row is None or not row[0] else str(row[0])
