"""Words that importance chooses: counted by Spark, weighed by the user, and what frames and runs refuse of it.

What a choice or a budget releases is judged by the table of tests/spark/pairs, for runs and for frames.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.errors import DataError, DPTextError, SettingsError
from dptext_spark.importance.budget import BudgetSelector
from dptext_spark.importance.levels import Importance
from dptext_spark.importance.providers import Frequencies
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.compile import prepare
from dptext_spark.model.record import with_importance
from dptext_spark.randomness import RunKey
from dptext_spark.spark.job.entries import release_of, source_of
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.runner import run
from tests.core.names import beginning

KEY = RunKey.insecure(7)
BODIES = [
    "money and time and money",
    "time for people",
    None,
    "people like money",
    "world news for money",
    "",
]
TAGS = [["time", "world"], None, [], ["money", None], ["news"], ["people people"]]


def texts(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.string())


@pytest.fixture
def settings(spark, privatizer, tmp_path: Path) -> dict[str, Any]:
    """A table of two text columns, one of them a list, and levels of importance of words that are counted."""
    privatizer.lexicon.save(tmp_path / "lexicon")
    rows = [(i, body, tags) for i, (body, tags) in enumerate(zip(BODIES, TAGS, strict=True))]
    frame = spark.createDataFrame(rows, "id long, body string, tags array<string>")
    frame.repartition(3, "id").write.format("delta").save(str(tmp_path / "in"))
    return {
        "input": {"path": str(tmp_path / "in")},
        "columns": ["body", "tags"],
        "row_key": "id",
        "record_key": "id",
        "consistency": "record",
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "policy": {"stop_words": "draw"},
        "importance": {"levels": [{"share": 40, "epsilon": 0.5}, {"share": 20, "epsilon": 2}]},
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
    }


@pytest.mark.long
def test_levels_of_words_that_spark_counts(spark, settings: dict[str, Any], tmp_path: Path) -> None:
    config = parse_config(settings)
    facts = run(config, spark, key=KEY).facts
    assert facts["status"] == "succeeded"
    assert facts["consistency_audit"]["passed"] is True
    assert facts["guarantee"]["unit"] == "all occurrences of a word in a record"
    assert facts["ledger"]["columns"][0]["total"] is None
    # A word of several texts counts once: no bound stands in the place of the sum.
    assert facts["record_epsilon"]["basis"].startswith("the sum over the levels of importance")
    assert facts["restricted"]["not_chosen"] > 0
    # The model of the run is that whose texts are counted here.
    engine = prepare(config)[0].engine
    every = [*BODIES, *(tag for tags in TAGS for tag in tags or ())]
    found = [Frequencies.of(engine, texts(some)) for some in (every, BODIES)]
    counted, other = (prepare(config, frequencies=each)[0] for each in found)
    row = spark.read.format("delta").load(str(tmp_path / "out_audit/shareable/runs")).first()
    assert row["artifact"] == counted.fingerprint != other.fingerprint
    assert json.loads(row["config"])["importance"]["levels"][1]["epsilon"] == 2


@pytest.mark.long
def test_the_same_words_chosen_among_other_texts_are_other_draws_for_the_ledger(spark, settings) -> None:
    settings["importance"] = {"provider": "random", "percent": 30}
    asked = [parse_config({**settings, "columns": columns}) for columns in (["body"], ["body", "tags"])]
    plans = [prepare_run(spark, config, KEY, print) for config in asked]
    assert len({release_of(plan, source_of(plan), "body", "r") for plan in plans}) == 2


@pytest.mark.cluster
def test_weights_of_the_user_and_counts_of_a_frame(spark, privatizer, tmp_path: Path) -> None:
    rows = [(1, "time for people", [0.1, 0.2, 0.9]), (2, None, None), (3, "world world", [2.0, 1.0])]
    frame = spark.createDataFrame(rows, "id long, body string, w array<double>")
    own = with_importance(privatizer, Importance(provider="column", percent=30, weights=("w",)))
    options: dict[str, Any] = {"row_key": "id", "key": KEY, "run_id": "r"}
    out = dps.privatize(frame, ["body"], own, weights=["w"], **options)
    assert out.columns == ["id", "body"]
    bodies = [row["body"] for row in out.orderBy("id").collect()]
    assert bodies[0].startswith("time for ")
    assert bodies[2].endswith(" world")
    frame.withColumn("w", F.slice("w", 1, 1)).write.format("delta").save(str(tmp_path / "broken"))
    settings: dict[str, Any] = {
        "columns": ["body"],
        "row_key": "id",
        "importance": {"provider": "column", "percent": 30, "weights": "w"},
        "input": {"path": str(tmp_path / "broken")},
        "output": {"path": str(tmp_path / "none"), "other_columns": "keep"},
    }
    with pytest.raises(DataError, match=r"importance: [12] texts or weights in partition"):
        run(parse_config(settings), spark, key=KEY)
    uncounted = with_importance(privatizer, Importance(percent=30))
    for model, weights, kind, said in (
        (own, ["id"], DataError, r"importance.weights: column 'id' is of type bigint"),
        (own, [], SettingsError, r"^weights: "),
        (uncounted, [], SettingsError, "^model: .*document frequencies"),
    ):
        with pytest.raises(kind, match=said):
            dps.privatize(frame, ["body"], model, weights=weights, **options)
    counted = dps.document_frequencies(frame, ["body"], privatizer)
    here = Frequencies.of(privatizer.engine, texts([row[1] for row in rows]))
    assert (counted.digest, counted.documents) == (here.digest, 2)


BUDGET_KEY = RunKey.generate()
RECORD, DELTA = 0.25, 1e-9  # of six words: budgets of which some are masked


@pytest.mark.long
@pytest.mark.usefixtures("small_batches")
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
        "run": {"id": "one"},
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
    facts = run(config, spark, key=BUDGET_KEY).facts
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

    assert run(config, spark, key=BUDGET_KEY).status == "unchanged"
    with pytest.raises(DPTextError, match="budget"):
        run(
            parse_config({**settings, "budget": {"record": RECORD / 2, "delta": DELTA}}),
            spark,
            key=BUDGET_KEY,
        )
