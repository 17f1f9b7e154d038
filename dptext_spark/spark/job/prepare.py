"""Check a run and prepare its model: everything that can be refused is refused here, before the first byte is written."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from dptext_spark.config.model import RunConfig
from dptext_spark.disclosure.statement import check_measurable
from dptext_spark.model.artifact import certificate_of
from dptext_spark.model.code_ahead import wait_for_model
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import providers_of
from dptext_spark.model.tables.table_checks import check_input
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.jit import compilations
from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.job.beside import reading
from dptext_spark.spark.job.checks import (
    KeyColumn,
    check_keys,
    check_output,
    check_partitions_of,
    check_places,
    detail_of_input,
    place_of,
)
from dptext_spark.spark.job.entries import check_ledger_writable, entries_of, ledger_of
from dptext_spark.spark.job.frequencies import with_document_frequencies
from dptext_spark.spark.job.lists import compile_lists, resolve_columns
from dptext_spark.spark.job.plan import RunPlan
from dptext_spark.spark.job.providers import require_in_workers
from dptext_spark.spark.secrets import key_of
from dptext_spark.spark.tables.identity import identify_rows
from dptext_spark.spark.tables.paths import schema_of
from dptext_spark.spark.tables.tables import (
    DeltaDetail,
    checked_records,
    history,
    read_input,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def prepare_run(spark: SparkSession, config: RunConfig, key: RunKey | None, say: Steps) -> RunPlan:
    """Check the settings against the input and the target, and prepare the model.

    Raises:
        SettingsError, DataError, RunError: nothing was written.
    """
    require_in_workers(spark, providers_of(config.policy, tried=True), say)
    place = place_of(config, ledger_of(spark, config.input, config.ledger))
    check_ledger_writable(spark, config.input, place.ledger)
    say("reading the input's schema")
    columns = list(config.columns)
    df, input_version = read_input(spark, config.input, columns)
    schema = schema_of(df.schema)
    fit = check_input(schema, config)
    identity = identify_rows(df, config.row_key, config.record_key, ordinal=True)
    # Neither the target nor the model has to do with what is counted in the input. Nor has the ledger: what Delta needs of its
    # log is read meanwhile, and a reservation decides on what is there then.
    with (
        reading(spark, lambda: _counted(spark, df, config)) as counted,
        reading(spark, lambda: entries_of(spark, place.ledger)),
    ):
        check_partitions_of(spark, config, place, schema, fit)
        key = key_of(spark, config.key, key)
        # The log of the target is read beside that of the input.
        with reading(spark, lambda: history(spark, place.target)) as commits:
            detail = _detail(spark, config)
        check_output(
            spark, config, place, df, list(fit.kept), commits(), persistent=key.kind != "os", dropped=fit.dropped,
            source=detail,
        )  # fmt: skip
        check_places(spark, config)
        say("preparing the model")
        wait_for_model(config)
        privatizer, folder = prepare(config, lambda step, _: say(step))
        guarantee = privatizer.guarantee(of_rows=True)
        check_measurable(config.require, guarantee, bounded=config.budget is not None)
        if privatizer.chooses:
            privatizer.warm_up()
        if config.row_key and not config.is_stream:
            say("checking that row_key is unique (one pass over the key)")
        rows, corrupt = counted()
    plan = RunPlan(
        spark=spark,
        config=config,
        run_id=config.run.id or f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}",
        key=key,
        key_kind="insecure" if key.is_insecure else key.kind,
        privatizer=privatizer,
        folder=str(folder),
        df=df,
        input_version=input_version,
        corrupt=corrupt,
        identity=identity,
        place=place,
        kept=list(fit.kept),
        compiled=compilations(),
        certificate=certificate_of(folder),
        dropped=fit.dropped,
        rows=rows,
        detail=detail,
    )
    return with_lists(with_document_frequencies(plan, say), say)


def _detail(spark: SparkSession, config: RunConfig) -> DeltaDetail | None:
    """Look at the input's table once for the whole run; None for files of other formats and for views."""
    source = config.input
    if not source.table and source.format != "delta":
        return None
    return detail_of_input(spark, source)


def _counted(spark: SparkSession, df: DataFrame, config: RunConfig) -> tuple[int | None, int | None]:
    """Check the records and the keys; return (rows, records that do not fit and are accepted).

    Rows are counted where a key is checked. Else they are None, or 0 where there are none; of a stream they are None.

    Raises:
        DataError: records that do not fit; a key that is NULL, or not unique.
    """
    corrupt = checked_records(spark, config.input, df)
    keys = [KeyColumn(config.row_key, "row_key", unique=True)] if config.row_key else []
    keys += [KeyColumn(config.record_key, "record_key", unique=False)] if config.record_key else []
    if config.is_stream:
        rows = None
    elif keys:
        rows = check_keys(df, keys)
    else:
        rows = 0 if df.isEmpty() else None
    return rows, corrupt


def with_lists(plan: RunPlan, say: Steps) -> RunPlan:
    """Return the plan with the lists of names as they are now, read and compiled where they have changed."""
    sources = resolve_columns(plan.df, plan.config.lists)
    scope = plan.run_id if plan.stream is None else plan.stream.stream
    lists = compile_lists(plan.spark, sources, plan.privatizer, plan.key, scope, say, plan.lists)
    return replace(plan, lists=lists)
