"""`privatize`: a DataFrame in, a DataFrame out, lazily; for notebooks and the user's own pipelines."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence

from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from dptext_spark.config.load import parse_model_config
from dptext_spark.errors import SettingsError
from dptext_spark.importance.budget import check_whole_records
from dptext_spark.importance.levels import check_record_key
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.table_checks import RESULT, check_texts, check_weights
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import silent
from dptext_spark.spark.column_function import UdfSpec, applied, identify_rows, replaced
from dptext_spark.spark.nested_columns import paths_of, require_columns, schema_of
from dptext_spark.spark.run_lists import NO_LISTS, hash_lists, resolve_columns
from dptext_spark.spark.secrets import key_given
from dptext_spark.spark.session import context_of
from dptext_spark.spark.ship import check_complete, shipped_model
from dptext_spark.spark.spark_errors import CLIENT_LOGGER, suppress_sensitive_logs


def privatize(
    df: DataFrame,
    columns: Sequence[str],
    model: Privatizer,
    *,
    row_key: str | None = None,
    record_key: str | None = None,
    key: RunKey | None = None,
    run_id: str | None = None,
    udf: str = "auto",
    weights: Sequence[str] = (),
    mask: Sequence[Mapping[str, str]] = (),
    keep: Sequence[Mapping[str, str]] = (),
) -> DataFrame:
    """Return `df` with its other columns in clear and its text columns sanitized; nothing runs until Spark is asked for rows.

    All other columns stay as they are: select those that may be seen before you share the frame. (A run leaves out what its
    settings do not name.) Each evaluation of the frame draws the same noise. `row_key` must be unique; this is not checked here.

    Args:
        df: any frame.
        columns: the text columns; text in nested ones by a path with dots, such as `meta.note` or `comments.text`.
        model: the compiled model.
        row_key: a unique column; may be left out only where every row knows its file and place (Parquet).
        record_key: the scope of record-level consistency; by default the row.
        key: the run key; None takes 32 bytes of the operating system. A key with `deliver="executors"`, as by `RunKey.from_file`,
            does not travel: each worker reads it.
        run_id: input of token-level draws; None makes one.
        udf: `auto`, `arrow` or `pandas`.
        weights: of a privatizer with importance from the user: for each text column a column with a number for each word. They
            are not in the frame that is returned.
        mask: lists of names, words and phrases that become `[NAME]`, whatever the lexicon holds, as `policy.mask` of the
            settings names them: `{"file": ...}`, `{"table": ..., "column": ...}`, or `{"column": ...}` of the frame. Files and
            tables are read now. With `"kind": "person"` or `"location"`, and `"replace": "pseudonym"`, keyed names of that kind
            take their place.
        keep: lists of words and phrases that are released unchanged, likewise.

    Raises:
        SettingsError: no stable identity of the rows (`row_key` is the cure), or no columns; a variable of the workers that is
            a Spark setting; records of several rows whose words importance would choose; a list that is named wrongly; a provider
            of the model that fails on texts of our own.
        DataError: a column is missing or no text, or holds no lists of weights; a list that cannot be read, or cannot be one.

    Examples:
        >>> key = dp.RunKey.generate()
        >>> sanitized = dps.privatize(df, ["body"], model, row_key="id", key=key)
        >>> sanitized.collect() == sanitized.collect()  # each evaluation draws the same noise
        True
    """
    require_columns(columns)
    selector = model.selector
    own = selector is not None and selector.reads_weights
    if isinstance(weights, str) or len(weights) != (len(columns) if own else 0):
        raise SettingsError(
            f"weights: {weights!r} is not valid. Give one column for each text column with importance "
            "provider `column`, else no weights."
        )
    if selector is not None:
        if selector.whole_records:
            check_whole_records(row_key, record_key)
        check_record_key(model.consistency, row_key, record_key)
    check_complete(model)
    key = key_given(df.sparkSession, key)
    for provider in model.imported:
        provider.try_out()
    sources = parse_model_config({"policy": {"mask": list(mask), "keep": list(keep)}}).lists
    run_id = run_id or secrets.token_hex(8)
    _keep_plans_out_of_logs(df.sparkSession)
    with suppress_sensitive_logs(df.sparkSession):
        check_texts(schema_of(df.schema), columns)
        check_weights(schema_of(df.schema), weights)
        paths = paths_of(df.schema, columns)
        identity = identify_rows(df, row_key, record_key, ordinal=False)
        sources = resolve_columns(df, sources)
        lists = hash_lists(df.sparkSession, sources, model, silent)
        job = UdfSpec(
            columns=tuple(path.name for path in paths),
            shipped=shipped_model(df.sparkSession, model),
            key=key.delivered(),
            run_id=run_id,
            has_row_id=True,
            has_record_id=identity.record is not None,
            weights=tuple(weights),
            names=NO_LISTS if lists is None else lists.shipped(df.sparkSession),
        )
        left = {name.lower() for name in weights}
        remaining = [name for name in df.columns if name.lower() not in left]
        return replaced(applied(df, job, udf, identity.row, identity.record), job, remaining)


def _keep_plans_out_of_logs(spark: SparkSession) -> None:
    """Let the client of Spark Connect log no request that holds our function, from now on.

    A frame is sent when its user asks for rows, long after we made it. At DEBUG the client then logs the whole request, the
    function's closure in it. Other requests are logged as before.
    """
    if context_of(spark) is None:
        PySparkLogger.getLogger(CLIENT_LOGGER).addFilter(
            _holds_no_function
        )  # the same filter is added once only


def _holds_no_function(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    return RESULT not in message and "compressed_operation" not in message
