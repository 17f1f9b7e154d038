"""A budget of a record in Spark: words are counted over the columns and list elements of a row, in frames, runs and streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dptext_spark.config.load import parse_config
from dptext_spark.errors import DPTextError
from dptext_spark.importance.budget import BudgetSelector
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.spark.runner import run
from dptext_spark.spark.tables.paths import Elements
from dptext_spark.text.selection import Texts
from tests.core.names import beginning

KEY = RunKey.generate()
SCHEMA = "id long, body string, notes array<string>"
Row = tuple[int, str | None, list[str | None] | None]


def cap_of(model: Privatizer) -> int:
    assert isinstance(model.selector, BudgetSelector)
    return model.selector.cap


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    beginning(Lexicon.default(), 6).save(tmp_path / "lexicon")
    return {
        "input": {"path": str(tmp_path / "in")},
        "columns": ["body", "notes"],
        "row_key": "id",
        "record_key": "id",
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "policy": {"stop_words": "draw"},
        "mechanism": {"name": "custext", "epsilon": 2.0, "k": 3},
        "budget": {"record": 1.0, "delta": 0.01},
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
    }


def rows(cap: int, first: int = 0) -> list[Row]:
    """Records below, at and beyond the number of words that a budget draws, over two columns and list elements."""
    word = [beginning(Lexicon.default(), 6).vocabulary.word(i) for i in range(6)]
    some: list[tuple[str | None, list[str | None] | None]] = [
        (f"{word[0]} {word[1]}", [word[2], None, f"{word[0]}-{word[3]}"]),
        (None, None),
        (" ".join(word[i % 6] for i in range(cap - 1)), [word[4]]),
        (" ".join(word[i % 6] for i in range(cap)), [word[5], "", f"{word[1]} {word[1]}"]),
        ("", [" ".join(word[i % 6] for i in range(cap + 3))]),
    ]
    return [(first + i, *texts) for i, texts in enumerate(some)]


def drawn_here(model: Privatizer, some: list[Row], run_id: str) -> dict[int, tuple[Any, Any]]:
    """The rows as the model alone draws them, in one batch."""
    ids = pa.array([row[0] for row in some])
    bodies = pa.array([row[1] for row in some], pa.string())
    elements = Elements.of(pa.array([row[2] for row in some], pa.list_(pa.string())))
    chosen = model.choose([Texts(bodies), Texts(elements.texts, elements.rows)])
    assert chosen is not None
    body, _ = model.privatize(
        bodies, column="body", row_ids=ids, record_ids=ids, key=KEY, run_id=run_id, chosen=chosen[0]
    )
    notes, _ = model.privatize(
        elements.texts, column="notes", row_ids=elements.identities(ids),
        record_ids=ids.take(pa.array(elements.rows)), key=KEY, run_id=run_id, chosen=chosen[1],
    )  # fmt: skip
    pairs = zip(body.to_pylist(), elements.whole(notes).to_pylist(), strict=True)
    return dict(zip(ids.to_pylist(), pairs, strict=True))


def read(df: Any) -> dict[int, tuple[Any, Any]]:
    return {row["id"]: (row["body"], row["notes"]) for row in df.collect()}


@pytest.mark.long
def test_a_run_states_the_budget_and_spends_it(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path
) -> None:
    ledger = {"path": str(tmp_path / "ledger"), "limit": 100}
    settings = {**settings, "consistency": "record", "ledger": ledger, "run": {"id": "one", "batch_rows": 2}}
    settings["budget"] = {
        "record": 0.25,
        "delta": 1e-9,
    }  # six words are few: budgets of which some are masked
    config = parse_config(settings)
    model = prepare(config)[0]
    some = rows(cap_of(model))
    expected = drawn_here(model, some, "one")
    masked = sum(str(texts).count("[BGT]") for texts in expected.values())
    assert masked > 0
    spark.createDataFrame(some, SCHEMA).repartition(3).write.format("delta").save(settings["input"]["path"])
    facts = run(config, spark, key=KEY).facts
    assert facts["status"] == "succeeded"
    assert read(spark.read.format("delta").load(settings["output"]["path"])) == expected
    assert facts["consistency_audit"]["passed"] is True
    spent = facts["restricted"]["record_epsilon"]
    record, delta = settings["budget"]["record"], settings["budget"]["delta"]
    most = spent["bound_max"]
    assert most["draws"] is None
    assert (most["epsilon"], most["delta"], most["by"]) in [
        (record, delta, "budget"),
        (spent["max"], 0.0, "sum"),
    ]
    assert most["epsilon"] <= record
    assert spent["basis"].startswith(
        f"at most ε = {record:g} up to a probability δ = {delta:g}, and at most the number of its "
    )
    assert facts["ledger"]["record"]["epsilon"] <= record
    said = str(facts["disclosure"])
    assert "Over a record ε is bounded: at most" in said
    assert "each is replaced by [BGT]" in said
    assert "Level 2" not in said
    assert "times the levels" not in said
    laws = len(model.samplers)
    assert (
        f"Of the {laws} laws that the budget chooses from: {laws} confirmed."
        in facts["certificate"]["sentence"]
    )

    assert run(config, spark, key=KEY).status == "unchanged"
    with pytest.raises(DPTextError, match="budget"):
        run(parse_config({**settings, "budget": {"record": record / 2, "delta": delta}}), spark, key=KEY)
