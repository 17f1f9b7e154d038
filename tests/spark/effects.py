"""The external effects of a run and of a stream: what happens outside of its process happens in one of these functions.

Where a process may end is a list: between two effects it leaves what the one before left. A test replaces the functions by ones
that tell an observer before and after; what is observed runs on, fails, or ends at a point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from dptext_spark.spark import stream
from dptext_spark.spark.job import idempotency, job, ledger, runs, writing

Observer = Callable[[str], None]


class Effect(Enum):
    """What a run changes outside of its process, in the order in which that happens."""

    CHECKPOINT_BINDING = "checkpoint binding"  # of a stream: the table that binds its checkpoint
    STREAM_ROW = "stream row"  # in `runs`
    # Spark's own files in the checkpoint, written between two micro-batches: that one is done, and what the next one is.
    CHECKPOINT = "checkpoint"
    RESERVATION = "reservation"  # in the ledger
    RUN_ROW = "run row"  # in `runs`: it binds the run
    TABLE_CREATION = "table creation"  # of a target by name, empty; its removal where the write fails
    DATA_COMMIT = "data commit"  # data files and their commit
    SETTLEMENT = "settlement"  # in the ledger
    METRICS = "metrics"
    ACCOUNT = "account"  # in `runs`: how the run ended
    STREAM_METRICS = "stream metrics"
    STREAM_ACCOUNT = "stream account"

    @property
    def before(self) -> str:
        """The point before the effect."""
        return f"before {self.value}"

    @property
    def after(self) -> str:
        """The point after the effect; it is not passed where the effect failed."""
        return f"after {self.value}"


OF_A_RUN = (
    Effect.RESERVATION, Effect.RUN_ROW, Effect.DATA_COMMIT, Effect.SETTLEMENT, Effect.METRICS, Effect.ACCOUNT,
)  # fmt: skip


@contextmanager
def observed(at: Observer) -> Iterator[None]:
    """Tell an observer each point that the runs and streams of the block pass."""

    def told(before: str, work: Callable[..., Any], after: str) -> Callable[..., Any]:
        def replacement(*args: Any, **named: Any) -> Any:
            at(before)
            done = work(*args, **named)
            at(after)
            return done

        return replacement

    def having(effect: Effect, work: Callable[..., Any]) -> Callable[..., Any]:
        return told(effect.before, work, effect.after)

    def rows(begun: Effect, metrics: Effect, account: Effect) -> SimpleNamespace:
        """Return the functions of the tables `runs` and `metrics` as one module is to know them."""
        bound, ended = having(begun, runs.put), having(account, runs.put)

        def put(spark: Any, folder: str, record: Any, **named: Any) -> Any:
            return (bound if record.status == "started" else ended)(spark, folder, record, **named)

        return SimpleNamespace(**{**vars(runs), "put": put, "put_metrics": having(metrics, runs.put_metrics)})

    checkpointed = Effect.CHECKPOINT
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idempotency, "put_binding", having(Effect.CHECKPOINT_BINDING, idempotency.put_binding))
        patch.setattr(stream, "runs", rows(Effect.STREAM_ROW, Effect.STREAM_METRICS, Effect.STREAM_ACCOUNT))
        # Each micro-batch ends what Spark writes in the checkpoint, and begins it again.
        patch.setattr(stream, "_carried", having(checkpointed, stream._carried))
        batch = told(checkpointed.after, stream._Batches._one, checkpointed.before)
        patch.setattr(stream._Batches, "_one", batch)
        patch.setattr(ledger, "reserve", having(Effect.RESERVATION, ledger.reserve))
        patch.setattr(job, "runs", rows(Effect.RUN_ROW, Effect.METRICS, Effect.ACCOUNT))
        for name in ("create_empty", "drop_empty"):
            patch.setattr(writing, name, having(Effect.TABLE_CREATION, getattr(writing, name)))
        patch.setattr(writing, "commit_rows", having(Effect.DATA_COMMIT, writing.commit_rows))
        patch.setattr(ledger, "settle", having(Effect.SETTLEMENT, ledger.settle))
        yield
