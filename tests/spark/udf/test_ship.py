"""A model's way to the workers: named by its content, shipped as often as one likes, opened with the draws it had."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.artifact import MANIFEST, read_manifest, save_model
from dptext_spark.model.machine_code import FILE, FOLDER, digest_of, make_code, trusted_code
from dptext_spark.randomness import RunKey
from dptext_spark.spark.column_function import UdfSpec, applied, replaced
from dptext_spark.spark.ship import Shipped, open_shipped, ship

TEXTS = pa.array(["the time of the day is now", "what he said about the house"])


def drawn(model) -> list[str]:
    texts, _ = model.privatize(TEXTS, column="body", row_ids=pa.array([1, 2]), key=RunKey.insecure(1))
    return texts.to_pylist()


def drawn_by_a_worker(spark, shipped: Shipped) -> list[str]:
    def work(frames: Iterator) -> Iterator:
        import pandas as pd

        for _ in frames:
            yield pd.DataFrame({"text": drawn(open_shipped(shipped))})

    return [row["text"] for row in spark.range(1).coalesce(1).mapInPandas(work, "text string").collect()]


def shipped_names(spark, prefix: str) -> set[str]:
    def there(_: int) -> list[str]:
        from pyspark import SparkFiles

        return os.listdir(SparkFiles.getRootDirectory())

    rows = spark.range(1).select(F.explode(F.udf(there, "array<string>")("id")).alias("name")).collect()
    return {row["name"] for row in rows if row["name"].startswith(prefix)}


@pytest.fixture
def folder(privatizer, tmp_path: Path) -> Path:
    save_model(privatizer, tmp_path / "model")
    return tmp_path / "model"


def test_file_names_hold_the_content_hash(spark, privatizer, folder: Path) -> None:
    shipped = ship(spark, folder)
    assert shipped.prefix == f"{read_manifest(folder).seal[:24]}-"
    expected = {f"{shipped.prefix}{name}" for name in os.listdir(folder)}
    assert shipped_names(spark, shipped.prefix) == expected
    assert len(expected) > 3
    assert drawn_by_a_worker(spark, shipped) == drawn(privatizer)


def test_a_model_ships_once_under_the_hash_of_its_content(spark, privatizer, privatizer_at, folder, tmp_path):
    """Equal arrays made from other settings ship beside, as in a notebook that takes `privatize` and then `run`."""
    save_model(privatizer, tmp_path / "copy")
    save_model(privatizer, tmp_path / "job", spec={"mechanism": "custext"})
    save_model(privatizer_at("record"), tmp_path / "record")
    first = ship(spark, folder)
    assert ship(spark, folder) == ship(spark, tmp_path / "copy") == first
    beside = [ship(spark, tmp_path / name) for name in ("job", "record")]
    assert len({first.prefix, *(shipped.prefix for shipped in beside)}) == 3
    for shipped in (first, beside[0]):
        assert drawn_by_a_worker(spark, shipped) == drawn(privatizer)


def test_a_path_is_opened_where_it_lies(spark, privatizer, folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder.parent)
    before = shipped_names(spark, "")
    shipped = ship(spark, "model", "path")
    assert shipped == Shipped(str(folder.resolve()), "", seal=read_manifest(folder).seal)
    assert shipped_names(spark, "") == before
    assert drawn_by_a_worker(spark, shipped) == drawn(privatizer)


def test_an_unknown_mode_is_refused(spark, folder: Path) -> None:
    with pytest.raises(SettingsError, match=r"run\.ship: 'paths' .* Choose artifact, path or broadcast"):
        ship(spark, folder, "paths")


@pytest.mark.parametrize("how", ["artifact", "path"])
def test_a_folder_without_a_model_is_refused(spark, tmp_path: Path, how: str) -> None:
    with pytest.raises(DataError, match=f"has no readable {MANIFEST}"):
        ship(spark, tmp_path, how)


def test_a_broadcast_draws_the_same_and_is_made_once(spark, privatizer, folder: Path) -> None:
    """It travels beside the function, not in it: a closure past 1 MB would be written to disk, with the key."""
    shipped = ship(spark, folder, "broadcast")
    assert drawn_by_a_worker(spark, shipped) == drawn(privatizer)
    assert ship(spark, folder, "broadcast") == shipped
    df = spark.createDataFrame([(1, TEXTS[0].as_py()), (2, TEXTS[1].as_py())], "id long, body string")
    job = UdfSpec(("body",), shipped, RunKey.insecure(1), "", True, False)
    for udf in ("auto", "pandas"):
        out = replaced(applied(df, job, udf, F.col("id"), None), job, ["id", "body"])
        assert [row["body"] for row in out.orderBy("id").collect()] == drawn(privatizer)


def test_spark_connect_has_no_broadcasts(folder: Path) -> None:
    with pytest.raises(SettingsError, match=r"run\.ship: broadcast"):
        ship(object(), folder, "broadcast")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made_code(privatizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code") / "model"
    save_model(privatizer, folder)
    make_code(folder)
    return folder


@pytest.fixture
def with_code(made_code: Path, tmp_path: Path) -> Path:
    """A copy of one model and its code: some tests harm them."""
    return shutil.copytree(made_code, tmp_path / "model")


def given_to_a_worker(spark, shipped: Shipped) -> tuple[int, list[str]]:
    """How many folders of machine code a worker has when it opened a model, and what it drew."""

    def work(frames: Iterator) -> Iterator:
        import pandas as pd

        from dptext_spark.runtime import jit

        for _ in frames:
            jit._state.attached.clear()
            texts = drawn(open_shipped(shipped))
            yield pd.DataFrame({"folders": [len(jit._state.attached)], "texts": [texts]})

    df = spark.range(1).coalesce(1).mapInPandas(work, "folders long, texts array<string>")
    (row,) = df.collect()
    return row["folders"], row["texts"]


@pytest.mark.long
@pytest.mark.parametrize("how", ["artifact", "path", "broadcast"])
def test_machine_code_reaches_the_workers(spark, privatizer, with_code: Path, how) -> None:
    code = trusted_code(with_code)
    assert code is not None
    shipped = ship(spark, with_code, how)
    assert shipped.code == digest_of(code)
    assert given_to_a_worker(spark, shipped) == (1, drawn(privatizer))


@pytest.mark.long
@pytest.mark.parametrize("how", ["artifact", "path", "broadcast"])
def test_machine_code_that_is_not_whole_is_not_used(spark, privatizer, with_code: Path, how) -> None:
    file = with_code / FOLDER / FILE
    file.write_bytes(file.read_bytes()[:-1])
    assert given_to_a_worker(spark, ship(spark, with_code, how)) == (0, drawn(privatizer))


@pytest.mark.long
@pytest.mark.parametrize("harm", ["changed", "missing"])
def test_machine_code_that_changes_after_it_was_sent_is_not_used(spark, privatizer, with_code, harm) -> None:
    shipped = ship(spark, with_code, "path")
    file = with_code / FOLDER / FILE
    content = file.read_bytes()
    file.unlink()
    if harm == "changed":
        file.write_bytes(content + b"\n")
    assert given_to_a_worker(spark, shipped) == (0, drawn(privatizer))


def test_machine_code_that_nobody_vouches_for_is_not_sent(spark, folder: Path) -> None:
    """What is sent is chosen by the digest alone; nobody looks inside before a worker does."""
    (folder / FOLDER).mkdir()
    (folder / FOLDER / FILE).write_bytes(b"any code")
    digest = digest_of(b"any code")
    assert ship(spark, folder, "path", vouched=digest).code == digest
    assert ship(spark, folder, "path", vouched="0" * 64).code == ""
