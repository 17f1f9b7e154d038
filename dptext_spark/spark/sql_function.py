"""Register a model as a function of SQL, under a name that is bound to one release.

A call `NAME(text, identity)` makes the same draws in a worker as the job for that text and identity. SQL does not know the
function's types before the call, so each batch is checked. An error holds the name, the types and the number of rows, but no text
and no identity.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions
from pyspark.sql import types as T

from dptext_spark.config.load import parse_model_config
from dptext_spark.config.locations import parts_of, spelled
from dptext_spark.errors import DataError, DPTextError, RunError, SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.ledger.balance import Balance
from dptext_spark.model.privatizer import ENGINE_VERSION, Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import Steps, by_default, line
from dptext_spark.spark.column_function import UdfSpec, sanitize
from dptext_spark.spark.job.entries import ledger_of
from dptext_spark.spark.job.ledger import ChargeSettings, RegistrationSpec, charged
from dptext_spark.spark.secrets import key_given
from dptext_spark.spark.session import context_of, is_stopped
from dptext_spark.spark.ship import check_complete, open_shipped, shipped_model
from dptext_spark.spark.spark_errors import TaskError, code_of, condition_of, reduced, reported

F: Any = functions  # its stubs leave out what Spark adds at run time
RESULT = "text_0"


@dataclass(frozen=True)
class Call:
    """Parameters of a registered function for workers; they travel in its closure.

    Attributes:
        name: of the function, for messages.
        identity: valid second arguments, in words.
        spec: the treatment of texts and identities.
    """

    name: str
    identity: str
    spec: UdfSpec

    @property
    def usage(self) -> str:
        """The signature of a call."""
        return f"{self.name}(text, identity), where the identity is {self.identity}"


def arguments(call: Call, arrays: tuple[pa.Array, ...]) -> tuple[pa.Array, pa.Array]:
    """Return the texts and the identities of a batch in the engine's types.

    Returns:
        (string or large_string [n], int64, string or binary [n] without NULLs).

    Raises:
        SettingsError: another number of arguments, or types that are none of a text or of an identity.
        DataError: an identity is NULL.
    """
    if len(arrays) != 2:
        counted = {0: "no argument", 1: "one argument"}.get(len(arrays), f"{len(arrays)} arguments")
        raise SettingsError(f"{call.name}: {counted} given. Call {call.usage}.")
    texts, identities = arrays
    if pa.types.is_null(texts.type):
        texts = texts.cast(pa.string())
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise SettingsError(
            f"{call.name}: the first argument is of type {texts.type}. Give a text, as in {call.usage}."
        )
    if identities.null_count:
        raise DataError(
            f"{call.name}: {identities.null_count} of {len(identities)} rows of a batch have a NULL "
            f"identity. Leave them out by WHERE, or fill the identity: {call.usage}."
        )
    kind = identities.type
    if pa.types.is_signed_integer(kind):
        return texts, identities.cast(pa.int64())
    if any(fits(kind) for fits in _BYTES):
        return texts, identities
    raise SettingsError(
        f"{call.name}: an identity of type {kind} is not valid. Use an integer, a string or binary. As in the job, "
        "convert a timestamp by unix_micros(x), and a date, a decimal or other timestamps by CAST(x AS STRING)."
    )


_BYTES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def draw_batches(call: Call, stream: Iterator[Any]) -> Iterator[pa.Array]:
    """Sanitize the batches of a task.

    Raises:
        DPTextError: one sentence on the problem, without any text.
    """
    try:
        privatizer = open_shipped(call.spec.shipped)
        for batch in stream:
            texts, identities = arguments(call, batch if isinstance(batch, tuple) else (batch,))
            yield sanitize((texts, identities), call.spec, privatizer, identities).field(RESULT)
    except GeneratorExit:
        raise
    except TaskError as error:
        raise _task_error(call, error) from None
    except DPTextError:
        raise
    except BaseException as error:
        raise _task_error(call, TaskError(code_of(error, ""), 0, 0, 0)) from None


def _task_error(call: Call, error: TaskError) -> DPTextError:
    """Return the sentence for a worker's code, as in the job's driver."""
    failure = reduced(RuntimeError(str(error)), list(call.spec.columns))
    return type(failure)(f"{call.name}: {failure}")


def function_of(call: Call) -> Any:
    """Return the Spark function: (text, identity) in, text out.

    Raises:
        SettingsError: this Spark has no functions over Arrow. Its functions over pandas would show a text that is no valid UTF-8
            in their error.
    """
    if not hasattr(F, "arrow_udf"):
        raise SettingsError(
            f"{call.name}: a SQL function needs Spark 4.1 or later. Use dps.privatize on a DataFrame, or `dptext run`."
        )

    def over_arrow(stream: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return draw_batches(call, stream)

    return F.arrow_udf(over_arrow, T.StringType())


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_IDENTITY = {
    "token": "the row's: unique, an integer, a string or binary",
    "record": "the record's: equal in all rows of a record, an integer, a string or binary",
    "dataset": "the row's: an integer, a string or binary",
}
_UNSEEN = {
    "token": "The function cannot check that identities are unique. Rows with equal identities get equal draws.",
    "record": "The function cannot check that an identity is the record's. A finer identity draws a word of a record "
    "more than once and spends its ε each time. A coarser one shows which words records share.",
    "dataset": "At dataset level no draw depends on the identity, but a call still needs one that is not NULL.",
}
_WHOLE = (
    "The function cannot check that identities are unique. It chooses words in one text, so the "
    "stated ε does not hold for a record of several rows or columns."
)
_UNCOUNTED = "No ledger counts the releases of this function. Give `ledger` and `input` to charge one."
_CALLERS = (
    "Anyone who may call the function can draw texts and identities of their own and compare. "
    "Limit the session to people who may read the texts."
)
_TRAVELS = (
    "The function carries the key to the server of Spark Connect, and it remains there as long as the function. To let "
    "each worker read the key, use RunKey.from_file or RunKey.from_env with deliver='executors'."
)
# Spark's error conditions for a name that no function has; the second of a catalog that holds no functions at all.
_FREE = ("UNRESOLVED_ROUTINE", "MISSING_CATALOG_ABILITY")
PROBE_WORDS = 64  # so many that at least one of them is drawn anew
_PROBE_ID = "probe"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Registration:
    """A function of SQL that draws by one model, under one key.

    Attributes:
        name: of the function.
        consistency: the level: token, record or dataset.
        column: input of token-level draws; None without one.
        run_id: likewise. A run of the job with the same key, model, column and run id writes the same bytes.
        fingerprint: of the model.
        guarantee: of a drawn word.
        balance: balance of the named input, with this registration; None where nothing is counted.
        notes: sentences on its limits.

    Examples:
        >>> made = dps.register(spark, "dptext", model, column="body", key=dp.RunKey.generate(), run_id="first")
        >>> df.createOrReplaceTempView("letters")
        >>> spark.sql("SELECT dptext(body, id) AS body FROM letters").columns
        ['body']
        >>> made.run_id
        'first'
    """

    name: str
    consistency: str
    column: str | None
    run_id: str
    fingerprint: str
    guarantee: Guarantee
    balance: Balance | None
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """Return the notes as text."""
        return " ".join((f"{self.name}(text, identity).", str(self.guarantee), *self.notes))

    def __repr__(self) -> str:
        """Return name, level, column, run id, and whether it is counted."""
        counted = "not counted" if self.balance is None else "counted in the ledger"
        column = "" if self.column is None else f"column {self.column!r}"
        return line(
            "Registration",
            f"{self.name}(text, identity)",
            self.consistency,
            column,
            f"run id {self.run_id!r}",
            counted,
        )


@dataclass(frozen=True)
class _Release:
    """A session's function behind a name, with a probe: words of the lexicon, and the model's draws for them.

    Spark may resolve a name to another function than the registered one, and a call then returns raw text. Only a call shows
    that.
    """

    draws: str
    probe: str
    drawn: str

    @classmethod
    def of(cls, spec: RegistrationSpec) -> _Release:
        """Draw the probe here, as a worker has to."""
        words = spec.model.vocabulary.strings()
        probe = " ".join(words[:: max(len(words) // PROBE_WORDS, 1)].to_pylist())
        drawn, _ = spec.model.privatize(
            pa.array([probe]),
            column=spec.column,
            row_ids=pa.array([_PROBE_ID]),
            key=spec.key,
            run_id=spec.run_id,
        )
        return cls(_draws(spec), probe, drawn[0].as_py())

    def called(self, spark: SparkSession, name: str) -> str | None:
        """Call the name on the probe, and return the result."""
        text = f"CAST(X'{self.probe.encode().hex()}' AS STRING)"  # whatever signs its words have
        row = spark.sql(f"SELECT {name}({text}, '{_PROBE_ID}')").first()
        value: str | None = None if row is None else row[0]
        return value


# Release of each name of a session. Spark's own catalog shows whether a function was dropped.
_RELEASES: WeakKeyDictionary[SparkSession, dict[str, _Release]] = WeakKeyDictionary()


def register(
    spark: SparkSession,
    name: str,
    model: Privatizer,
    *,
    column: str | None = None,
    key: RunKey | None = None,
    run_id: str | None = None,
    ledger: str | Mapping[str, str | float] | None = None,
    input: Mapping[str, str] | None = None,
    row_key: str | None = None,
    record_key: str | None = None,
    replace: str | None = None,
    progress: Steps | None = None,
) -> Registration:
    """Make a model a function of this session's SQL: `SELECT dptext(body, id) FROM reviews`.

    A call draws as a run of the job does with the same key and model for that text and identity; at token level column and run id
    must be equal, too. Lists of names (`policy.mask`, `policy.keep`) belong to runs only. NULL stays NULL. The identity is that
    of `row_key` of a run; at record level of its `record_key`. It must not be NULL; whether it is unique cannot be seen.

    A function has one text column. Several columns are several functions, each with its name and its entry in the ledger;
    importance then chooses words in one text.

    Args:
        spark: a session, classic or of Spark Connect, of Spark 4.1 or later.
        name: of the function, in this session only: letters, digits and `_`; none that a function has, Spark's own included.
        model: the compiled model.
        column: the text column, as `columns` of the settings spells it, a name with dots in back-ticks; at token level and with a
            ledger, it must be named.
        key: the run key; None takes 32 bytes of the operating system, which nobody has again. A key with `deliver="executors"`
            does not travel: each worker reads it.
        run_id: input of token-level draws; None makes one.
        ledger: the folder of the ledger, or its section of the settings: `{"path": ..., "limit": 4.0}`; None with an `input`
            takes that input's own. Or with `raise_limit` and
            `override`. It is charged now, once, for the present version of `input`, independent of later queries. None: nothing
            is counted.
        input: the charged input, as the section of the settings: `{"path": ...}` or `{"table": ...}`, with `format`. The rows
            that queries read are unknown.
        row_key: the column of `input` that the identity comes from; at token level, with a ledger, it must be named.
        record_key: likewise, where the identity is a record's; at record level, with a ledger, one of the two must be named.
        replace: the name again, where a function of that name is to make way for this one; one that this function registered.
        progress: progress callback, called with the sentences of :attr:`Registration.notes`. None prints them on stderr in a
            notebook or terminal.

    Raises:
        SettingsError: the session was stopped, or has Spark 4.0; a name that is none, or stands for another release; a column,
            key, ledger or input that is missing or given wrongly; a model whose importance needs weights or counts; a provider of
            the model that fails on texts of our own.
        DataError: the input cannot be read, or lacks a column.
        RunError: the ledger's limit would be passed, or it cannot be written; Spark refused the function. It does not exist then.

    Examples:
        >>> key, path = dp.RunKey.generate(), config.input.path
        >>> charge = {"ledger": "reviews_ledger", "input": {"path": path}, "row_key": "ticket_id"}
        >>> dps.register(spark, "sanitized", model, column="body", key=key, run_id="spring", **charge)
        Registration(sanitized(text, identity), token, column 'body', run id 'spring', counted in the ledger)
        >>> spark.sql(f"SELECT ticket_id, sanitized(body, ticket_id) AS body FROM delta.`{path}`").columns
        ['ticket_id', 'body']
    """
    if is_stopped(spark):
        raise SettingsError(
            "spark: the session was stopped. Use a running one, as dps.spark_session() returns it. "
            "Nothing was registered or charged."
        )
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"name: {name!r} is not valid. Use 1 to 64 letters, digits and _, no digit first."
        )
    if replace is not None and replace.lower() != name.lower():
        raise SettingsError(f"replace: {replace!r} is not valid. Use {name!r}, the name itself, or None.")
    _check_model(model)
    column = None if column is None else _spelled(column)
    if column is None and model.consistency == "token":
        raise SettingsError(
            "column: none given, and token-level draws depend on its name. Name it as `columns` does."
        )
    charge = _charge_settings(ledger, input, column, model.consistency, row_key, record_key)
    run_id = parse_model_config({"run": {"id": run_id}}).run.id or secrets.token_hex(8)
    key = key_given(spark, key)
    for provider in model.imported:
        provider.try_out()
    spec = RegistrationSpec(name, model, column or "", run_id, key, row_key, record_key)
    notes = _notes(spark, spec, charge)
    with reported(spark, [column or name]):
        balance = _registered(spark, spec, charge, replaces=replace is not None)
    say = progress or by_default()
    for note in notes:
        say(f"{name}: {note}")
    if _key_travels(spark, key):
        _log.warning("%s: %s", name, _TRAVELS)
    return Registration(
        name, model.consistency, column, run_id, model.fingerprint, model.guarantee(), balance, notes
    )


def _check_model(model: Privatizer) -> None:
    selector = model.selector
    if selector is not None and selector.reads_weights:
        raise SettingsError(
            "model: its importance reads weights from a column, and a SQL function has no such argument. "
            "Use dps.privatize with weights, or another provider of importance."
        )
    check_complete(model)


def _spelled(column: str) -> str:
    parts = parts_of(column)
    if parts is None:
        raise SettingsError(
            f"column: {column!r} is not valid. Name a column, or the parts of a nested column with dots "
            "between them. Put a part with a dot in back-ticks."
        )
    return spelled(parts)


def _charge_settings(
    ledger: str | Mapping[str, str | float] | None,
    source: Mapping[str, str] | None,
    column: str | None,
    level: str,
    row_key: str | None,
    record_key: str | None,
) -> ChargeSettings | None:
    """Read where a registration is counted; None where it is not."""
    if row_key is not None and record_key is not None:
        raise SettingsError(
            "row_key and record_key: both given, but a call has one identity. Name the one that you pass."
        )
    if record_key is not None and level == "token":
        raise SettingsError(
            f"record_key: {record_key!r} is not valid at token level, because the identity is the row's. Use row_key."
        )
    if ledger is None and source is None:
        return None
    if source is None:
        raise SettingsError(
            "input: none given with ledger. Name the input to charge, or leave out both to count nothing."
        )
    if column is None:
        raise SettingsError("column: none given, and the ledger counts by columns. Name the text column.")
    if level != "dataset" and row_key is None and record_key is None:
        which = "row_key" if level == "token" else "record_key, or row_key where each row is a record"
        raise SettingsError(f"row_key: none given, and the ledger needs the identity of rows. Name {which}.")
    return ChargeSettings.of(ledger, source)


def _key_travels(spark: SparkSession, key: RunKey) -> bool:
    return context_of(spark) is None and key.source is None


def _notes(spark: SparkSession, spec: RegistrationSpec, charge: ChargeSettings | None) -> tuple[str, ...]:
    """Describe the limits of a registration."""
    model = spec.model
    notes = [_WHOLE if model.chooses_in_records else _UNSEEN[model.consistency]]
    if charge is None:
        notes.append(_UNCOUNTED)
    else:
        place = charge.input.table or charge.input.path
        counted = ledger_of(spark, charge.input, charge.ledger)
        notes.append(
            f"The ledger {counted} was charged for {place} as it is now, for any selection. To charge "
            "another version, register the function again."
        )
    if spec.key.is_insecure:
        notes.append("No guarantee holds, because the key is not secret.")
    if _key_travels(spark, spec.key):
        notes.append(_TRAVELS)
    return (*notes, _CALLERS)


def _draws(spec: RegistrationSpec) -> str:
    """Name a function's draws, without the key: equal names are equal draws."""
    model = spec.model
    parts = ["function", model.fingerprint, ENGINE_VERSION, model.consistency]
    parts += [spec.run_id, spec.column] if model.consistency == "token" else []
    return spec.key.commitment(json.dumps(parts))


def _registered(
    spark: SparkSession, spec: RegistrationSpec, charge: ChargeSettings | None, *, replaces: bool
) -> Balance | None:
    """Charge the ledger, make the function, and call it once."""
    known, release = _RELEASES.setdefault(spark, {}), _Release.of(spec)
    taken = spec.name.lower()
    if _is_taken(spark, spec.name):
        _check_ours(spark, spec.name, known.get(taken), release, replaces)
    job = UdfSpec(
        columns=(spec.column,),
        shipped=shipped_model(spark, spec.model),
        key=spec.key.delivered(),
        run_id=spec.run_id,
        has_row_id=True,
        has_record_id=False,
    )
    function = function_of(Call(spec.name, _IDENTITY[spec.model.consistency], job))
    with nullcontext() if charge is None else charged(spark, spec, charge) as balance:
        known.pop(taken, None)
        spark.udf.register(spec.name, function)
        _check_call(spark, spec.name, release)
    known[taken] = release
    return balance


def _is_taken(spark: SparkSession, name: str) -> bool:
    """Check whether a call of this name means something already: a function, or a form of Spark's grammar."""
    if spark.catalog.functionExists(name):
        return True
    try:
        # On Connect the query is looked at when its schema is asked for.
        spark.sql(f"SELECT {name}('text', '{_PROBE_ID}')").schema  # noqa: B018
    except PySparkException as error:
        return not condition_of(error).startswith(_FREE)
    return True


def _check_ours(
    spark: SparkSession, name: str, ours: _Release | None, release: _Release, replaces: bool
) -> None:
    """Check that a taken name is a function of ours that this release may replace."""
    answer = None
    if ours is not None:
        with suppress(PySparkException):  # a function that fails is not known to be ours
            answer = ours.called(spark, name)
    if ours is None or answer != ours.drawn:
        raise SettingsError(
            f"name: {name!r} is a function of Spark or of this session that neither dptext.register nor "
            f"`replace` knows. Use another name, such as 'dptext_{name}', or free yours by DROP TEMPORARY "
            "FUNCTION. Nothing was registered or charged."
        )
    if ours.draws != release.draws and not replaces:
        raise SettingsError(
            f"name: {name!r} is another release of this session, with another model, key, run id or "
            f"column. Use another name, or replace={name!r}. Nothing was registered or charged."
        )


def _check_call(spark: SparkSession, name: str, release: _Release) -> None:
    """Check that SQL calls the registered function: one call must draw as the model does. Otherwise drop the function."""
    why, answer = "Spark calls another function by that name", None
    try:
        answer = release.called(spark, name)
    except PySparkException as error:
        # The probe is public: the sentence of a worker holds nothing private.
        sentence = re.search(rf"\b{name}: (.+)", str(error))
        why = (sentence[1] if sentence else str(reduced(error, [name]))).rstrip(".")
    if answer == release.drawn:
        return
    with suppress(PySparkException):
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
    raise RunError(
        f"name: {name!r} was registered, but its draw of public words differs from the model's: "
        f"{why}. The function was dropped. Use another name, or correct the cause."
    )
