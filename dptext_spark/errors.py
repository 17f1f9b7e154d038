"""The errors that users meet. A message names the field, the value given and the valid choices; never a private word.

Examples:
    >>> try:
    ...     dp.CusText(epsilon=-1.0)
    ... except dp.errors.SettingsError as error:
    ...     print(error.exit_code, error)
    2 mechanism.epsilon: -1.0 is not valid. Choose ...
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

__all__ = [
    "BrokenRequirementError",
    "CountMismatchError",
    "DPTextError",
    "DataError",
    "NoRowsError",
    "RecordingError",
    "RunError",
    "SettingsError",
]

SCHEMA_VERSION = 1  # of the tables and models that this version writes and reads
LONGEST = 64  # characters of a name that another one is suggested for


class DPTextError(Exception):
    """Base of every error raised on purpose.

    Attributes:
        exit_code: what the command line returns for it.
    """

    exit_code = 1


class SettingsError(DPTextError):
    """A setting is missing, unknown, of the wrong type or out of its range."""

    exit_code = 2


class DataError(DPTextError):
    """Bad data: a missing column, a NULL key, invalid UTF-8, a malformed lexicon line, words that are mostly unknown."""

    exit_code = 3


class RunError(DPTextError):
    """The run failed, or was refused, before its commit; where even that is not known, the message says so."""

    exit_code = 4


class CountMismatchError(DPTextError):
    """The run committed, but its counts or its consistency audit do not agree with the written table."""

    exit_code = 5


class RecordingError(DPTextError):
    """The run committed, but its account could not be made: whether its counts agree is not known."""

    exit_code = 6


class BrokenRequirementError(DPTextError):
    """A figure of a run or of a written table breaks a requirement."""

    exit_code = 7


class NoRowsError(DataError):
    """The table, or the part that `input.where` selects, has no row: nothing was committed, and nothing spent."""

    exit_code = 8


def did_you_mean(given: object, valid: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest of `valid`, or an empty string."""
    if len(str(given)) > LONGEST:
        return ""
    names = {str(name).lower(): name for name in valid}
    close = difflib.get_close_matches(str(given).lower(), names, n=1, cutoff=0.6)
    return f" Did you mean {names[close[0]]!r}?" if close else ""


def either(choices: Iterable[object]) -> str:
    """Join choices as in `keep, mask or draw`."""
    return " or ".join(", ".join(map(str, choices)).rsplit(", ", 1))


def no_setting(field: str, given: object, valid: Iterable[str]) -> str:
    """Word the refusal of a setting that does not exist, with the closest one suggested."""
    names = list(valid)
    return f"{field}: no such setting. Choose {either(names)}.{did_you_mean(given, names)}"


@contextmanager
def file_errors(
    field: str, path: object, done: str = "read", error: type[DPTextError] = DataError
) -> Iterator[None]:
    """Raise `error` if a file cannot be read or written, or is not UTF-8."""
    if "\0" in str(path):  # Python raises a bare ValueError for it
        raise error(f"{field}: {str(path)!r} cannot be {done}: no path has a NUL character.")
    try:
        yield
    except UnicodeDecodeError:
        raise error(f"{field}: {str(path)!r} is not UTF-8 text. Save the file as UTF-8.") from None
    except OSError as problem:
        raise error(f"{field}: {str(path)!r} cannot be {done} ({problem.strerror}).") from None


def unknown(field: str, given: object, valid: Iterable[str]) -> SettingsError:
    """Build the error for a value outside a closed set of names, with the closest one suggested."""
    names = list(valid)
    return SettingsError(
        f"{field}: {given!r} is not valid. Choose {either(names)}.{did_you_mean(given, names)}"
    )


def require_extra(extra: str, *modules: str) -> None:
    """Raise :class:`SettingsError`, naming what to install, unless the modules of an extra can be imported."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise SettingsError(
            f"{', '.join(missing)}: not installed. Install the extra [{extra}]: pip install 'dptext-spark[{extra}]'."
        )


def key_twice(columns: Sequence[str]) -> DataError:
    """Return the error for maps that Spark cannot put together again; no key is shown."""
    return DataError(
        f"columns: {', '.join(columns)}: a map has the same key twice in one row. Use maps with distinct keys, for instance "
        "from a view. Or set spark.sql.mapKeyDedupPolicy=LAST_WIN: Spark then keeps the last value of a key."
    )


def require_choice(field: str, given: object, valid: Iterable[str]) -> None:
    """Raise :class:`SettingsError` unless `given` is one of `valid`."""
    names = list(valid)
    if not isinstance(given, str) or given not in names:
        raise unknown(field, given, names)


def check_schema(found: object, what: str) -> None:
    """Check that a table or a model has the schema version that is read here.

    Args:
        found: its schema version; None where it has none.
        what: the table or the model, with its place.

    Raises:
        DataError: it has another one.
    """
    if found != SCHEMA_VERSION:
        raise DataError(
            f"{what} has {'no schema version' if found is None else f'schema version {found}'}, but this dptext reads "
            f"version {SCHEMA_VERSION}. Use the dptext that wrote it, or choose another place."
        )
