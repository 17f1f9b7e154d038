"""Private text for a report that is marked as holding it: some records before and after."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.spark.tables.paths import paths_of, quoted
from dptext_spark.spark.tables.tables import Target, opened, read_input

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = 3
LONGEST = 600  # characters of an example


def pairs(spark: SparkSession, config: RunConfig | None, row: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield `column`, `before` and `after` of the first records by row key, as the run read and wrote them.

    Args:
        spark: the session.
        config: the settings of the run.
        row: of `runs`.

    Raises:
        SettingsError: no settings, none with a row key, or those of another run.
        DataError: the input has changed since.
    """
    if config is None or not config.row_key:
        raise SettingsError(
            "with_examples: needs --config with the row_key of the run: source and target are joined by it."
        )
    made_from = json.loads(row["config"])
    differ = [n for n in ("columns", "row_key", "output") if config.as_dict()[n] != made_from[n]]
    if differ:
        raise SettingsError(
            f"{differ[0]}: the settings of --config are not those of run {row['run_id']}; name the run's own."
        )
    source, version = read_input(spark, config.input, list(config.columns))
    if version != row["input_version"]:
        raise DataError(
            f"with_examples: the input is {version} now, and the run read {row['input_version']}; no pair can be shown."
        )
    target = Target(path=config.output.path or "", name=config.output.table or "")
    written = opened(spark, target, row["output_version"])
    sides = {"before": source, "after": written}
    texts = {
        side: [p.joined.alias(f"{side}_{i}") for i, p in enumerate(paths_of(frame.schema, config.columns))]
        for side, frame in sides.items()
    }
    key = quoted(config.row_key).alias("key")
    first = source.select(key, *texts["before"]).orderBy("key").limit(EXAMPLES)
    for pair in first.join(written.select(key, *texts["after"]), "key").orderBy("key").collect():
        for place, name in enumerate(config.columns):
            yield {"column": name, **{side: _short(pair[f"{side}_{place}"]) for side in sides}}


def _short(text: str | None) -> str:
    if text is None:
        return "NULL"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
