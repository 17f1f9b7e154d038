"""The first two pages: what a signer reads, for every standing, level and kind of promise; and that all of it is escaped."""

from __future__ import annotations

import html
import itertools
import json
import re
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
pytest.importorskip("jinja2", reason="the extra [audit] is not installed")

from dptext_spark.audit.results import WordAttack
from dptext_spark.config.requirements import FIGURES, Metric, Verdict, named_requirement
from dptext_spark.config.sections import Approval
from dptext_spark.ledger.balance import Balance, Total
from dptext_spark.report.decision import decision, joined
from dptext_spark.report.facts import ReportFacts, gathered
from dptext_spark.report.page import page
from dptext_spark.report.requirements_section import row_of
from dptext_spark.rounding import percent_up
from tests.core.report.accounts import AUDITED, METRICS, row, small_model, with_guarantee, with_settings
from tests.frozen.written import assert_as_frozen, beyond

VALUES = {"holds": 0.125, "broken": 0.875, "not measured": None}
WORDS = {"holds": "holds", "broken": "IS BROKEN", "not measured": "was not measured"}


def of(name: str, standing: str, *, bounded: bool = False) -> Verdict:
    limit = named_requirement(f"{name} <= 0.5", FIGURES, "a run")
    return Verdict.of([limit], [Metric(name, VALUES[standing])], bounded=bounded)


HELPED = (
    *("names_kept", "bayes_success", "record_epsilon", "ledger_epsilon"),
    *("original_share", "oov_kept_share", "bleu"),
)
POLICY = {"stop_words": "keep", "oov": "draw", "numbers": "random"}
OUTPUT = {"path": "/out", "other_columns": ["id", "stars"]}


def with_spent(facts: ReportFacts, record: Total, limit: float | None = None) -> ReportFacts:
    spent = Balance("/ledger", "2026-11-26", "/in", (), limit=limit, left=limit, record=record)
    return replace(facts, run=replace(facts.run, cumulative=json.dumps(spent.as_dict())))


def cases(facts: ReportFacts) -> dict[str, ReportFacts]:
    assert facts.certificate is not None
    attack, waits = facts.attacks[0], replace(facts, verdict=of("names_kept", "not measured"))
    levels = {f"consistency {each}": with_settings(facts, consistency=each) for each in ("record", "dataset")}
    kinds: dict[str, dict[str, Any]] = {"epsilon_dp": {}, "epsilon_dp_within_group": {}}
    kinds |= {"metric_dp": {"metric": "euclidean"}, "approx_dp": {"delta": 0.001}}
    broken = [(name, "broken") for name in HELPED]
    drawn, masked = ({"stop_words": "draw", "oov": oov} for oov in ("draw", "mask"))
    columns = {"keyed": ["id", "stars"], "without the key": ["stars"], "dropped": "drop"}
    return {
        "plain": facts,
        **levels,
        **{kind: with_guarantee(facts, kind=kind, **more) for kind, more in kinds.items()},
        "ε of 100": with_guarantee(facts, epsilon=100.0),
        "refuted": replace(facts, certificate=replace(facts.certificate, verdict="refuted")),
        "insecure": replace(facts, run=replace(facts.run, key_kind="insecure")),
        "counts that disagree": replace(facts, verdict=Verdict(against=("its counts do not agree",))),
        "unfinished": replace(facts, verdict=Verdict(unfinished=True)),
        "no example": replace(facts, example=None, model_missing="the lexicon is gone."),
        "an example": replace(facts, example=("Send the parcel.", "Send the letter.")),
        "an example of unknown words": replace(facts, example=("Send the parcel.", "[OOV] the [OOV].")),
        "an example of some": replace(facts, example=("Send the parcel.", "[OOV] the letter.")),
        **{
            f"{name} {standing}": with_settings(replace(facts, verdict=of(name, standing)), policy=POLICY)
            for name, standing in (*broken, ("names_kept", "holds"), ("ledger_epsilon", "holds"))
        },
        "record_epsilon not measured": replace(facts, verdict=of("record_epsilon", "not measured")),
        **{
            f"{name} broken, {said}": with_settings(replace(facts, verdict=of(name, "broken")), policy=said)
            for name, said in (
                *(("original_share", said) for said in (drawn, masked)),
                *(("context_success", {"stop_words": said}) for said in ("keep", "draw")),
            )
        },
        **{
            f"{n} and {k} releases": with_spent(facts, Total(epsilon=4.0 * n, delta=0.0, times=n, without=k))
            for n, k in ((0, 0), (0, 1), (1, 1))
        },
        "limit": with_spent(facts, Total(epsilon=0.0, delta=0.0, times=0), 9.0),
        "no row key": with_settings(waits, row_key=None),
        **{
            name: with_settings(waits, row_key="id", output={**OUTPUT, "other_columns": others})
            for name, others in columns.items()
        },
        "no column": with_settings(facts, row_key=None, output={**OUTPUT, "other_columns": "drop"}),
        "audited": replace(facts, metrics=AUDITED[None]),
        "attacked alone": replace(facts, metrics={"audit_guess_success": 0.734}),
        "key in a file": replace(facts, run=replace(facts.run, key_kind="file")),
        "attack on the table": replace(facts, attacks=[replace(attack, restricted=True)]),
        "open attack": replace(facts, attacks=[replace(attack, open=True)]),
        "no attack": replace(facts, attacks=[]),
        "no attack, no certificate": replace(facts, attacks=[], certificate=None),
        "no certificate": replace(facts, certificate=None),
    }


def first_page(facts: ReportFacts) -> str:
    made = decision(facts)
    before, after = (
        "".join(f"<{text}>" if differs else text for differs, text in side)
        for side in (made.before, made.after)
    )
    rows = (f"{row.mark} {row.requirement}: {row.standing}. {row.said}" for row in made.rows)
    rests = (f"{part.heading}: {sentence}" for part in made.rests for sentence in part.sentences)
    answers = (": ".join(answer) for answer in made.answers)
    pairs = (f"{name}: {value}" for name, value in (*made.about, *made.sign))
    lines = [
        f"{made.look}: {made.words}. {made.why}", *answers, *rows, made.released, *made.meaning,
        f"example: {before} -> {after} {made.no_example}", *rests, *pairs,
    ]  # fmt: skip
    return "\n".join(line.rstrip() for line in lines if line)


def test_first_pages_are_as_they_were(facts: ReportFacts) -> None:
    texts: dict[str, str] = {}
    for name, case in cases(facts).items():
        texts[name] = beyond(first_page(case), texts.get("plain", ""))
    assert_as_frozen("pages", "decision", texts)


@pytest.mark.long
@pytest.mark.parametrize("standing", VALUES)
@pytest.mark.parametrize("name", ["names_kept", "ledger_epsilon"])
def test_every_standing_restricted_or_not(facts: ReportFacts, name: str, standing: str) -> None:
    judged = replace(facts, verdict=of(name, standing))
    made = decision(judged)
    (row,) = made.rows
    look = {"holds": "holds", "broken": "broken", "not measured": "open"}[standing]
    assert (row.requirement, row.standing) == (f"{name} <= 0.5", WORDS[standing])
    assert row.look == made.look == look
    restricted = name == "names_kept"
    value = VALUES[standing]
    assert (str(value) in row.said) == (not restricted and value is not None)
    assert bool(made.released) == (restricted and value is not None)
    text = page(judged)
    if restricted and value is not None:
        assert str(value) not in re.sub("<svg.*?</svg>|<style.*?</style>", "", text, flags=re.DOTALL)
    assert text.count(f'<div class="verdict {look}">') == 1
    assert len(made.meaning) == 3


def test_confirmed_stands_beside_a_success_with_the_sentence_that_joins_them(facts: ReportFacts) -> None:
    strongest = facts.attacks[0]
    assert isinstance(strongest, WordAttack)
    assert percent_up(strongest.at_most) in joined(facts)
    assert page(facts).count(joined(facts)) == 2  # on the first page, and below the tiles


def test_what_the_settings_say_stands_there_escaped_and_the_example_is_public(facts: ReportFacts) -> None:
    named = {"purpose": "<b>purpose</b>", "owner": "<i>owner<script>x", "expires": "9999-01-02"}
    example = ("<u>before</u>", "<u>after</u>")
    text = page(replace(facts, approval=Approval.model_validate(named), example=example))
    for tag in ("<b>purpose", "<i>owner", "<script", "<u>"):
        assert tag not in text
        assert html.escape(tag) in text
    assert named["expires"] in text
    assert facts.example is not None
    assert facts.example[0] == "Please send the parcel to my sister in London."


def test_words_that_the_policy_keeps_are_no_worst_words(facts: ReportFacts) -> None:
    model = small_model(words=60)
    words = map(model.privatizer.vocabulary.word, range(60))
    kept = set(words) & set(model.privatizer.engine.policy.stop_list() or ())
    assert kept
    worst = [facts.deniability.words[word] for one in facts.deniability.figures for word, _ in one.worst()]
    assert worst
    assert kept.isdisjoint(worst)
    assert {len(one.words) for one in facts.deniability.figures} == {60 - len(kept)}


def test_a_glossary_ends_the_annex_and_shows_what_the_page_says(facts: ReportFacts) -> None:
    text = page(facts)
    glossary = text[text.index('id="glossary"') :]
    for term in ("ε (epsilon)", "certificate", "restricted", "lexicon", "verdict"):
        assert f'<th scope="row">{term}</th>' in glossary


def test_a_restricted_page_stays_marked_and_the_statement_has_later_requests(facts: ReportFacts) -> None:
    model, holds = small_model(words=60), of("names_kept", "holds")
    internal = gathered(row(model), model="x", metrics=METRICS, verdict=holds)
    assert [answer.figure for answer in decision(internal).answers] == ["not measured"] * 3
    marks = [text.markdown().count("Restricted, because") for text in (internal.statement, internal.outside)]
    assert marks == [1, 0]
    for marked, restricted in ((internal, True), (replace(facts, verdict=holds), False)):
        assert page(marked).startswith("<!doctype html><!-- RESTRICTED") == restricted
    require = [named_requirement("names_kept <= 0.5", FIGURES, "a run")]
    for asked in ([], ["names_kept <= 0.5"]):
        since = gathered(row(model, {"require": asked}), model="x", require=require)
        clear = since.statement.under("Released in clear")
        assert len([sentence for sentence in clear if "names_kept <= 0.5" in sentence]) == 1


@pytest.mark.parametrize("several", list(itertools.product(VALUES, repeat=2)))
def test_why_counts(facts: ReportFacts, several: tuple[str, str]) -> None:
    names = ("names_kept", "bayes_success")
    limits = [named_requirement(f"{name} <= 0.5", FIGURES, "a run") for name in names]
    metrics = [Metric(name, VALUES[standing]) for name, standing in zip(names, several, strict=True)]
    counts = [several.count(standing) for standing in ("broken", "not measured", "holds")]
    count = next(count for count in counts if count)
    why = decision(replace(facts, verdict=Verdict.of(limits, metrics))).why
    assert why.startswith({1: ("A ", "1 of 2 "), 2: ("2 ", "All 2 ")}[count])


def standings(held: int, broken: int, waiting: int) -> Verdict:
    names = sorted(FIGURES, key=len, reverse=True)
    which = [0.25] * held + [0.75] * broken + [None] * waiting
    named = [names[n % len(names)] for n in range(len(which))]
    texts = [f"{name} <= 0.5{n:03d}" for n, name in enumerate(named[: len(names)])]
    limits = [named_requirement(text, FIGURES, "a run") for text in texts]
    return Verdict.of(limits, [Metric(name, value) for name, value in zip(named, which, strict=True)])


@pytest.mark.parametrize("counts", [(0, 1, 20), (4, 9, 4), (20, 20, 20), (0, 11, 0)])
def test_no_broken_one_is_hidden(facts: ReportFacts, counts: tuple[int, int, int]) -> None:
    judged = replace(facts, verdict=standings(*counts))
    page = decision(judged)
    broken = judged.verdict.broken
    shown = " ".join(f"{row.requirement} {row.said}" for row in page.rows if row.look == "broken")
    hidden = [requirement for requirement in broken if requirement not in shown]
    assert (f"The annex alone names {len(hidden)} of them" in page.why) == bool(hidden)
    (change,) = (part.sentences for part in page.rests if part.heading == "What would change it")
    assert len([sentence for sentence in change if "(broken)" in sentence]) <= 7


def test_the_page_links_to_the_annex_where_all_requirements_stand(facts: ReportFacts) -> None:
    found = replace(facts, verdict=standings(20, 30, 10))
    text = page(found)
    assert '<a href="#required">each in the annex</a>' in text
    annex = text[text.index('<section id="required">') :]
    for one in found.verdict.judged:
        assert html.escape(one.requirement) in annex
    assert '<section id="required">' not in page(facts)


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (1, 1), (3, 3), (4, 3), (60, 3)])
def test_first_warnings_are_shown_and_the_others_counted(facts: ReportFacts, count: int, shown: int) -> None:
    warnings = tuple(f"Warning {number}." for number in range(count))
    rest = tuple(part for part in facts.statement.sections if part[0] != "Warnings")
    statement = replace(facts.statement, sections=(("Warnings", warnings), *rest))
    page = decision(replace(facts, statement=statement))
    assert page.warnings == warnings[:shown]
    assert page.more_warnings.startswith(f"{count - shown} more of the {count} " if count > shown else "")
    assert bool(page.more_warnings) == (count > shown)


def test_a_broken_requirement_shows_its_value_on_the_restricted_page_alone() -> None:
    limit = named_requirement("names_kept <= 0.5", FIGURES, "a run")
    metric = [Metric("names_kept", 0.87512, 0.86, 0.89125)]
    shown = [row_of(Verdict.of([limit], metric, internal=each).judged[0]).said for each in (True, False)]
    assert ["it came to 0.8913" in said for said in shown] == [True, False]


def test_a_requirement_may_name_its_number_of_candidates() -> None:
    limit = named_requirement("linkage_top1(10000) <= 0.5", FIGURES, "a run")
    assert ", among 10,000 rows" in row_of(Verdict.of([limit], []).judged[0]).said
