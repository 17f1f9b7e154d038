"""What binds a run id: the row of `runs`, or, where that is lost, the seal in the commit. No session."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types as T

from dptext_spark.config.load import parse_config
from dptext_spark.disclosure.facts import RunRecord
from dptext_spark.errors import RunError
from dptext_spark.model.privatizer import ENGINE_VERSION
from dptext_spark.model.target_checks import SEAL, Commit, engine_of_commit
from dptext_spark.randomness import RunKey
from dptext_spark.spark import stream
from dptext_spark.spark.job.idempotency import (
    DECIDED,
    SETTINGS,
    Binding,
    bind_run,
    changed_since,
    check_finished,
    check_still_there,
    differences,
)
from dptext_spark.spark.job.planned_run import RunPlan
from dptext_spark.spark.schemas import RUNS
from dptext_spark.text.policy import NO_IDENTIFIERS

ROW = RunRecord.of({
    "run_id": "r1", "status": "started", "key_commitment": "c1", "key_kind": "file", "second_release": False,
    "config": "{}", "artifact": "f1", "input": "in", "input_version": "delta:3", "identity": "row_key", "output": "out",
    "versions": json.dumps({"engine": ENGINE_VERSION}),
})  # fmt: skip


def setup_of(second_release: str = "refuse") -> Any:
    config = SimpleNamespace(run=SimpleNamespace(second_release=second_release))
    return SimpleNamespace(run_id="r1", config=config)


def commit_of(row: RunRecord) -> Commit:
    return Commit(0, metadata=json.dumps({"dptext_run": "r1", SEAL: Binding.sealed(row).as_dict()}))


def test_a_run_is_bound_to_what_it_asks_whatever_state_an_equal_row_is_in() -> None:
    assert bind_run(setup_of(), ROW, None, None) == ROW
    earlier = replace(ROW, status="failed", rows=3, second_release=True)
    assert bind_run(setup_of(), ROW, earlier, None) == replace(ROW, second_release=True)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("committed", ["no", "with its row", "without its row"])
def test_other_settings_are_refused(name: str, committed: str) -> None:
    other = replace(ROW, **{name: "another"})
    earlier = None if committed == "without its row" else other
    with pytest.raises(RunError, match=f"began with another {name}"):
        bind_run(setup_of(), ROW, earlier, None if committed == "no" else commit_of(other))


def test_another_key_is_a_second_release() -> None:
    earlier = replace(ROW, key_commitment="c2")
    with pytest.raises(RunError, match=r"another key\. .* did not finish.*second_release=accept"):
        bind_run(setup_of(), ROW, earlier, None)
    assert bind_run(setup_of("accept"), ROW, earlier, None) == replace(ROW, second_release=True)
    with pytest.raises(RunError, match="another key_commitment, config"):
        bind_run(setup_of("accept"), ROW, replace(earlier, config="x"), None)


@pytest.mark.parametrize("lost", [False, True], ids=["with its row", "without its row"])
def test_a_run_that_committed_keeps_its_key(lost: bool) -> None:
    then = replace(ROW, key_commitment="c2", key_kind="env", second_release=True)
    assert bind_run(setup_of(), ROW, None if lost else then, commit_of(then)) == then


def test_a_commit_that_does_not_say_what_it_was_begun_with() -> None:
    commit = Commit(0, metadata=json.dumps({"dptext_run": "r1"}))
    with pytest.raises(RunError, match="its row in `runs` is lost"):
        bind_run(setup_of(), ROW, None, commit)
    assert bind_run(setup_of(), ROW, ROW, commit) == ROW


def test_what_binds_a_run_is_in_the_table_and_the_seal_is_short() -> None:
    sealed = Binding.sealed(replace(ROW, config="x" * 100_000)).as_dict()
    assert sealed.keys() - {"engine"} <= set(RUNS.fieldNames())
    assert len(json.dumps(sealed)) < 600


POLICY: dict[str, Any] = {"stop_words": "keep", "identifiers": NO_IDENTIFIERS.as_dict()}
FAKED = {**NO_IDENTIFIERS.as_dict(), "phone": "fake"}
CUSTEXT = {"name": "custext", "epsilon": 2.0, "k": 20}
CONFIG: dict[str, Any] = {
    **dict.fromkeys(DECIDED), "input": {"path": "/in", "table": None, "where": {"id": 1}},
    "mechanism": CUSTEXT, "policy": POLICY, "audit": {"scopes": 1},
}  # fmt: skip


def row_of(**changes: Any) -> RunRecord:
    return replace(ROW, config=json.dumps({**CONFIG, **changes}))


def test_a_finished_run_may_be_tried_again_while_its_source_goes_on() -> None:
    check_finished(replace(row_of(), input_version="delta:9"), replace(row_of(), key_commitment="c2"))
    check_finished(row_of(audit={"scopes": 2}, input={"path": "/in", "where": {"id": 2}}), row_of())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mechanism": {**CUSTEXT, "epsilon": 1.0}}, r"mechanism\.epsilon \(2\.0 then, 1\.0 now\)"),
        ({"mechanism": {**CUSTEXT, "name": "tem"}}, r"mechanism\.name \(custext then, tem now\)"),
        ({"mechanism": {"name": "custext", "epsilon": 2.0}}, r"mechanism\.k"),
        ({"policy": {**POLICY, "stop_words": "draw"}}, r"policy\.stop_words \(keep then, draw now\)"),
        ({"policy": {**POLICY, "identifiers": FAKED}}, r"policy\.identifiers\.phone \(keep then, fake now\)"),
        ({"columns": ["title"]}, r"columns"),
        ({"consistency": "token"}, r"consistency"),
        ({"input": {"path": "/other"}}, r"input\.path \(/in then, /other now\)"),
    ],
)
def test_a_finished_run_is_no_other_release(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RunError, match=f"'r1' has committed with another {said}"):
        check_finished(row_of(**changes), row_of())


@pytest.mark.parametrize(
    ("change", "said"),
    [({"artifact": "f2"}, r"model \(the lexicon's content\)"), ({"output": "elsewhere"}, "output")],
)
def test_a_finished_run_has_one_model_and_one_target(change: dict[str, str], said: str) -> None:
    with pytest.raises(RunError, match=f"another {said}"):
        check_finished(row_of(), replace(row_of(), **change))


OTHER = replace(ROW, versions=json.dumps({"dptext_spark": "0.1.0", "engine": "1"}))


class TestAnotherEngine:
    def test_an_unfinished_run_is_refused_or_a_second_release(self) -> None:
        # Its settings may differ for the same reason, and that is what is said.
        for earlier in (OTHER, replace(OTHER, config="x", key_commitment="c2")):
            with pytest.raises(RunError, match=r"another engine \(1 then, 2 now\).*finish.*second_release"):
                bind_run(setup_of(), ROW, earlier, None)
        assert bind_run(setup_of("accept"), ROW, OTHER, None) == replace(ROW, second_release=True)

    @pytest.mark.parametrize("lost", [False, True], ids=["with its row", "without its row"])
    def test_a_run_that_committed_is_not_accounted_for(self, lost: bool) -> None:
        commit = commit_of(OTHER)
        for accepted in ("refuse", "accept"):
            with pytest.raises(RunError, match=r"engine \(1 then, 2 now\).*was not accounted for"):
                bind_run(setup_of(accepted), ROW, None if lost else OTHER, commit)
        assert engine_of_commit(commit) == "1"
        assert engine_of_commit(commit_of(ROW)) == ENGINE_VERSION

    def test_a_finished_run_is_another_release(self) -> None:
        earlier = replace(row_of(), versions=OTHER.versions)
        with pytest.raises(RunError, match=r"'r1' has committed with another engine \(1 then, 2 now\)"):
            check_finished(row_of(), earlier)
        with pytest.raises(RunError, match=r"another columns, another engine \(1 then"):
            check_finished(row_of(columns=["title"]), replace(earlier, artifact="f2"))


def history_of(*restores: tuple[int, int | None], runs: int = 3, newest: int = 6) -> list[Commit]:
    """Commits 0, 1, ... of which the first `runs` are of runs r0, r1, ...; a restore is (its version, what it went back to)."""
    went_back = dict(restores)

    def commit(version: int) -> Commit:
        if version not in went_back:
            run = json.dumps({"dptext_run": f"r{version}"}) if version < runs else None
            return Commit(version, "WRITE", metadata=run)
        to = went_back[version]
        return Commit(version, "RESTORE", {} if to is None else {"version": str(to)})

    return [commit(version) for version in range(newest, -1, -1)]


class TestACommitThatWasMade:
    """r1 committed version 1."""

    @pytest.mark.parametrize(
        "commits",
        [
            pytest.param(history_of(), id="others came later"),
            pytest.param(history_of((3, 2)), id="restored to a version after it"),
            pytest.param(history_of((3, 1)), id="restored to itself"),
            pytest.param(history_of((3, 0), (4, 2)), id="restored to before it, and to after it"),
            pytest.param(history_of((3, 0), (5, 3), (6, 2)), id="there and back again"),
            pytest.param(history_of()[:3], id="the log does not reach back so far"),
        ],
    )
    def test_is_a_part_of_the_table(self, commits: list[Commit]) -> None:
        check_still_there("/out", "r1", 1, commits)

    @pytest.mark.parametrize(
        ("commits", "why"),
        [
            pytest.param([], "the table no longer exists", id="deleted"),
            pytest.param(history_of(runs=1), "was created anew", id="made anew"),
            pytest.param(history_of((3, 0)), "version 3 restored the table", id="restored"),
            pytest.param(history_of((3, 0), (5, 4)), "version 3 restored the table", id="restored, and more written"),
            pytest.param(history_of((3, 2), (5, 0)), "version 5 restored the table", id="the later restore counts"),
            pytest.param(history_of((3, 0), (5, 3)), "version 3 restored the table", id="restored to a restored one"),
            pytest.param(history_of((3, None)), "to an earlier state", id="restored to a time"),
            pytest.param(history_of((3, 0))[:4], "version 3 restored the table", id="the log begins with it"),
        ],
    )  # fmt: skip
    def test_is_no_longer(self, commits: list[Commit], why: str) -> None:
        with pytest.raises(RunError, match=rf"'r1' committed version 1 of '/out', but .*{why}.*a new run id"):
            check_still_there("/out", "r1", 1, commits)


class TestWhatIsNotAsItWas:
    RECORD = RunRecord(
        "r1", "succeeded", datetime(2026, 1, 1, tzinfo=timezone.utc), "{}", "{}", "commitment", "file", "model", "/in", "delta:1",
        "row_key", "/out",
    )  # fmt: skip
    EARLIER = replace(RECORD, output_version=1)

    @pytest.mark.parametrize(
        ("operations", "changed"),
        [
            ([], None),
            (["OPTIMIZE", "VACUUM END", "SET TBLPROPERTIES"], None),
            (["OPTIMIZE", "DELETE"], "DELETE (version 3)"),
            (["UPDATE", "MERGE"], "UPDATE (version 2), MERGE (version 3)"),
            (["WRITE"], "WRITE (version 2)"),
        ],
    )
    def test_the_target(self, operations: list[str], changed: str | None) -> None:
        later = [Commit(2 + number, operation) for number, operation in enumerate(operations)]
        ours = [Commit(1, "WRITE", metadata=json.dumps({"dptext_run": "r1"})), Commit(0, "CREATE TABLE")]
        sentences = list(changed_since(self.RECORD, self.EARLIER, [*reversed(later), *ours]))
        assert len(sentences) == (changed is not None)
        assert all(f"version 1: {changed}." in sentence for sentence in sentences)

    def test_rows_of_later_runs_of_ours_are_no_change_of_others(self) -> None:
        later = Commit(2, "WRITE", metadata=json.dumps({"dptext_run": "r2"}))
        assert list(changed_since(self.RECORD, self.EARLIER, [later])) == []

    def test_the_key(self) -> None:
        other = replace(self.RECORD, key_commitment="other")
        (sentence,) = changed_since(other, self.EARLIER, [])
        assert sentence.startswith("The table holds draws of another key")
        assert list(changed_since(replace(other, key_kind="os"), self.EARLIER, [])) == []


def made(key: int = 0, kept: tuple[str, ...] = ("id", "lang", "body", "ts"), **source: Any) -> RunPlan:
    output = {"path": "/out", "other_columns": [name for name in kept if name != "body"]}
    given = {"path": "/in", **source}
    config = parse_config({"input": given, "columns": ["body", "meta.note"], "output": output})
    fields: dict[str, T.DataType] = {
        "id": T.LongType(), "lang": T.StringType(), "body": T.StringType(), "ts": T.TimestampType(),
        "age": T.IntegerType(), "meta": T.StructType([T.StructField("note", T.StringType())]), "author": T.StringType(),
    }  # fmt: skip
    schema = T.StructType([T.StructField(name, kind) for name, kind in fields.items()])
    session = SimpleNamespace(conf={"spark.sql.session.timeZone": "UTC"})
    run_key = RunKey(hashlib.sha256(b"key %d" % key).digest())
    unknown = "privatizer input_version corrupt identity place compiled certificate folder"
    rest = dict.fromkeys(unknown.split())
    return RunPlan(
        spark=session, config=config, run_id="r1", key=run_key, key_kind="file", kept=list(kept),
        df=SimpleNamespace(schema=schema, columns=schema.fieldNames()), **rest,
    )  # fmt: skip


def config_of(setup: RunPlan) -> str:
    return setup.shown_settings("r1").text


def shown(**source: Any) -> Any:
    return made(**source).shown_settings("r1").values["input"]


ZANZIBAR = "zanzibar"


@pytest.mark.parametrize("where", [{"lang": ZANZIBAR}, {"ID": {"gt": 3}, "lang": [ZANZIBAR, "a", "a"]}])
def test_a_condition_stands_in_the_row_where_all_of_its_columns_are_released(where: dict[str, Any]) -> None:
    expected = {"lang": ZANZIBAR} if len(where) == 1 else {"id": {"gt": 3}, "lang": ["a", ZANZIBAR]}
    assert shown(where=where)["where"] == expected


@pytest.mark.parametrize(
    "where",
    [
        {"body": ZANZIBAR},
        {"lang": "x", "meta.note": ZANZIBAR},
        {"meta": {"null": True}, "lang": ZANZIBAR},
        {"author": {"ne": ZANZIBAR}},
        {"age": {"lt": 18}, "lang": "x"},
    ],
)
def test_a_condition_on_what_is_not_released_is_bound_by_the_key(where: dict[str, Any]) -> None:
    """The texts themselves, and columns that are left out, of whatever type."""
    found = shown(where=where)["where"]
    assert set(found) == set(where)
    assert all(re.fullmatch(r"\(hidden; [0-9a-f]{32}\)", value) for value in found.values())
    assert shown(where={name.upper(): where[name] for name in reversed(where)})["where"] == found
    others = [
        shown(where={**where, "lang": "other"}),
        made(1, where=where).shown_settings("r1").values["input"],
        made(where=where).shown_settings("r2").values["input"],
    ]
    assert all(other["where"] != found for other in others)
    assert made(where=where).config.as_dict()["input"]["where"] == dict.fromkeys(where, "(hidden)")


def test_a_time_is_bound_in_one_spelling_whatever_the_zone_of_the_session() -> None:
    spelt = ["2024-01-01", "2024-01-01T01:00:00+01:00"]
    instant = {"ts": {"ge": "2024-01-01T00:00:00+00:00"}}
    assert [shown(where={"ts": {"ge": time}})["where"] for time in spelt] == [instant] * 2


def test_options_are_shown_by_name_but_for_harmless_ones() -> None:
    names = ("parquet.encryption.key.list", "fs.s3a.encryption.key", "pwd", "connectionString", "nullValue")
    plain = {"header": "true", "Sep": ";", "multiLine": "true"}
    given = {**plain, "encoding": "x" * 41, **dict.fromkeys(names, "MARKER")}
    found = shown(format="csv", options=given)["options"]
    assert list(found) == list(given)
    assert "MARKER" not in str(found)
    assert {name: found[name] for name in plain} == plain
    assert all(re.fullmatch(r"\(hidden; [0-9a-f]{32}\)", found[name]) for name in (*names, "encoding"))
    assert len({found[name] for name in names}) == len(names)
    other = shown(format="csv", options={**given, "pwd": "OTHER"})["options"]
    assert [name for name in given if other[name] != found[name]] == ["pwd"]
    written = made(format="csv", options=given).config.as_dict()["input"]["options"]
    assert (written["pwd"], written["connectionString"], written["Sep"]) == ("(hidden)", "(hidden)", ";")


def test_what_is_bound_by_a_key_is_compared_under_that_key() -> None:
    given = {"options": {"pwd": "x"}, "format": "csv", "where": {"body": "a"}}
    then, now = (replace(ROW, config=config_of(made(key, **given))) for key in (0, 1))
    then = replace(then, key_commitment="c2")
    with pytest.raises(RunError, match="another key_commitment, config"):  # it cannot be compared
        bind_run(setup_of("accept"), now, then, None)
    # A run that committed is only accounted for, and keeps what its row says.
    assert bind_run(setup_of(), now, then, commit_of(then)) == then
    changed = {**given, "where": {"body": "a", "id": 1}, "format": "tsv"}
    other = replace(ROW, config=config_of(made(1, **changed)))
    with pytest.raises(RunError, match="began with another config"):
        bind_run(setup_of(), other, then, commit_of(then))


def test_another_packaged_lexicon_is_another_release() -> None:
    old = {"source": "default", "format": "auto", "limit": None, "vocabulary": None, "more": [], "version": 1}
    new = {**old, "version": 2}
    said = r"lexicon\.version \(1 then, 2 now\): the packaged lexicon has changed"
    with pytest.raises(RunError, match=rf"began with another {said}.*a new run id"):
        bind_run(setup_of(), row_of(lexicon=new), row_of(lexicon=old), None)
    with pytest.raises(RunError, match=rf"committed with another {said}"):
        check_finished(row_of(lexicon=new), row_of(lexicon=old))
    bind_run(setup_of(), row_of(lexicon=new), row_of(lexicon=new), None)
    # Of another lexicon there is no version, and where an artifact alone decides its fingerprint tells.
    glove = {name: value for name, value in old.items() if name != "version"} | {"source": "/glove.txt"}
    for before, now in ((glove, glove), (old, {**old, "version": None}), (new, {**old, "version": None})):
        assert differences({"lexicon": before}, {"lexicon": now}) == {}


@pytest.mark.parametrize(("handling", "dropped"), [("refuse", 0), ("accept", None)])
def test_a_micro_batch_says_the_same_of_duplicates_once_it_committed(handling, dropped, monkeypatch) -> None:
    monkeypatch.setattr(stream, "_refuse_null", lambda df, name, field: (3, 3))
    config = SimpleNamespace(row_key="id", record_key=None, stream=SimpleNamespace(duplicates=handling))
    setup: Any = SimpleNamespace(config=config, df="rows", run_id="s.0", kept=["id"])
    committed = [Commit(0, metadata=json.dumps({"dptext_run": "s.0"}))]
    for commits in ([], committed):
        assert stream.deduplicate(setup, commits)[-1] == dropped
