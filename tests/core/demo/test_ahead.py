"""What the demo makes in a process of its own: the loops of its run, and a ticket by files of settings."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from dptext_spark.demo import ahead as module
from dptext_spark.demo.ahead import ahead
from dptext_spark.demo.tickets import ROW, SETTINGS, TEXTS, Released, demo_config
from dptext_spark.model.compile import prepare
from dptext_spark.randomness.draws import RunKey

TEXT = "The parcel came, and ann@example.com wrote"


def silent(step: str, share: float | None) -> None:
    """Tell nobody."""


@pytest.mark.long
def test_the_process_compiles_first_and_releases_the_text_then() -> None:
    with ahead() as beside:
        beside.release(TEXT)
        said: list[str] = []
        beside.wait_for_loops(lambda step, _: said.append(step))
        assert all("the first time only" in step for step in said)
        released = beside.released(silent)
        assert beside.child is not None
        assert beside.child.returncode == 0
    assert [one.settings for one in released] == list(SETTINGS)
    assert "[EMAIL]" in released[0].text
    assert "ann@example.com" not in released[1].text
    assert released[0].mechanism == "tem, ε = 11, each word anew, stop words drawn"


MADE = [Released("strict", "tem", "x")]


def test_one_that_dies_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COMMAND", "import sys; sys.exit('no room for it')")
    monkeypatch.setattr(module, "side_by_side", lambda text, *_: MADE if text == TEXT else [])
    said: list[str] = []
    with ahead() as beside:
        assert beside.child is not None
        beside.child.wait()
        beside.release(TEXT)
        beside.wait_for_loops(silent)
        assert beside.released(lambda step, _: said.append(step)) == MADE
    assert "no room for it" in said[-1]


def test_none_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(module.subprocess, "Popen", refused)
    monkeypatch.setattr(module, "side_by_side", lambda *_: MADE)
    with ahead() as beside:
        beside.release(TEXT)
        beside.wait_for_loops(silent)
        assert beside.released(silent) == MADE


def test_the_process_ends_with_the_block() -> None:
    with pytest.raises(KeyError), ahead() as beside:
        raise KeyError
    assert beside.child is not None
    assert beside.child.returncode not in (None, 0)


def test_what_is_drawn_ahead_has_the_types_that_workers_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts as strings and as bytes, integers as rows, in memory that may not be written."""
    privatizer, _ = prepare(demo_config("/tickets", "/sanitized"))
    seen: list[tuple[pa.DataType, pa.DataType, pa.DataType, bool, int]] = []

    class Seen:
        def privatize(self, texts: pa.Array, *, row_ids: pa.Array, record_ids: pa.Array, **rest: Any) -> None:
            assert isinstance(rest["key"], RunKey)
            mutable = any(one.is_mutable for one in texts.buffers() if one is not None)
            seen.append((texts.type, row_ids.type, record_ids.type, mutable, len(texts)))
            privatizer.privatize(texts, row_ids=row_ids, record_ids=record_ids, **rest)

    module.call_loops(Seen(), rows=4)  # type: ignore[arg-type]
    kinds = (pa.string(), pa.binary())
    assert seen == [(kind, pa.int64(), pa.string(), False, 4) for kind in kinds for _ in TEXTS]


def test_nothing_of_it_needs_spark() -> None:
    code = "import sys; import dptext_spark.demo.ahead; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert demo_config("/a", "/b").row_key == ROW
