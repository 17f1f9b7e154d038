"""Accounts of runs that never were: what a report is written from, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from dptext_spark.config.load import parse_config
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.facts import RunFacts, RunRecord
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.report.deniability_section import Model
from dptext_spark.report.facts import ReportFacts
from tests.core.names import beginning

METRICS: dict[str | None, dict[str, float | None]] = {
    None: {
        "words": 1000.0, "drawn": 400.0, "stop_kept": 500.0, "oov": 60.0, "numbers": 40.0, "changed": 440.0, "same": 40.0,
        "changed_share": 0.44, "original_share": 0.1, "original_share_all": 0.56, "oov_share": 0.06, "stop_share": 0.5,
        "record_epsilon_mean": 12.31, "record_epsilon_p50": 12.0, "record_epsilon_p95": 40.0, "record_epsilon_max": 81.25,
    },
    "body": {"changed_share": 0.44, "original_share": 0.1, "original_share_all": 0.56},
}  # fmt: skip

# The same with what an audit measured.
AUDITED = METRICS | {
    None: METRICS[None] | {"identifiers": 12.0, "identifiers_email": 12.0} | {f"audit_{name}": value for name, value in {
        "singled_out": 0.9, "singled_out_upper": 0.91, "guess_success": 0.4, "guess_success_upper": 0.415, "names_kept": 0.012,
        "linkage_top1": 0.7, "linkage_top1_upper": 0.725, "linkage_10_words_top1": 0.8, "linkage_10_words_top1_upper": 0.8215,
        "linkage_3_words_top1": 0.3, "linkage_3_words_top1_upper": 0.3305, "linkage_candidates": 4000.0, "linkage_guess": 0.00025,
        "attribute_gain": 0.05, "attribute_gain_upper": 0.0625,
    }.items()},
}  # fmt: skip


def small_model(epsilon: float = 2.0, words: int = 300) -> Model:
    """CusText over the commonest words of the packaged lexicon."""
    lexicon = beginning(Lexicon.default(), words)
    sampler = CusText(epsilon=epsilon, k=10).compile(lexicon)
    return Model(Privatizer(lexicon, sampler), lambda at: CusText(epsilon=at, k=10).compile(lexicon))


def row(model: Model, settings: Mapping[str, Any] | None = None, **changes: Any) -> RunRecord:
    config = parse_config(
        {
            "input": {"path": "/data/tickets"}, "columns": ["body", "subject"], "row_key": "ticket",
            "mechanism": {"name": "custext", "epsilon": 2.0, "k": 10}, "output": {"path": "/data/sanitized"},
            **(settings or {}),
        }
    )  # fmt: skip
    planned = RunFacts.planned(config, model.privatizer)
    facts = replace(planned, other_columns=("ticket", "city"), releases_in_history=1)
    found = {
        "run_id": "r1", "status": "succeeded", "started_at": datetime(2026, 11, 21, 9, 30), "certificate": None,
        "config": json.dumps({**config.as_dict(), "run": None, "key": None}),
        "guarantee": json.dumps(model.privatizer.guarantee().as_dict()),
        "disclosure": json.dumps(disclosure(facts).as_dict(), ensure_ascii=False),
        "key_commitment": "ab" * 16, "key_kind": "os", "artifact": model.privatizer.fingerprint,
        "input": "/data/tickets", "input_version": "delta:3", "identity": "row_key", "output": "/data/sanitized",
        "output_version": 0, "second_release": False, "rows": 120, "seconds": 7.25, "tokens_per_second": 1234.5,
        "versions": json.dumps({"dptext_spark": "0.1.0", "pyspark": "4.2.0"}),
    }  # fmt: skip
    return RunRecord.of({**found, **changes})


def with_settings(facts: ReportFacts, **changes: Any) -> ReportFacts:
    settings = {**facts.run.settings.values, **changes}
    return replace(facts, run=replace(facts.run, config=json.dumps(settings)))


def with_guarantee(facts: ReportFacts, **changes: Any) -> ReportFacts:
    """Facts of a run with another guarantee, of ε = 2 unless it is said."""
    promised = replace(facts.run.promised, **{"epsilon": 2.0, **changes})
    return replace(facts, run=replace(facts.run, guarantee=json.dumps(promised.as_dict())))
