"""The examples of `dptext_spark.spark` run on a small table, one after the other in one session."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from pyspark.sql import functions

import dptext_spark as dp
from tests.core.examples import failures

SETTINGS = """
input: {{path: {folder}/reviews}}
columns: [body]
row_key: ticket_id
mechanism: {{name: custext, epsilon: 2.0}}
output: {{path: {folder}/reviews_sanitized}}
"""


@pytest.mark.cluster
def test_the_examples_on_spark_run(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sample = dp.tickets(20).select(["ticket_id", "body"])
    spark.createDataFrame(sample.to_pandas()).write.format("delta").save(str(tmp_path / "reviews"))
    (tmp_path / "reviews.yaml").write_text(SETTINGS.format(folder=tmp_path), encoding="utf-8")
    model = dp.compile(dp.CusText(epsilon=2.0), dp.Lexicon.default())
    names = {"dp": dp, "model": model, "lexicon": dp.Lexicon.default()}
    monkeypatch.setenv("DPTEXT_KEY", secrets.token_hex(32))
    over_arrow = hasattr(functions, "arrow_udf")
    left_out = () if over_arrow else ("dps.register", "dps.Registration")  # for Spark 4.1 and later
    assert failures("dps", names, left_out) == ""
