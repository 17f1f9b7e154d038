"""What a call `NAME(text, identity)` does in a worker: the same draws as the job makes for that text and identity.

SQL does not know what the function takes before it is called, so each batch is asked. What is wrong is told in one sentence with
the name, the types and the number of rows, and nothing of the texts or the identities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql import types as T

from dptext_spark.errors import DataError, DPTextError, SettingsError
from dptext_spark.spark.errors import TaskError, code_of, reduced
from dptext_spark.spark.udf.column import UdfSpec, sanitize
from dptext_spark.spark.udf.ship import open_shipped

F: Any = functions  # its stubs leave out what Spark adds at run time
RESULT = "text_0"


@dataclass(frozen=True)
class Call:
    """What a worker needs to know of a registered function; it travels in its closure.

    Attributes:
        name: of the function, for messages.
        identity: what the second argument has to be, in words.
        spec: what to do with the texts and the identities.
    """

    name: str
    identity: str
    spec: UdfSpec

    @property
    def usage(self) -> str:
        """How the function is called."""
        return f"{self.name}(text, identity), where the identity is {self.identity}"


def arguments(call: Call, arrays: tuple[pa.Array, ...]) -> tuple[pa.Array, pa.Array]:
    """Return the texts and the identities of a batch as the engine takes them.

    Returns:
        (string or large_string [n], int64, string or binary [n] without NULLs).

    Raises:
        SettingsError: another number of arguments, or types that are none of a text or of an identity.
        DataError: an identity is NULL.
    """
    if len(arrays) != 2:
        given = {0: "no argument", 1: "one argument"}.get(len(arrays), f"{len(arrays)} arguments")
        raise SettingsError(f"{call.name}: {given} given; valid: {call.usage}. Nothing is drawn without it.")
    texts, identities = arrays
    if pa.types.is_null(texts.type):
        texts = texts.cast(pa.string())
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise SettingsError(
            f"{call.name}: a first argument of type {texts.type} given; valid: a text, as in {call.usage}."
        )
    if identities.null_count:
        raise DataError(
            f"{call.name}: {identities.null_count} of {len(identities)} rows of a batch with a NULL identity; valid: "
            f"{call.usage}, and never NULL. Rows without one can be left out by WHERE."
        )
    kind = identities.type
    if pa.types.is_signed_integer(kind):
        return texts, identities.cast(pa.int64())
    if any(fits(kind) for fits in _BYTES):
        return texts, identities
    raise SettingsError(
        f"{call.name}: an identity of type {kind} given; valid: an integer, a string or binary. The job draws by "
        "unix_micros(x) of a timestamp, and by CAST(x AS STRING) of a date, a decimal, or a timestamp without time zone."
    )


_BYTES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def draw_batches(call: Call, stream: Iterator[Any]) -> Iterator[pa.Array]:
    """Sanitize the batches of a task.

    Raises:
        DPTextError: one sentence that says what is wrong, and nothing of the text.
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
    """Return the sentence for a worker's code, as a driver of the job says it."""
    said = reduced(RuntimeError(str(error)), list(call.spec.columns))
    return type(said)(f"{call.name}: {said}")


def function_of(call: Call) -> Any:
    """Return the Spark function: (text, identity) in, text out.

    Raises:
        SettingsError: this Spark has no functions over Arrow. What it has over pandas would show a text that is no valid UTF-8 in
            its error.
    """
    if not hasattr(F, "arrow_udf"):
        raise SettingsError(
            f"{call.name}: a function of SQL needs Spark 4.1 or later; valid here: dps.privatize on a DataFrame, or `dptext run`."
        )

    def over_arrow(stream: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return draw_batches(call, stream)

    return F.arrow_udf(over_arrow, T.StringType())
