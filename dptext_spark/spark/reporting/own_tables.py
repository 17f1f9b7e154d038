"""The tables of a run as it read and wrote them, for what a report takes from both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dptext_spark.config.model import RunConfig
from dptext_spark.disclosure.facts import RunRecord
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.spark.auditing.two_tables import TwoTables
from dptext_spark.spark.tables.tables import Target, opened, read_input

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def own_tables(spark: SparkSession, config: RunConfig | None, record: RunRecord, option: str) -> TwoTables:
    """Open the source and the table of a run, at the versions that it read and wrote.

    Args:
        spark: the session.
        config: the settings of the run.
        record: of the run.
        option: what needs them, as messages call it.

    Raises:
        SettingsError: no settings, none with a row key, or those of another run.
        DataError: the input has changed since.
    """
    if config is None or not config.row_key:
        raise SettingsError(
            f"{option}: needs --config with the row_key of the run: source and target are joined by it."
        )
    made_from = record.settings.values
    differ = [n for n in OF_THE_RUN[option] if config.as_dict()[n] != made_from.get(n)]
    if differ:
        raise SettingsError(
            f"{differ[0]}: the settings of --config are not those of run {record.run_id}; name the run's own."
        )
    source, version = read_input(spark, config.input, list(config.columns))
    if version != record.input_version:
        what = "no pair can be shown" if option == "with_examples" else "names cannot be counted"
        raise DataError(
            f"{option}: the input is {version} now, and the run read {record.input_version}; {what}."
        )
    target = Target(path=config.output.path or "", name=config.output.table or "")
    table = opened(spark, target, record.output_version)
    return TwoTables(table, source, f"delta:{record.output_version}", version, None)


OF_THE_RUN = {
    "with_examples": ("columns", "row_key", "output"),
    # What a record is, which texts it has and how they are cut are those of the run's entries in the ledger.
    "publish": ("columns", "row_key", "record_key", "input", "output"),
}
