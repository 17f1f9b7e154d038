"""The figures on the first screen and the section of names: kept as text; what depends on the text is for those inside."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")

from dptext_spark.audit.results import WordAttack
from dptext_spark.audit.word_figures import Intervals
from dptext_spark.disclosure.facts import Metrics
from dptext_spark.ledger.balance import Balance, Spent, Total
from dptext_spark.report.blocks import Points, Table, Text
from dptext_spark.report.facts import ReportFacts, gathered
from dptext_spark.report.names_section import names
from dptext_spark.report.page import page
from dptext_spark.report.run_section import tiles
from tests.core.report.accounts import METRICS, row, small_model, with_guarantee, with_settings
from tests.frozen.written import assert_as_frozen, beyond

LISTS = {
    "mask": [{"file": "/lists/staff.txt", "entries": 1234, "digest": "ab"}, {"column": "customer"}],
    "keep": [{"table": "crm.products", "column": "name", "entries": 5, "digest": "cd"}],
}
NAMED = {"kind": "person", "replace": "pseudonym", "version": "1"}
FINDER = {"model": "some-package", "threshold": 0.25}
SEARCH = {"lists": True, "person": "pseudonym", "location": "keep", **FINDER}
COUNTS: Metrics = METRICS | {
    None: METRICS[None] | {"persons_found": 1205.0, "names_masked": 31.0, "audit_names_kept": 0.0213},
    "body": {"audit_names_kept": 0.99},
}
STAYED: Metrics = METRICS | {
    None: METRICS[None] | {
        f"{kind}{what}": value
        for kind, counts in (("person_words", (1500, 1497, 3)), ("listed_words", (40, 0, 40)))
        for what, value in zip(("", "_replaced", "_kept", "_kept_share"), (*counts, counts[2] / counts[0]), strict=True)
    },
}  # fmt: skip
LEVELS = {"percent": None, "levels": [{"share": 40}, {"share": None}]}


def with_spent(
    facts: ReportFacts, *figures: float, total: float = 3.0, metric: str | None = None
) -> ReportFacts:
    each = tuple(Total(metric=metric, unit="a word", epsilon=spent, delta=0.0, times=2) for spent in figures)
    column = Spent("body", each, total)
    spent = Balance("/ledger", "2026-01-01", "/in", (column, replace(column, total=1.0)))
    return replace(facts, run=replace(facts.run, cumulative=json.dumps(spent.as_dict())))


def estimated(facts: ReportFacts) -> ReportFacts:
    """Bounds instead of exact figures."""
    assert facts.certificate is not None
    attack = replace(facts.attacks[0], upper=0.5, exact=False, open=True, worst=0.6, worst_upper=0.75)
    values, upper = np.full(50, 0.125), np.append(np.full(49, 0.25), 0.875)
    stays = replace(
        facts.deniability.figure("N_w"), words=np.arange(50, dtype=np.int32), of=Intervals(values, values, upper), draws=1_000,
        confidence=0.99,
    )  # fmt: skip
    return replace(
        facts,
        certificate=replace(facts.certificate, verdict="not refuted"),
        attacks=[attack],
        deniability=replace(facts.deniability, figures=[stays]),
    )


def cases(facts: ReportFacts) -> dict[str, ReportFacts]:
    plus = "euclidean between sensitive words"
    by_distance = with_guarantee(facts, kind="metric_dp", metric="euclidean")
    return {
        "plain": facts,
        "estimates": estimated(facts),
        "another attack": replace(
            facts,
            attacks=[replace(facts.attacks[0], worst=0.8), WordAttack(name="context", success=0.95)],
        ),
        "epsilon_dp": with_guarantee(facts, kind="epsilon_dp"),
        "approx_dp, record": with_settings(with_guarantee(facts, kind="approx_dp"), consistency="record"),
        "metric_dp": by_distance,
        "metric_dp, dataset": with_settings(by_distance, consistency="dataset"),
        "metric_dp, sensitive": with_guarantee(facts, kind="metric_dp", metric=plus),
        "levels": with_settings(facts, importance=LEVELS),
        "importance": with_settings(facts, importance={"percent": 30, "levels": []}),
        "spent": with_spent(facts, 3.0),
        "spent on two levels": with_spent(facts, 1.0, 2.0),
        "spent by distance": with_spent(facts, 1.0, 2.0, metric="euclidean"),
        "spent, refuted": with_spent(facts, 3.0, total=math.inf),
    }


def named(**policy: Any) -> ReportFacts:
    """Facts of a run with such a policy; `metrics` are those of its account."""
    metrics = policy.pop("metrics", None)
    record = row(small_model(words=60))
    settings = json.loads(record.config)
    settings["policy"] |= policy
    return gathered(replace(record, config=json.dumps(settings)), model="x", metrics=metrics)


LISTED = {"names": {"lists": True}}
NAMES: dict[str, dict[str, Any]] = {
    "none": {},
    "none, inside": {"metrics": METRICS},
    "search and lists": {"names": SEARCH, **LISTS},
    "pseudonyms of lists": {"mask": [{**part, **NAMED} for part in LISTS["mask"]], "metrics": COUNTS},
    "lists": LISTED,
    "lists, inside": {**LISTED, "metrics": COUNTS},
    "lists, what stayed": {**LISTED, "metrics": STAYED},
}


def tiles_of(facts: ReportFacts) -> str:
    return "\n".join(f"{tile.name}: {tile.figure} {tile.said}" for tile in tiles(facts))


def names_of(facts: ReportFacts) -> str:
    lines = [line for line in tiles_of(facts).splitlines() if line.startswith("Names")]
    for block in names(facts).blocks:
        match block:
            case Text(text):
                lines.append(text)
            case Points(heading, sentences):
                lines += [heading, *sentences]
            case Table():
                lines += [" | ".join(cells) for cells in (block.head, *block.rows)]
    return "\n".join(lines)


def test_first_screens_are_as_they_were(facts: ReportFacts) -> None:
    texts: dict[str, str] = {}
    for name, case in cases(facts).items():
        texts[name] = beyond(tiles_of(case), texts.get("plain", ""))
    texts |= {f"names: {name}": names_of(named(**policy)) for name, policy in NAMES.items()}
    assert_as_frozen("pages", "overview", texts)


@pytest.mark.parametrize("figures", [COUNTS, STAYED])
def test_counts_of_names_are_for_those_inside(figures: Metrics) -> None:
    outside, inside = named(**LISTED), named(**LISTED, metrics=figures)
    assert (names(outside).restricted, names(inside).restricted) == (False, True)
    for figure in ("1,205", "31 masked", "2.13", "1,540", "1,497"):
        assert figure not in page(outside)
