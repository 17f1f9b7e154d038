"""The lazy function counts a row's drawn words over its columns and list elements, and refuses records of several rows."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dptext_spark import spark as dps
from dptext_spark.errors import SettingsError
from dptext_spark.importance.budget import Budget
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.compile import compile
from dptext_spark.randomness.draws import RunKey
from dptext_spark.text.policy import Policy
from tests.core.names import beginning


def test_words_beyond_the_cap_are_masked_over_the_whole_row(spark: SparkSession) -> None:
    lexicon = beginning(Lexicon.default(), 6)
    budget = Budget(record=1.0, delta=0.01)
    model = compile(CusText(epsilon=2.0, k=3), lexicon, Policy(stop_words="draw"), budget=budget)
    assert model.selector is not None
    word, cap = lexicon.vocabulary.word(0), int(model.selector.arrays()["budget.most"][-1])
    rows = [(1, " ".join([word] * cap), [word, word], 7), (2, word, [], 7)]
    df = spark.createDataFrame(rows, "id long, body string, notes array<string>, person long")
    key = RunKey.insecure(1)
    made = dps.privatize(df, ["body", "notes"], model, row_key="id", key=key).orderBy("id").collect()
    assert "[BGT]" not in made[0]["body"]
    assert made[0]["notes"] == ["[BGT]", "[BGT]"]
    assert "[BGT]" not in made[1]["body"]
    with pytest.raises(SettingsError, match="record_key: 'person' given with a budget"):
        dps.privatize(df, ["body"], model, row_key="id", record_key="person", key=key)
