"""The parts of the consistency audit: its sample, its groups, and what it calls broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from dptext_spark.model.artifact import save_model
from dptext_spark.randomness import RunKey
from dptext_spark.spark.job.writing import audit
from dptext_spark.spark.pair_tables import MISFITS, SCOPES, PairTables, Wanted, sample_of
from dptext_spark.spark.ship import Shipped
from dptext_spark.spark.spark_errors import TaskError

KEY = RunKey.insecure(3)
WORDS = ("the", "time", "day", "about", "house")


class TestTheSample:
    def share(self, spark, key: RunKey, share: float, scope: str = "id") -> set[int]:
        frame = spark.range(4000).withColumn("text", F.concat(F.lit("c"), "id"))
        frame = frame.withColumn("scope", F.col(scope))
        return {row["id"] for row in sample_of(frame, key, share).collect()}

    @pytest.mark.parametrize("scope", ["id", "text"])
    def test_is_a_keyed_share_of_the_scopes(self, spark, scope: str) -> None:
        taken = self.share(spark, KEY, 0.25, scope)
        # 1000 expected; 6 standard deviations of a binomial: 27.4.
        assert abs(len(taken) - 1000) < 165
        other = self.share(spark, RunKey.insecure(4), 0.25, scope)
        assert abs(len(taken & other) - 250) < 6 * 15.3


class TestPairs:
    @pytest.fixture
    def pairs(self, privatizer_at, tmp_path: Path) -> Callable[..., pa.Table]:
        save_model(privatizer_at("record"), tmp_path / "model")

        def paired(*rows: tuple, level: str = "record", columns: int = 1, kind: object = None) -> pa.Table:
            names = ["scope", *(f"{side}{i}" for i in range(columns) for side in "so")]
            kinds = [pa.string(), *[kind or pa.string()] * 2 * columns]
            arrays = [pa.array(values, of) for values, of in zip(zip(*rows, strict=True), kinds, strict=True)]
            job = PairTables(Shipped(str(tmp_path / "model"), ""), KEY, columns, wanted=Wanted(exact=level))
            return pa.Table.from_batches(job(iter([pa.RecordBatch.from_arrays(arrays, names=names)])))

        return paired

    @pytest.mark.parametrize(
        ("rows", "level", "columns", "sizes"),
        [
            ([("a", "The time, the", "Day house, day"), ("a", "time the", "house day")], "record", 1, [1, 1]),
            ([("a", "the time the", "day house about")], "record", 1, [1, 2]),
            ([("a", "the", "day"), ("b", "the", "house")], "record", 1, [1, 1]),
            ([("a", "the", "day"), ("b", "the", "house")], "dataset", 1, [2]),
            ([("a", "the", "day", "the", "house")], "record", 2, [2]),  # columns share the groups
            ([("a", None, None), ("b", "", ""), ("c", "the", "day")], "record", 1, [1]),
            ([("a", ["the", None, "the time"], ["day", None, "house day"])], "record", 1, [1, 2]),
        ],
    )
    def test_groups_have_so_many_replacements(self, pairs, rows, level, columns, sizes) -> None:
        kind = pa.list_(pa.string()) if isinstance(rows[0][1], list) else None
        found = pairs(*rows, level=level, columns=columns, kind=kind)
        assert misfits(found) == 0
        groups = groups_of(found, level)
        assert sorted(len({one["replacement"] for one in groups if one["words"] == words}) for words in {
            one["words"] for one in groups
        }) == sizes  # fmt: skip

    def test_scopes_that_were_seen(self, pairs) -> None:
        found = pairs(("a", "the", "day"), ("b", "time", "day"), ("a", None, None))
        assert sorted(one["n"] for one in groups_of(found, SCOPES)) == [1, 2]

    @pytest.mark.parametrize(
        ("source", "output"),
        [("the time", "day"), ("the", "day house"), ("the, time", "day time"), ("12 the", "x the"),
         ("the", None), (None, "the"), ("", None), (None, "")],
    )  # fmt: skip
    def test_texts_that_are_not_their_source_with_words_replaced(self, pairs, source, output) -> None:
        found = pairs(("a", source, output), ("a", "the", "day"))
        assert misfits(found) == 1

    @pytest.mark.parametrize(
        ("source", "output", "number"),
        [
            (["the, time"], ["day, house"], 0), (["the", None, ""], ["day", None, ""], 0), (None, None, 0), ([], [], 0),
            (["the", "time"], ["day"], 1), (["the", None], ["day", ""], 1), ([], None, 1), (["the,", "the,"], ["day", "day"], 2),
        ],
    )  # fmt: skip
    def test_each_text_of_a_list_is_its_source_with_words_replaced(self, pairs, source, output, number):
        found = pairs(("a", source, output), ("a", ["the"], ["day"]), kind=pa.list_(pa.string()))
        assert misfits(found) == number

    def test_groups_and_replacements_hold_no_word(self, pairs) -> None:
        found = pairs(("a", "the time", "day house"))
        raw = repr(found.to_pylist()).encode()
        assert not [word for word in WORDS if word.encode() in raw]
        assert {len(one["words"]) for one in groups_of(found, "record")} == {16}

    def test_what_fails_says_nothing_of_the_text(self, pairs) -> None:
        with pytest.raises(TaskError, match=r"DPTEXT\[AUDIT_\w+\]") as caught:
            pairs((None, "zanzibar", "day"))
        assert "zanzibar" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


def groups_of(found: pa.Table, level: str) -> list[dict]:
    return [one for one in found.column("group").to_pylist() if one is not None and one["level"] == level]


def misfits(found: pa.Table) -> int:
    counts = [one for one in found.column("count").to_pylist() if one is not None]
    assert {one["name"] for one in counts} <= {MISFITS}
    return sum(one["n"] for one in counts)


@pytest.mark.parametrize(("level", "row_key"), [("token", "id"), ("record", None)])
def test_an_audit_that_did_not_run_is_not_called_passed(level, row_key) -> None:
    settings = SimpleNamespace(consistency=level, row_key=row_key)
    told: list[str] = []
    found = audit(SimpleNamespace(config=settings), 0, 1, told.append)  # type: ignore[arg-type]
    assert found.said
    assert (found.problems, told, found.passed) == ([], [], None)
