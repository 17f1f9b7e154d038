"""The proof of consistency: source and output joined by row, tokens grouped by (scope, word), one replacement a group.

It runs on a keyed sample of scopes and uses the run key only to hash, never to draw: a replacement that was drawn wrongly
is seen. At token level there is nothing to prove. The job is that of an audit of two tables
(:mod:`dptext_spark.spark.pair_tables`), which here takes texts exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window, functions

from dptext_spark.runtime.display import Steps
from dptext_spark.spark import pair_tables
from dptext_spark.spark.nested_columns import quoted
from dptext_spark.spark.ship import ship_for
from dptext_spark.spark.tables import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dptext_spark.spark.job.plan import RunPlan

F: Any = functions  # its stubs leave out what Spark adds at run time


@dataclass(frozen=True)
class Audit:
    """What the audit found.

    Attributes:
        said: one sentence for people.
        figures: scopes_sampled, rows, groups, broken_groups, broken_rows; empty where it did not run.
        problems: what marks the run failed.
    """

    said: str
    figures: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool | None:
        """Whether it found nothing; None where it did not run."""
        return not self.problems if self.figures else None


def audit(plan: RunPlan, version: int, rows: int | None, say: Steps) -> Audit:
    """Audit the committed version of a run."""
    config = plan.config
    scopes = config.audit.consistency_scopes
    if config.consistency == "token":
        return Audit("At token level every occurrence has a draw of its own; there is nothing to audit.")
    if not scopes:
        return Audit("The audit of consistency was switched off (audit.consistency_scopes=0).")
    if not config.row_key:
        return Audit("Consistency was not audited: without a row_key, source and output cannot be joined.")
    say("auditing consistency")
    key, paths, names = quoted(config.row_key), plan.paths, plan.names()
    scope = plan.identity.record if plan.identity.record is not None else plan.identity.row
    assert scope is not None
    texts = [path.text for path in paths]
    source = pair_tables.side_of(plan.df, "s", key, texts, names.columns, scope.alias("scope"))
    if config.is_stream and config.stream.duplicates == "accept":
        # Rows of one micro-batch that share their key cannot be told apart in the output.
        source = (
            source.withColumn("n", F.count(F.lit(1)).over(Window.partitionBy("row_key")))
            .where("n = 1")
            .drop("n")
        )
    output = pair_tables.side_of(_written(plan, version), "o", key, texts)
    rows = source.count() if rows is None else rows
    if not rows:
        return Audit("Consistency was not audited: there are no rows.")
    share = min(1.0, scopes / rows)
    sampled = pair_tables.sample_of(source, plan.key, share)
    if share < 1.0:
        # Only the keys of the sample travel to every node: a join of the texts would move the whole output between nodes.
        output = output.join(F.broadcast(sampled.select("row_key")), "row_key", "left_semi")
    shipped = ship_for(plan.spark, plan.folder, config)
    wanted = pair_tables.Wanted(exact=config.consistency)
    job = pair_tables.PairTables(shipped, plan.key.delivered(), len(paths), names, wanted=wanted)
    tallies = job.tallies(sampled.join(output, "row_key"))
    groups = tallies.groups[config.consistency]
    figures = {
        "scopes_sampled": tallies.groups[pair_tables.SCOPES].n,
        "groups": groups.n,
        "broken_groups": groups.broken,
        "broken_rows": sum(tallies.counts(i)[pair_tables.MISFITS] for i in range(len(paths))),
    }
    problems = []
    if figures["broken_groups"]:
        problems.append("groups of equal words have two replacements")
    if figures["broken_rows"]:
        problems.append("texts are not their source with words replaced")
    unit = "records" if config.consistency == "record" else "rows"
    said = (
        f"Consistency was audited on a keyed sample of about {100 * share:.3g} % of the {unit}: "
        f"{'every group of equal words has one replacement' if not problems else '; '.join(problems)}."
    )
    return Audit(said, figures, problems)


def _written(plan: RunPlan, version: int) -> DataFrame:
    """Return the rows of the run's own commit: a table that it was appended to may hold the same keys with other draws."""
    spark, target = plan.spark, plan.place.target
    written = opened(spark, target, version)
    if plan.config.output.mode != "append" or version == 0:
        return written
    added = set(written.inputFiles()) - set(opened(spark, target, version - 1).inputFiles())
    return written.where(F.col("_metadata.file_name").isin([file.rsplit("/", 1)[1] for file in added]))
