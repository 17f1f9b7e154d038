"""Audit a written table, ours or anyone's, against its source: what it keeps, whether it is consistent, how well it is attacked.

Rows are joined by their key; texts are paired in workers (:mod:`dptext_spark.spark.auditing.pair_tables`) and counts summed by
aggregates. Consistency and attacks look at a keyed sample of records.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.table.annotations import Annotations
from dptext_spark.audit.table.attack import attack_sample
from dptext_spark.audit.table.findings import Findings, TableAudit
from dptext_spark.audit.table.labelled import Labels
from dptext_spark.audit.table.metrics import (
    COUNTS,
    MEANING,
    KeptWords,
    listed_figures,
    row_figures,
    text_figures,
)
from dptext_spark.audit.table.plan import LABEL_ROWS, SAMPLE, AuditPlan, uncut
from dptext_spark.config.model import ModelConfig
from dptext_spark.errors import DataError, DPTextError
from dptext_spark.model.compile import prepare
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.progress import Steps, silent
from dptext_spark.spark.auditing.names import labelled_findings, shipped_lists, stayed_words
from dptext_spark.spark.auditing.pair_tables import COUNT_FIELDS, LEVELS, UNCUT, WHOLE, PairTables, Rows
from dptext_spark.spark.auditing.two_tables import opened, require_matching, require_the_model, sides
from dptext_spark.spark.auditing.utility import check_classes, use_of
from dptext_spark.spark.errors import reduced, suppress_sensitive_logs
from dptext_spark.spark.job import runs
from dptext_spark.spark.job.checks import check_key
from dptext_spark.spark.job.consistency import sample_of
from dptext_spark.spark.session.session import spark_session, watched
from dptext_spark.spark.udf.names import NO_NAMES, NamesFile, ShippedNames
from dptext_spark.spark.udf.ship import ship_for
from dptext_spark.text.names.name_table import compile_names, name_key
from dptext_spark.text.names.word_list import WordList

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX = "audit_"
NAMES_SCOPE = "audit of names"  # of the hashes of a list that is counted


def audit(
    table: str,
    against: str,
    *,
    config: ModelConfig | None = None,
    columns: Sequence[str] = (),
    row_key: str | None = None,
    record_key: str | None = None,
    label: str | None = None,
    attribute: str | None = None,
    similarity: bool = False,
    encoder: str | None = None,
    masked_model: str | None = None,
    label_rows: int = LABEL_ROWS,
    require: Sequence[str] = (),
    sample: int = SAMPLE,
    partial: bool = False,
    out: str | None = None,
    names: str | None = None,
    annotations: str | None = None,
    internal: bool = False,
    spark: SparkSession | None = None,
    progress: Steps | None = None,
) -> TableAudit:
    """Audit a written table, ours or anyone's, against the table that it was made from; the metrics are written.

    Args:
        table: the table to audit, a path or a catalog name.
        against: the table that it was made from.
        config: the settings of the run that wrote it; None for a table of somebody else's, whose attacks are left out.
        columns: the text columns, by the same names in both; none for those of the settings.
        row_key: what identifies a row in both; None for that of the settings.
        record_key: of the source; None for that of the settings, or the row.
        label: a column of the source that a classifier should still predict.
        attribute: a column of the source that nobody should read in the text.
        similarity: compare the texts of both tables: ROUGE, BLEU, cosine; a label does so, too.
        encoder: a folder or a package of a BERT that compares them, too.
        masked_model: as that, of a masked language model that attacks the texts.
        label_rows: how many rows, about, classifiers look at.
        require: limits, such as `original_share <= 0.4`; the result says which are broken.
        sample: how many rows, about, consistency, similarity and attacks look at.
        partial: whether rows that only one of the tables has are allowed.
        out: the folder of the metrics; None for that of the run, or one beside the table.
        names: a file of names, an entry a line: how many of them stand in the table as they were.
        annotations: a file of labelled texts of the source, CoNLL or spans: how many names are found, how many stay.
        internal: also `stayed`, the words of names that stayed most: private text.
        spark: a session; None takes the active one, or starts a local one.
        progress: progress callback, called with each step; what it is told holds nothing of the data.

    Raises:
        SettingsError: the settings are not those that the table was made with, a key cannot be compared, or an entry of
            `require` is not valid.
        DataError: a table or a column is missing, a key is NULL or repeats, or the rows do not match.
        RunError: Spark failed.

    Examples:
        >>> config = dp.load_config("reviews.yaml")
        >>> found = dps.audit(config.output.path, against=config.input.path, config=config, require=["original_share <= 0.9"])
        >>> found.broken
        []
    """
    plan = AuditPlan.of(
        table, against, columns=columns, row_key=row_key, record_key=record_key, config=config, label=label,
        attribute=attribute, similarity=similarity, encoder=encoder, masked_model=masked_model, label_rows=label_rows,
        require=require, sample=sample, partial=partial, out=out, names=names,
        annotations=annotations, internal=internal,
    )  # fmt: skip
    return audit_table(plan, spark, progress)


def audit_table(
    plan: AuditPlan, spark: SparkSession | None = None, progress: Steps | None = None
) -> TableAudit:
    """Audit a table and write the metrics.

    Args:
        plan: what is compared, and how.
        spark: a session; None takes the active one, or starts a local one.
        progress: progress callback, called with each step; what it is told holds nothing of the data.

    Raises:
        SettingsError: the settings are not those that the table was made with, or a key cannot be compared.
        DataError: a table or a column is missing, a key is NULL or repeats, or the rows do not match.
        RunError: Spark failed.
    """
    say = progress or silent
    session = spark or spark_session()
    with suppress_sensitive_logs(session):
        try:
            with ExitStack() as at_the_end:
                return _audit(plan, session, say, at_the_end)
        except DPTextError as error:
            raise error from None
        except Exception as error:
            raise reduced(error, list(plan.columns)) from None


def _audit(plan: AuditPlan, spark: SparkSession, say: Steps, at_the_end: ExitStack) -> TableAudit:
    began = time.time()
    wanted_names = None if plan.names is None else WordList.read("names", plan.names)
    labelled = None if plan.annotations is None else Annotations.read(plan.annotations, plan.columns)
    say("reading both schemas")
    tables = opened(spark, plan)
    say("preparing the model")
    privatizer, folder = prepare(plan.model, lambda step, _: say(step))
    require_the_model(plan, privatizer, tables)
    classes = check_classes(plan, tables.source, say)
    say("checking that row_key is unique in both (a pass over each key)")
    in_table = _rows_of(plan, "table", tables.table)
    in_source = _rows_of(plan, "against", tables.source)
    if plan.record_key:
        check_key(tables.source, plan.record_key, "record_key", unique=False)
    key = RunKey.generate()
    names = shipped_lists(spark, tables.source, plan, privatizer, key, say, at_the_end)
    counted = NO_NAMES
    if wanted_names is not None:
        file = NamesFile(spark, compile_names([wanted_names], name_key(key, NAMES_SCOPE)))
        at_the_end.callback(file.empty)
        counted = ShippedNames(NAMES_SCOPE, file.name, 1)
    left, right = sides(plan, tables, names.columns)
    shipped = ship_for(spark, str(folder), plan.model)
    labels = None if labelled is None else Labels.of(labelled, plan.columns, key)

    def paired(wanted: Rows, frame: DataFrame) -> DataFrame:
        job = PairTables(shipped, key, len(plan.columns), wanted, names, counted, labels, plan.given)
        return job.over(frame)

    say("comparing the texts")
    with watched(spark, lambda line: say(line.replace("writing", "comparing"))):
        summed = (
            paired("counts", left.join(right, "row_key"))
            .groupBy("column")
            .agg(*[F.sum(name).alias(name) for name in COUNT_FIELDS])
        )
        counts = {row["column"]: row.asDict() for row in summed.collect()}
    rows = int(counts[WHOLE]["rows"]) if counts else 0
    require_matching(plan, rows, in_table, in_source)
    whole = {name: sum(int(counts[i][name]) for i in range(len(plan.columns))) for name in COUNTS}
    stretches = sum(int(counts[i][UNCUT]) for i in range(len(plan.columns)))
    figures = [
        *row_figures(
            rows, in_table, in_source, int(counts[WHOLE]["unchanged"]), int(counts[WHOLE]["with_words"])
        ),
        *text_figures(whole),
        *(listed_figures(whole) if plan.names else []),
    ]
    named = Findings()
    if labelled is not None:
        say("counting the labelled names")
        named = labelled_findings(labelled, paired("labelled", left.join(right, "row_key")))
    stayed = None
    if plan.internal:
        say("looking for the words that stayed most")
        stayed = stayed_words(paired("stayed", left.join(right, "row_key")))
    share = min(1.0, plan.sample / rows)
    say(f"looking at a sample of about {100 * share:.3g} % of the records")
    sampled = sample_of(left, key, share).join(right, "row_key")
    found = Findings(
        [*figures, *named.figures, *_consistency(paired("groups", sampled))],
        [KeptWords.of(whole), *named.results],
        [*plan.left_out, *([uncut(stretches)] if stretches else []), *named.left_out],
    )
    if plan.attacked:
        say("attacking the sample")
        found += attack_sample(privatizer, paired("tokens", sampled).toPandas(), plan.level)
    if plan.looks_at_texts:
        found += use_of(plan, privatizer, (left, right), rows, key, classes, say)
    figures = found.figures + [
        figure
        for i, name in enumerate(plan.columns)
        for figure in (
            *text_figures(counts[i], column=name),
            *(listed_figures(counts[i], column=name) if plan.names else []),
        )
    ]
    audit_id = tables.made_by[0] if tables.made_by else _new_id()
    say("writing the metrics")
    runs.put_metrics(spark, plan.metrics, audit_id, _rows(figures), prefix=PREFIX)
    return TableAudit(
        audit_id, plan.table, tables.version, plan.source, tables.source_version, plan.metrics, tuple(figures),
        tuple(found.results), plan.limits, tuple(found.left_out), round(time.time() - began, 3),
        stayed=stayed,
    )  # fmt: skip


def _rows_of(plan: AuditPlan, field: str, frame: DataFrame) -> int:
    """Check the row key of one of the two tables and return how many rows it has."""
    try:
        return check_key(frame, plan.row_key, "row_key", unique=True)
    except DataError as error:
        raise DataError(f"{field}: {error}") from None


def _new_id() -> str:
    return f"audit-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"


def _consistency(pairs: DataFrame) -> list[Metric]:
    """Group equal words and count the groups that have more than one replacement."""
    grouped = (
        pairs.groupBy("level", "group")
        .agg(F.sum("n").alias("n"), F.countDistinct("replacement").alias("replacements"))
        .where("n > 1")
        .groupBy("level")
        .agg(
            F.count(F.lit(1)).alias("groups"), F.sum((F.col("replacements") > 1).cast("long")).alias("broken")
        )
    )
    found = {int(row["level"]): (int(row["groups"]), int(row["broken"])) for row in grouped.collect()}
    figures = []
    for level, name in enumerate(LEVELS):
        groups, broken = found.get(level, (0, 0))
        figures += [Metric(f"{name}_groups", groups), Metric(f"{name}_broken_groups", broken)]
    return figures


def _rows(figures: Sequence[Metric]) -> list[tuple[str | None, str, float | None]]:
    """Return the rows of `metrics`: one a figure, and one for each bound."""
    rows: list[tuple[str | None, str, float | None]] = []
    for figure in figures:
        assert figure.name in MEANING
        rows.append((figure.column, PREFIX + figure.name, figure.value))
        bounds = {"lower": figure.lower, "upper": figure.upper}
        rows += [
            (figure.column, f"{PREFIX}{figure.name}_{name}", bound)
            for name, bound in bounds.items()
            if bound is not None
        ]
    return rows
