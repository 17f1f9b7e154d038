"""`run`: the whole job, as one run, or as a stream of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dptext_spark.config.checks import require_lasting
from dptext_spark.config.keys import refuse_given, taken
from dptext_spark.config.model import RunConfig
from dptext_spark.disclosure.statement import not_audited
from dptext_spark.errors import DPTextError, RecordingError
from dptext_spark.model.code_ahead import begin_code
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.progress import Steps, by_default
from dptext_spark.spark.errors import reduced, suppress_sensitive_logs
from dptext_spark.spark.job.job import RunResult, run_once
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.job.required import after_run
from dptext_spark.spark.session.session import command_session, spark_session, workers_here
from dptext_spark.spark.streaming.stream import stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    config: RunConfig,
    spark: SparkSession | None = None,
    *,
    key: RunKey | None = None,
    progress: Steps | None = None,
) -> RunResult:
    """Run the job.

    Args:
        config: the settings.
        spark: a session; None takes the active one, or starts a local one.
        key: the run key; None takes the source that the settings name, or 32 bytes of the operating system. Refused with
            `key.deliver: executors`, where each worker reads that source.
        progress: progress callback, called with each step; what it is told holds nothing of the data.
            None tells them on stderr in a notebook or terminal.

    Returns:
        What a run that committed did.

    Raises:
        SettingsError, DataError: nothing was committed.
        RunError: the run failed before its commit; the target's versions are as they were. (Where the target's history
            cannot be read after a failure, the message says that this is not known.)
        CountMismatchError: the run committed, now or before, but its counts or the consistency audit do not agree.
        RecordingError: the run committed, but its account could not be made.

    Examples:
        >>> result = dps.run(dp.load_config("reviews.yaml", ["run.id=first"]))
        >>> result.run_id, result.status
        ('first', 'succeeded')
    """
    return _run(lambda: spark or spark_session(), config, key, progress or by_default(), workers_here(spark))


def run_by_command(config: RunConfig, say: Steps) -> RunResult:
    """Run the job in the session of a command, which ends with it; see :func:`run`."""
    place = config.input.path or config.input.table or ""
    start = spark_session if config.mode == "streaming" else partial(command_session, place)  # a stream stays
    return _run(start, config, None, say, workers_here(None))


def _run(
    start: Callable[[], SparkSession], config: RunConfig, key: RunKey | None, say: Steps, here: bool
) -> RunResult:
    """Run the job in the session that `start` returns; `here`: whether its workers run on this machine."""
    refuse_given(config.key, key)
    key = key or taken(config.key)  # before Spark starts, which would inherit a variable
    if key is None and config.is_stream:
        require_lasting(config.key.kind, config.mode)
    begin_code(config, say, here=here)
    unaudited = not_audited(config.row_key)
    if unaudited:
        say(unaudited)
    session = start()
    if config.is_stream:
        result = RunResult(stream(session, config, key, say))
    else:
        with suppress_sensitive_logs(session):
            result = run_once(lambda: prepare_run(session, config, key, say), config, say)
    return _required(session, config, result) if config.require else result


def _required(session: SparkSession, config: RunConfig, result: RunResult) -> RunResult:
    """Return what a run did with how the requirements stand; it has committed and is accounted for."""
    with suppress_sensitive_logs(session):
        try:
            return replace(result, verdict=after_run(session, config, result.outcome))
        except DPTextError as error:
            raise error from None
        except Exception as error:
            raise RecordingError(
                f"{reduced(error, list(config.columns))} The run {result.run_id} was committed and accounted for; how its "
                "requirements stand is not known. Run again with that run.id, or see `dptext report`. Do not share it before."
            ) from None
