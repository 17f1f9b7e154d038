"""A ledger read for people: what its table says, by one reading of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.ledger.balance import balances
from dptext_spark.spark import tables
from dptext_spark.spark.job import entries
from dptext_spark.spark.job.entries import read
from tests.spark.job.test_ledger import entry_of


@pytest.mark.long
def test_says_what_the_entries_say_and_reads_no_history(spark, tmp_path: Path, monkeypatch) -> None:
    path = str(tmp_path / "ledger")
    written = [entry_of("a"), entry_of("b", epsilon=2.0), entry_of("c", input="/data/other", input_id="id-2")]
    for one in written:
        entries.add(spark, path, [one])
    book = entries.entries_of(spark, path)
    expected = balances(book.entries, path, book.decisions)
    monkeypatch.setattr(tables, "history", lambda *args: pytest.fail("the history was read"))
    group = "reading a ledger"
    spark.sparkContext.setJobGroup(group, group)
    said: list[str] = []
    try:
        found = read(path, spark, said.append)
    finally:
        spark.sparkContext._jsc.clearJobGroup()
    assert found == expected
    assert sorted(one.columns[0].total for one in found) == [1.0, 3.0]
    assert said[0] == "reading the ledger"
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(group)
    assert 1 <= len(jobs) <= 3  # the table, and what Delta asks of its log


def test_a_folder_without_a_ledger(spark, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    os.mkfifo(tmp_path / "files" / "pipe")  # what is in it is not looked at
    (tmp_path / "files" / "notes.txt").write_text("no table")
    for name in ("nothing", "files"):
        with pytest.raises(SettingsError, match=r"ledger: .*_dptext_ledger"):
            read(str(tmp_path / name), spark)
