"""Tables without a key: rows are joined by file and place where both tables keep them, and refused where they do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dptext_spark.audit.audit_plan import AuditPlan
from dptext_spark.audit.options import AuditOptions
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.spark.audit_job import audit_table

BODY = AuditOptions(columns=["body"])
BEFORE = {
    "a.parquet": ["call the office today", "call the office today", "send money"],
    "b.parquet": ["send money", "the office is open today"],
}
# By place; equal texts of the source became different ones.
AFTER = {
    "a.parquet": ["call the house today", "visit the office today", "send money"],
    "b.parquet": ["take money", "the office is closed today"],
}


def written(folder: Path, texts: dict[str, list[str]]) -> str:
    folder.mkdir()
    for name, rows in texts.items():
        pq.write_table(pa.table({"body": rows}), folder / name)
    return str(folder)


def by_hand() -> tuple[int, int]:
    pairs = [
        (first, second)
        for name in BEFORE
        for before, after in zip(BEFORE[name], AFTER[name], strict=True)
        for first, second in zip(before.split(), after.split(), strict=True)
    ]
    return len(pairs), sum(first == second for first, second in pairs)


@pytest.mark.cluster
def test_rows_are_joined_by_file_and_place(spark, tmp_path: Path) -> None:
    table, source = written(tmp_path / "out", AFTER), written(tmp_path / "in", BEFORE)
    found = audit_table(AuditPlan.of(table, source, None, BODY), spark)
    figures = {one.name: one.value for one in found.figures if one.column is None}
    words, same = by_hand()
    assert figures["rows"] == 5
    assert figures["words"] == words
    assert figures["original_share_all"] == pytest.approx(same / words)
    assert figures["unchanged_rows"] == 1
    assert any("rows are paired by file" in reason for reason in found.left_out)


@pytest.mark.long
def test_files_that_were_written_anew_are_refused(spark, tmp_path: Path) -> None:
    renamed = {f"new-{name}": rows for name, rows in AFTER.items()}
    table, source = written(tmp_path / "out", renamed), written(tmp_path / "in", BEFORE)
    with pytest.raises(DataError, match="row_key: none given, and no file and place is in both"):
        audit_table(AuditPlan.of(table, source, None, BODY), spark)


@pytest.mark.long
def test_a_source_without_places_is_refused(spark, tmp_path: Path) -> None:
    table = written(tmp_path / "out", AFTER)
    (tmp_path / "in.json").write_text('{"body": "call the office"}\n', encoding="utf-8")
    plan = AuditPlan.of(table, str(tmp_path / "in.json"), None, replace(BODY, against_format="json"))
    with pytest.raises(SettingsError, match=r"\(against\) does not record the file and place of a row"):
        audit_table(plan, spark)
