"""Audit a written table, ours or anyone's, against its source: its utility, its consistency, and success of attacks.

The keys of both are matched first, to count the common rows. Then rows are joined by their key. One pass in workers
(:mod:`dptext_spark.spark.pair_tables`) pairs texts and gives all counts and samples. Consistency and attacks use a keyed sample
of records.

A keyed sample of whole records comes to the driver, for classifiers and the comparison of texts; it is written nowhere.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions

from dptext_spark.arrays import F32
from dptext_spark.audit.attacks.linkage import FEWEST, has_law
from dptext_spark.audit.audit_plan import AuditPlan
from dptext_spark.audit.options import AuditOptions, takes
from dptext_spark.audit.table_audit import (
    BY_LAW,
    COUNTS,
    Findings,
    KeptWords,
    TableAudit,
    listed_figures,
    row_figures,
    text_figures,
)
from dptext_spark.audit.table_utility import (
    MOST_CLASSES,
    RowPairs,
    attack_sample,
    attribute,
    encoder_similarity_to,
    labels,
    membership,
    named_by,
    require_labels,
    similarity,
)
from dptext_spark.audit.text_classifier import Pair
from dptext_spark.config.model import ModelConfig
from dptext_spark.config.requirements import Metric, is_audited, split_subject
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.compile import load_lexicon, prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import Steps, by_default
from dptext_spark.spark.audited_tables import (
    MOST_CANDIDATES,
    counted_keys,
    link,
    opened,
    require_matching,
    require_the_model,
    sides,
    value_of,
)
from dptext_spark.spark.job import runs
from dptext_spark.spark.nested_columns import quoted
from dptext_spark.spark.pair_tables import LEVELS, WHOLE, PairTables, Tallies, Wanted, limit_of
from dptext_spark.spark.run_lists import NO_LISTS, ShippedLists, hash_lists, resolve_columns, table_file
from dptext_spark.spark.session import spark_session, step
from dptext_spark.spark.ship import ship_for
from dptext_spark.spark.spark_errors import reported
from dptext_spark.text.names.name_table import NameTable, WordList

PREFIX = "audit_"
ASKED = (
    "asked: "  # before a requirement that an audit answered, 1 where it holds; these rows are only ever added
)


@takes(AuditOptions)
def audit(
    table: str,
    against: str,
    *,
    config: ModelConfig | None = None,
    options: AuditOptions,
    spark: SparkSession | None = None,
    progress: Steps | None = None,
) -> TableAudit:
    """Audit a written table, ours or anyone's, against the table that it was made from; the metrics are written.

    Args:
        table: the table to audit, a path or a catalog name.
        against: the table that it was made from.
        config: the settings of the run that wrote it; None for a table of somebody else's, whose attacks are left out.
        options: not this argument itself, but each field of it by its name, such as `label_rows`.
            `columns` and `require` are lists.
        spark: a session; None takes the active one, or starts a local one.
        progress: progress callback, called with each step, never with data. None prints steps on stderr in a notebook or
            terminal.

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
    return audit_table(AuditPlan.of(table, against, config, options), spark, progress)


def audit_table(
    plan: AuditPlan, spark: SparkSession | None = None, progress: Steps | None = None
) -> TableAudit:
    """Audit a table and write the metrics.

    Raises:
        SettingsError: the settings are not those that the table was made with, or a key cannot be compared.
        DataError: a table or a column is missing, a key is NULL or repeats, or the rows do not match.
        RunError: Spark failed.
    """
    say = progress or by_default()
    if spark is None:
        say("starting Spark")
    session = spark or spark_session()
    with reported(session, plan.columns), ExitStack() as at_the_end:
        return _audit(plan, session, say, at_the_end)


def _audit(plan: AuditPlan, spark: SparkSession, say: Steps, at_the_end: ExitStack) -> TableAudit:
    began = time.time()
    listed_names = None if plan.names is None else WordList.read("names", plan.names)
    with step(spark, say, "reading both schemas"):
        tables = opened(spark, plan)
    say("preparing the model")
    privatizer, folder = prepare(plan.model, lambda step, _: say(step))
    require_the_model(plan, privatizer, tables)
    require_law(plan, privatizer)
    check_classes(plan, spark, tables.source, say)
    with step(spark, say, "checking and matching the keys of both tables", "a pass over them"):
        keys = counted_keys(plan, tables)
    require_matching(plan, keys)
    require_rows(plan, keys.both)
    key = RunKey.generate()
    names = counted = NO_LISTS
    columns = resolve_columns(tables.source, plan.model.lists)
    if (lists := hash_lists(spark, columns, privatizer, say)) is not None:
        at_the_end.callback(lists.end)
        names = lists.shipped(spark)
    if listed_names is not None:
        table = NameTable.of([listed_names])
        file = table_file(spark, table)
        at_the_end.callback(file.empty)
        counted = ShippedLists(file.name, table.uses)
    both = sides(plan, tables, names.columns)
    share = min(1.0, plan.sample / keys.both)
    requested = replace(
        wanted_texts(plan, keys.both), sample=limit_of(share), tokens=plan.attacked, stayed=plan.internal
    )
    shipped = ship_for(spark, str(folder), plan.model)
    job = PairTables(shipped, key, len(plan.columns), names, counted, requested)
    how = f"one pass, and a sample of about {100 * share:.3g} % of the records"
    paired = both[0].join(both[1], "row_key")
    with step(spark, say, "comparing the texts", how):
        gathered = job.tallies(paired)
    counts = {i: gathered.counts(i) for i in (WHOLE, *range(len(plan.columns)))}
    rows = counts[WHOLE]["rows"]
    require_matching(plan, keys._replace(both=rows))  # files may have changed since
    whole = {name: sum(counts[i][name] for i in range(len(plan.columns))) for name in COUNTS}
    with_text = rows if whole["words"] + whole["words_not_aligned"] else 0
    require_rows(plan, with_text, "rows with a word")
    figures = [
        *row_figures(rows, keys.table, keys.source, counts[WHOLE]["unchanged"], counts[WHOLE]["with_words"]),
        *text_figures(whole),
        *(listed_figures(whole) if plan.names else []),
    ]
    linkage = Findings(left_out=[FEW_ROWS] if plan.queries and with_text < FEWEST else [])
    if plan.queries and with_text >= FEWEST:
        how = f"one pass; {min(plan.queries, rows):,} rows are searched among {min(rows, MOST_CANDIDATES):,}"
        with step(spark, say, "linking rows", how):
            linkage = link(paired, plan, with_text, privatizer, shipped, key, names)
    findings = (
        Findings([*figures, *_consistency(gathered)], [KeptWords.of(whole)], [*plan.left_out]) + linkage
    )
    if plan.attacked:
        say("attacking the sample")
        findings += attack_sample(privatizer, gathered.tokens, plan.level)
    if plan.looks_at_texts:
        findings += use_of(plan, privatizer, gathered, say)
    figures = findings.figures + [
        figure
        for i, name in enumerate(plan.columns)
        for figure in (
            *text_figures(counts[i], column=name),
            *(listed_figures(counts[i], column=name) if plan.names else []),
        )
    ]
    new_id = f"audit-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"
    audit_id = tables.made_by[0] if tables.made_by else new_id
    with step(spark, say, "writing the metrics"):
        runs.put_metrics(spark, plan.metrics, audit_id, _rows(figures), prefix=PREFIX)
    audited = TableAudit(
        audit_id, plan.table, tables.version, plan.source, tables.source_version, plan.metrics, tuple(figures),
        tuple(findings.results), plan.limits, tuple(findings.left_out), round(time.time() - began, 3),
        internal=plan.internal, stayed=gathered.stayed if plan.internal else None, required=plan.required,
        has_account=tables.made_by is not None,
    )  # fmt: skip
    asked = [(None, ASKED + question, float(answer)) for question, answer in audited.answers.items()]
    runs.add_metrics(spark, plan.metrics, audit_id, asked)
    return audited


def _consistency(found: Tallies) -> list[Metric]:
    """Count the groups of equal words, and those with more than one replacement."""
    return [
        Metric(f"{level}_{name}", value)
        for level, groups in ((level, found.groups[level]) for level in LEVELS)
        for name, value in (("groups", groups.several), ("broken_groups", groups.broken))
    ]


def _rows(figures: Sequence[Metric]) -> list[tuple[str | None, str, float | None]]:
    """Return the rows of `metrics`: one a figure, and one for each bound."""
    rows: list[tuple[str | None, str, float | None]] = []
    for figure in figures:
        assert is_audited(figure.name)
        rows.append((figure.column, PREFIX + figure.name, figure.value))
        bounds = {"lower": figure.lower, "upper": figure.upper}
        rows += [
            (figure.column, f"{PREFIX}{figure.name}_{name}", bound)
            for name, bound in bounds.items()
            if bound is not None
        ]
    return rows


def require_law(plan: AuditPlan, privatizer: Privatizer) -> None:
    """Refuse a requirement that takes the law of a mechanism, where there is none to read.

    Raises:
        SettingsError: there is none.
    """
    if not plan.attacked or has_law(privatizer):
        return
    for limit in (*plan.limits, *plan.required):
        if split_subject(limit.subject)[0] in BY_LAW:
            raise SettingsError(
                f"require: '{limit}' needs a mechanism with a readable law, and {plan.model.mechanism.name!r} "
                "has none. Leave the requirement out, or require linkage_top1, measured by TF-IDF."
            )


FEW_ROWS = f"linkage: fewer than {FEWEST} rows with a word are in both tables."


def require_rows(plan: AuditPlan, rows: int, kind: str = "rows") -> None:
    """Refuse requested figures that take more rows than are in both tables.

    Raises:
        DataError: too few rows.
    """
    if rows >= FEWEST:
        return
    limits = (
        str(limit)
        for limit in (*plan.limits, *plan.required)
        if limit.subject.startswith(("linkage_", "singled_"))
    )
    for field, value in {"author": plan.author, **plan.values, "require": next(limits, None)}.items():
        if value is not None:
            raise DataError(
                f"{field}: {value!r} needs {FEWEST} rows or more in both tables, not {rows} {kind}. Leave it out."
            )


F: Any = functions  # its stubs leave out what Spark adds at run time
Part = tuple[str, Callable[[], Findings]]


def check_classes(plan: AuditPlan, spark: SparkSession, source: DataFrame, say: Steps) -> None:
    """Refuse columns that are no labels, before anything else is read.

    Raises:
        DataError: another type, no value, one class, or too many.
    """
    if plan.author is not None:
        with step(spark, say, "counting the texts of each author", "a pass over the column"):
            texts = source.where(quoted(plan.author).isNotNull()).groupBy(quoted(plan.author)).count()
            if not texts.where(F.col("count") > 1).head(1):
                raise DataError(
                    f"author: no value of column {plan.author!r} is in two rows. Name a column with repeated values."
                )
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
        rows, missing, classes = (int(figure) for figure in row)
        require_labels(option, name, rows, missing, min(classes, MOST_CLASSES + 1))


def wanted_texts(plan: AuditPlan, rows: int) -> Wanted:
    """Choose the texts for the driver, out of `rows` in both tables."""
    compares = plan.similarity or plan.encoder or plan.masked_model
    return Wanted(
        compared=limit_of(plan.sample / rows) if compares else 0,
        learnt=limit_of(plan.label_rows / rows) if plan.values else 0,
        values=tuple(plan.values),
    )


def use_of(plan: AuditPlan, privatizer: Privatizer, found: Tallies, say: Steps) -> Findings:
    """Measure the figures of a plan.

    `found` has the texts that :func:`wanted_texts` names.
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
    """Yield comparisons of the sample's texts, each with a name for its omission."""
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
    """Yield learning tasks, each with a name for its omission."""
    if plan.label is not None:
        column = f"column {plan.label!r}"
        labelled, test = _with(local, "label"), np.asarray(local.column("test").to_numpy(), np.bool_)
        say("learning the labels")
        yield "label", lambda: labels(labelled, test, column)
        say("attacking what learns the labels")
        yield "membership", lambda: membership(labelled, column)
    if plan.attribute is not None:
        say("attacking the attribute")
        yield "attribute", lambda: attribute(_with(local, "attribute"), f"column {plan.attribute!r}")


def _vectors(plan: AuditPlan, privatizer: Privatizer) -> F32 | None:
    """Return the vectors of the model's words, float32[V, d]; None if the settings' lexicon is gone or has other words."""
    try:
        lexicon = load_lexicon(plan.model)
    except DataError:  # the artifact alone may have come here
        return None
    same = lexicon.vocabulary.strings().equals(privatizer.vocabulary.strings())
    return lexicon.vectors if same else None


def _for_use(found: Tallies, use: str) -> pa.Table:
    texts = found.texts
    return texts.filter(texts.column(use))


def _both(table: pa.Table) -> Pair[Sequence[str]]:
    return Pair(table.column("plain").to_pylist(), table.column("private").to_pylist())


def _with(table: pa.Table, option: str) -> RowPairs:
    return RowPairs(_both(table), table.column("record").to_pylist(), table.column(option).to_pylist())
