"""The external effects of a run and of a micro-batch: each has a name, and is announced before and after.

What happens outside of the process happens in one of these and nowhere else. So where a process may end is a list: between two
effects it leaves what the one before left. A test gives the functions that have effects an observer, which ends the process at a
point of that list; a run has none.

What may stand without what, where a process ends between two effects:

- the reservation without the run row: it counts, and the next attempt finds it. The row without the reservation cannot be: what
  can be refused comes first, and a refused run has no row that says that it began. Both stand before the first data file.
- the settlement without the metrics, and the metrics without the settlement: these two go side by side (:mod:`.beside`). The run
  has committed and has no account, so that the next attempt writes the metrics again and settles what is not settled.
- both without the account. The account comes alone, for it says that both stand: a run that has one is not made again.
- a stream's metrics without its account, and the account without the metrics: side by side as well. They are sums over its
  micro-batches, and each start of the stream writes both anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

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


def unobserved(point: str) -> None:
    """Do nothing at a point: what a run does."""


@contextmanager
def announced(effect: Effect, at: Observer) -> Iterator[None]:
    """Announce an effect, which is what the block does."""
    at(effect.before)
    yield
    at(effect.after)
