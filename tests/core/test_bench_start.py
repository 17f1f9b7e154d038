"""The section on the start of a worker, at toy size: that it counts, not how fast anything is."""

from __future__ import annotations

import pytest

from benchmarks import start
from benchmarks.sizes import TOY
from dptext_spark.model import machine_code
from dptext_spark.runtime.jit import code_cache


@pytest.mark.cluster
def test_a_fresh_node_compiles_nothing_with_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", code_cache())  # what makes the code finds the loops of this process
    monkeypatch.setattr(machine_code, "_possible", lambda: (machine_code.OWN,))
    section = start.measure(TOY, lambda _: None)
    found = {figure.name: figure for figure in section.figures}
    assert found["loops that are compiled with it"].value.median == 0
    assert int(found["fresh node, no machine code"].note.split()[0]) > 0
    size = found["machine code, own"].value.median
    assert 0 < size < 20
    ours = found["fresh node, machine code in the model"]
    assert ours.peer is not None
    assert len(ours.value.runs) == len(ours.peer.runs) == TOY.long_rounds
