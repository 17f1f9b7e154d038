"""What the text of a written table is still good for, on Spark: rows are sampled and joined here, and measured by `audit.table`.

A keyed sample of whole records comes to the driver, for classifiers and the comparison of texts; it is written nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, functions

from dptext_spark.arrays import F32
from dptext_spark.audit.table.findings import Findings
from dptext_spark.audit.table.plan import AuditPlan
from dptext_spark.audit.table.utility import (
    MOST_CLASSES,
    Rows,
    attribute,
    encoder_similarity_to,
    labels,
    membership,
    named_by,
    require_labels,
    similarity,
)
from dptext_spark.audit.utility.learning import Both
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.compile import load_lexicon
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.auditing.pair_tables import Tallies, Wanted, limit_of
from dptext_spark.spark.auditing.two_tables import value_of
from dptext_spark.spark.job.beside import step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

F: Any = functions  # its stubs leave out what Spark adds at run time
Part = tuple[str, Callable[[], Findings]]


def check_classes(plan: AuditPlan, spark: SparkSession, source: DataFrame, say: Steps) -> None:
    """Refuse columns that are no labels, before anything else is read.

    Raises:
        DataError: another type, no value, one class, or too many.
    """
    for option, name in plan.values.items():
        value, n = F.col(option), F.col("count")
        of_values = source.select(value_of(source, name, option)).groupBy(option).count()
        with step(spark, say, f"counting the classes of the {option}", "a pass over the column"):
            row = of_values.agg(
                F.coalesce(F.sum(n), F.lit(0)),
                F.coalesce(F.sum(F.when(value.isNull(), n)), F.lit(0)),
                F.count_if(value.isNotNull()),
            ).first()
        assert row is not None  # an aggregate without groups has one row
        rows, missing, classes = (int(one) for one in row)
        require_labels(option, name, rows, missing, min(classes, MOST_CLASSES + 1))


def wanted_texts(plan: AuditPlan, rows: int) -> Wanted:
    """Return which texts the driver is to look at, of `rows` that are in both tables."""
    compares = plan.similarity or plan.encoder or plan.masked_model
    return Wanted(
        compared=limit_of(plan.sample / rows) if compares else 0,
        learnt=limit_of(plan.label_rows / rows) if plan.values else 0,
        values=tuple(plan.values),
    )


def use_of(plan: AuditPlan, privatizer: Privatizer, found: Tallies, say: Steps) -> Findings:
    """Measure what a plan asks for.

    Args:
        plan: with the label, the attribute and whether texts are compared.
        privatizer: whose engine cuts texts.
        found: with the texts that :func:`wanted_texts` names.
        say: progress callback, called with each step.
    """
    parts = [_compared(plan, privatizer, found, say)]
    if plan.values:
        parts.append(_parts(plan, _for_use(found, "learnt"), say))
    measured = Findings()
    for option, part in chain.from_iterable(parts):
        try:
            measured += part()
        except (DataError, SettingsError) as error:  # the other figures are worth their time
            measured += Findings(left_out=[f"{option}: {error}"])
    return measured


def _compared(plan: AuditPlan, privatizer: Privatizer, found: Tallies, say: Steps) -> Iterator[Part]:
    """Yield how texts of the sample are compared, each with a name for what is left out."""
    if not (plan.similarity or plan.encoder or plan.masked_model):
        return
    texts = _both(_for_use(found, "compared"))
    if plan.similarity:
        say("comparing the texts of a sample")
        yield "similarity", lambda: similarity(privatizer.engine, _vectors(plan, privatizer), texts)
    encoder, masked_model = plan.encoder, plan.masked_model
    if encoder is not None:
        say(f"comparing {len(texts.plain):,} texts by an encoder")
        yield "encoder", lambda: encoder_similarity_to(encoder, texts)
    if masked_model is not None:
        asked = partial(_tell, say)
        yield "masked_model", lambda: named_by(masked_model, privatizer.engine, texts, asked)


def _tell(say: Steps, done: int, whole: int) -> None:
    say(f"asking a masked language model for words ({100 * done / whole:.0f} %)")


def _parts(plan: AuditPlan, local: pa.Table, say: Steps) -> Iterator[Part]:
    """Yield what is to be learnt, each with a name for what is left out."""
    if plan.label is not None:
        column = f"column {plan.label!r}"
        labelled, test = _rows(local, "label"), np.asarray(local.column("test").to_numpy(), np.bool_)
        say("learning the labels")
        yield "label", lambda: labels(labelled, test, column)
        say("attacking what learns the labels")
        yield "membership", lambda: membership(labelled, column)
    if plan.attribute is not None:
        say("attacking the attribute")
        yield "attribute", lambda: attribute(_rows(local, "attribute"), f"column {plan.attribute!r}")


def _vectors(plan: AuditPlan, privatizer: Privatizer) -> F32 | None:
    """Return the vectors of the model's words, float32[V, d]; None where the settings' lexicon is gone, or has other words."""
    try:
        lexicon = load_lexicon(plan.model)
    except DataError:  # the artifact alone may have come here
        return None
    same = lexicon.vocabulary.strings().equals(privatizer.vocabulary.strings())
    return lexicon.vectors if same else None


def _for_use(found: Tallies, use: str) -> pa.Table:
    texts = found.texts
    return texts.filter(texts.column(use))


def _both(table: pa.Table) -> Both[Sequence[str]]:
    return Both(table.column("plain").to_pylist(), table.column("private").to_pylist())


def _rows(table: pa.Table, option: str) -> Rows:
    return Rows(_both(table), table.column("record").to_pylist(), table.column(option).to_pylist())
