"""The tables that a run writes beside its target; the only place where their columns stand."""

from __future__ import annotations

from pyspark.sql import types as T

_S, _L, _D = T.StringType(), T.LongType(), T.DoubleType()


def _table(*fields: tuple[str, T.DataType, str]) -> T.StructType:
    return T.StructType([T.StructField(name, kind, True, {"comment": said}) for name, kind, said in fields])


RUNS = _table(
    ("run_id", _S, "of the run; of a micro-batch STREAM.NUMBER"),
    ("status", _S, "started, succeeded, failed, mismatch (counts or consistency disagree) or recovered"),
    ("started_at", T.TimestampType(), "UTC"),
    ("config", _S, "the settings, JSON; no secrets"),
    ("guarantee", _S, "JSON"),
    ("certificate", _S, "JSON, of the model; NULL where none was made"),
    ("disclosure", _S, "the statement, JSON"),
    ("key_commitment", _S, "binds the run to its key and tells nothing of it"),
    ("key_kind", _S, "os, file, env, secret, given or insecure"),
    ("artifact", _S, "fingerprint of the compiled model"),
    ("input", _S, "path or name"),
    ("input_version", _S, "delta:N, files:digest, or of a micro-batch delta:FROM..TO"),
    ("identity", _S, "what identifies a row: row_key, file_row or ordinal and the layout"),
    ("output", _S, "path or name"),
    ("output_version", _L, "the commit of this run"),
    ("second_release", T.BooleanType(), "an unfinished run's records were released again with another key"),
    ("rows", _L, "written"),
    ("seconds", _D, "wall time"),
    ("tokens_per_second", _D, "words of the input over wall time of the write"),
    ("versions", _S, "of this package, Spark, Delta and Python, JSON"),
)

METRICS = _table(
    ("run_id", _S, "of the run"),
    ("column", _S, "text column; NULL for the whole run"),
    ("metric", _S, "name"),
    ("value", _D, "depends on the private text: restricted"),
)

PUBLISHED = _table(
    ("run_id", _S, "of the run"),
    ("metric", _S, "name; what it counts stands in the report"),
    ("value", _L, "the count with discrete Laplace noise; may be below 0"),
    ("epsilon", _D, "what it cost a record of at most most_words words"),
    ("most_words", _L, "words of a record up to which epsilon holds: the sensitivity"),
    ("accuracy", _D, "95 % of such figures are no farther from the true count"),
    ("at", _S, "when, UTC"),
)
