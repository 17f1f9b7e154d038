"""`input.where` on a frame: Spark gets what was checked, and what it makes of that is looked at, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dptext_spark.config.condition import Condition, of_now, parsed
from dptext_spark.errors import SettingsError

# Where the expressions of Spark's own functions are, and those of a platform that rebuilds them.
_BUILT_IN = ("org.apache.spark.sql.catalyst.expressions.", "com.databricks.")
_NOT_BUILT_IN = ("UDF", "UserDefined", "Reflection", "ApplyFunctionExpression", "ScalaAggregator")
_SUBQUERY = ("Subquery", "ListQuery", "Exists")


def selected(df: DataFrame, where: str | None) -> DataFrame:
    """Return the rows of a frame that a condition chooses; all without one.

    Args:
        df: the frame.
        where: the condition as it was given.

    Raises:
        SettingsError: it may not stand there, Spark does not accept it, or Spark makes something else of it than what was
            checked.
    """
    if where is None:
        return df
    condition = parsed(where)
    text = condition.sql(df.columns)
    try:
        found = df.where(F.expr(text))
        found.schema  # noqa: B018  (makes Spark resolve the condition now)
    except PySparkException as error:
        raise SettingsError(
            f"input.where: Spark does not accept the predicate ({error.getCondition()}); columns: {', '.join(df.columns)}."
        ) from None
    if hasattr(found, "_jdf"):
        _check_plan(found, set(condition.roots(df.columns)))
    else:
        _check_functions(df, condition)
    return found


def depends_on_zone(condition: Condition, schema: T.StructType) -> bool:
    """Whether a condition may choose other rows in another time zone: it reads or makes times."""
    roots = condition.roots(schema.fieldNames())
    return condition.tells_time or any(_holds_time(schema[name].dataType) for name in roots)


def _holds_time(kind: T.DataType) -> bool:
    # Also without a zone: compared with a date or a text, it goes by the session's.
    return "timestamp" in kind.simpleString() or "date" in kind.simpleString()


def _check_plan(df: DataFrame, wanted: set[str]) -> None:
    """Look at what Spark made of a condition: the names that were checked may mean something else in this session.

    Raises:
        SettingsError: it is not deterministic, holds a subquery or a function of a user, reads other columns than it names, or
            takes a text without a date for a time of today.
    """
    plan: Any = df._jdf.queryExecution().analyzed()
    while plan.getClass().getSimpleName() != "Filter":
        if plan.children().size() != 1:
            raise SettingsError(
                "input.where: Spark makes something else than a filter of it; valid: another condition."
            )
        plan = plan.children().apply(0)
    condition = plan.condition()
    for node in _nodes(condition):
        name = str(node.getClass().getName())
        short = name.rpartition(".")[2]
        if any(part in short for part in _SUBQUERY):
            raise SettingsError(
                "input.where: a subquery given; valid: a condition on the columns of each row."
            )
        if not name.startswith(_BUILT_IN) or any(part in short for part in _NOT_BUILT_IN):
            raise _not_built_in()
        if short == "Cast":
            _check_cast(node)
    if not condition.deterministic():
        raise SettingsError(
            "input.where: it can choose other rows the next time; valid: a condition that cannot."
        )
    references = condition.references().toSeq()
    read = {str(references.apply(number).name()) for number in range(references.size())}
    if read != wanted:
        raise SettingsError(
            "input.where: Spark reads other columns than it names; valid: names of top-level columns."
        )


def _not_built_in() -> SettingsError:
    return SettingsError(
        "input.where: a function of this session has the name of one of Spark's; valid: Spark's own functions. Take the other "
        "one out of the session."
    )


def _nodes(expression: Any) -> Iterator[Any]:
    yield expression
    children = expression.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))


def _check_cast(node: Any) -> None:
    """Refuse to take texts for timestamps, where one without a date would be one of today; a constant must have a date."""
    there, child = str(node.dataType().typeName()), node.child()
    if not there.startswith(("timestamp", "date")) or str(child.dataType().typeName()) != "string":
        return
    if child.foldable():
        value = child.eval(None)
        wrong = value is not None and of_now(str(value.toString()))
    else:
        wrong = there != "date"
    if wrong:
        raise SettingsError(
            "input.where: a text is taken for a timestamp, and one without a date would be one of today; valid: "
            "to_timestamp(x, 'yyyy-MM-dd HH:mm:ss') of a text."
        )


def _check_functions(df: DataFrame, condition: Condition) -> None:
    """Ask a server what its session takes the functions for, since it does not show its plan.

    Raises:
        SettingsError: one is not Spark's own.
    """
    for name in sorted(condition.functions):
        rows = [str(row[0]) for row in df.sparkSession.sql(f"DESCRIBE FUNCTION {name}").collect()]
        if not any(row.startswith(tuple(f"Class: {package}" for package in _BUILT_IN)) for row in rows):
            raise _not_built_in()
