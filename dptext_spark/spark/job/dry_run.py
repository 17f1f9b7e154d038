"""Whether a run would be refused, asked of Spark where files of this machine do not tell: the same rules, and no row is read."""

from __future__ import annotations

from dptext_spark.config.model import RunConfig
from dptext_spark.model.dry_run import (
    NEW,
    Checked,
    check_beside,
    only_the_run,
    reads_whole_files,
    slow_files,
    target_said,
)
from dptext_spark.model.tables.delta_log import only_created, our_commits
from dptext_spark.model.tables.table_checks import check_input
from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.errors import suppress_sensitive_logs
from dptext_spark.spark.job.checks import check_output, check_partitions_of, check_places, place_of
from dptext_spark.spark.job.entries import check_ledger_writable, ledger_of
from dptext_spark.spark.job.lists import read_lists
from dptext_spark.spark.session.session import spark_session
from dptext_spark.spark.tables.identity import identify_rows
from dptext_spark.spark.tables.paths import schema_of
from dptext_spark.spark.tables.tables import (
    check_same_columns,
    checked_records,
    history,
    read_input,
    sizes_of,
)


def check_by_spark(config: RunConfig, say: Steps) -> Checked:
    """Check a run by the session that it would have; nothing is written.

    No row is read but of JSON, whose types Spark takes from all records, and of CSV files that are not on this machine.

    Args:
        config: the settings.
        say: told each step.

    Raises:
        SettingsError, DataError, RunError: as the run would.
    """
    check_beside(config)
    say("starting Spark")
    spark = spark_session()
    with suppress_sensitive_logs(spark):
        check_ledger_writable(spark, config.input, ledger_of(spark, config.input, config.ledger), dry=True)
        say("reading the input's schema")
        df, version = read_input(spark, config.input, list(config.columns))
        schema = schema_of(df.schema)
        fit = check_input(schema, config)
        identify_rows(df, config.row_key, config.record_key, ordinal=True)
        if config.input.format == "json":
            checked_records(spark, config.input, df)
        check_same_columns(spark, config.input)
        place = place_of(config)
        check_partitions_of(spark, config, place, schema, fit)
        commits = history(spark, place.target)
        check_output(
            spark, config, place, df, list(fit.kept), commits, persistent=config.key.kind != "os",
            dropped=fit.dropped,
        )  # fmt: skip
        check_places(spark, config)
        if config.lists:
            say("reading the lists of names")
            read_lists(spark, config.lists)
        slow = slow_files(sizes_of(spark, config.input.path or "")) if reads_whole_files(config) else ""
    ours = len(our_commits(commits))
    there = target_said(config, ours, made=only_created(commits)) if commits else NEW
    read = f"the schema of {'the Delta table, ' + version if version.startswith('delta:') else 'its files'}"
    return Checked("Spark", read, schema.names, fit.kept, there, tuple(only_the_run(config, fit.paths)), slow)
