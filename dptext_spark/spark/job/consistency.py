"""The proof of consistency: source and output joined by row, tokens grouped by (scope, word), one replacement a group.

It runs on a keyed sample of scopes and uses the run key only to hash, never to draw: a replacement that was drawn wrongly
is seen. At token level there is nothing to prove.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Window, functions
from pyspark.sql import types as T

from dptext_spark.mechanisms.samplers import TableSampler
from dptext_spark.mechanisms.samplers.table import TableSummary
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import KeyReference, RunKey, hash_keys, identify
from dptext_spark.runtime.progress import Steps
from dptext_spark.spark.errors import TaskError, code_of, worker_key
from dptext_spark.spark.tables.paths import Elements, quoted
from dptext_spark.spark.tables.tables import opened
from dptext_spark.spark.udf.names import NO_NAMES, ShippedNames, with_lists
from dptext_spark.spark.udf.ship import Shipped, open_shipped, ship_for
from dptext_spark.text.pair_tokens import align

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dptext_spark.spark.job.plan import RunPlan

F: Any = functions  # its stubs leave out what Spark adds at run time
PAIRS = "kind tinyint, group binary, replacement bigint"
# Kinds: a word and its replacement, a text that does not fit its source, a scope that was seen.
PAIR, MISFIT, SCOPE = range(3)


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
    """Audit the committed version of a run.

    Args:
        plan: the run.
        version: its commit.
        rows: that it wrote; None where the commit does not say.
        say: is told what goes on.
    """
    config = plan.config
    wanted = config.audit.consistency_scopes
    if config.consistency == "token":
        return Audit("At token level every occurrence has a draw of its own; there is nothing to audit.")
    if not wanted:
        return Audit("The audit of consistency was switched off (audit.consistency_scopes=0).")
    if not config.row_key:
        return Audit("Consistency was not audited: without a row_key, source and output cannot be joined.")
    say("auditing consistency")
    spark, key_name = plan.spark, quoted(config.row_key)
    written = _written(plan, version)
    scope = plan.identity.record if plan.identity.record is not None else plan.identity.row
    assert scope is not None
    paths, names = plan.paths, plan.names()
    listed = frozenset(
        i for i, name in enumerate(names.columns) if isinstance(plan.df.schema[name].dataType, T.ArrayType)
    )
    source = plan.df.select(
        scope.alias("scope"),
        key_name.alias("row_key"),
        *[path.text.alias(f"s{i}") for i, path in enumerate(paths)],
        *[quoted(name).alias(f"n{i}") for i, name in enumerate(names.columns)],
    )
    if config.is_stream and config.stream.duplicates == "accept":
        # Rows of one micro-batch that share their key cannot be told apart in the output.
        source = (
            source.withColumn("n", F.count(F.lit(1)).over(Window.partitionBy("row_key")))
            .where("n = 1")
            .drop("n")
        )
    output = written.select(
        key_name.alias("row_key"), *[path.text.alias(f"o{i}") for i, path in enumerate(paths)]
    )
    rows = source.count() if rows is None else rows
    if not rows:
        return Audit("Consistency was not audited: there are no rows.")
    share = min(1.0, wanted / rows)
    sampled = sample_of(source, plan.key, share)
    if share < 1.0:
        # Only the keys of the sample travel to every node: a join of the texts would move the whole output between nodes.
        output = output.join(F.broadcast(sampled.select("row_key")), "row_key", "left_semi")
    joined = sampled.join(output, "row_key")
    lists = frozenset(i for i, path in enumerate(paths) if path.over)
    shipped = ship_for(spark, plan.folder, config)
    job = PairJob(shipped, plan.key.delivered(), len(paths), config.consistency, lists, names, listed)
    texts = [f"{side}{i}" for i in range(len(paths)) for side in "so"]
    pairs = joined.select("scope", *texts, *(f"n{i}" for i in range(len(names.columns)))).mapInPandas(
        job, PAIRS
    )
    figures = _counted(pairs)
    misfits = figures["broken_rows"]
    problems = []
    if figures["broken_groups"]:
        problems.append("groups of equal words have two replacements")
    if misfits:
        problems.append("texts are not their source with words replaced")
    unit = "records" if config.consistency == "record" else "rows"
    said = (
        f"Consistency was audited on a keyed sample of about {100 * share:.3g} % of the {unit}: "
        f"{'every group of equal words has one replacement' if not problems else '; '.join(problems)}."
    )
    return Audit(said, figures, problems)


def _counted(pairs: DataFrame) -> dict[str, int]:
    """Count groups, those with two replacements, texts that do not fit, and scopes, in one pass."""
    groups = pairs.groupBy("kind", "group").agg(
        F.count(F.lit(1)).alias("rows"), (F.min("replacement") != F.max("replacement")).alias("broken")
    )
    kind = F.col("kind")
    wanted = {
        "scopes_sampled": F.count_if(kind == SCOPE),
        "groups": F.count_if(kind == PAIR),
        "broken_groups": F.count_if((kind == PAIR) & F.col("broken")),
        "broken_rows": F.sum(F.when(kind == MISFIT, F.col("rows")).otherwise(0)),
    }
    row = groups.agg(*[figure.alias(name) for name, figure in wanted.items()]).first()
    assert row is not None  # an aggregate without groups has one row
    return {name: int(row[name] or 0) for name in wanted}


def _written(plan: RunPlan, version: int) -> DataFrame:
    """Return the rows of the run's own commit: a table that it was appended to may hold the same keys with other draws."""
    spark, target = plan.spark, plan.place.target
    written = opened(spark, target, version)
    if plan.config.output.mode != "append" or version == 0:
        return written
    added = set(written.inputFiles()) - set(opened(spark, target, version - 1).inputFiles())
    return written.where(F.col("_metadata.file_name").isin([file.rsplit("/", 1)[1] for file in added]))


def sample_of(frame: DataFrame, key: RunKey, share: float, scope: str = "scope") -> DataFrame:
    """Return the rows of a keyed share of all scopes; all rows, without a pass through Python, where the share is 1."""
    if share >= 1.0:
        return frame
    limit, delivered = int(share * (1 << 63)), key.delivered()

    def sampled(scope: pd.Series) -> pd.Series:
        hashed = identify(_identities(scope), worker_key(delivered), "audit sample")
        return pd.Series((hashed[:, 0] >> np.uint64(1)) < np.uint64(limit))

    return frame.where(F.pandas_udf(sampled, "boolean")(F.col(scope)))


def _identities(scope: pd.Series) -> pa.Array:
    """Return a batch of scopes in Arrow; an empty one of strings has lost its type on the way."""
    found = pa.Array.from_pandas(scope)
    return found.cast(pa.string()) if pa.types.is_null(found.type) else found


@dataclass(frozen=True)
class PairJob:
    """Pairs the tokens of joined batches in a worker; keyed hashes leave, no words."""

    shipped: Shipped
    key: RunKey | KeyReference
    columns: int
    level: str
    lists: frozenset[int] = frozenset()  # which columns hold several texts a row
    names: ShippedNames = NO_NAMES
    name_lists: frozenset[int] = frozenset()  # which columns of names hold several a row

    def __call__(self, stream: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Map batches of (scope, s0, o0, s1, o1, ..., n0, ...) to rows of `PAIRS`."""
        try:
            privatizer, key = open_shipped(self.shipped), worker_key(self.key)
            plain = _unchanging(privatizer)
            keys = hash_keys(key.derive("audit words", length=16))
            for batch in stream:
                scope = identify(_identities(batch["scope"]), key, "audit scope")
                yield _rows(SCOPE, np.unique(np.ascontiguousarray(scope).view("V16").reshape(-1)))
                held = [
                    _as_texts(batch[f"n{i}"], i in self.name_lists) for i in range(len(self.names.columns))
                ]
                finding = with_lists(plain, self.names, held, key)
                for i in range(self.columns):
                    sides = [_as_texts(batch[f"{side}{i}"], i in self.lists) for side in "so"]
                    yield self._pairs(privatizer, finding, scope, keys, *sides)
        except (GeneratorExit, TaskError):
            raise
        except BaseException as error:
            raise TaskError(code_of(error, "AUDIT_"), 0, 0, 0) from None

    def _pairs(
        self, privatizer: Privatizer, plain: Privatizer, scope: Any, keys: Any, source: Any, output: Any
    ) -> pd.DataFrame:
        texts, written, lost = source, output, 0
        if isinstance(source, Elements):
            same = (np.diff(source.bounds) == np.diff(output.bounds)) & (source.null == output.null)
            texts, written = (side.texts.filter(pa.array(same[side.rows])) for side in (source, output))
            kept = same[source.rows]
            plain = plain.of_rows(source.rows[kept])
            scope, lost = scope[source.rows[kept]], int((~same).sum())
        nulls = np.asarray(texts.is_valid()) != np.asarray(written.is_valid())
        ids = pa.array(np.arange(len(texts)))
        shaped, _, placed = plain.privatize_with_spans(
            texts, column="", row_ids=ids, key=worker_key(self.key)
        )
        groups, replacements, rows, fits = align(
            privatizer.engine, shaped, written, keys, placed, masks_words=privatizer.budget is not None
        )
        if self.level == "record":
            groups = groups ^ scope[rows]
        fits = fits & ~nulls
        found = _rows(PAIR, np.ascontiguousarray(groups).view("V16").reshape(-1), replacements.view(np.int64))
        misfits = int((~fits).sum()) + lost
        return pd.concat([found, _rows(MISFIT, [b""] * misfits)]) if misfits else found


def _rows(kind: int, groups: Iterable[Any], replacements: Any = 0) -> pd.DataFrame:
    """Return rows of `PAIRS` of one kind."""
    named = [bytes(group) for group in groups]
    return pd.DataFrame(
        {"kind": np.full(len(named), kind, np.int8), "group": named, "replacement": replacements}
    )


def _as_texts(values: pd.Series, several: bool) -> Any:
    """Return a batch of texts in Arrow, or the elements of a batch of lists of texts."""
    if several:
        return Elements.of(pa.array(values.to_numpy(dtype=object), pa.list_(pa.string()), from_pandas=True))
    return pa.array(values, pa.string())


def _unchanging(privatizer: Privatizer) -> Privatizer:
    """Return a privatizer that changes no word, but gaps, case and identifiers as the policy does."""
    same = replace(privatizer.policy, oov="keep", numbers="keep")
    size = len(privatizer.vocabulary)
    identity = TableSampler.of(
        np.arange(size, dtype=np.int32)[:, None],
        np.ones((size, 1)),
        privatizer.sampler.guarantee,
        TableSummary(),
    )
    return Privatizer(
        privatizer.vocabulary,
        identity,
        same,
        "token",
        "unchanging",
        privatizer.table,
        providers=privatizer.providers,
        classifier=privatizer.classifier,
        imported=privatizer.imported,
    )
