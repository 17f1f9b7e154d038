"""The whole job: read, privatize, write, account. A run commits once or not at all."""

from __future__ import annotations

import json
import platform
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from dptext_spark import __version__
from dptext_spark.audit.disclosure import disclosure
from dptext_spark.compiled import compilations
from dptext_spark.config import RunConfig
from dptext_spark.draws import RunKey
from dptext_spark.errors import CountsDisagree, DPTextError, RunError
from dptext_spark.models import prepare
from dptext_spark.privatizer import Privatizer
from dptext_spark.spark import consistency, counting, runs
from dptext_spark.spark.checks import Place, check_output, place_of
from dptext_spark.spark.column import RESULT, Job, applied, quoted, replaced
from dptext_spark.spark.failures import reduced, silenced
from dptext_spark.spark.identity import Identity, identify_rows
from dptext_spark.spark.progress import watched
from dptext_spark.spark.session import spark_session
from dptext_spark.spark.ship import ship
from dptext_spark.spark.tables import (
    Target,
    check_key,
    check_text_columns,
    history,
    leftover_files,
    our_commits,
    read_input,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_BYTES = 32 << 20
BATCH_ROWS = 50_000
SAMPLE_ROWS = 1_000


@dataclass(frozen=True)
class Report:
    """What a run did.

    Attributes:
        facts: everything, JSON-able; `restricted` holds what depends on the private text.
    """

    facts: dict[str, Any]

    @property
    def status(self) -> str:
        """`succeeded`, `mismatch`, or `unchanged` (the run id had committed before)."""
        return str(self.facts["status"])

    def as_dict(self, internal: bool = False) -> dict[str, Any]:
        """Return the facts, without the restricted ones unless `internal`."""
        return {name: value for name, value in self.facts.items() if internal or name != "restricted"}


@dataclass(frozen=True, eq=False)
class Setup:
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
    identity: Identity
    place: Place
    kept: list[str]
    compiled: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The text columns."""
        return tuple(self.config.columns)

    def record(self, status: str, started: float) -> dict[str, Any]:
        """Return the row of `runs` that binds the run."""
        bound = {**self.config.as_dict(), "run": None, "key": None}
        return {
            "run_id": self.run_id,
            "status": status,
            "started_at": runs.utc(started),
            "config": json.dumps(bound, sort_keys=True),
            "guarantee": json.dumps(self.privatizer.guarantee().as_dict()),
            "key_commitment": self.key.commitment(self.run_id),
            "key_kind": self.key_kind,
            "artifact": self.privatizer.fingerprint,
            "input": str(self.config.input.table or self.config.input.path),
            "input_version": self.input_version,
            "identity": self.identity.kind,
            "output": str(self.place.target),
            "versions": json.dumps(_versions()),
            "second_release": False,
        }


def run(
    config: RunConfig,
    spark: SparkSession | None = None,
    *,
    key: RunKey | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Run the job.

    Args:
        config: the settings.
        spark: a session; None takes the active one, or starts a local one.
        key: the run key; None takes the file that the settings name, or 32 bytes of the operating system.
        progress: is told each step, in words that hold nothing of the data.

    Returns:
        The report of a run that committed.

    Raises:
        SettingsError, DataError: nothing was written.
        RunError: the run failed before its commit; the target's versions are as they were.
        CountsDisagree: the run committed, but its counts or the consistency audit do not agree.
    """
    say = progress or (lambda step: None)
    started = time.time()
    session = spark or spark_session()
    with silenced():
        try:
            setup = _validated(session, config, key, say)
            earlier = runs.find(session, setup.place.runs, setup.run_id)
            if earlier is not None and earlier["status"] in ("succeeded", "mismatch", "recovered"):
                return Report({"status": "unchanged", "run_id": setup.run_id, "run": _plain(earlier)})
            second = _may_finish(setup, earlier)
            record = {**setup.record("started", started), "second_release": second}
            runs.put(session, setup.place.runs, record)
        except Exception as error:
            raise reduced(error, list(config.columns)) from None
        try:
            counts, seconds = _write(setup, say)
        except Exception as error:
            failure = reduced(error, list(config.columns))
            left = leftover_files(session, setup.place.target, started)
            runs.put(session, setup.place.runs, {**record, "status": "failed"})
            note = f" Files that it left behind, in no version of the table: {', '.join(left)}." if left else ""
            raise type(failure)(f"{failure} The run failed before its commit.{note}") from None
        try:
            return _account(setup, record, counts, started, seconds, say)
        except DPTextError:
            raise
        except Exception as error:
            failure = reduced(error, list(config.columns))
            raise RunError(f"{failure} The data was committed; run again with run.id={setup.run_id} to account.") from None


def _validated(spark: SparkSession, config: RunConfig, key: RunKey | None, say: Callable[[str], None]) -> Setup:
    say("reading the input's schema")
    columns = list(config.columns)
    df, input_version = read_input(spark, config.input, columns)
    check_text_columns(df, columns)
    identity = identify_rows(df, config.row_key, config.record_key, ordinal=True)
    place = place_of(config)
    kept = _kept_columns(df, config)
    key_kind = "given" if key is not None else ("file" if config.key.file else "os")
    key = key or (RunKey.from_file(config.key.file) if config.key.file else RunKey.generate())
    check_output(spark, config, place, df, kept, persistent=key_kind != "os")
    say("preparing the model")
    privatizer, folder = prepare(config, lambda step, share: say(step))
    privatizer.warm_up()
    if config.row_key:
        say("checking that row_key is unique (one pass over the key)")
        check_key(df, config.row_key, "row_key", unique=True)
    if config.record_key:
        check_key(df, config.record_key, "record_key", unique=False)
    return Setup(
        spark=spark,
        config=config,
        run_id=config.run.id or f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}",
        key=key,
        key_kind="insecure" if key.is_insecure else key_kind,
        privatizer=privatizer,
        folder=str(folder),
        df=df,
        input_version=input_version,
        identity=identity,
        place=place,
        kept=kept,
        compiled=compilations(),
    )


def _kept_columns(df: DataFrame, config: RunConfig) -> list[str]:
    """Return the columns of the target, in the order of the input."""
    other = config.output.other_columns
    if other == "keep":
        return list(df.columns)
    named = set(config.columns) | (set(other) if other != "drop" else set())
    missing = [name for name in named if name not in df.columns]
    if missing:
        from dptext_spark.errors import DataError

        raise DataError(
            f"output.other_columns: {missing[0]!r} is not in the input; columns there: {', '.join(df.columns)}."
        )
    return [name for name in df.columns if name in named]


def _may_finish(setup: Setup, earlier: dict[str, Any] | None) -> bool:
    """Decide whether a run id that did not finish may go on; True if that is a second release of its records."""
    if earlier is None:
        return False
    differ = runs.disagreements(earlier, setup.record("started", 0))
    if differ == ["key_commitment"] or (differ and earlier["key_kind"] == "os" and differ == ["key_commitment"]):
        if setup.config.run.second_release != "accept":
            raise RunError(
                f"run.id: {setup.run_id!r} was begun with another key and did not finish; files that it left may hold its "
                "draws. Run it with the same key (key.file), or accept a second release of the same records by "
                "run.second_release=accept."
            )
        return True
    if differ:
        raise RunError(
            f"run.id: {setup.run_id!r} was begun with another {', '.join(differ)}; use a new run id, or the same settings."
        )
    return bool(earlier["second_release"])


def _write(setup: Setup, say: Callable[[str], None]) -> tuple[dict[str, Any] | None, float]:
    """Write the target in one commit; return the counts and the seconds."""
    spark, config = setup.spark, setup.config
    shipped = ship(spark, setup.folder, config.run.ship)
    job = Job(
        columns=setup.columns,
        shipped=shipped,
        key=setup.key,
        run_id=setup.run_id,
        has_row_id=setup.identity.row is not None,
        has_record_id=setup.identity.record is not None,
    )
    observation = Observation(f"dptext-{setup.run_id}")
    frame = applied(setup.df, job, config.run.udf, setup.identity.row, setup.identity.record)
    frame = frame.observe(observation, *counting.observed(job.columns))
    frame = replaced(frame, job, setup.kept)
    metadata = {
        "dptext_run": setup.run_id,
        "mechanism": config.spec()["mechanism"],
        "guarantee": setup.privatizer.guarantee().as_dict(),
        "artifact": setup.privatizer.fingerprint,
    }
    writer = (
        frame.write.format("delta")
        .mode("append" if config.output.mode == "append" else config.output.mode)
        .option("optimizeWrite", "false")
        .option("userMetadata", json.dumps(metadata))
        .option("txnAppId", f"dptext-{setup.run_id}")
        .option("txnVersion", "1")
    )
    say("writing")
    began = time.perf_counter()
    with _batch_size(setup), watched(spark, say):
        if setup.place.target.path:
            writer.save(setup.place.target.path)
        else:
            writer.saveAsTable(setup.place.target.name)
    seconds = time.perf_counter() - began
    committed = setup.run_id in our_commits(history(spark, setup.place.target))
    return (counting.counts_of(observation) if committed else None), seconds


@contextmanager
def _batch_size(setup: Setup) -> Iterator[None]:
    """Set the rows of an Arrow batch for the length of the texts, and set the session back afterwards."""
    names = {"spark.sql.execution.arrow.maxRecordsPerBatch": str(_batch_rows(setup))}
    before = {name: setup.spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        setup.spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                setup.spark.conf.unset(name)
            else:
                setup.spark.conf.set(name, old)


def _batch_rows(setup: Setup) -> int:
    """Return how many rows of average length make `BATCH_BYTES`, or the setting."""
    given = setup.config.run.batch_rows
    if given != "auto":
        return int(given)
    sizes = [F.coalesce(F.octet_length(quoted(name)), F.lit(0)) for name in setup.columns]
    total = sizes[0]
    for size in sizes[1:]:
        total = total + size
    row = setup.df.select(total.alias("size")).limit(SAMPLE_ROWS).agg(F.avg("size"), F.max("size")).first()
    if row is None or row[0] is None:
        return BATCH_ROWS
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(float(row[0]), float(row[1]) / 8, 1.0))))


def _account(
    setup: Setup, record: dict[str, Any], counts: dict[str, Any] | None, started: float, seconds: float,
    say: Callable[[str], None],
) -> Report:  # fmt: skip
    """Compare the counts with the commit, audit consistency, write the tables, and report."""
    spark, config = setup.spark, setup.config
    commits = history(spark, setup.place.target)
    commit = our_commits(commits).get(setup.run_id)
    if commit is None:
        raise RunError(f"the commit of run {setup.run_id} is not in the target's history.")
    written = int((commit["operationMetrics"] or {}).get("numOutputRows", -1))
    guarantee = setup.privatizer.guarantee()
    problems = []
    if counts is None:
        problems.append("the counts of this run are lost")
    elif written not in (-1, int(counts["rows"])):
        problems.append(f"{counts['rows']:,} rows were counted and {written:,} written")
    audited = consistency.audit(setup, int(commit["version"]), say)
    problems += audited.problems
    status = "mismatch" if problems else "succeeded"
    metrics, restricted = _metrics(setup, counts, seconds, audited)
    facts = {
        "status": status,
        "run_id": setup.run_id,
        "problems": problems,
        "rows": written if written >= 0 else None,
        "seconds": round(time.time() - started, 3),
        "write_seconds": round(seconds, 3),
        "tokens_per_second": restricted.get("tokens_per_second"),
        "text_bytes": sum(int(counts[f"bytes_{i}"]) for i in range(len(setup.columns))) if counts else None,
        "cores": _cores(spark),
        "compiled_loops": setup.compiled,
        "guarantee": guarantee.as_dict(),
        "consistency": config.consistency,
        "identity": setup.identity.kind,
        "record_epsilon": restricted.get("record_epsilon"),
        "other_columns": [name for name in setup.kept if name not in setup.columns],
        "mapping": setup.privatizer.sampler.summary,
        "input": record["input"],
        "input_version": setup.input_version,
        "output": str(setup.place.target),
        "output_version": int(commit["version"]),
        "audit": {"runs": setup.place.runs, "metrics": setup.place.metrics},
        "releases_in_history": len(our_commits(commits)),
        "consistency_audit": audited.as_dict(),
        "key_kind": setup.key_kind,
        "second_release": record["second_release"],
        "versions": _versions(),
    }
    statement = disclosure(
        {**facts, "config": config.as_dict(), "policy": config.as_dict()["policy"], "mechanism_summary": facts["mapping"]}
    )
    facts["disclosure"] = statement.as_dict()
    facts["restricted"] = restricted
    say("writing the account")
    runs.put_metrics(spark, setup.place.metrics, setup.run_id, metrics)
    runs.put(
        spark,
        setup.place.runs,
        {
            **record,
            "status": status,
            "disclosure": json.dumps(statement.as_dict(), ensure_ascii=False),
            "output_version": int(commit["version"]),
            "rows": facts["rows"],
            "seconds": facts["seconds"],
            "tokens_per_second": restricted.get("tokens_per_second"),
        },
    )
    if problems:
        raise CountsDisagree(
            f"run {setup.run_id} committed version {commit['version']} of {setup.place.target}, but {'; '.join(problems)}. "
            "Nothing was rolled back; do not share this version."
        )
    return Report(facts)


def _metrics(
    setup: Setup, counts: dict[str, Any] | None, seconds: float, audited: consistency.Audit
) -> tuple[list[tuple[str | None, str, float | None]], dict[str, Any]]:
    """Return the rows of `metrics`, and the same figures by name."""
    rows: list[tuple[str | None, str, float | None]] = [(None, "write_seconds", seconds)]
    rows += [(None, f"consistency_{name}", float(value)) for name, value in audited.figures.items()]
    if counts is None:
        return rows, {}
    for index, column in enumerate(setup.columns):
        rows += [(column, name, value) for name, value in counting.column_figures(counts, index).items()]
    whole = counting.shares(counting.totals(counts, setup.columns))
    rows += [(None, name, value) for name, value in whole.items()]
    several = setup.identity.record is not None and setup.config.record_key != setup.config.row_key
    if several and setup.config.consistency != "dataset":
        counts = {**counts, **_units_by_record(setup)}
    epsilon = counting.record_epsilon(
        counts, setup.privatizer.guarantee(), setup.config.consistency, len(setup.columns), several
    )
    rows += [(None, f"record_epsilon_{name}", epsilon[name]) for name in ("mean", "p50", "p95", "max")]
    speed = (whole["words"] or 0.0) / seconds if seconds else 0.0
    rows.append((None, "tokens_per_second", speed))
    return rows, {**whole, "record_epsilon": epsilon, "tokens_per_second": speed}


def _units_by_record(setup: Setup) -> dict[str, Any]:
    """Sum the draws of each record over its rows: a second pass, since a record may lie in many partitions."""
    job = Job(
        setup.columns, ship(setup.spark, setup.folder, setup.config.run.ship), setup.key, setup.run_id,
        setup.identity.row is not None, True,
    )  # fmt: skip
    frame = applied(setup.df, job, setup.config.run.udf, setup.identity.row, setup.identity.record)
    records = frame.groupBy(setup.identity.record).agg(F.sum(F.col(RESULT).getField("units")).alias("units"))  # type: ignore[arg-type]
    row = records.agg(
        F.avg("units").alias("units_mean"),
        F.percentile_approx("units", 0.5).alias("units_p50"),
        F.percentile_approx("units", 0.95).alias("units_p95"),
        F.max("units").alias("units_max"),
    ).first()
    assert row is not None
    return row.asDict()


def _cores(spark: SparkSession) -> int | None:
    """Return how many tasks run at once (classic sessions)."""
    context = getattr(spark, "_sc", None)
    return None if context is None else int(context.defaultParallelism)


def _versions() -> dict[str, str]:
    return {
        "dptext_spark": __version__,
        "pyspark": installed("pyspark"),
        "delta-spark": installed("delta-spark"),
        "python": platform.python_version(),
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
