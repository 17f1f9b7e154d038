"""The cookbook's queries on the tables of two tiny runs: columns, the runs' rows, and what is found when something is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

from dptext_spark.config.load import parse_config
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import silent
from dptext_spark.spark.runner import run
from tests.core.names import beginning
from tests.docs.pages import DOCS, FENCE, blocks

pytestmark = pytest.mark.long
PAGE = DOCS / "guide" / "cookbook.md"
QUERIES = {
    section.partition("\n")[0]: FENCE.search(section)[2]  # type: ignore[index]
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
}
COLUMNS = {
    "Which runs wrote this table": "run_id started_at status output_version input input_version mechanism consistency "
    "kind epsilon unit proved_or_not verdict key_kind",
    "Runs that are not accounted for": "run_id what",
    "Second releases": "input column releases outputs run_ids",
    "The commits of the target": "version timestamp operation run_id mechanism status said_epsilon epsilon same_model",
}
# The lexicon's words, one that it lacks, one of the list's.
WORDS = 300
ROWS = [(1, "time people zorblax"), (2, "people qwxyz"), (3, "")]


def make_views(folder: Path) -> None:
    (code,) = blocks(PAGE, "python")
    exec(compile(code.replace("/data/", f"{folder}/"), PAGE.name, "exec"), {})


@pytest.fixture(scope="module")
def house(session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one input and ledger with keys of their own, into two targets that share their tables of runs and metrics."""
    folder = tmp_path_factory.mktemp("cookbook")
    session.createDataFrame(ROWS, "id long, body string").write.format("delta").save(str(folder / "in"))
    beginning(Lexicon.default(), WORDS).save(folder / "lexicon")
    (folder / "mask.txt").write_text("zorblax\nvantarok\n", encoding="utf-8")
    audit = folder / "reviews_sanitized_audit"
    for number, name in enumerate(("reviews_sanitized", "again"), start=1):
        settings: dict[str, Any] = {
            "input": {"path": str(folder / "in")}, "columns": ["body"], "row_key": "id", "consistency": "record",
            "lexicon": {"source": str(folder / "lexicon")},
            "mechanism": {"name": "custext", "epsilon": 2.0, "k": 5},
            "policy": {
                "stop_words": "draw", "mask": [{"file": str(folder / "mask.txt")}],
                "names": {"lists": True, "person": "pseudonym"},
            },
            "output": {"path": str(folder / name), "other_columns": "keep"}, "ledger": {"limit": 10.0},
            "audit": {
                "shareable": str(audit / "shareable"), "restricted": str(audit / "restricted"),
            },
            "run": {"id": f"run{number}"},
        }  # fmt: skip
        run(parse_config(settings), session, key=RunKey.generate(), progress=silent)
    return folder


def asked(spark, house: Path, title: str) -> list[Row]:
    make_views(house)
    found = spark.sql(QUERIES[title].replace("/data/", f"{house}/"))
    assert found.columns == COLUMNS[title].split()
    return found.collect()


def test_every_query_of_the_page_is_tested() -> None:
    assert list(QUERIES) == list(COLUMNS)
    assert len(blocks(PAGE, "sql")) == len(QUERIES)


def test_the_run_that_wrote_the_table(spark, house: Path) -> None:
    (row,) = asked(spark, house, "Which runs wrote this table")
    assert (row.run_id, row.status, row.output_version, row.key_kind) == ("run1", "succeeded", 0, "given")
    assert (row.mechanism, row.consistency, row.epsilon) == ("custext", "record", 2.0)
    assert (row.kind, row.proved_or_not, row.verdict) == ("epsilon_dp_within_group", "proved", "confirmed")
    assert row.unit == "all occurrences of a word in a record"
    assert (row.input, row.input_version) == (str(house / "in"), "delta:0")


def test_second_releases(spark, house: Path) -> None:
    (row,) = asked(spark, house, "Second releases")
    assert (row.input, row.column, row.releases) == (str(house / "in"), "body", 2)
    assert row.outputs == [str(house / "again"), str(house / "reviews_sanitized")]
    assert row.run_ids == ["run1", "run2"]


def test_what_each_commit_says(spark, house: Path) -> None:
    (row,) = asked(spark, house, "The commits of the target")
    assert (row.version, row.operation, row.run_id) == (0, "WRITE", "run1")
    assert (row.mechanism, row.status) == ("custext", "succeeded")
    assert (row.said_epsilon, row.epsilon, row.same_model) == (2.0, 2.0, True)


@pytest.mark.cluster
def test_what_is_wrong_is_found(spark, house: Path) -> None:
    """Last, for it breaks the tables: a row that is gone, a run that began, an entry that stays reserved, a commit of others."""
    title = "Runs that are not accounted for"
    assert asked(spark, house, title) == []
    shareable = house / "reviews_sanitized_audit" / "shareable"
    # What a run that was killed leaves: the ledger takes rows only.
    reserved = spark.table("ledger").where("run_id = 'run2' AND status = 'reserved'").collect()
    killed = [{**row.asDict(), "entry": "killed.0", "run_id": "run3"} for row in reserved]
    rows = spark.createDataFrame([tuple(row.values()) for row in killed], spark.table("ledger").schema)
    rows.write.format("delta").mode("append").save(f"{house}/_dptext_ledger")
    change = "status = 'started', second_release = true WHERE run_id = 'run2'"
    spark.sql(f"UPDATE delta.`{shareable}/runs` SET {change}")
    spark.sql(f"DELETE FROM delta.`{shareable}/runs` WHERE run_id = 'run1'")
    target = str(house / "reviews_sanitized")
    spark.read.format("delta").load(target).write.format("delta").mode("append").save(target)
    assert [tuple(row) for row in asked(spark, house, title)] == [
        ("run1", "commit 0 has no row"),
        ("run2", "status started"),
        ("run3", "its entry in the ledger is still reserved"),
    ]
    commits = asked(spark, house, "The commits of the target")
    assert [(row.version, row.run_id, row.status) for row in commits] == [(0, "run1", None), (1, None, None)]
    in_a_run, in_the_ledger = asked(spark, house, "Second releases")
    assert (in_a_run.column, in_a_run.run_ids, in_a_run.outputs) == (None, ["run2"], [str(house / "again")])
    assert (in_the_ledger.column, in_the_ledger.releases) == ("body", 2)
