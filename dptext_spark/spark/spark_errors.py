"""Errors across the border to Spark: permitted messages of workers, and permitted parts of Spark's errors.

A message of Spark can hold a private word (a cast, a constraint, a query fragment). So none is printed or chained, only
its error condition and SQLSTATE.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from pyspark import TaskContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from dptext_spark.encoder.name_classifier import OtherLabelsError
from dptext_spark.errors import DataError, DPTextError, RunError, key_twice
from dptext_spark.randomness import KeyReference, KeyUnavailableError, RunKey, key_at_hand
from dptext_spark.spark.session import context_of
from dptext_spark.text.identifiers.provider import EXPECTED, ProviderError, ProviderImportError

try:
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
except ImportError:  # a client of Spark Connect may come without it

    class _NeverError(Exception):
        """Never raised there."""

    Py4JError = Py4JJavaError = Py4JNetworkError = _NeverError

JAVA_ERROR: type[Exception] = Py4JJavaError


INVALID_UTF8, NULL_KEY, WEIGHTS, LIST_ENTRY = "INVALID_UTF8", "NULL_KEY", "WEIGHTS", "LIST_ENTRY"
_KEYS = {  # messages of a worker on a key that it reads
    "KEY_MISSING": "the worker finds no such file or variable",
    "KEY_INVALID": "the worker refuses the key that it finds (kind, owner, mode or content)",
    "KEY_DIFFERS": "the worker finds another key than the driver",
}
_PROVIDERS = {  # messages on a provider by import path; its place in the settings ends the code
    "PROVIDER_FAILED": "the provider raised an error, and its message may hold private text and is not shown. Find nothing "
    "in texts that you cannot read, NULL and empty ones included",
    "PROVIDER_SPANS": "the provider returned wrong spans. Return rows, starts, ends and types as integers, in order, "
    "without overlap, in UTF-8 bytes within the texts, of its own types, with no words kept",
    "PROVIDER_MISSING": f"the provider cannot be imported or built. Use {EXPECTED}. Send its module along (spark-submit "
    "--py-files FILE, spark.addArtifact(FILE, pyfile=True)) or install it on every node "
    "(docs/guide/cluster)",
}
_OUT_OF_MEMORY = ("java.lang.OutOfMemoryError", "Cannot reserve additional contiguous bytes")
_MEMORY = (
    "the memory of a JVM was full. Raise spark.driver.memory, and spark.executor.memory on a "
    "cluster. The longest text decides how much is needed (docs/scale)."
)
STREAM_FAILED = "STREAM_FAILED"  # Spark's name for any end of a streaming query
_NOT_INSTALLED = "No module named 'dptext_spark'"
_PATTERN = re.compile(r"DPTEXT\[(\w+)\] partition=(\d+) batch=(\d+) rows=(\d+)")
# Of the Connect client: it shows whole requests and errors where its level is set.
CLIENT_LOGGER = "pyspark.sql.connect.logging"
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", CLIENT_LOGGER)


_KEY_CURE = (
    "Put the driver's key on every node: the same file at the same path, owned by the workers' user or root, mode 600. "
    "Or set the same variable in the executors' own environment, never by a Spark setting. Or use key.deliver=closure."
)


def key_error(code: str, where: str) -> str:
    """Explain the problem of a key that workers read, and its remedy."""
    return f"key.deliver: with executors, each worker reads the key; in {where} {_KEYS[code]} ({code}). {_KEY_CURE}"


def provider_error(code: str, where: str) -> RunError:
    """Explain the problem of a provider in the settings, by the code of a :class:`ProviderError`."""
    kind, _, number = code.rpartition("_")
    return RunError(f"policy.providers[{number}]: in {where} {_PROVIDERS[kind]} ({kind}).")


class TaskError(DPTextError):
    """Error of a worker: a code and a place; no part of the text."""

    def __init__(self, code: str, partition: int, batch: int, rows: int) -> None:
        """Take a code, the partition, the batch in it, and how many rows are concerned."""
        super().__init__(f"DPTEXT[{code}] partition={partition} batch={batch} rows={rows}")


def code_of(error: BaseException, prefix: str) -> str:
    """Return a worker's code for an error: a provider's or a classifier's own, else its class name after a prefix."""
    if isinstance(error, ProviderError | ProviderImportError | OtherLabelsError):
        return error.code
    return f"{prefix}{type(error).__name__}"


def worker_key(key: RunKey | KeyReference) -> RunKey:
    """Return the key in a worker: the one that came along, or the one that is read here, once a process.

    Raises:
        TaskError: with the code of the problem; the driver explains the remedy.
    """
    try:
        return key_at_hand(key)
    except KeyUnavailableError as error:
        context = TaskContext.get()
        raise TaskError(error.code, context.partitionId() if context is not None else 0, 0, 0) from None


def reduced(error: BaseException, columns: Sequence[str], maps: Sequence[str] = ()) -> DPTextError:
    """Turn an error of Spark into one that is safe to print. The caller adds whether the run committed.

    A worker's code is searched for in the message, which goes no further. `maps` are text columns that are values of maps.
    """
    if isinstance(error, DPTextError):
        return error
    match = _PATTERN.search(str(error))
    if match:
        code, partition, batch, rows = match.groups()
        where = f"partition {partition}, batch {batch} of its partition"
        if code == INVALID_UTF8:
            return DataError(
                f"columns {', '.join(columns)}: {rows} rows hold invalid UTF-8 in {where}. Repair or drop "
                "them, or re-encode the files."
            )
        if code == NULL_KEY:
            return DataError(f"row_key or record_key: {rows} rows have a NULL key in {where}. Fill the key.")
        if code == WEIGHTS:
            return DataError(
                f"importance: {rows} texts or weights in {where} do not fit. Give a finite number of 0 or "
                "more for each word of a text, with stop words, unknown words and numbers."
            )
        if code == LIST_ENTRY:
            return DataError(
                f"policy.mask or policy.keep: a list column of the input has an invalid entry in {where}. Use "
                "words and phrases in UTF-8 of at most 12 words, none of a single letter, or NULL."
            )
        if code in _KEYS:
            return RunError(key_error(code, where))
        kind, _, number = code.rpartition("_")
        if kind == OtherLabelsError.CODE:
            return RunError(f"in {where}: {OtherLabelsError(int(number))}")
        if kind in _PROVIDERS:
            return provider_error(code, where)
        return RunError(f"a worker failed with {code} in {where} ({rows} rows).")
    if _NOT_INSTALLED in str(error):
        return RunError(
            "PYSPARK_PYTHON: a worker's Python cannot import dptext_spark. Name the interpreter that has it (also "
            "spark.pyspark.python), or install it on every node (docs/guide/cluster). `dptext doctor` checks both."
        )
    condition, state = condition_of(error), None
    if condition == "DUPLICATED_MAP_KEY":
        return key_twice(maps or columns)
    if isinstance(error, ConnectionError | Py4JNetworkError):
        return RunError(f"Spark's JVM has ended ({condition}). Another process ended it, or {_MEMORY}")
    for cause in _causes(error):
        state = _called(cause, "getSqlState") if _called(cause, "getCondition") else state
    why = f": {_MEMORY}" if any(sign in str(error) for sign in _OUT_OF_MEMORY) else "."
    return RunError(f"Spark failed with {condition}{f' (SQLSTATE {state})' if state else ''}{why}")


def condition_of(error: BaseException) -> str:
    """Return the error condition of the innermost cause that has one, or the name of the error's class."""
    named = [_called(cause, "getCondition") for cause in _causes(error)]
    condition = next((name for name in reversed(named) if name), type(error).__name__)
    if condition == STREAM_FAILED:  # some causes are in its message only
        told = re.search(r"terminated with exception: \[([A-Z][A-Z0-9_.]*)\]", str(error))
        return told[1] if told else condition
    return condition


def _causes(error: BaseException) -> Iterator[Any]:
    """Yield an error, then PySpark's own causes of it, then those of the JVM; in each chain the innermost cause comes last."""
    yield error
    inner = getattr(error, "_cause", None)  # of a streaming query: PySpark's own, and none of the JVM
    for _ in range(20):
        if inner is None:
            break
        yield inner
        inner = getattr(inner, "_cause", None)
    java = getattr(error, "java_exception", None)
    for _ in range(20):
        if java is None:
            return
        yield java
        java = java.getCause()


def _called(error: Any, method: str) -> str | None:
    value = getattr(error, method, None)
    try:
        text = value() if callable(value) else None
    except Py4JError:  # that class of the JVM has no such method
        return None
    return text if isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9_.]+", text) else None


@contextmanager
def suppress_sensitive_logs(spark: SparkSession | None = None) -> Iterator[None]:
    """Silence, for the block, the loggers that write private data: query fragments and errors, and statistics of tables.

    Py4J logs the traceback of a dead JVM through the root logger. That is also suppressed, since our own error reports it.

    Args:
        spark: the session, where there is one already. In its driver's JVM Delta Lake then logs warnings and errors only: at INFO
            it logs the files of a small table with the least and the greatest value of each column, the private text's too.
    """
    log4j = _log4j(spark)
    with _PYSPARK.held(), nullcontext() if log4j is None else _DELTA.held(log4j):
        yield


@contextmanager
def reported(spark: SparkSession, columns: Sequence[str] = ()) -> Iterator[None]:
    """Do something by Spark whose errors are raised as they may be printed, and whose logs are kept back meanwhile."""
    with suppress_sensitive_logs(spark):
        try:
            yield
        except Exception as error:
            raise reduced(error, columns) from None


class _SharedState:
    """A state of this process that several runs may ask for at once: the first begins it, the last one ends it."""

    def __init__(self, begin: Callable[..., Callable[[], None]]) -> None:
        self._begin, self._holders, self._lock = begin, 0, threading.Lock()
        self._end: Callable[[], None] = lambda: None

    @contextmanager
    def held(self, *given: Any) -> Iterator[None]:
        with self._lock:
            if not self._holders:
                self._end = self._begin(*given)
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if not self._holders:
                    self._end()


def _log4j(spark: SparkSession | None) -> Any:
    """Return the logging of the driver's JVM; None on Spark Connect, and where a platform hides its JVM."""
    context = None if spark is None else context_of(spark)
    if context is None:
        return None
    try:
        log4j = context._jvm.org.apache.logging.log4j
        log4j.LogManager.getRootLogger()
    except (Py4JError, TypeError):  # the latter: there is another library for logging
        return None
    return log4j


def _quiet_delta(log4j: Any) -> Callable[[], None]:
    """Limit Delta Lake's log on the driver to warnings and errors; return the function that resets it."""
    name = "org.apache.spark.sql.delta"
    level, warn = log4j.LogManager.getLogger(name).getLevel(), log4j.Level.WARN
    loggers, set_level = log4j.LogManager.getContext(False), log4j.core.config.Configurator.setLevel
    own = loggers.getConfiguration().getLoggerConfig(name).getName() == name
    if level.intLevel() > warn.intLevel():
        set_level(name, warn)

    def back() -> None:
        with suppress(Py4JError):  # a JVM that died logs nothing any more
            if own:
                set_level(name, level)
            else:  # it follows the logger above it again, whatever that is set to later
                loggers.getConfiguration().removeLogger(name)
                loggers.updateLoggers()

    return back


def _quiet_pyspark() -> Callable[[], None]:
    """Suppress the log of PySpark and Py4J on queries and errors; return the function that resets it."""
    # The second logs the error of a micro-batch, with a traceback, before Spark gets it.
    theirs = [logging.getLogger(), logging.getLogger("py4j.clientserver")]
    for logger in theirs:
        logger.addFilter(_not_of_py4j)
    # By PySpark's own way: a plain logger of that name, made here first, would fail PySpark's later calls.
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True

    def back() -> None:
        for logger in theirs:
            logger.removeFilter(_not_of_py4j)
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled

    return back


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


_PYSPARK, _DELTA = _SharedState(_quiet_pyspark), _SharedState(_quiet_delta)
