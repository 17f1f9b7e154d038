"""How a new target lies on disk: its partitions, and the mapping that lets column names hold spaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T

from dptext_spark.model.tables.target_checks import UNUSUAL
from dptext_spark.spark.tables.paths import quoted

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
        return cls(tuple(partition_by), any(UNUSUAL & set(name) for name in _names(schema)))

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
