"""The scan for two outputs of one record sees what it is for, and takes a retry's files for what they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cluster.tally import Tally
from tests.cluster.two_outputs import scan

ROWS = 5_000


def _write(file: Path, changed: int | None = None) -> Path:
    texts = [f"the text of {i}" for i in range(ROWS)]
    if changed is not None:
        texts[changed] += "!"
    table = pa.table({"id": pa.array(range(ROWS), pa.int64()), "body": texts})
    pq.write_table(table, file, row_group_size=500)
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "_delta_log").mkdir()
    _write(tmp_path / "_delta_log" / "00010.checkpoint.parquet", changed=1)
    _write(tmp_path / WHOLE)
    return tmp_path


WHOLE, AGAIN = "part-00000-aaaa-c000.snappy.parquet", "part-00000-bbbb-c000.snappy.parquet"


def test_a_second_attempt_of_a_task_is_the_same_file(folder: Path) -> None:
    _write(folder / AGAIN)
    found = scan(folder)
    assert (found.sound, found.files, found.cut) == (True, 2, 0)


@pytest.mark.parametrize(
    "place", ["part-00000-bbbb.parquet", "part-00007-bbbb.parquet", "_spark/part-9.parquet"]
)
def test_one_record_of_five_thousand_with_another_output_is_found(folder: Path, place: str) -> None:
    (folder / place).parent.mkdir(exist_ok=True)
    _write(folder / place, changed=1234)
    found = scan(folder)
    assert (found.sound, found.twice) == (False, (1234,))


@pytest.mark.parametrize("size", [0, 4, 5, 9_000])
def test_a_file_that_was_cut_is_the_beginning_of_the_finished_one(folder: Path, size: int) -> None:
    whole = (folder / WHOLE).read_bytes()
    assert len(whole) > 9_000
    (folder / AGAIN).write_bytes(whole[:size])
    found = scan(folder)
    assert (found.sound, found.files, found.cut) == (True, 1, 1)


def test_a_cut_file_with_other_draws_or_of_a_task_that_never_finished_is_found(folder: Path) -> None:
    other = _write(folder / AGAIN, changed=0)
    other.write_bytes(other.read_bytes()[:-100])
    assert scan(folder).unknown == (other.name,)
    other.unlink()
    (folder / "part-00003-cccc.parquet").write_bytes(b"PAR1 and something else")
    assert not scan(folder).sound


def test_what_held_what_did_not_and_what_never_struck() -> None:
    tally = Tally()
    for struck, violated in ((1, False), (2, False), (0, False), (1, True)):
        tally.add("executor", struck, violated)
    assert (tally.failures, tally.idle) == (1, [])
    lines = [line.split() for line in tally.lines()]
    assert lines == [["executor", *end] for end in (["held", "2"], ["not", "struck", "1"], ["violated", "1"])]
    tally.add("storm", 0, False)
    assert (tally.failures, tally.idle) == (2, ["storm"])
