"""The sample that `start` and `preview` look at: without Spark where that reads the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dptext_spark.model.tables.table_files import TableSample


def sample_of(
    table: str,
    format: str | None,
    separator: str | None,
    header: bool | None,
    encoding: str | None,
    say: Callable[[str, float | None], None],
) -> TableSample:
    """Read a sample of a table, as it is written; see :mod:`dptext_spark.model.tables.table_way`."""
    from dptext_spark.errors import SettingsError
    from dptext_spark.model.tables.table_files import AsText
    from dptext_spark.model.tables.table_way import BySpark, sample_here

    as_text = AsText(separator, header, encoding)
    found = sample_here(table, format, as_text)
    if not isinstance(found, BySpark):
        return found
    from dptext_spark.spark.session.session import require_pyspark

    try:
        require_pyspark()
    except SettingsError as error:
        raise SettingsError(f"table: {table!r} is read by Spark, for {found.why}. {error}") from None
    say(f"reading a sample by Spark, for {found.why}", None)
    from dptext_spark.spark.table_sample import sample_by_spark

    return sample_by_spark(found, format, as_text)
