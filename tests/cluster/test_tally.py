"""The tally of `make chaos` counts what held, and does not take a scenario that never struck for one that held."""

from __future__ import annotations

from tests.cluster.tally import Tally


def test_what_held_what_did_not_and_what_never_struck() -> None:
    tally = Tally()
    for struck, violated in ((1, False), (2, False), (0, False), (1, True)):
        tally.add("executor", struck, violated)
    assert (tally.failures, tally.idle) == (1, [])
    lines = [line.split() for line in tally.lines()]
    assert lines == [["executor", *end] for end in (["held", "2"], ["not", "struck", "1"], ["violated", "1"])]
    tally.add("storm", 0, False)
    assert (tally.failures, tally.idle) == (2, ["storm"])
