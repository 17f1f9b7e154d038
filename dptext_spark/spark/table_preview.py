"""`preview`: a few rows of a table before and after, for a notebook; nothing is written, and nothing is spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.model.first_look import THROWN_AWAY, draw_rows
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.report.rows import NOTE, RowComparison, compare_rows
from dptext_spark.runtime.display import line, side_by_side
from dptext_spark.spark.errors import reduced, suppress_sensitive_logs
from dptext_spark.spark.tables.paths import quoted

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 20


@dataclass(frozen=True, repr=False)
class TablePreview:
    """A few rows before and after one draw under a key that is thrown away. In a notebook they stand side by side.

    Attributes:
        columns: the rows of each text column, by its name.
        guarantee: of a drawn word.

    Examples:
        >>> shown = dps.preview(df, ["body"], model)
        >>> shown.columns["body"].before
        ('Please send the parcel.',)
    """

    columns: Mapping[str, RowComparison]
    guarantee: Guarantee

    def __repr__(self) -> str:
        """Return how many rows of how many columns it holds; they are private."""
        size, wide = len(next(iter(self.columns.values())).before), len(self.columns)
        rows = f"{size:,} {'row' if size == 1 else 'rows'}"
        return line(
            "TablePreview",
            rows,
            f"{wide:,} {'column' if wide == 1 else 'columns'}",
            "not shown",
            "key thrown away",
            "not for sharing",
        )

    def _repr_html_(self) -> str:
        """Return the rows side by side, and why nothing is spent, for a notebook."""
        by_column = [
            [
                (f"row {number}, {name}", *pair)
                for number, pair in enumerate(zip(one.before, one.after, strict=True), start=1)
            ]
            for name, one in self.columns.items()
        ]
        rows = list(chain.from_iterable(zip(*by_column, strict=True)))
        return side_by_side("Preview of rows", rows, note=f"{THROWN_AWAY} {NOTE} {self.guarantee}")


def preview(
    df: DataFrame | pd.DataFrame | pa.Table, columns: Sequence[str], model: Privatizer, *, rows: int = 5
) -> TablePreview:
    """Show a few rows before and after one draw, under a fresh key that is thrown away.

    Nothing is written, and nothing is spent of the ledger. That holds only while nobody shares what it shows: for whoever sees
    it, it is one more release of these rows. Each row is a record of its own here.

    Args:
        df: a Spark DataFrame, a pandas one, or an Arrow table; of Spark's the rows that come first, in no certain order. Their
            texts come to the driver, by Spark Connect to the client, and are drawn there.
        columns: the text columns; not those inside nested ones.
        model: the compiled model.
        rows: how many, 1 to 20.

    Raises:
        SettingsError: another number of rows, no columns, or a model whose importance needs weights or counts.
        DataError: a column is missing, is there twice or is no text; a text is no valid Unicode; what is given is no table.
        RunError: Spark cannot give the rows: named by Spark's own condition, without its message.

    Examples:
        >>> dps.preview(df, ["body"], model)
        TablePreview(1 row, 1 column, not shown, key thrown away, not for sharing)
    """
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST_ROWS:
        raise SettingsError(f"rows: {rows!r} given; valid: 1 to {MOST_ROWS}.")
    if isinstance(columns, str) or not columns:
        raise SettingsError("columns: a list with at least one text column is needed.")
    there = _names(df, list(columns))
    for name in columns:
        if there.count(name) != 1 or list(columns).count(name) != 1:
            raise DataError(
                f"columns: {name!r} is not once among them; columns there: {', '.join(map(str, there))}."
            )
    texts = {name: _text(name, values) for name, values in _first(df, list(columns), rows).items()}
    after = draw_rows(model, texts)
    return TablePreview(
        {name: compare_rows(texts[name], after[name]) for name in texts},
        model.guarantee(of_rows=True),
    )


@contextmanager
def _reduced(df: DataFrame, columns: list[str]) -> Iterator[None]:
    """Keep what Spark's errors and loggers say of a frame back. By Spark Connect even its names are asked for only now."""
    with suppress_sensitive_logs(df.sparkSession):
        try:
            yield
        except Exception as error:
            raise reduced(error, columns) from None


def _names(df: DataFrame | pd.DataFrame | pa.Table, columns: list[str]) -> list[str]:
    """Return the names of all columns that are there."""
    if isinstance(df, DataFrame):
        with _reduced(df, columns):
            return list(df.columns)
    return list(df.column_names if isinstance(df, pa.Table) else getattr(df, "columns", ()))


def _first(
    df: DataFrame | pd.DataFrame | pa.Table, columns: list[str], rows: int
) -> dict[str, pa.ChunkedArray]:
    """Return the first rows of some columns, by their names."""
    if isinstance(df, DataFrame):
        with _reduced(df, columns):
            found = df.select(*(quoted(name) for name in columns)).limit(rows).toArrow()
        return dict(zip(columns, found.columns, strict=True))
    if isinstance(df, pa.Table):
        return {name: df.column(name).slice(0, rows) for name in columns}
    try:
        return {name: pa.chunked_array([pa.array(df[name].head(rows), from_pandas=True)]) for name in columns}
    except (AttributeError, TypeError, ValueError):  # Arrow's own message would show the value
        raise DataError(
            f"columns {', '.join(columns)}: no column of texts in what was given; valid: text columns of a Spark DataFrame, a "
            "pandas one, or an Arrow table."
        ) from None


def _text(name: str, values: pa.ChunkedArray) -> pa.Array:
    """Return the texts of a column as one array, string or large_string."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise DataError(f"{name}: a column of type {values.type}; valid: a text column, at the top level.")
    # Together, so that a slice of a large table holds no more than its rows.
    return pa.concat_arrays([*values.cast(pa.large_string()).chunks, pa.array([], pa.large_string())])
