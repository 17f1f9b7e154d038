"""The rows that a run reads: `input.where`, a mapping from columns to their conditions. All conditions must hold.

    where: {country: [DE, AT], day: {ge: 2026-01-01, lt: 2026-02-01}, note: {null: false}}

A value alone means equality and a list any of its values; a mapping holds operators. NULL equals no value and differs from none;
`{null: true}` and `{null: false}` ask for it. Values get the type of their column and one spelling: equal conditions are equal
mappings. A condition selects the same rows at each evaluation, under any settings of the session.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Context, Decimal
from typing import Any

from dptext_spark.config.locations import parts_of, spelled
from dptext_spark.config.values import LONGEST, problem
from dptext_spark.errors import SettingsError, did_you_mean, either
from dptext_spark.runtime.validation import shown

Value = bool | int | float | str
Condition = dict[str, Any]  # by column: a value, a list of values, or values by operator

OPERATORS = ("ne", "lt", "le", "gt", "ge", "null")
_MAPPING = "a mapping such as {country: [DE, AT], day: {ge: 2026-01-01, lt: 2026-02-01}, note: {null: false}}"
_TEST = f"a value, a list of values, or a mapping with {', '.join(OPERATORS)}"
_NULL = "{null: true} or {null: false}"
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)? ?(Z|UTC|[+-]\d\d:\d\d)?", re.ASCII
)


def parse_condition(value: object) -> Condition | None:
    """Check the form of a condition, and make its values JSON-able; their types depend on the columns."""
    if value is None:
        return None
    if isinstance(value, str):
        raise problem(
            f"input.where: a text is not valid. Choose {_MAPPING}. For other SQL conditions, use a view as input.table, or "
            "dps.privatize(df.where(...)) in Python."
        )
    if not isinstance(value, Mapping) or not value:
        raise problem(f"input.where: {shown(value)} is not valid. Choose null, or {_MAPPING}.")
    return {str(name): _parsed(f"input.where.{str(name)[:LONGEST]}", test) for name, test in value.items()}


def _parsed(field: str, test: object) -> Any:
    if isinstance(test, list | tuple | Mapping) and not test:
        raise problem(f"{field}: {shown(test)} is not valid. Choose {_TEST}.")
    if isinstance(test, list | tuple):
        return [_scalar(field, value) for value in test]
    if not isinstance(test, Mapping):
        return _scalar(field, test)
    test = {
        "null" if name is None else name: value for name, value in test.items()
    }  # as other readers of YAML take it
    for name in test:
        if name not in OPERATORS:
            valid = f"{', '.join(OPERATORS)}; without an operator, a value or a list of values"
            raise problem(f"{field}: {shown(name)} is not valid. Choose {valid}.")
    if not isinstance(test.get("null", True), bool):
        raise problem(f"{field}.null: {shown(test['null'])} is not valid. Choose true or false.")
    return {name: _scalar(f"{field}.{name}", value) for name, value in test.items()}


def _scalar(field: str, value: object) -> Value:
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if not isinstance(value, Value):
        raise problem(
            f"{field}: {shown(value)} is not valid. Choose a text, a number, true or false. For NULL, choose {_NULL}."
        )
    return value


def typed_condition(condition: Condition | None, schema: Any) -> Condition | None:
    """Return a condition with values of its columns' types, in one order and one spelling.

    Args:
        condition: as the settings have it.
        schema: of the input, a :class:`dptext_spark.model.table_schema.Struct`.

    Raises:
        SettingsError: names a missing column, or a value that the column's type cannot hold.
    """
    if condition is None:
        return None
    typed: Condition = {}
    for name, test in condition.items():
        field = f"input.where.{name[:LONGEST]}"
        parts, kind = column_place(name, schema)
        if spelled(parts) in typed:
            raise SettingsError(f"{field}: this column is named twice. Name it once.")
        typed[spelled(parts)] = _typed(field, test, kind)
    return dict(sorted(typed.items()))


def column_place(name: str, schema: Any) -> tuple[tuple[str, ...], str]:
    """Find the column that a condition names: a top-level column of that name, or a path of structs, in whatever case.

    Returns:
        (the names on the way, the name of the type).

    Raises:
        SettingsError: there is none.
    """
    parts: tuple[str, ...] = ()
    for part in (name,) if name in schema.kinds else parts_of(name) or (name,):
        names = getattr(schema, "kinds", {})
        same = [part] if part in names else [other for other in names if other.lower() == part.lower()]
        if len(same) != 1:
            valid = f"Choose {either(names)}." if names else f"{spelled(parts)!r} has no fields."
            raise SettingsError(
                f"input.where.{name[:LONGEST]}: {part[:LONGEST]!r} is not in the input. {valid}{did_you_mean(part, names)}"
            )
        parts, schema = (*parts, same[0]), names[same[0]]
    return parts, str(schema)


def _typed(field: str, test: Any, kind: str) -> Any:
    if isinstance(test, Mapping):
        return {
            name: value if name == "null" else _value(f"{field}.{name}", value, kind)
            for name, value in sorted(test.items())
        }
    listed = test if isinstance(test, list) else [test]
    values = sorted({_value(field, value, kind) for value in listed})
    return values[0] if len(values) == 1 else values


def _value(field: str, value: Value, kind: str) -> Any:
    valid, read = _reader(kind)
    try:
        return read(value)
    except (ValueError, ArithmeticError):
        raise SettingsError(
            f"{field}: {shown(value)} is not valid for type {kind[:LONGEST]}. Choose {valid}."
        ) from None


def _reader(kind: str) -> tuple[str, Callable[[Any], Value]]:
    """Describe the values of a type, and return a reader that raises ValueError or ArithmeticError."""
    if kind in _BITS:
        most = 2 ** (_BITS[kind] - 1) - 1
        return f"an integer from {-most - 1} to {most}", lambda value: _integer(value, most)
    if kind in ("float", "double"):
        return "a finite number", _number
    if kind.startswith("decimal("):
        precision, scale = map(int, re.findall(r"\d+", kind))
        valid = f"a number with at most {precision - scale} digits before the decimal point and {scale} after"
        return valid, lambda value: _decimal(value, precision, scale)
    if kind == "boolean":
        return "true or false", lambda value: _of(value, bool)
    if kind == "date":
        return "a day such as 2026-01-31", lambda value: date.fromisoformat(_of(value, str)).isoformat()
    if kind in ("timestamp", "timestamp_ntz"):
        has_zone = kind == "timestamp"
        zone = "in UTC, or with an offset such as +01:00" if has_zone else "without a time zone"
        return f"a time such as 2026-01-31 23:59:59, {zone}", lambda value: _time(value, has_zone=has_zone)
    if kind == "string" or kind.startswith("string collate "):
        return "a text; in YAML, put quotes around a text that looks like a number", _text
    return _NULL, _none


def _of(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise ValueError(kinds)
    return value


def _none(value: Any) -> Value:
    raise ValueError(value)


def _text(value: Any) -> str:
    _of(value, str).encode()  # half a character raises
    return str(value)


def _integer(value: Any, most: int) -> int:
    if not -most <= _of(value, int) + 1 <= most + 1:
        raise ValueError(value)
    return int(value)


def _number(value: Any) -> float:
    number = float(_of(value, float, int)) + 0.0  # one zero, without a sign
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _decimal(value: Any, precision: int, scale: int) -> str:
    number = Decimal(str(_of(value, float, int, str)))
    exact = number.quantize(Decimal(1).scaleb(-scale), context=Context(prec=precision))
    if exact != number:
        raise ValueError(value)
    return format(exact or abs(exact), "f")


def _time(value: Any, *, has_zone: bool) -> str:
    """Return the one spelling of a time: in UTC, or unchanged where the column has no zone."""
    parts = _TIME.fullmatch(_of(value, str))
    if parts is None or (parts[5] and not has_zone):
        raise ValueError(value)
    offset = parts[5] if parts[5] and parts[5] not in ("Z", "UTC") else "+00:00"
    seconds = f"{parts[3] or '00'}.{(parts[4] or '').ljust(6, '0')}"
    time = datetime.fromisoformat(f"{parts[1]}T{parts[2] or '00:00'}:{seconds}{offset}").astimezone(
        timezone.utc
    )
    return time.isoformat() if has_zone else time.replace(tzinfo=None).isoformat()


def reads_hidden(condition: Condition | None, texts: Sequence[str], others: Sequence[str] | None) -> bool:
    """Check whether a condition reads a column that is sanitized or left out. Without a schema, names decide.

    Args:
        condition: of the input.
        texts: the text columns, as settings name them.
        others: the columns that go along; None for all.
    """
    hidden = {root for name in texts for root in _roots(name)}
    along = None if others is None else {_roots(name)[0] for name in others}
    return any(
        hidden.intersection(roots) or (along is not None and not along.intersection(roots))
        for roots in map(_roots, condition or ())
    )


def _roots(name: str) -> tuple[str, str]:
    """Return the possible columns of a name in lower case: that of the whole name, and the first part of its path."""
    parts = parts_of(name) or (name,)
    return (parts[0] if len(parts) == 1 else name).lower(), parts[0].lower()
