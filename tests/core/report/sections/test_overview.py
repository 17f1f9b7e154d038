"""The figures on the first screen: none says more than is known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")

from dptext_spark.audit.deniability.word_figures import Bounded
from dptext_spark.audit.results import WordAttack
from dptext_spark.guarantee import Kind
from dptext_spark.ledger.balance import Spending
from dptext_spark.ledger.sums import Spent, Total
from dptext_spark.report.facts import ReportFacts, gathered
from dptext_spark.report.sections.run import tiles
from tests.core.report.accounts import row, small_model


@pytest.fixture(scope="module")
def facts() -> ReportFacts:
    model = small_model(words=60)
    return gathered(row(model), model=model)


def with_settings(facts: ReportFacts, **changes: Any) -> ReportFacts:
    settings = {**facts.run.settings.values, **changes}
    return replace(facts, run=replace(facts.run, config=json.dumps(settings)))


def said(facts: ReportFacts, name: str) -> str:
    (tile,) = [tile for tile in tiles(facts) if tile.name == name]
    return f"{tile.figure} {tile.said}"


def test_of_a_law(facts: ReportFacts) -> None:
    (attack,) = facts.attacks
    found = said(facts, "Attack by public text finds")
    assert "at most" in found
    assert found.endswith("% of the worst 1 % of words; by the law and public counts, not of this table")
    assert attack.worst > attack.success
    assert said(facts, "Certificate").startswith("confirmed")
    assert "cannot" not in said(facts, "Certificate")
    assert said(facts, "A word stays as it is").endswith("for the worst")


def test_of_estimates_bounds_are_shown_and_nothing_is_at_most_that_is_not(facts: ReportFacts) -> None:
    assert facts.certificate is not None
    certificate = replace(facts.certificate, verdict="not refuted")
    attack = replace(facts.attacks[0], upper=0.5, exact=False, open=True, worst=0.6, worst_upper=0.75)
    values, upper = np.full(50, 0.125), np.append(np.full(49, 0.25), 0.875)
    stays = replace(
        facts.deniability.figure("N_w"), words=np.arange(50, dtype=np.int32), of=Bounded(values, values, upper), draws=1_000,
        confidence=0.99,
    )  # fmt: skip
    found = replace(
        facts,
        certificate=certificate,
        attacks=[attack],
        deniability=replace(facts.deniability, figures=[stays]),
    )
    assert "such a search cannot confirm" in said(found, "Certificate")
    assert said(found, "Attack by public text finds").startswith(
        "50 % of words, a better one maybe more; 75 % of the worst"
    )
    assert (
        said(found, "A word stays as it is")
        == "25 % of the draws at most, for the median word; 87.5 % for the worst of 50"
    )


def test_of_a_record_it_says_what_its_kind_of_guarantee_adds_up_to(facts: ReportFacts) -> None:
    def one(kind: Kind, metric: str | None = None, **config: Any) -> ReportFacts:
        guarantee = replace(facts.run.promised, kind=kind, metric=metric, epsilon=2.0)
        run = replace(with_settings(facts, **config).run, guarantee=json.dumps(guarantee.as_dict()))
        return replace(facts, metrics=None, run=run)

    assert said(one("epsilon_dp"), "ε of a record") == "2 a word times the drawn words that it has"
    assert "distinct drawn words" in said(one("approx_dp", consistency="record"), "ε of a record")
    assert said(one("metric_dp", "euclidean"), "ε of a record") == (
        "ε times distances ε times the sum of the distances between the drawn words of two records; no single figure"
    )
    assert said(one("metric_dp", "euclidean", consistency="dataset"), "ε of a record").startswith("none")
    plus = one("metric_dp", "euclidean between sensitive words")
    assert "between two sensitive words" in said(plus, "Guarantee of one word")
    assert "between two words" in said(one("metric_dp", "euclidean"), "Guarantee of one word")
    levels = {"percent": None, "levels": [{"share": 40}, {"share": None}]}
    assert "the level's ε times its drawn words" in said(
        one("epsilon_dp", importance=levels), "ε of a record"
    )
    # The last level takes what is left: no word stays in clear.
    assert "NOT CHOSEN" not in said(one("epsilon_dp", importance=levels), "In clear")
    some = {"percent": 30, "levels": []}
    assert "WORDS THAT WERE NOT CHOSEN" in said(one("epsilon_dp", importance=some), "In clear")


def test_what_is_in_clear_counts_each_thing(facts: ReportFacts) -> None:
    assert said(facts, "In clear") == "6 things stop words, case, spacing, length, punctuation, other columns"
    shared = with_settings(facts, consistency="record")
    assert "7 things" in said(shared, "In clear")
    assert "which words are equal" in said(shared, "In clear")


def test_another_attack_that_finds_more_of_the_worst_words_is_said_to_be_another(
    facts: ReportFacts,
) -> None:
    alone = replace(facts.attacks[0], worst=0.8)
    context = WordAttack(name="context", success=0.95)
    found = said(replace(facts, attacks=[alone, context]), "Strongest attack shown finds")
    assert found.startswith("95 % of words at most; another attack finds 80 % of the worst")


def test_what_all_releases_have_spent(facts: ReportFacts) -> None:
    def counted(*figures: float, total: float = 3.0, metric: str | None = None) -> ReportFacts:
        each = tuple(Total(metric, "a word", epsilon, 0.0, False, 2) for epsilon in figures)
        column = Spent("body", each, total)
        spent = Spending("/ledger", "2026-01-01", "/in", (column, replace(column, total=1.0)))
        return replace(facts, run=replace(facts.run, cumulative=json.dumps(spent.as_dict())))

    assert [tile for tile in tiles(facts) if tile.name == "Spent on one word so far"] == []
    assert said(counted(3.0), "Spent on one word so far").startswith("ε = 3 by all releases")
    assert said(counted(1.0, 2.0), "Spent on one word so far").startswith("ε = 3 by all releases")
    assert said(counted(1.0, 2.0, metric="euclidean"), "Spent on one word so far").startswith(
        "several kinds by distances, which are not to be added"
    )
    assert said(counted(3.0, total=math.inf), "Spent on one word so far").startswith(
        "no ε a guarantee was refuted"
    )
