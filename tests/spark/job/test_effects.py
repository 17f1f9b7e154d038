"""Every external effect of a run is known: whatever appears or changes on disk does so between a before and its after."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DPTextError
from dptext_spark.randomness import RunKey
from dptext_spark.spark.job.job import run_once
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.stream import stream
from tests.spark.effects import OF_A_RUN, Effect, observed

KEY = RunKey(hashlib.sha256(b"effects").digest())


def points(*effects: Effect) -> list[str]:
    return [point for effect in effects for point in (effect.before, effect.after)]


class Watched:
    """What lies on the disk at each point: files by their name, size and time."""

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        self.seen: list[tuple[str, set[tuple[str, int, int]]]] = [("the beginning", self._there())]

    def _there(self) -> set[tuple[str, int, int]]:
        files = [file for folder in self.folders for file in folder.rglob("*") if file.is_file()]
        return {(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files}

    def __call__(self, point: str) -> None:
        self.seen.append((point, self._there()))

    @property
    def points(self) -> list[str]:
        return [point for point, _ in self.seen[1:]]

    def unannounced(self) -> list[str]:
        """The files that came, went or changed between two effects, and after the last one."""
        found = []
        ended = [*self.seen, ("before the end", self._there())]
        for (before, there), (now, then) in pairwise(ended):
            if now != before.replace("before ", "after "):
                found += [f"{before} / {now}: {name}" for name, *_ in there ^ then]
        return found

    def without_effect(self) -> list[str]:
        pairs = pairwise(self.seen)
        return [now for (_, there), (now, then) in pairs if now.startswith("after ") and there == then]


@pytest.fixture
def settings(spark: Any, tmp_path: Path) -> Callable[..., RunConfig]:
    rows = [(i, f"please call my good friend {i} about the money") for i in range(20)]
    frame = spark.createDataFrame(rows, "id long, body string").coalesce(1)
    frame.write.format("delta").save(str(tmp_path / "in"))

    def made(**more: Any) -> RunConfig:
        return parse_config({
            "input": {"path": str(tmp_path / "in")}, "columns": ["body"], "row_key": "id", "consistency": "record",
            "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
            "run": {"id": "the-run"}, **more,
        })  # fmt: skip

    return made


def ran(spark: Any, config: RunConfig, at: Callable[[str], None], key: RunKey = KEY) -> str:
    with observed(at):
        return run_once(lambda: prepare_run(spark, config, key, print), config, print).status


@pytest.mark.long
def test_of_a_run_and_of_one_that_is_made_again(spark: Any, settings: Any, tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    assert ran(spark, settings(), watched) == "succeeded"
    assert watched.points == points(*OF_A_RUN)
    assert watched.unannounced() == []
    assert watched.without_effect() == []
    again = Watched(tmp_path)
    assert ran(spark, settings(), again) == "unchanged"
    assert again.points == []
    assert again.unannounced() == []


REST = (Effect.RUN_ROW, Effect.SETTLEMENT, Effect.METRICS)
SELDOM = [pytest.param(effect, marks=pytest.mark.cluster) for effect in REST]


@pytest.mark.long
@pytest.mark.parametrize("fails", [Effect.DATA_COMMIT, *SELDOM], ids=lambda effect: effect.name)
def test_of_a_run_that_fails_and_of_the_next(spark, settings: Any, tmp_path: Path, fails: Effect) -> None:
    watched = Watched(tmp_path)

    def failing(point: str) -> None:
        watched(point)
        if point == fails.before:
            raise OSError

    with pytest.raises(DPTextError):
        ran(spark, settings(), failing)
    passed = [*points(*OF_A_RUN[: OF_A_RUN.index(fails)]), fails.before]
    noted = {
        Effect.RUN_ROW: points(Effect.SETTLEMENT),
        Effect.DATA_COMMIT: points(Effect.SETTLEMENT, Effect.ACCOUNT),
        Effect.SETTLEMENT: [],
        Effect.METRICS: [],
    }
    assert watched.points == [*passed, *noted[fails]]
    assert watched.unannounced() == []
    again = Watched(tmp_path)
    committed = fails in (Effect.SETTLEMENT, Effect.METRICS)
    assert ran(spark, settings(), again) == ("recovered" if committed else "succeeded")
    assert again.points == points(*[one for one in OF_A_RUN if not (committed and one is Effect.DATA_COMMIT)])
    assert again.unannounced() == []
    # What its first attempt had reserved, or settled already, is not done twice.
    reserved, settled = Effect.RESERVATION.after, Effect.SETTLEMENT.after
    done = {Effect.SETTLEMENT: [reserved], Effect.METRICS: [reserved, settled]}
    assert again.without_effect() == done.get(fails, [])


@pytest.mark.cluster
def test_of_a_table_by_name(spark: Any, settings: Any, tmp_path: Path) -> None:
    audit = {"shareable": str(tmp_path / "shareable"), "restricted": str(tmp_path / "restricted")}
    output = {"table": "named", "other_columns": "keep"}
    config = settings(output=output, audit=audit)
    made = spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")
    watched = Watched(tmp_path, Path(made) / "named")
    assert ran(spark, config, watched) == "succeeded"
    before, after = OF_A_RUN[:2], OF_A_RUN[2:]
    assert watched.points == points(*before, Effect.TABLE_CREATION, *after)
    assert watched.unannounced() == []
    assert watched.without_effect() == []


@pytest.mark.cluster
def test_of_a_stream(spark: Any, settings: Any, tmp_path: Path) -> None:
    rows = [(i, "good news about my friend") for i in range(20, 30)]
    more = spark.createDataFrame(rows, "id long, body string")
    more.coalesce(1).write.format("delta").mode("append").save(str(tmp_path / "in"))
    config = settings(mode="incremental", stream={"max_files": 1, "starting_version": 0})

    def streamed() -> Watched:
        watched = Watched(tmp_path)
        with observed(watched):
            stream(spark, config, KEY, print)
        assert watched.unannounced() == []
        return watched

    checkpoint = points(Effect.CHECKPOINT)
    ends = points(Effect.STREAM_METRICS, Effect.STREAM_ACCOUNT)
    first = streamed()
    batch = [*points(*OF_A_RUN), *checkpoint]
    begins = points(Effect.CHECKPOINT_BINDING, Effect.STREAM_ROW)
    assert first.points == [*begins, *checkpoint, *batch, *batch, *ends]
    assert first.without_effect() == []
    nothing_new = streamed()
    assert nothing_new.points == [*points(Effect.STREAM_ROW), *checkpoint, *ends]
    assert set(first.points) == {*points(*Effect)} - {*points(Effect.TABLE_CREATION)}
