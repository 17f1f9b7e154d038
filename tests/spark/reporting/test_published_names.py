"""Counts of names that are published: capped by record, drawn once, charged once, whatever breaks in between."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dptext_spark.config.ledger_place import ledger_on_disk
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DataError, RunError, SettingsError
from dptext_spark.ledger.entry import COUNTS
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.randomness.draws import RunKey
from dptext_spark.report.sections.published import Published
from dptext_spark.spark.job import ledger, runs
from dptext_spark.spark.reporting import report as reporting
from dptext_spark.spark.reporting.names import capped_names
from dptext_spark.spark.reporting.report import Account, Wanted, report_facts
from dptext_spark.spark.runner import run
from dptext_spark.text.chunks import padded
from dptext_spark.text.names.public_names import parts_of_names
from tests.core.names import beginning

ROWS: list[tuple[int, str, str | None, list[str] | None]] = [
    (0, "c1", "Mrs. Ada Lovelace called in London", ["Ada Lovelace", "Robert"]), (1, "c1", "time for Dr. Lovelace", []),
    (2, "c2", "we met Robert", None), (3, "c2", None, ["in Paris"]), (4, "c3", "no name here", ["", "people"]),
]  # fmt: skip
WORDS = re.compile(r"\b(lovelace|ada|robert)\b", re.IGNORECASE)  # a digest may hold "ada"


@pytest.fixture(scope="module")
def folder(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("published")
    frame = session.createDataFrame(ROWS, "id long, customer string, body string, notes array<string>")
    frame.write.format("delta").save(str(made / "in"))
    beginning(Lexicon.default(), 300).save(made / "lexicon")
    return made


@pytest.fixture(scope="module")
def finished(session: SparkSession, folder: Path) -> RunConfig:
    """The settings of a run, which is made once; London and Paris stay."""
    made = parse_config({
        "input": {"path": str(folder / "in")}, "columns": ["body", "notes"], "row_key": "id", "record_key": "customer",
        "lexicon": {"source": str(folder / "lexicon")}, "mechanism": {"name": "custext", "epsilon": 2.0, "k": 5},
        "policy": {"names": {"lists": True, "location": "keep"}, "oov": "keep"},
        "output": {"path": str(folder / "out"), "other_columns": "keep"},
        "run": {"id": "named"},
    })  # fmt: skip
    run(made, session, key=RunKey.generate())
    shutil.copytree(folder, folder.with_name("as-written"))
    return made


@pytest.fixture
def config(session: SparkSession, finished: RunConfig, folder: Path) -> RunConfig:
    """The settings, and all tables as the run left them: a test adds to the ledger, the account and the input."""
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("as-written"), folder)
    jvm: Any = session.sparkContext._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return finished


@pytest.fixture(autouse=True)
def noise(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Noise that counts its draws, so that a second draw would show; the true count of each."""
    true: list[int] = []

    def publish(metric: str, count: int, epsilon: float, most: int, at: str) -> Published:
        true.append(count)
        return Published(metric, 1000 * len(true), epsilon, most, 1.0, at)

    monkeypatch.setattr(reporting, "publish", publish)
    return true


def published(
    spark: SparkSession, config: RunConfig, *asked: str, most: int = 2
) -> list[tuple[str, int, float]]:
    wanted = Wanted(publish=asked, most_names=most)
    facts = report_facts("named", Account.of(config, None), wanted, spark, examine=False)
    return [(one.metric, one.value, one.epsilon) for one in facts.published]


def spent(spark: SparkSession, config: RunConfig) -> list[tuple[str, float, str]]:
    entries = ledger.entries_of(spark, ledger_on_disk(config.input, config.ledger)).entries
    return [(one.unit, one.epsilon, one.status) for one in entries if one.column == COUNTS]


def test_counts_are_capped_by_record(spark: SparkSession, config: RunConfig) -> None:
    by_customer: dict[str, int] = {}
    for _, customer, body, notes in ROWS:
        for text in (body, "\n".join(notes or [])):
            found = parts_of_names(*padded(pa.array([text], pa.string())))
            by_customer[customer] = by_customer.get(customer, 0) + len(found)
    assert by_customer == {"c1": 7, "c2": 2, "c3": 0}
    record = report_facts("named", Account.of(config, None), spark=spark, examine=False).run
    for most in (1, 2, 5, 100):
        counted = capped_names(spark, config, record, most, lambda step, share: None)
        # Of each customer one town stays; no other name does.
        assert counted == {
            "names_found": sum(min(one, most) for one in by_customer.values()),
            "names_kept": 2,
        }


def test_a_figure_is_drawn_and_charged_once(spark: SparkSession, config: RunConfig, noise: list[int]) -> None:
    first = published(spark, config, "names_kept=0.5")
    assert (first, noise) == ([("names_kept", 1000, 0.5)], [2])
    assert published(spark, config, "names_kept=9", most=1) == first
    both = published(spark, config, "names_found=0.25", "names_kept=0.5")
    assert sorted(both) == [("names_found", 2000, 0.25), ("names_kept", 1000, 0.5)]
    assert published(spark, config) == both
    assert spent(spark, config) == [("a record", 0.5, "spent"), ("a record", 0.25, "spent")]
    assert noise == [2, 4]
    facts = report_facts("named", Account.of(config, None), spark=spark, examine=False)
    said = facts.statement.markdown()
    assert "Together ε = 0.75 for a record, on top" in said
    assert not WORDS.search(said + str(facts.as_dict()))


@pytest.mark.cluster
@pytest.mark.parametrize("broken", ["reserve_counts", "put_published", "settle"])
def test_what_breaks_leaves_no_second_draw(
    spark: SparkSession, config: RunConfig, noise: list[int], monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fails(*_: Any) -> None:
        raise RunError("the driver died")

    with monkeypatch.context() as patched:
        patched.setattr(runs if broken == "put_published" else ledger, broken, fails)
        with pytest.raises(RunError, match="the driver died"):
            published(spark, config, "names_kept=0.5")
    if broken == "reserve_counts":
        # Nothing was charged or shown: what was drawn is gone with the driver.
        assert spent(spark, config) == []
        assert published(spark, config) == []
        assert published(spark, config, "names_kept=0.5") == [("names_kept", 2000, 0.5)]
        assert spent(spark, config) == [("a record", 0.5, "spent")]
        return
    assert spent(spark, config) == [("a record", 0.5, "reserved")]
    # Charged, and perhaps shown: whoever asks sees the same figure, at any ε, and pays nothing.
    assert published(spark, config, "names_kept=3", most=9) == [("names_kept", 1000, 0.5)]
    assert published(spark, config, "names_kept=3") == [("names_kept", 1000, 0.5)]
    assert spent(spark, config) == [("a record", 0.5, "reserved")]
    assert noise == [2]


@pytest.mark.cluster
def test_two_that_ask_at_once_show_one_figure(
    spark: SparkSession, config: RunConfig, noise: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ledger.reserve_counts

    def second_first(*given: Any) -> ledger.Reservation:
        monkeypatch.setattr(ledger, "reserve_counts", real)
        assert published(spark, config, "names_kept=0.5") == [("names_kept", 2000, 0.5)]
        return real(*given)

    monkeypatch.setattr(ledger, "reserve_counts", second_first)
    assert published(spark, config, "names_kept=0.5") == [("names_kept", 2000, 0.5)]
    assert published(spark, config) == [("names_kept", 2000, 0.5)]
    assert spent(spark, config) == [("a record", 0.5, "spent")]
    assert noise == [2, 2]


def test_what_cannot_be_counted_is_refused(spark: SparkSession, config: RunConfig, noise: list[int]) -> None:
    account = Account.of(None, f"{config.output.path}_audit")
    with pytest.raises(SettingsError, match="publish: needs --config with the row_key of the run"):
        report_facts("named", account, Wanted(publish=("names_kept=1",)), spark, examine=False)
    other = config.model_copy(update={"record_key": "id"})
    with pytest.raises(
        SettingsError, match="record_key: the settings of --config are not those of run named"
    ):
        published(spark, other, "names_found=1")
    assert config.input.path is not None
    spark.createDataFrame([ROWS[0]], spark.read.format("delta").load(config.input.path).schema).write.format(
        "delta"
    ).mode("append").save(config.input.path)
    with pytest.raises(DataError, match=r"publish: the input is delta:\d+ now, .*; names cannot be counted"):
        published(spark, config, "names_found=1")
    assert spent(spark, config) == []
    assert noise == []
