"""A budget of a record in a run: what it says of ε, what its ledger counts, and what it refuses.

What a budget releases is judged by the table of tests/spark/pairs, for runs and for frames.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.errors import DPTextError
from dptext_spark.importance.budget import BudgetSelector
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.compile import prepare
from dptext_spark.randomness import RunKey
from dptext_spark.spark.runner import run
from tests.core.names import beginning

KEY = RunKey.generate()
RECORD, DELTA = 0.25, 1e-9  # of six words: budgets of which some are masked


@pytest.mark.long
def test_a_run_states_the_budget_and_spends_it(spark, tmp_path: Path) -> None:
    words = beginning(Lexicon.default(), 6)
    words.save(tmp_path / "lexicon")
    settings: dict[str, Any] = {
        "input": {"path": str(tmp_path / "in")},
        "columns": ["body", "notes"],
        "row_key": "id",
        "record_key": "id",
        "consistency": "record",
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "policy": {"stop_words": "draw"},
        "mechanism": {"name": "custext", "epsilon": 2.0, "k": 3},
        "budget": {"record": RECORD, "delta": DELTA},
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
        "ledger": {"path": str(tmp_path / "ledger"), "limit": 100},
        "run": {"id": "one", "batch_rows": 2},
    }
    config = parse_config(settings)
    model = prepare(config)[0]
    assert isinstance(model.selector, BudgetSelector)
    # Records at and beyond the number of words that a budget draws, over two columns and list elements.
    word = [words.vocabulary.word(number) for number in range(6)]
    rows = [
        (number, " ".join(word[at % 6] for at in range(model.selector.cap - 1 + number)), [word[4], "", word[5]])
        for number in range(4)
    ]  # fmt: skip
    frame = spark.createDataFrame(rows, "id long, body string, notes array<string>")
    frame.repartition(3).write.format("delta").save(settings["input"]["path"])
    facts = run(config, spark, key=KEY).facts
    assert facts["status"] == "succeeded"
    assert "[BGT]" in str(spark.read.format("delta").load(settings["output"]["path"]).collect())
    assert facts["consistency_audit"]["passed"] is True
    spent = facts["restricted"]["record_epsilon"]
    most = spent["bound_max"]
    assert most["draws"] is None
    spends = [(RECORD, DELTA, "budget"), (spent["max"], 0.0, "sum")]
    assert (most["epsilon"], most["delta"], most["by"]) in spends
    assert most["epsilon"] <= RECORD
    assert facts["ledger"]["record"]["epsilon"] <= RECORD
    assert spent["basis"].startswith(f"at most ε = {RECORD:g} up to a probability δ = {DELTA:g}")
    assert "Level 2" not in str(facts["disclosure"])
    laws = len(model.samplers)
    said = f"Of the {laws} laws that the budget chooses from: {laws} confirmed."
    assert said in facts["certificate"]["sentence"]

    assert run(config, spark, key=KEY).status == "unchanged"
    with pytest.raises(DPTextError, match="budget"):
        run(parse_config({**settings, "budget": {"record": RECORD / 2, "delta": DELTA}}), spark, key=KEY)
