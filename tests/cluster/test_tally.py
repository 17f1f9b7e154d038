"""The tally of `make chaos` counts what held, and does not take a scenario that never struck for one that held."""

from __future__ import annotations

from tests.cluster.tally import Tally


def test_what_held_and_what_did_not() -> None:
    tally = Tally()
    for struck, violated in ((1, False), (2, False), (0, False), (1, True)):
        tally.add("executor", struck, violated)
    assert (tally.failures, tally.idle) == (1, [])
    assert [line.split() for line in tally.lines()] == [
        ["executor", "held", "2"], ["executor", "not", "struck", "1"], ["executor", "violated", "1"],
    ]  # fmt: skip


def test_a_scenario_that_never_struck_is_a_failure() -> None:
    tally = Tally()
    tally.add("storm", 0, False)
    tally.add("driver", 1, False)
    assert (tally.failures, tally.idle) == (1, ["storm"])
    assert "storm                  shows nothing: it never struck" in list(tally.lines())
