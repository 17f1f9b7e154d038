"""`Privatize` in a `pyspark.ml` pipeline: the frame of `privatize`, saved and loaded without its key, and what is refused."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import Tokenizer
from pyspark.sql import DataFrame

from dptext_spark import spark as dps
from dptext_spark.errors import DataError, DPTextError, RunError, SettingsError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.spark import pipeline

TEXTS = ("good news about the time zorblax", "", None, "the people of the day said: what, NOW?")


@pytest.fixture
def df(spark: Any) -> DataFrame:
    rows = [(i, f"c{i % 3}", TEXTS[i % 4], i % 2) for i in range(12)]
    return spark.createDataFrame(rows, "id long, customer string, body string, stars int")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "run.key"
    path.write_bytes(os.urandom(32))
    path.chmod(0o600)
    return path


@pytest.fixture
def stage(privatizer: Privatizer, key: Path) -> dps.Privatize:
    return (
        dps.Privatize(privatizer)
        .setInputCols(["body"])
        .setRowKey("id")
        .setRunId("first")
        .setKeyFile(str(key))
    )


def test_it_is_the_frame_of_privatize(
    df: DataFrame, stage: dps.Privatize, privatizer: Privatizer, key: Path
) -> None:
    expected = dps.privatize(
        df, ["body"], privatizer, row_key="id", run_id="first", key=RunKey.from_file(key)
    )
    found = stage.transform(df)
    assert found.schema == expected.schema
    assert sorted(found.collect()) == sorted(expected.collect())
    other = stage.transform(df, {stage.runId: "second"})
    assert sorted(other.collect()) != sorted(expected.collect())


def test_records_are_those_of_the_record_key(
    df: DataFrame, privatizer_at: Callable[[str], Privatizer], key: Path
) -> None:
    model = privatizer_at("record")
    stage = (
        dps.Privatize()
        .setModel(model)
        .setInputCols(["body"])
        .setRowKey("id")
        .setRecordKey("customer")
        .setKeyFile(str(key))
    )
    expected = dps.privatize(
        df, ["body"], model, row_key="id", record_key="customer", key=RunKey.from_file(key)
    )
    assert sorted(stage.transform(df).collect()) == sorted(expected.collect())


def test_a_pipeline_is_saved_and_loaded_without_its_key(
    spark: Any,
    df: DataFrame,
    stage: dps.Privatize,
    key: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "PIECE", 1000)  # so that every file has several rows
    texts = df.na.fill("")
    fitted = Pipeline(stages=[stage, Tokenizer(inputCol="body", outputCol="words")]).fit(texts)
    expected = sorted(fitted.transform(texts).collect())
    fitted.write().save(str(tmp_path / "saved"))
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path / "cache"))  # as on another machine
    found = PipelineModel.load(str(tmp_path / "saved"))
    assert sorted(found.transform(texts).collect()) == expected
    loaded = found.stages[0]
    assert loaded.uid == stage.uid
    assert {one.name: value for one, value in loaded.extractParamMap().items()} == {
        "inputCols": ["body"], "rowKey": "id", "runId": "first", "keyFile": str(key), "keyDeliver": "closure", "udf": "auto",
        "weights": [],
    }  # fmt: skip
    secret = key.read_bytes()
    saved = [file for file in (tmp_path / "saved").rglob("*") if file.is_file()]
    assert len(saved) > 4
    for said in (secret, secret.hex().encode()):
        assert [file for file in saved if said in file.read_bytes()] == []
    key.unlink()
    with pytest.raises(SettingsError, match="key"):
        found.transform(texts)


def test_what_is_saved_is_replaced_only_when_asked(spark: Any, stage: dps.Privatize, tmp_path: Path) -> None:
    stage.save(str(tmp_path / "saved"))
    with pytest.raises(RunError, match="Spark failed with PATH_ALREADY_EXISTS"):
        stage.save(str(tmp_path / "saved"))
    stage.setRunId("second").write().overwrite().save(str(tmp_path / "saved"))
    loaded = dps.Privatize.load(str(tmp_path / "saved"))
    assert loaded.getOrDefault(loaded.runId) == "second"


def test_what_is_damaged_is_not_loaded(
    spark: Any, stage: dps.Privatize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = str(tmp_path / "saved")
    stage.save(saved)
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path / "cache"))
    pieces = spark.read.parquet(f"{saved}/model").toArrow()
    rows = pieces.to_pylist()
    for number, wrong in enumerate(
        (rows[1:], [{**rows[0], "name": "../up.npy"}, *rows], [{**rows[0], "piece": 1}, *rows[1:]])
    ):
        other = tmp_path / f"wrong{number}"
        spark.createDataFrame(pieces.from_pylist(wrong, pieces.schema)).write.parquet(f"{other}/model")
        (other / "metadata").symlink_to(tmp_path / "saved" / "metadata")
        with pytest.raises(DataError):
            dps.Privatize.load(str(other))
    assert not (tmp_path / "up.npy").exists()
    Tokenizer(inputCol="body", outputCol="words").save(str(tmp_path / "other"))
    with pytest.raises(DataError, match="holds no stage of Privatize"):
        dps.Privatize.load(str(tmp_path / "other"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: one.clear(one.inputCols), "inputCols: none set"),
        (lambda one: one.clear(one.runId), "runId: none set, and token-level draws hang on it"),
        (lambda one: one.clear(one.keyFile), "keyFile: none set, nor keyEnv"),
        (lambda one: one.setKeyEnv("DPTEXT_KEY"), "key: file and env given"),
        (lambda one: one.setKeyDeliver("driver"), "key.deliver"),
        (lambda one: one.setUdf("jvm"), "run.udf"),
        (lambda one: one.setRunId("a b"), "run.id"),
        (lambda one: one.setModel(None), "model: none set"),
        (lambda one: one.clear(one.keyFile) or one.setKeyEnv("0" * 64), "key.env"),
    ],
)
def test_what_is_missing_or_wrong_is_neither_saved_nor_used(
    df: DataFrame, stage: dps.Privatize, tmp_path: Path, change: Callable[[dps.Privatize], object], said: str
) -> None:
    change(stage)
    for use in (lambda: stage.transform(df), lambda: stage.save(str(tmp_path / "saved"))):
        with pytest.raises(DPTextError) as error:
            use()
        assert said in str(error.value)
        assert "0" * 64 not in str(error.value)
    assert not (tmp_path / "saved").exists()


def test_columns_are_a_list(stage: dps.Privatize) -> None:
    with pytest.raises(SettingsError, match="inputCols: 'body' given; valid: a list"):
        stage.setInputCols("body")


def test_a_pyspark_without_ml_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.ml", None)
    with pytest.raises(
        SettingsError, match=r"Privatize: this pyspark has no pyspark\.ml .*valid here: dps\.privatize"
    ):
        runpy.run_path(pipeline.__file__)
