"""A path that exists is a name: Spark's readers of files take signs in it for a pattern, and read other files in its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.config.locations import ELSEWHERE
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.table_files import AsText
from dptext_spark.randomness import RunKey
from dptext_spark.spark.job.entries import source_at
from dptext_spark.spark.runner import dry_run, run
from dptext_spark.spark.table_sample import read_sample
from dptext_spark.spark.tables import Target, checked_records, opened, read_input

KEY = RunKey.insecure(7)
NAMES = ["a[1]", "a{1,2}", "a*1", "a?1", "a %20#1", "a\\`]1"]
TEXTS = {"right": "Please call about the money, friend", "wrong": "The other file was read"}
FORMATS = {"csv": "csv", "tsv": "tsv", "json": "json", "parquet": "parquet", "text": "txt"}


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)


def write(file: Path, format: str, body: str) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    if format == "parquet":
        pq.write_table(pa.table({"id": [1, 2], "body": [body, body]}), file)
    elif format == "json":
        file.write_text("".join(json.dumps({"id": n, "body": body}) + "\n" for n in (1, 2)))
    elif format == "text":
        file.write_text(f"{body}\n" * 2)
    else:
        end = "\t" if format == "tsv" else ";"
        file.write_text(f"id{end}body\n" + "".join(f"{n}{end}{body}\n" for n in (1, 2)))
    return str(file)


def config_of(path: str, format: str, target: Path, **changes: Any) -> RunConfig:
    options = {"sep": ";"} if format == "csv" else {}
    settings = {
        "input": {"path": path, "format": format, "options": options}, "columns": ["value" if format == "text" else "body"],
        "row_key": None if format == "text" else "id",
        "output": {"path": str(target)},
    }  # fmt: skip
    return parse_config(settings | changes)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_folder", [False, True])
def test_every_reader_reads_the_file_of_that_name(spark, tmp_path: Path, name: str, is_folder: bool) -> None:
    for format, ending in FORMATS.items():
        file = tmp_path / format / f"{name}.{ending}"
        place = write(file / f"part {name}.{ending}" if is_folder else file, format, TEXTS["right"])
        place = str(file) if is_folder else place
        for other in ("a1", "a2", "a11"):
            write(file.with_name(f"{other}.{ending}"), format, TEXTS["wrong"])
        source = config_of(place, format, tmp_path / "out").input
        column = "value" if format == "text" else "body"
        df, version = read_input(spark, source, [column])
        assert {row[column] for row in df.collect()} == {TEXTS["right"]}, format
        assert checked_records(spark, source, df) in (0, None)
        assert source_at(spark, source, df, version, "r", None).place == place
        if not is_folder:
            sample = read_sample(place, format, AsText(header=True), spark=spark)
            assert (set(sample.rows[column].to_pylist()), sample.files) == ({TEXTS["right"]}, 1), format


@pytest.mark.long
@pytest.mark.parametrize("name", ["a[1]", "a {1,2}*?#%20`"])
def test_a_run_writes_reads_and_accounts_by_such_names(spark, tmp_path: Path, name: str) -> None:
    place = write(tmp_path / f"{name}.csv", "csv", TEXTS["right"])
    write(tmp_path / "a1.csv", "csv", TEXTS["wrong"])
    target = tmp_path / f"{name} out"
    settings = {"ledger": {"path": str(tmp_path / f"{name} ledger")}, "run": {"id": "r1"}}
    config = config_of(place, "csv", target, **settings)
    assert dry_run(config, lambda _: None).columns == ("id", "body")
    assert run(config, spark, key=KEY).status == "succeeded"
    assert run(config, spark, key=KEY).status == "unchanged"
    assert opened(spark, Target(path=str(target))).count() == 2
    assert (tmp_path / f"{name} ledger" / "_delta_log").is_dir()
    # A Delta table by that name, too, and a second release in the same target.
    settings["run"] = {"id": "r2", "second_release": "accept"}
    again = {"output": {"path": str(target), "mode": "append"}, **settings}
    second = config_of(str(target), "delta", tmp_path / f"{name} again")
    assert dry_run(second, lambda _: None).columns == ("id", "body")
    assert run(second, spark, key=KEY).status == "succeeded"
    assert run(config_of(place, "csv", target, **again), spark, key=KEY).status == "succeeded"
    assert opened(spark, Target(path=str(target))).count() == 4
    taken = tmp_path / f"{name} taken"
    write(taken / "x.csv", "csv", TEXTS["right"])
    with pytest.raises(SettingsError, match=r"output\.path"):
        run(config_of(place, "csv", taken), spark, key=KEY)


def test_what_is_not_there_is_a_pattern(spark, tmp_path: Path) -> None:
    for n in (1, 2):
        write(tmp_path / f"a{n}.csv", "csv", TEXTS["right"])
    for pattern in ("a[12].csv", "a{1,2}.csv", "a*.csv", "a?.csv"):
        source = config_of(str(tmp_path / pattern), "csv", tmp_path / "out").input
        df, version = read_input(spark, source, ["body"])
        assert (df.count(), source_at(spark, source, df, version, "r", None).place) == (4, str(tmp_path))


class TestAColon:
    @pytest.mark.parametrize("format", FORMATS)
    def test_in_the_name_of_a_file_is_refused_by_all_alike(self, spark, tmp_path: Path, format: str) -> None:
        folder = tmp_path / "in"
        place = write(folder / f"x 12:30.{FORMATS[format]}", format, TEXTS["right"])
        for path in (place, str(folder)):
            config = config_of(path, format, tmp_path / "out")
            for refuses in (
                lambda config=config: dry_run(config, lambda _: None),
                lambda config=config: run(config, spark, key=KEY),
                lambda path=path: read_sample(path, format, AsText(header=True), spark=spark),
            ):
                with pytest.raises(DataError, match="x 12:30") as refused:
                    refuses()
                assert "colon" in str(refused.value)

    @pytest.mark.long
    def test_in_the_name_of_a_folder_is_none(self, spark, tmp_path: Path, monkeypatch) -> None:
        write(tmp_path / "at 12:30" / "a.csv", "csv", TEXTS["right"])
        write(tmp_path / "b:c" / "a.csv", "csv", TEXTS["right"])
        monkeypatch.chdir(tmp_path)
        for place in (str(tmp_path / "at 12:30"), "b:c"):
            config = config_of(place, "csv", tmp_path / f"{Path(place).name}:out")
            assert run(config, spark, key=KEY).status == "succeeded"

    def test_beside_a_pattern_is_refused(self, spark, tmp_path: Path) -> None:
        write(tmp_path / "b:c" / "a.csv", "csv", TEXTS["right"])
        config = config_of(str(tmp_path / "b:c" / "*.csv"), "csv", tmp_path / "out")
        for refuses in (lambda: dry_run(config, lambda _: None), lambda: run(config, spark, key=KEY)):
            with pytest.raises(DataError, match="colon"):
                refuses()
