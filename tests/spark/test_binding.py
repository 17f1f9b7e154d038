"""What binds a run id: the row of `runs`, or, where that is lost, the seal in the commit. No session."""

from __future__ import annotations

import json
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from dptext_spark.errors import RunError
from dptext_spark.spark.binding import DECIDED, OF_THE_KEY, SEAL, SETTINGS, bound, check_finished, seal
from dptext_spark.spark.schemas import RUNS
from dptext_spark.text.identifiers import NO_IDENTIFIERS

ROW: dict[str, Any] = {
    "run_id": "r1", "status": "started", "key_commitment": "c1", "key_kind": "file", "second_release": False,
    "config": "{}", "artifact": "f1", "input": "in", "input_version": "delta:3", "identity": "row_key", "output": "out",
}  # fmt: skip


def setup_of(second_release: str = "refuse") -> Any:
    return SimpleNamespace(
        run_id="r1", config=SimpleNamespace(run=SimpleNamespace(second_release=second_release))
    )


def commit_of(row: dict[str, Any]) -> dict[str, Any]:
    return {"userMetadata": json.dumps({"dptext_run": "r1", SEAL: seal(row)})}


def test_a_first_run_is_bound_to_what_it_asks() -> None:
    assert bound(setup_of(), ROW, None, None) == ROW


def test_equal_rows_agree_whatever_their_state() -> None:
    earlier = {**ROW, "status": "failed", "rows": 3, "second_release": True}
    assert bound(setup_of(), ROW, earlier, None) == {**ROW, "second_release": True}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("committed", ["no", "with its row", "without its row"])
def test_other_settings_are_refused(name: str, committed: str) -> None:
    other = {**ROW, name: "another"}
    earlier = None if committed == "without its row" else other
    with pytest.raises(RunError, match=f"begun with another {name};"):
        bound(setup_of(), ROW, earlier, None if committed == "no" else commit_of(other))


def test_another_key_is_a_second_release() -> None:
    earlier = {**ROW, "key_commitment": "c2"}
    with pytest.raises(RunError, match=r"another key and did not finish.*second_release=accept"):
        bound(setup_of(), ROW, earlier, None)
    assert bound(setup_of("accept"), ROW, earlier, None) == {**ROW, "second_release": True}
    with pytest.raises(RunError, match="another key_commitment, config;"):
        bound(setup_of("accept"), ROW, {**earlier, "config": "x"}, None)


@pytest.mark.parametrize("lost", [False, True], ids=["with its row", "without its row"])
def test_a_run_that_committed_keeps_its_key(lost: bool) -> None:
    then = {**ROW, "key_commitment": "c2", "key_kind": "env", "second_release": True}
    assert bound(setup_of(), ROW, None if lost else then, commit_of(then)) == then


def test_a_commit_that_does_not_say_what_it_was_begun_with() -> None:
    commit = {"userMetadata": json.dumps({"dptext_run": "r1"})}
    with pytest.raises(RunError, match="its row in `runs` is lost"):
        bound(setup_of(), ROW, None, commit)
    assert bound(setup_of(), ROW, ROW, commit) == ROW


def test_what_binds_a_run_is_in_the_table_and_the_seal_is_short() -> None:
    assert {*SETTINGS, *OF_THE_KEY, "second_release"} <= set(RUNS.fieldNames())
    assert len(json.dumps(seal({**ROW, "config": "x" * 100_000}))) < 600


CONFIG: dict[str, Any] = {
    **dict.fromkeys(DECIDED), "input": {"path": "/in", "table": None, "where": "a"},
    "mechanism": {"name": "custext", "epsilon": 2.0, "k": 20}, "policy": {"stop_words": "keep"}, "audit": {"scopes": 1},
}  # fmt: skip


def row_of(**changes: Any) -> dict[str, Any]:
    return {**ROW, "config": json.dumps({**CONFIG, **changes})}


def test_a_finished_run_may_be_tried_again_while_its_source_goes_on() -> None:
    check_finished({**row_of(), "input_version": "delta:9"}, {**row_of(), "key_commitment": "c2"})
    # What was begun before identifiers were looked for goes on without.
    check_finished(row_of(policy={"stop_words": "keep", "identifiers": asdict(NO_IDENTIFIERS)}), row_of())
    check_finished(row_of(audit={"scopes": 2}, input={"path": "/in", "where": "b"}), row_of())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"mechanism": {"name": "custext", "epsilon": 1.0, "k": 20}},
            r"mechanism\.epsilon \(2\.0 then, 1\.0 now\)",
        ),
        (
            {"mechanism": {"name": "tem", "epsilon": 2.0}},
            r"mechanism\.k.*mechanism\.name \(custext then, tem now\)",
        ),
        ({"policy": {"stop_words": "draw"}}, r"policy\.stop_words \(keep then, draw now\)"),
        (
            {"policy": {"stop_words": "keep", "identifiers": {**asdict(NO_IDENTIFIERS), "phone": "fake"}}},
            r"policy\.identifiers\.phone \(keep then, fake now\)",
        ),
        ({"columns": ["title"]}, r"columns"),
        ({"consistency": "token"}, r"consistency"),
        ({"input": {"path": "/other"}}, r"input\.path \(/in then, /other now\)"),
    ],
)
def test_a_finished_run_is_no_other_release(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RunError, match=f"'r1' has committed with another {said}.*Nothing was written"):
        check_finished(row_of(**changes), row_of())


def test_a_finished_run_has_one_model_and_one_target() -> None:
    with pytest.raises(RunError, match="another model"):
        check_finished(row_of(), {**row_of(), "artifact": "f2"})
    with pytest.raises(RunError, match="another output"):
        check_finished(row_of(), {**row_of(), "output": "elsewhere"})
