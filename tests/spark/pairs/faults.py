"""Faults of the package, put in by whoever tests the table: each changes one thing of a run, and nothing of how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pyarrow as pa

from dptext_spark.disclosure import importance
from dptext_spark.randomness import Draws
from dptext_spark.spark import column_function
from dptext_spark.spark.job import ledger, writing
from dptext_spark.spark.job.planned_run import RunPlan

BATCHES, DEALT = column_function.batches, writing.repartition_skewed
AFTER, LANE = ledger.balance_after, Draws._lane_key


def from_another_lane(spec: Any, stream: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    """The worker's part with the next lane key: the function travels by its name, so that a worker imports this module."""
    with mock.patch.object(Draws, "_lane_key", lambda self, index: LANE(self, index + 1)):
        yield from BATCHES(spec, stream)


def without_a_row(plan: RunPlan, say: Any) -> RunPlan:
    """What is written lacks a row."""
    dealt = DEALT(plan, say)
    return replace(dealt, df=dealt.df.where("id <> 1003"))


def with_a_row_twice(plan: RunPlan, say: Any) -> RunPlan:
    """What is written has a row twice."""
    dealt = DEALT(plan, say)
    return replace(dealt, df=dealt.df.union(dealt.df.where("id = 1003")))


def as_it_was_before(*arguments: Any) -> Any:
    """What an input has spent, without what the run in hand adds."""
    balance = AFTER(*arguments)
    stale = tuple(replace(spent, total=spent.total - spent.more) for spent in balance.columns)
    return replace(balance, columns=stale)


FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a wrong key lane": (column_function, "batches", from_another_lane),
    "a dropped row": (writing, "repartition_skewed", without_a_row),
    "a doubled row": (writing, "repartition_skewed", with_a_row_twice),
    "a stale sum of the ledger": (ledger, "balance_after", as_it_was_before),
    "a missing flag of the statement": (importance, "warned", lambda facts: iter(())),
}
