"""How a new target lies on disk: its partitions, and the mapping that lets column names hold spaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T

from dptext_spark.errors import DataError
from dptext_spark.spark.tables.paths import Path, quoted

# Delta takes these in a name only where files know a column by another one.
_UNUSUAL = set(" ,;{}()\n\t=")
_MAPPING = "delta.columnMapping.mode"


@dataclass(frozen=True)
class Layout:
    """What a table is made with; one that exists keeps its own.

    Attributes:
        partition_by: columns whose values are folders.
        mapped: names are mapped.
    """

    partition_by: tuple[str, ...]
    mapped: bool

    @classmethod
    def of(cls, schema: T.StructType, partition_by: Sequence[str]) -> Layout:
        """Return the layout for a schema."""
        return cls(tuple(partition_by), any(_UNUSUAL & set(name) for name in _names(schema)))

    def onto(self, writer: Any, new: bool) -> Any:
        """Put the layout of a table by path onto its `DataFrameWriter`."""
        if new and self.mapped:
            writer = writer.option(_MAPPING, "name")
        return writer.partitionBy(*self.partition_by) if self.partition_by else writer

    def of_new(self, creator: Any) -> Any:
        """Put the layout of a new table by name onto its `DataFrameWriterV2`."""
        if self.mapped:
            creator = creator.tableProperty(_MAPPING, "name")
        return creator.partitionedBy(*map(quoted, self.partition_by)) if self.partition_by else creator


def _names(kind: T.DataType) -> Iterator[str]:
    if isinstance(kind, T.StructType):
        for field in kind.fields:
            yield field.name
            yield from _names(field.dataType)
    elif isinstance(kind, T.ArrayType):
        yield from _names(kind.elementType)
    elif isinstance(kind, T.MapType):
        yield from _names(kind.keyType)
        yield from _names(kind.valueType)


def check_partitions(
    partition_by: Sequence[str],
    schema: T.StructType,
    kept: Sequence[str],
    paths: Sequence[Path],
    there: Sequence[str] | None,
) -> None:
    """Refuse partitions that cannot be made: folders are named by their values, so none may be of a text.

    Args:
        partition_by: the setting.
        schema: of the input.
        kept: the target's columns.
        paths: the texts.
        there: the partition columns of the target, None where there is no target yet.

    Raises:
        DataError: naming the column.
    """
    if not partition_by:
        return
    texts = {path.root for path in paths}
    valid = [
        name
        for name in kept
        if name not in texts
        and not isinstance(schema[name].dataType, T.StructType | T.ArrayType | T.MapType | T.BinaryType)
    ]
    for name in partition_by:
        if name not in valid:
            raise DataError(
                f"output.partition_by: {name!r} given; valid: columns of the target that are neither text to sanitize nor "
                f"nested nor binary: {', '.join(valid) or 'none'}."
            )
    if len(valid) and len(partition_by) == len(kept):
        raise DataError("output.partition_by: all columns given; valid: fewer than the target has.")
    if there is not None and list(there) != list(partition_by):
        raise DataError(
            f"output.partition_by: {list(partition_by)} given, and the target is partitioned by {list(there)}; valid: the "
            "target's own, or leave it out."
        )
