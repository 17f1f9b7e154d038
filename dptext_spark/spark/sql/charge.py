"""What a registration costs: an entry of the ledger for the input that it names, charged before the function exists."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from dptext_spark.config.sections import Input, Ledger, Section
from dptext_spark.config.values import as_settings_error, check_left
from dptext_spark.errors import DataError, DPTextError, RunError
from dptext_spark.ledger.balance import Balance
from dptext_spark.ledger.entry import ALL, METRIC, SPENT, Entry
from dptext_spark.model.artifact import Manifest
from dptext_spark.model.privatizer import ENGINE_VERSION, Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.validation import Json
from dptext_spark.spark.errors import reduced
from dptext_spark.spark.job.entries import appended, check_ledger_writable, check_single_ledger, ledger_of
from dptext_spark.spark.job.ledger import Request, entry_of, granted, settle, void_if_it_fails
from dptext_spark.spark.job.releases import ReleaseSpec, Source, metric_of_model, source_at
from dptext_spark.spark.tables.paths import paths_of
from dptext_spark.spark.tables.tables import read_input
from dptext_spark.spark.udf.column import key_column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ChargeSettings(Section):
    """Where a registration is counted, and for what: two sections of the settings."""

    input: Input
    ledger: Ledger

    @classmethod
    def of(cls, ledger: str | Mapping[str, str | float] | None, source: Mapping[str, str]) -> ChargeSettings:
        """Read what the caller gave.

        Raises:
            SettingsError: a field that is not one of these sections.
        """
        given = {"path": ledger} if isinstance(ledger, str) else dict(ledger or {})
        check_left({"ledger": given})
        try:
            return cls.model_validate({"input": dict(source), "ledger": given})
        except ValidationError as error:
            raise as_settings_error(error, cls) from None


@dataclass(frozen=True, eq=False)
class RegistrationSpec:
    """What a registration asks for.

    Attributes:
        name: of the function.
        model: that draws.
        column: the text column, in its one spelling.
        run_id: that token-level draws are for.
        key: the run key.
        row_key: the column that the identity is, where it is the row's.
        record_key: the same, where it is the record's.
    """

    name: str
    model: Privatizer
    column: str
    run_id: str
    key: RunKey
    row_key: str | None
    record_key: str | None

    @property
    def output(self) -> str:
        """What stands in the ledger in the place of a target."""
        return f"function {self.name}"

    @property
    def release_spec(self) -> ReleaseSpec:
        """What the draws hang on; the same as of a run over this column alone."""
        by_record = self.model.consistency == "record" and self.record_key is not None
        identity = ("record_key", self.record_key) if by_record else ("row_key", self.row_key)
        chosen_in = () if self.model.selector is None else (self.column,)
        return ReleaseSpec(self.model, self.column, self.run_id, identity, chosen_in)

    def entry(self, charge: ChargeSettings, source: Source) -> Entry:
        """Return what is written into the ledger; what its longest record costs is not known."""
        guarantee, attempt = self.model.guarantee(), secrets.token_hex(8)
        return entry_of(
            source,
            guarantee,
            entry=f"{attempt}.0",
            attempt=attempt,
            run_id=self.run_id,
            column=self.column,
            record_key=self.record_key or self.row_key or "row",
            consistency=self.model.consistency,
            mechanism=_mechanism_json(self.model),
            metric=metric_of_model(guarantee, self.model) if guarantee.kind == METRIC else None,
            holds=guarantee.status != "refuted" and not self.key.is_insecure,
            records=ALL,
            release=self.release_spec.release(self.key, charge.input, source),
            output=self.output,
        )


def _mechanism_json(model: Privatizer) -> str:
    """Return what draws, as JSON: a compiled model does not say which settings it was made from, so by its fingerprint."""
    described = Manifest.of_privatizer(model)
    made: dict[str, Json] = {"sampler": described.sampler.sampler, "model": model.fingerprint}
    if described.importance is not None:
        made["importance"] = described.importance.selection.as_dict()
    if described.budget is not None:
        made["budget"] = described.budget.budget.as_dict()
    return json.dumps({**made, "engine": ENGINE_VERSION}, ensure_ascii=False)


def checked_source(spark: SparkSession, spec: RegistrationSpec, charge: ChargeSettings) -> Source:
    """Find the input that a registration is charged for; its schema is looked at, no row of it.

    Raises:
        DataError: it cannot be read, or lacks one of the columns that are named; the text is no text, or one of a list.
        SettingsError: an identity of a type that identifies nothing.
    """
    df, version = read_input(spark, charge.input, [spec.column])
    (path,) = paths_of(df.schema, [spec.column])
    if path.name != spec.column:
        raise DataError(
            f"column: {spec.column!r} given, but the input spells it {path.name!r}, and token-level draws hang on that; valid: "
            f"{path.name!r}."
        )
    if path.over:
        raise DataError(
            f"column: {spec.column!r} holds several texts a row; valid: a column with one, or dps.privatize and `dptext run`, "
            "which draw those of lists, too."
        )
    for field, name in (("row_key", spec.row_key), ("record_key", spec.record_key)):
        if name is not None:
            if name not in df.columns:
                raise DataError(
                    f"{field}: {name!r} is not in the input; columns there: {', '.join(df.columns)}."
                )
            key_column(df, name, field)
    return source_at(spark, charge.input, df, version, spec.run_id, None)


@contextmanager
def charged(spark: SparkSession, spec: RegistrationSpec, charge: ChargeSettings) -> Iterator[Balance]:
    """Charge a registration before what follows, which makes the function: spent where that succeeds, else void.

    Raises:
        RunError: the limit would be passed, or the ledger cannot be written; nothing was charged.
        DataError: what is there is no ledger, or a damaged one.
    """
    path = ledger_of(spark, charge.input, charge.ledger)
    check_ledger_writable(spark, charge.input, path)
    try:
        source = checked_source(spark, spec, charge)
        check_single_ledger(spark, charge.input, charge.ledger, source.place, source.table_id)
        entry = spec.entry(charge, source)
        told_apart = spec.model.consistency == "dataset" or bool(spec.row_key or spec.record_key)
        request = Request(
            [entry], [entry], charge.ledger, charge.ledger.override, told_apart, whose="this registration"
        )
        reservation = appended(spark, path, lambda book: granted(spark, path, book, request))
    except DPTextError:
        raise
    except Exception as error:
        raise RunError(
            f"ledger: {path!r} cannot be written, and nothing is registered without it. {reduced(error, [spec.column])}"
        ) from None
    with void_if_it_fails(reservation, "the function was not registered"):
        yield reservation.balance
    settle(reservation, SPENT, "charged when the function was registered")
