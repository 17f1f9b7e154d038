"""A validated run before its first byte is written: everything that can be refused is refused here."""

from __future__ import annotations

import json
import platform
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from dptext_spark.artifact import certificate_of
from dptext_spark.audit.released import filters_on_text
from dptext_spark.compiled import compilations
from dptext_spark.config import RunConfig
from dptext_spark.draws import RunKey
from dptext_spark.errors import DataError
from dptext_spark.models import prepare
from dptext_spark.privatizer import Privatizer
from dptext_spark.spark import runs
from dptext_spark.spark.checks import Place, check_output, place_of
from dptext_spark.spark.column import Job
from dptext_spark.spark.identity import Identity, identify_rows
from dptext_spark.spark.ship import Shipped
from dptext_spark.spark.tables import check_key, check_text_columns, corrupt_records, read_input
from dptext_spark.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, eq=False)
class Setup:
    """A validated run before its first byte is written."""

    spark: SparkSession
    config: RunConfig
    run_id: str
    key: RunKey
    key_kind: str
    privatizer: Privatizer
    folder: str
    df: DataFrame
    input_version: str
    corrupt: int | None
    identity: Identity
    place: Place
    kept: list[str]
    compiled: int
    certificate: dict[str, Any] | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The text columns."""
        return tuple(self.config.columns)

    def job(self, shipped: Shipped) -> Job:
        """Return what the workers need to know."""
        return Job(
            columns=self.columns,
            shipped=shipped,
            key=self.key,
            run_id=self.run_id,
            has_row_id=self.identity.row is not None,
            has_record_id=self.identity.record is not None,
        )

    def record(self, status: str, started: float) -> dict[str, Any]:
        """Return the row of `runs` that binds the run."""
        # How a run is run, what it may spend and where that is counted may change before it finishes.
        bound = {**self.config.as_dict(), "run": None, "key": None, "ledger": None}
        if filters_on_text(bound):
            # The row is for sharing, and such a condition may hold private words: it is bound by the key.
            hidden = self.key.commitment(f"where {self.run_id} {self.config.input.where}")
            bound["input"] = {**bound["input"], "where": f"(hidden: it names a text column; {hidden[:32]})"}
        return {
            "run_id": self.run_id,
            "status": status,
            "started_at": runs.utc(started),
            "config": json.dumps(bound, sort_keys=True),
            "guarantee": json.dumps(self.privatizer.guarantee().as_dict()),
            "certificate": None if self.certificate is None else json.dumps(self.certificate),
            "key_commitment": self.key.commitment(self.run_id),
            "key_kind": self.key_kind,
            "artifact": self.privatizer.fingerprint,
            "input": str(self.config.input.table or self.config.input.path),
            "input_version": self.input_version,
            "identity": self.identity.kind,
            "output": str(self.place.target),
            "versions": json.dumps(versions()),
            "second_release": False,
        }


def validated(
    spark: SparkSession, config: RunConfig, key: RunKey | None, say: Callable[[str], None]
) -> Setup:
    """Check the settings against the input and the target, and prepare the model.

    Raises:
        SettingsError, DataError, RunError: nothing was written.
    """
    say("reading the input's schema")
    columns = list(config.columns)
    df, input_version = read_input(spark, config.input, columns)
    check_text_columns(df, columns)
    identity = identify_rows(df, config.row_key, config.record_key, ordinal=True)
    place = place_of(config)
    kept = _kept_columns(df, config)
    key_kind = "given" if key is not None else ("file" if config.key.file else "os")
    key = key or (RunKey.from_file(config.key.file) if config.key.file else RunKey.generate())
    check_output(spark, config, place, df, kept, persistent=key_kind != "os")
    say("preparing the model")
    privatizer, folder = prepare(config, lambda step, share: say(step))
    privatizer.warm_up()
    if config.row_key:
        say("checking that row_key is unique (one pass over the key)")
        check_key(df, config.row_key, "row_key", unique=True)
    if config.record_key:
        check_key(df, config.record_key, "record_key", unique=False)
    return Setup(
        spark=spark,
        config=config,
        run_id=config.run.id or f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}",
        key=key,
        key_kind="insecure" if key.is_insecure else key_kind,
        privatizer=privatizer,
        folder=str(folder),
        df=df,
        input_version=input_version,
        corrupt=corrupt_records(spark, config.input, df),
        identity=identity,
        place=place,
        kept=kept,
        compiled=compilations(),
        certificate=certificate_of(folder),
    )


def _kept_columns(df: DataFrame, config: RunConfig) -> list[str]:
    """Return the columns of the target, in the order of the input."""
    other = config.output.other_columns
    if other == "keep":
        return list(df.columns)
    named = set(config.columns) | (set(other) if other != "drop" else set())
    missing = [name for name in named if name not in df.columns]
    if missing:
        raise DataError(
            f"output.other_columns: {missing[0]!r} is not in the input; columns there: {', '.join(df.columns)}."
        )
    return [name for name in df.columns if name in named]


def versions() -> dict[str, str]:
    """Return the versions that a run worked with."""
    return {
        "dptext_spark": __version__,
        "pyspark": installed("pyspark"),
        "delta-spark": installed("delta-spark"),
        "python": platform.python_version(),
    }
