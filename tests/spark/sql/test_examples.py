"""The dbt model and the Airflow DAG of the documentation, run as dbt and Airflow would; neither is installed."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
import yaml
from pyspark.sql import functions

from dptext_spark.cli.app import main
from dptext_spark.ledger.entry import SPENT
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.artifact import save_model
from dptext_spark.randomness import RunKey
from dptext_spark.spark.frame import privatize
from dptext_spark.spark.job.entries import entries_of
from tests.core.names import beginning
from tests.core.unstyled import UNSTYLED
from tests.docs.pages import DOCS, blocks

EXAMPLES = DOCS / "examples"
TEXTS = ("good news about the time zorblax", "", None, "the people of the day said: what, NOW?")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "run.key"
    path.write_bytes(os.urandom(32))
    path.chmod(0o600)
    return path


@pytest.fixture
def reviews(spark: Any) -> Iterator[Any]:
    rows = [(i, f"c{i % 3}", TEXTS[i % 4]) for i in range(8)]
    spark.sql("CREATE SCHEMA IF NOT EXISTS shop")
    frame = spark.createDataFrame(rows, "review_id long, customer string, body string")
    frame.write.format("delta").saveAsTable("shop.reviews")
    yield spark.table("shop.reviews")
    spark.sql("DROP SCHEMA shop CASCADE")
    spark.sql("DROP TEMPORARY FUNCTION IF EXISTS dptext")


class Config:
    def __init__(self, given: dict[str, str]) -> None:
        self.given, self.set = given, {}

    def __call__(self, **settings: object) -> None:
        self.set |= settings

    def get(self, name: str, default: object = None) -> object:
        return self.given.get(name, default)


@dataclass
class Dbt:
    config: Config
    tables: dict[str, Any]

    def ref(self, name: str) -> Any:
        return self.tables[name]

    def source(self, schema: str, name: str) -> Any:
        return self.tables[f"{schema}.{name}"]


@pytest.mark.long
@pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has no functions over Arrow")
def test_the_dbt_model_returns_what_a_run_writes(spark, reviews, privatizer, key: Path, tmp_path) -> None:
    save_model(privatizer, tmp_path / "model")
    (block,) = blocks(DOCS / "guide" / "sql.md", "yml")
    (described,) = yaml.safe_load(block)["models"]
    places = {"dptext_model": tmp_path / "model", "dptext_key": key, "dptext_ledger": tmp_path / "ledger"}
    given = {**described["config"], **{name: str(place) for name, place in places.items()}}
    model = runpy.run_path(str(EXAMPLES / "dbt_model.py"))["model"]
    dbt = Dbt(Config(given), {"reviews": reviews})
    for _ in range(2):  # a second dbt run of the same project
        found = model(dbt, spark).collect()
        named = {"row_key": "review_id", "run_id": "spring", "key": RunKey.from_file(key)}
        expected = privatize(reviews, ["body"], privatizer, **named)
        assert sorted(found) == sorted(expected.collect())
    assert dbt.config.set == {"materialized": "table"}
    entries = entries_of(spark, str(tmp_path / "ledger")).entries
    assert [one.status for one in entries] == [SPENT, SPENT]
    assert len({one.spend for one in entries}) == 1


@dataclass
class Operator:
    made: ClassVar[list[Operator]] = []
    task_id: str
    bash_command: str
    after: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.made.append(self)

    def __rshift__(self, other: Operator) -> Operator:
        other.after.append(self.task_id)
        return other


@dataclass
class Dag:
    dag_id: str
    schedule: str
    start_date: object
    catchup: bool
    max_active_runs: int
    params: dict[str, str]
    default_args: dict[str, object]

    def __enter__(self) -> Dag:
        return self

    def __exit__(self, *_: object) -> None:
        return None


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[str], list[str]]]:
    """The DAG's tasks in their order: the words of each command on a day."""
    names = ["airflow", "airflow.sdk", "airflow.providers", "airflow.providers.standard"]
    names += ["airflow.providers.standard.operators", "airflow.providers.standard.operators.bash"]
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["airflow.sdk"].DAG = Dag  # type: ignore[attr-defined]
    sys.modules[names[-1]].BashOperator = Operator  # type: ignore[attr-defined]
    monkeypatch.setattr(Operator, "made", [])
    dag = runpy.run_path(str(EXAMPLES / "airflow_dag.py"))["dag"]
    first, second = Operator.made
    assert second.after == [first.task_id]
    assert dag.default_args["retries"] == 2

    def words(operator: Operator) -> Callable[[str], list[str]]:
        def on(day: str) -> list[str]:
            command = operator.bash_command.replace("{{ params.settings }}", dag.params["settings"])
            command = command.replace("{{ ds_nodash }}", day)
            assert not re.search(r"[{}]", command)
            return shlex.split(command)

        return on

    return {one.task_id: words(one) for one in Operator.made}


@pytest.mark.cluster
def test_the_airflow_tasks_run_and_may_be_tried_again(spark, reviews, key, tmp_path, tasks, capsys) -> None:
    beginning(Lexicon.default(), 600).save(tmp_path / "lexicon")
    settings: dict[str, Any] = {
        **UNSTYLED, "input": {"table": "shop.reviews"}, "columns": ["body"], "row_key": "review_id", "consistency": "record",
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep", "mode": "overwrite"},
        "key": {"file": str(key)}, "ledger": {"path": str(tmp_path / "ledger")},
    }  # fmt: skip
    (tmp_path / "reviews.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    places = {"/etc/dptext/reviews.yaml": f"{tmp_path}/reviews.yaml"}
    places["/data/ledgers/reviews"] = f"{tmp_path}/ledger"
    written = []
    for day in ("20260101", "20260101", "20260102"):
        for command in tasks.values():
            program, *words = [places.get(word, word) for word in command(day)]
            assert program == "dptext"
            assert main(words) == 0
        table = spark.read.format("delta").load(str(tmp_path / "out"))
        versions = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path}/out`").count()
        written.append((sorted(map(tuple, table.collect()), key=str), versions))
    assert written[0] == written[1]  # the second try wrote no other version
    assert written[2][0] == written[1][0]  # the key lasts, so that at record level the draws do, too
    assert written[2][1] == written[1][1] + 1
    entries = entries_of(spark, str(tmp_path / "ledger")).entries
    assert {one.run_id for one in entries} == {"reviews-20260101", "reviews-20260102"}
    assert len({one.spend for one in entries}) == 1
    capsys.readouterr()
