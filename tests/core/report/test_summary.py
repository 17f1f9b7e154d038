"""The summary of a run: what it says to all and to those inside is kept as text; no figure of the text is told to others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.config.requirements import Metric, Verdict
from dptext_spark.disclosure.facts import MicroBatches, RunFacts, RunRecord, UnchangedRun
from dptext_spark.disclosure.statement import Statement
from dptext_spark.guarantee import Guarantee
from dptext_spark.ledger.balance import Balance
from dptext_spark.model.record import RecordEpsilon
from dptext_spark.report.console import RESTRICTED
from dptext_spark.report.facts import Example
from dptext_spark.report.summary import core_hours, summary
from dptext_spark.text.names.search import ListSource, ListSources
from tests.frozen.written import assert_as_frozen, beyond

FIGURES = {
    "words": 1000.0, "drawn": 600.0, "stop_kept": 300.0, "oov": 60.0, "numbers": 40.0, "changed_share": 0.55,
    "original_share": 0.1, "original_share_all": 0.45,
}  # fmt: skip
COUNTS = {
    "words": 10.0, "identifiers": 1_205.0, "identifiers_email": 5.0, "identifiers_ip": 0.0, "identifiers_card": None,
    "identifiers_phone": 1_200.0,
}  # fmt: skip
STAYED = {"words": 90.0, "person_words": 8.0, "person_words_replaced": 6.0}
STAYED |= {"person_words_kept": 2.0, "person_words_kept_share": 0.25}
LEAST = {"input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}}
FACTS = RunFacts(
    config=parse_config(LEAST),
    guarantee=Guarantee("epsilon_dp", 1.0, sentence="A bound holds."),
    status="succeeded",
    run_id="r1",
    rows=20_000,
    seconds=12.0,
    write_seconds=10.0,
    tokens_per_second=123_456.7,
    text_bytes=40_000_000,
    cores=2,
    compiled_loops=3,
    record_epsilon=RecordEpsilon("ε times the drawn words"),
    audited="Consistency was audited.",
    input="/in",
    output="/out",
    output_version=0,
    runs="/share/runs",
    metrics="/keep/metrics",
    other_columns=("ticket",),
    key_kind="os",
    figures=FIGURES,
)
RECORD = RunRecord.of({"run_id": "r1", "input_version": "delta:3"})
COUNTED = Balance("/share/ledger", "2026-01-01", "/in", (), sentence="All releases have spent ε = 3.")
EPSILON = RecordEpsilon("ε times the drawn words", 5.0, 4.0, 9.0, 31.0)
BATCHES = MicroBatches("incremental", 2, 12, 3_400, 9.0)
WARNING = Statement((("Warnings", ("NUMBERS IN CLEAR.",)), ("x", ("y",))))
ASKED = ("names_kept <= 0.02", "ledger_epsilon <= 5", "changed_share >= 0.5")
OF_AUDITS = ("bleu >= 5", "accuracy_private_private >= 0.5", "masked_success <= 0.3", "listed_kept <= 0")


def of(**settings: Any) -> RunFacts:
    return replace(FACTS, config=parse_config({**LEAST, **settings}))


def judged(*requirements: str, **figures: float) -> Verdict:
    config = parse_config({**LEAST, "require": list(requirements)})
    return Verdict.of(config.require, [Metric(name, value) for name, value in figures.items()])


LISTING = replace(
    FACTS,
    config=FACTS.config.model_copy(update={"lists": ListSources(mask=(ListSource(file="/names.txt"),))}),
    figures={**FIGURES, "names_masked": 7.0},
)
KEYED = {"verdict": judged(*ASKED, ledger_epsilon=7.25, changed_share=0.625), "settings": "my settings.yaml"}
# (outcome, options).
CASES: dict[str, tuple[RunFacts | UnchangedRun, dict[str, Any]]] = {
    "plain": (FACTS, {}),
    "least": (RunFacts(config=FACTS.config, guarantee=FACTS.guarantee, status="succeeded", run_id="r1"), {}),
    "many unknown words": (replace(FACTS, figures=FIGURES | {"unknown_rows": 1_001.0}), {}),
    "a column that is mapped": (replace(FACTS, other_columns=("ticket no",)), {}),
    "ε of a record": (replace(FACTS, record_epsilon=EPSILON), {}),
    "identifiers": (replace(FACTS, figures={**FIGURES, **COUNTS}), {}),
    "names of lists": (LISTING, {}),
    "names that stayed": (replace(FACTS, figures=STAYED), {}),
    "search for names": (of(policy={"names": {"lists": True}, "mask": [{"file": "/names.txt"}]}), {}),
    "ledger": (replace(FACTS, ledger=COUNTED), {}),
    "ledger with a limit": (replace(FACTS, ledger=replace(COUNTED, limit=4.0)), {}),
    "ledger with what is left": (replace(FACTS, ledger=replace(COUNTED, limit=4.0, left=1.0)), {}),
    "cost": (replace(FACTS, text_bytes=160_000_000, write_seconds=40.0), {}),
    "mismatch": (replace(FACTS, status="mismatch", problems=("5 rows were counted and 6 written",)), {}),
    "recovered, counted": (replace(FACTS, status="recovered", counted="again", write_seconds=None), {}),
    "recovered": (replace(FACTS, status="recovered", counted=None), {}),
    "a warning": (replace(FACTS, disclosure=WARNING), {}),
    "insecure key": (replace(FACTS, key_kind="insecure"), {}),
    "no other column": (replace(FACTS, other_columns=(), compiled_loops=0), {}),
    "without figures": (replace(FACTS, figures=None), {}),
    "no words": (replace(FACTS, figures={"words": 0.0}), {}),
    "stream": (replace(FACTS, batches=BATCHES), {}),
    "stream, nothing new": (replace(FACTS, batches=replace(BATCHES, now=0)), {}),
    "change by the law": (replace(FACTS, expected_change=(0.73211, 0.6)), {}),
    "no law predicts": (replace(FACTS, expected_change="a draw also depends on the word before"), {}),
    "a row": (FACTS, {"pair": Example("body", "marker before", "marker after")}),
    "no row": (FACTS, {"pair": "no row key."}),
    "requirements": (of(row_key="id"), KEYED),
    "requirements, no row key": (FACTS, KEYED),
    "requirements, csv": (of(row_key="id", input={"path": "/in", "format": "csv"}), KEYED),
    "requirements of audits": (of(row_key="id"), {"verdict": judged(*OF_AUDITS), "settings": "s.yaml"}),
    "next": (FACTS, {"settings": "s.yaml", "overrides": ["columns=[body]", "input.path=/in"]}),
    "unchanged": (UnchangedRun(RECORD), {}),
    "unchanged, input went on": (UnchangedRun(RECORD, "delta:4"), {}),
    "unchanged, another target": (UnchangedRun(RECORD, since=("The target is another.",)), {}),
    "unchanged, broken": (UnchangedRun(RECORD), {"verdict": judged(ASKED[0], names_kept=0.5)}),
}


def text_of(outcome: RunFacts | UnchangedRun, **options: Any) -> str:
    return summary(outcome, **options).text(full=True)


def test_summaries_are_as_they_were() -> None:
    texts: dict[str, str] = {}
    for name, (outcome, options) in CASES.items():
        texts[name] = beyond(text_of(outcome, **options), texts.get("plain", ""))
        texts[f"{name}, internal"] = beyond(text_of(outcome, internal=True, **options), *texts.values())
    problem = replace(FACTS, problems=("It does not agree.",), disclosure=WARNING)
    texts["in a notebook"] = "\n".join(": ".join(pair) for pair in summary(problem).pairs)
    assert_as_frozen("terminal", "summary", {name: text for name, text in texts.items() if text})


@pytest.mark.parametrize("name", CASES)
def test_only_those_inside_see_figures_and_words_of_the_text(name: str) -> None:
    outcome, options = CASES[name]
    shared = text_of(outcome, **options)
    for private in ("55 %", "31.0", "1,205", "7 masked", "2 stayed", "marker", "0.625"):
        assert private not in shared
    assert "RESTRICTED" not in shared
    if isinstance(outcome, RunFacts):
        assert text_of(outcome, internal=True, **options).startswith(RESTRICTED)


def test_many_rows_of_unknown_words_and_names_that_force_column_mapping_are_warned_of() -> None:
    for rows, warned in ((0.0, False), (1_000.0, False), (1_001.0, True), (20_000.0, True)):
        facts = replace(FACTS, figures=FIGURES | {"unknown_rows": rows})
        assert bool(summary(facts).warnings) == warned
    for name, warned in (("ticket", False), ("ticket no", True), ("a;b", True), ("größe", False)):
        assert bool(summary(replace(FACTS, other_columns=(name,))).warnings) == warned


def test_the_cost_is_that_of_five_terabytes() -> None:
    # 40 MB in 10 s on 2 cores are 2 MB a second and core; 5e12 / 2e6 = 2.5e6 core-seconds.
    assert core_hours(40e6, 10.0, 2) == pytest.approx(2.5e6 / 3600)
