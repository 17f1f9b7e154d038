"""What became of the names of a labelled sample, and the lists of names of the run that wrote a table."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import DataFrame

from dptext_spark.arrays import I64
from dptext_spark.audit.table.annotations import FIELD, Annotations
from dptext_spark.audit.table.findings import Findings
from dptext_spark.audit.table.labelled import (
    FOUND_COUNTS,
    LABEL_COUNTS,
    LabelledNames,
    labelled_figures,
)
from dptext_spark.audit.table.plan import AuditPlan
from dptext_spark.errors import DataError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.auditing.pair_tables import BY_LABEL, BY_TYPE, OUTSIDE, SEEN
from dptext_spark.spark.auditing.tallies import Tallies
from dptext_spark.spark.job.lists import compile_lists, resolve_columns
from dptext_spark.spark.udf.names import NO_NAMES, ShippedNames
from dptext_spark.text.names.search import NAME_TYPES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN_LINES = 5  # that a message names


def labelled_findings(given: Annotations, found: Tallies) -> Findings:
    """Return what was found of a labelled sample.

    Args:
        given: the sample.
        found: what was counted.

    Raises:
        DataError: texts of the sample are not in the source, or a label stands outside its text; lines are named, no words.
    """
    seen, outside = found.numbered(SEEN), found.numbered(OUTSIDE)
    missing = np.setdiff1d(np.arange(len(given)), seen)
    if len(missing):
        what = "rows" if given.by_row else "texts"
        raise DataError(
            f"{FIELD}: {len(missing):,} of the {len(given):,} labelled {what} of {given.path} are not in the source: "
            f"{_lines(given, missing)}; valid: {what} of the table of --against, which the audited table has, too."
        )
    if len(outside):
        raise DataError(
            f"{FIELD}: {given.path} has spans outside their texts: {_lines(given, outside)}; valid: start and end in characters "
            "of the text of that row, of a list of texts each on a line of its own."
        )
    by_label = found.table(BY_LABEL, len(given.kinds), len(LABEL_COUNTS))
    by_type = found.table(BY_TYPE, len(NAME_TYPES), len(FOUND_COUNTS))
    left_out = []
    if given.others:
        left_out.append(
            f"the labels of {given.others:,} texts of {given.path} that stand in it before, with other labels"
        )
    return Findings(
        labelled_figures(len(seen), by_label, by_type, given.groups),
        [LabelledNames.of(given.kinds, by_label)],
        left_out,
    )


def shipped_lists(
    spark: SparkSession, source: DataFrame, plan: AuditPlan, privatizer: Privatizer, key: RunKey, say: Steps,
    at_the_end: ExitStack,
) -> ShippedNames:  # fmt: skip
    """Compile the lists of names of the run that wrote a table, and ship them.

    Args:
        spark: the session.
        source: of the table; lists may be columns of it.
        plan: with the run's settings.
        privatizer: the model.
        key: of the hashes.
        say: progress callback.
        at_the_end: empties the file when all is counted.
    """
    lists = compile_lists(spark, resolve_columns(source, plan.model.lists), privatizer, key, "audit", say)
    if lists is None:
        return NO_NAMES
    at_the_end.callback(lists.end)
    return lists.shipped(spark)


def _lines(given: Annotations, texts: I64) -> str:
    """Name the lines where some texts begin."""
    lines = sorted(given.lines[texts].tolist())
    more = f" and {len(lines) - SHOWN_LINES:,} more" if len(lines) > SHOWN_LINES else ""
    return f"{'line' if len(lines) == 1 else 'lines'} {', '.join(f'{one:,}' for one in lines[:SHOWN_LINES])}{more}"
