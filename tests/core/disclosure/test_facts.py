"""The facts of a run and its row of `runs`: what is written is read back."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import datetime

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.disclosure.facts import MicroBatches, RunFacts, RunRecord, UnchangedRun
from dptext_spark.disclosure.statement import Statement
from dptext_spark.guarantee import Guarantee
from dptext_spark.ledger.balance import Balance, Spent, Total
from dptext_spark.mechanisms.base import Summary
from dptext_spark.model.certificate import Certificate, LossFigure
from dptext_spark.model.record import RecordEpsilon

SETTINGS = {"input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}}
CONFIG = parse_config({**SETTINGS, "importance": {"percent": 30}})
GUARANTEE = Guarantee("epsilon_dp", 2.0, sentence="A bound holds.")
LOSS = LossFigure(1.5, 1.25, 9, 9, (1, 2), "a test", verdict="confirmed")
CERTIFICATE = Certificate("confirmed", GUARANTEE, LOSS, "Confirmed.")
STATEMENT = Statement((("Protected", ("Words.",)),))
SPENT = Spent("body", (Total(unit="a word", epsilon=2.0, delta=0.0, times=1),), 2.0, 2.0)
LEDGER = ("/ledger", "2026-01-01", "/in", (SPENT,))
SPENDING = Balance(*LEDGER, limit=3.0, left=1.0, sentence="Spent.", notes=("A note.",))
FACTS = RunFacts(
    config=CONFIG, guarantee=GUARANTEE, certificate=CERTIFICATE, mapping=Summary(words=9), status="succeeded", run_id="r1",
    rows=3,
    other_columns=("id",), record_epsilon=RecordEpsilon("ε times the words", 1.0), ledger=SPENDING, disclosure=STATEMENT,
    audited="Audited.", passed=True, runs="/runs", metrics="/metrics", versions={"engine": "2"},
    figures={"words": 9.0},
)  # fmt: skip
RECORD = RunRecord(
    run_id="r1", status="started", started_at=datetime(2026, 11, 21, 9, 30),
    config=json.dumps({**CONFIG.as_dict(), "run": None}, sort_keys=True), guarantee=json.dumps(GUARANTEE.as_dict()),
    key_commitment="c1", key_kind="file", artifact="f1", input="/in", input_version="delta:3", identity="row_key", output="/out",
    certificate=json.dumps(CERTIFICATE.as_dict()), cumulative=json.dumps(SPENDING.as_dict()),
    versions=json.dumps({"engine": "2"}),
)  # fmt: skip


def test_facts_are_json_and_what_depends_on_the_text_is_left_out_on_request() -> None:
    found = json.loads(json.dumps(FACTS.as_dict()))
    assert found["restricted"]["words"] == 9.0
    assert found["restricted"]["record_epsilon"]["mean"] == 1.0
    assert found["record_epsilon"] == {"basis": "ε times the words"}
    assert found["consistency_audit"] == {"said": "Audited.", "passed": True}
    assert Certificate.of(found["certificate"]) == CERTIFICATE
    assert Balance.from_dict(found["ledger"]) == SPENDING
    assert Statement.of(found["disclosure"]) == STATEMENT
    assert "restricted" not in FACTS.as_dict(internal=False)
    assert replace(FACTS, figures=None).as_dict()["restricted"] == {}


def test_a_stream_has_micro_batches_and_no_counts_of_its_own() -> None:
    run, stream = FACTS.as_dict(), replace(FACTS, batches=MicroBatches("incremental", 1, 2, 3, 4.0)).as_dict()
    assert stream.keys() - run.keys() == {"batches"}
    assert run.keys() - stream.keys() == {"counted", "corrupt_records"}
    assert stream["consistency_audit"] == {"said": "Audited."}


@pytest.mark.parametrize(
    ("guarantee", "verdict", "refuted"),
    [("proved", "confirmed", False), ("proved", "refuted", True), ("refuted", "not refuted", True)],
)
def test_either_refutes(guarantee: str, verdict: str, refuted: bool) -> None:
    promised = replace(GUARANTEE, status=guarantee)  # type: ignore[arg-type]
    found = replace(CERTIFICATE, verdict=verdict)  # type: ignore[arg-type]
    assert replace(FACTS, guarantee=promised, certificate=found).is_refuted == refuted


def test_a_row_is_read_back() -> None:
    ended = RECORD.ended(replace(FACTS, output_version=4))
    assert RunRecord.of(asdict(ended)) == ended
    assert (ended.status, ended.output_version, ended.rows) == ("succeeded", 4, 3)
    assert (ended.promised, ended.certified, ended.statement) == (GUARANTEE, CERTIFICATE, STATEMENT)
    assert (ended.spent, ended.made_by) == (SPENDING, {"engine": "2"})
    assert ended.settings.text == ended.config
    assert (ended.settings.columns, ended.settings.selection) == (("body",), CONFIG.importance)
    assert ended.opened()["guarantee"] == GUARANTEE.as_dict()
    assert json.loads(json.dumps(UnchangedRun(ended).as_dict()))["run"]["started_at"] == "2026-11-21T09:30:00"
