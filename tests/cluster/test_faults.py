"""Executors, Python workers and drivers die while the job works: nothing is lost, nothing twice, and no draw is repeated.

One story, told in acts on one cluster, since an application takes long to start: an undisturbed run; one whose driver dies
before its commit; the same run again, through a storm; one that loses an executor and a Python worker without speculation, and
whose driver dies after its commit; the same run again.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cluster import faults
from tests.cluster.faults import Job, Outcome
from tests.cluster.standalone import Cluster
from tests.cluster.two_outputs import Scan, scan

pytestmark = pytest.mark.cluster

CHANCE = random.Random(6)


@dataclass(frozen=True)
class Story:
    """What was seen after each act."""

    calm_job: Job
    calm: Outcome
    early: Job
    early_left: int  # data files of the dead driver
    early_committed: bool
    strikes: int
    reasons: dict[str, int]
    early_again: Outcome
    late: Job
    late_strikes: int
    late_reasons: dict[str, int]
    late_files: list[str]
    late_outcome: Outcome


def _ended_well(job: Job, cluster: Cluster, conf: dict[str, str] | None = None) -> None:
    application = job.submit(cluster, conf)
    assert application.wait() == 0, application.said[-3000:]


def _since(before: dict[str, int], now: dict[str, int]) -> dict[str, int]:
    return {name: number - before.get(name, 0) for name, number in now.items()}


@pytest.fixture(scope="module")
def story(cluster: Cluster, base: Path) -> Story:
    faults.write_input(base / "in.parquet")
    faults.write_key(base)
    calm, early, late = (Job(base, name) for name in ("calm", "early", "late"))
    _ended_well(calm, cluster)

    application = early.submit(cluster)
    assert faults.while_writing(early, application, 3), application.said[-3000:]
    assert faults.kill_driver(cluster, early, application, CHANCE) == 1
    left, committed = len(early.data_files()), early.committed()
    before = cluster.failed_tasks()
    application = early.submit(cluster, faults.SPECULATIVE)
    strikes = faults.storm(cluster, early, application, CHANCE)
    assert application.wait() == 0, application.said[-3000:]
    seen = cluster.failed_tasks()
    reasons = _since(before, seen)

    application = late.submit(cluster)
    retried = 0
    for kill in (faults.kill_executor, faults.kill_python_worker):
        assert faults.while_writing(late, application, len(late.data_files()) + 1), application.said[-3000:]
        retried += kill(cluster, late, application, CHANCE)
    assert faults.kill_driver_after_commit(cluster, late, application, CHANCE) == 1
    files = sorted(file.name for file in late.data_files())
    runs = faults.live_rows(base / "late_audit" / "shareable" / "runs")[1]
    assert [row["status"] for row in runs] == ["started"], "the driver was killed too late"
    late_reasons = _since(seen, cluster.failed_tasks())
    _ended_well(late, cluster)
    return Story(
        calm, calm.outcome(), early, left, committed, strikes, reasons, early.outcome(), late, retried, late_reasons, files,
        late.outcome(),
    )  # fmt: skip


def test_an_undisturbed_run_is_what_it_should_be(story: Story) -> None:
    calm = story.calm
    assert (calm.commits, calm.rows, calm.status) == (1, faults.ROWS, "succeeded")
    assert scan(story.calm_job.target) == Scan(faults.TASKS, 0, (), ())
    assert (calm.counters[None, "drawn"] or 0) > faults.ROWS
    written = {row["id"]: row["body"] for row in faults.live_rows(story.calm_job.target)[1]}
    source = pq.read_table(story.calm_job.base / "in.parquet").to_pylist()
    assert sum(written[row["id"]] != row["body"] for row in source) > 0.9 * faults.ROWS


def test_a_driver_that_dies_before_its_commit_leaves_no_version(story: Story) -> None:
    assert story.early_left >= 3
    assert not story.early_committed


def test_the_same_run_again_finishes_through_a_storm(story: Story) -> None:
    assert story.strikes == 3, "a worker was stopped, an executor and a worker were killed"
    assert story.reasons.get("ExecutorLostFailure", 0) >= 1
    assert story.reasons.get("ExceptionFailure", 0) >= 1  # of the executor whose Python worker is gone
    assert story.reasons.get("speculative", 0) >= 1
    assert story.early_again.status == "succeeded"
    assert faults.differences(story.early, story.calm) == []
    # What the dead driver, and attempts that failed or lost a race, left lies beside the committed files.
    assert len(story.early.data_files()) >= faults.TASKS + story.early_left


def test_tasks_are_tried_again_without_speculation(story: Story) -> None:
    assert story.late_strikes == 2, "an executor and a worker were killed"
    assert story.late_reasons.get("ExecutorLostFailure", 0) >= 1
    assert story.late_reasons.get("ExceptionFailure", 0) >= 1
    assert story.late_reasons.get("speculative", 0) == 0


def test_a_driver_that_dies_after_its_commit_is_accounted_for_later(story: Story) -> None:
    assert story.late_outcome.status == "recovered"
    assert faults.differences(story.late, story.calm) == []  # the counters too: counted again with the key
    assert sorted(file.name for file in story.late.data_files()) == story.late_files


def test_what_would_be_wrong_is_seen(story: Story, tmp_path: Path) -> None:
    """The checks of this file fail where they must: on other counters, on lost rows, on a second output."""
    for wrong, said in (
        (replace(story.calm, rows=faults.ROWS - 1), "rows came out"),
        (replace(story.calm, digest="another"), "the output is another one"),
        (
            replace(story.calm, counters={**story.calm.counters, (None, "drawn"): 1.0}),
            "counters differ: None.drawn",
        ),
    ):
        assert any(said in found for found in faults.differences(story.early, wrong))
    copy = Job(tmp_path, "early")
    shutil.copytree(story.early.target, copy.target)
    shutil.copytree(story.early.base / "early_audit", tmp_path / "early_audit")
    assert faults.differences(copy, story.calm) == []
    file = max(copy.data_files(), key=lambda one: one.stat().st_size)
    rows = pq.read_table(file, partitioning=None).to_pylist()[:10]
    rows[3]["body"] += " again"
    pq.write_table(pa.Table.from_pylist(rows), copy.target / "part-00000-an-uncommitted-one.parquet")
    found = faults.differences(copy, story.calm)
    assert len(found) == 1
    assert f"two outputs in the target's files: ({rows[3]['id']},)" in found[0]
