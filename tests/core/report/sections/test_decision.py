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

from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.results import WordAttack
from dptext_spark.audit.verdict import Verdict, verdict
from dptext_spark.config.requirements import FIGURES, named_requirement
from dptext_spark.config.sections import Approval
from dptext_spark.ledger.balance import Spending
from dptext_spark.ledger.sums import RecordSpent
from dptext_spark.report.facts import ReportFacts, gathered
from dptext_spark.report.page import page
from dptext_spark.report.sections.decision import decision, height, joined, meaning
from dptext_spark.report.sections.required import SHEET
from dptext_spark.rounding import percent_up
from tests.core.report.accounts import METRICS, row, small_model

VALUES = {"holds": 0.125, "broken": 0.875, "not measured": None}
WORDS = {"holds": "holds", "broken": "IS BROKEN", "not measured": "was not measured"}


@pytest.fixture(scope="module")
def facts() -> ReportFacts:
    model = small_model(words=60)
    return gathered(row(model), model=model)


def of(name: str, standing: str, *, bounded: bool = False) -> Verdict:
    limit = named_requirement(f"{name} <= 0.5", FIGURES, "a run")
    return verdict([limit], [Metric(name, VALUES[standing])], bounded=bounded)


def with_settings(facts: ReportFacts, **changes: Any) -> ReportFacts:
    settings = {**facts.run.settings.values, **changes}
    return replace(facts, run=replace(facts.run, config=json.dumps(settings)))


@pytest.mark.long
@pytest.mark.parametrize("level", ["token", "record", "dataset"])
@pytest.mark.parametrize("standing", VALUES)
@pytest.mark.parametrize("name", ["names_kept", "ledger_epsilon"])
def test_every_standing_restricted_or_not_at_every_level(
    facts: ReportFacts, name: str, standing: str, level: str
) -> None:
    found = replace(with_settings(facts, consistency=level), verdict=of(name, standing))
    made = decision(found)
    (one,) = made.rows
    look = {"holds": "holds", "broken": "broken", "not measured": "open"}[standing]
    assert (one.requirement, one.standing, one.look, made.look) == (
        f"{name} <= 0.5",
        WORDS[standing],
        look,
        look,
    )
    assert (
        made.words
        == {
            "holds": "Every requirement holds",
            "broken": "Broken: do not publish this table",
            "not measured": "Not decided",
        }[standing]
    )
    restricted = name == "names_kept"
    value = VALUES[standing]
    assert ("it came to" in one.said) == (not restricted and value is not None)
    assert bool(made.released) == (restricted and value is not None)
    text = page(found)
    if restricted and value is not None:
        assert str(value) not in re.sub("<svg.*?</svg>|<style.*?</style>", "", text, flags=re.DOTALL)
    assert text.count(f'<div class="verdict {look}">') == 1
    assert len(made.meaning) == 3
    record = {
        "token": "grows with the drawn words",
        "record": "grows with the distinct drawn words",
        "dataset": "no ε",
    }[level]
    assert record in made.meaning[2]


def test_confirmed_never_stands_beside_a_success_without_the_sentence_that_joins_them(
    facts: ReportFacts,
) -> None:
    assert facts.certificate is not None
    said = joined(facts)
    assert said.startswith(
        "The certificate (confirmed) is about how much one output tells, not about how often"
    )
    first, rest = said.split(". ", 1)
    strongest = facts.attacks[0]
    assert isinstance(strongest, WordAttack)
    assert f"not on this table, the strongest attack shown guesses {percent_up(strongest.at_most)}" in first
    assert "who reads the words around may guess many more" in rest
    assert "context_success" in rest
    measured = joined(replace(facts, metrics={"audit_context_success": 0.734}))
    assert measured.endswith("On this table, who reads the words around guesses 73.4 %.")
    on_it = joined(replace(facts, attacks=[replace(strongest, restricted=True)]))
    assert "the strongest attack on this table that is shown here guesses" in on_it
    text = page(facts)
    assert text.count(said) == 2  # on the first page, and below the tiles
    assert joined(replace(facts, attacks=[])).endswith("no attack was made here.")
    assert joined(replace(facts, attacks=[], certificate=None)) == ""
    assert "certificate" not in joined(replace(facts, certificate=None))
    assert "a better one may find more" in joined(
        replace(facts, attacks=[replace(facts.attacks[0], open=True)])
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("epsilon_dp", "whatever the two are"),
        ("epsilon_dp_within_group", "nothing bounds it for other words"),
        ("metric_dp", "for each unit of distance"),
        ("approx_dp", "up to a probability δ = 0.001"),
    ],
)
def test_the_promise_in_a_sentence(facts: ReportFacts, kind: Any, expected: str) -> None:
    delta, metric = (
        (0.001, None) if kind == "approx_dp" else (0.0, "euclidean" if kind == "metric_dp" else None)
    )
    promised = replace(facts.run.promised, kind=kind, delta=delta, metric=metric, epsilon=2.0)
    found = replace(facts, run=replace(facts.run, guarantee=json.dumps(promised.as_dict())))
    first = next(meaning(found))
    assert "a factor of at most 7.39 (ε = 2" in first
    assert expected in first
    large = replace(promised, epsilon=100.0)
    huge = replace(facts, run=replace(facts.run, guarantee=json.dumps(large.as_dict())))
    assert "at most 10^44 (ε = 100" in next(meaning(huge))


def test_what_is_refuted_or_insecure_promises_nothing(facts: ReportFacts) -> None:
    assert facts.certificate is not None
    for found in (
        replace(facts, certificate=replace(facts.certificate, verdict="refuted")),
        replace(facts, run=replace(facts.run, key_kind="insecure")),
    ):
        assert next(meaning(found)).startswith("The promise does not hold")


def test_without_requirements_it_says_so_and_what_is_to_be_filled_in(facts: ReportFacts) -> None:
    made = decision(facts)
    assert (made.words, made.rows) == ("Not decided", ())
    assert "No requirement was set (require)" in made.why
    assert dict(made.about)["purpose"] == "to be filled in (approval.purpose)"
    assert dict(made.sign)["approver"] == ""
    wrong = decision(replace(facts, verdict=Verdict(against=("its counts do not agree",))))
    assert (wrong.words, wrong.why) == ("Broken: do not publish this table", "Its counts do not agree.")
    begun = decision(replace(facts, verdict=Verdict(unfinished=True)))
    assert begun.why == "The run has not come to its account."


def test_what_the_settings_say_stands_there_escaped(facts: ReportFacts) -> None:
    approval = Approval.model_validate(
        {
            "purpose": "<b>purpose</b>",
            "owner": "<i>owner",
            "approver": '"><script>x',
            "date": "2026-01-02",
            "expires": "9999-01-02",
        }
    )
    example = ("<u>before</u>", "<u>after</u>")
    text = page(replace(facts, approval=approval, example=example))
    for tag in ("<b>purpose", "<i>owner", "<script", "<u>"):
        assert tag not in text
    for shown in (
        "&lt;b&gt;purpose&lt;/b&gt;",
        "&lt;i&gt;owner",
        "&lt;script&gt;x",
        "2026-01-02",
        "9999-01-02",
        "&lt;u&gt;",
    ):
        assert shown in text
    assert "The approval ends with 9999-01-02." in text


def test_the_example_is_public_and_its_changed_words_are_marked(facts: ReportFacts) -> None:
    made = decision(replace(facts, example=("Send the parcel.", "Send the letter.")))
    assert [text for differs, text in made.before if differs] == ["parcel"]
    assert [text for differs, text in made.after if differs] == ["letter"]
    assert "".join(text for _, text in made.before) == "Send the parcel."
    none = decision(replace(facts, example=None, model_missing="the lexicon is gone."))
    assert none.no_example == "There is no example: the lexicon is gone."
    for after, is_shown in (
        ("[OOV] the [OOV].", False),
        ("[OOV] the letter.", True),
    ):  # in a lexicon of another language
        shown = decision(replace(facts, example=("Send the parcel.", after)))
        assert bool(shown.after) is bool(shown.before) is is_shown
        assert ("holds few of its words" in shown.no_example) is not is_shown
    assert facts.example is not None
    assert facts.example[0] == "Please send the parcel to my sister in London."


def test_each_broken_requirement_has_something_that_helps(facts: ReportFacts) -> None:
    helps = {
        "names_kept": "policy.mask", "bayes_success": "a smaller ε", "record_epsilon": "budget",
        "ledger_epsilon": "nothing takes back", "original_share": "stop_words: draw", "oov_kept_share": "policy.oov: mask",
        "bleu": "other settings",
    }  # fmt: skip
    facts = with_settings(facts, policy={"stop_words": "keep", "oov": "draw", "numbers": "random"})
    for name, expected in helps.items():
        (change, *_) = dict(
            (part.heading, part.sentences)
            for part in decision(replace(facts, verdict=of(name, "broken"))).rests
        )["What would change it"]
        assert expected in change
    waiting = decision(replace(facts, verdict=of("names_kept", "not measured"))).rests[-1].sentences
    assert "`dptext audit TABLE" in waiting[0]
    never = decision(replace(facts, verdict=of("record_epsilon", "not measured"))).rests[-1].sentences
    assert never[0].endswith("This run has no such figure.")


def test_what_the_settings_have_done_already_is_not_what_would_help(facts: ReportFacts) -> None:
    def change(name: str, **policy: str) -> str:
        found = with_settings(replace(facts, verdict=of(name, "broken")), policy=policy)
        rests = {part.heading: part.sentences for part in decision(found).rests}
        return rests["What would change it"][0].split("(broken): ")[1].split(". Then")[0]

    assert change("original_share", stop_words="keep", oov="draw") == (
        "a smaller ε, policy.stop_words: draw, or policy.oov: mask"
    )
    assert change("original_share", stop_words="draw", oov="draw") == "a smaller ε, or policy.oov: mask"
    assert change("original_share", stop_words="draw", oov="mask") == "a smaller ε"
    assert change("context_success", stop_words="keep").startswith("policy.stop_words: draw, or a smaller ε")
    assert change("context_success", stop_words="draw").startswith("a smaller ε, which helps little")


def test_a_release_without_a_figure_for_a_record_is_counted_and_no_more_is_said(facts: ReportFacts) -> None:
    def record(times: int, without: int) -> list[str]:
        spent = Spending(
            "/ledger", "2026-11-26", "/in", (), record=RecordSpent(4.0 * times, 0.0, times, without)
        )
        found = replace(facts, run=replace(facts.run, cumulative=json.dumps(spent.as_dict())))
        rests = {part.heading: part.sentences for part in decision(found).rests}
        return [one for one in rests["Spent, and what is left"] if one.startswith("On one record")]

    assert record(0, 1) == ["On one record: 1 release without a figure for a record."]
    (said,) = record(1, 1)
    assert "ε = 4 for the longest record (spent once), and 1 release without" in said
    assert "its words counted up in steps" in said
    assert record(0, 0) == []


@pytest.mark.parametrize("limit", [None, 9.0])
def test_what_is_spent_says_which_releases_the_ledger_does_not_count(
    facts: ReportFacts, limit: float | None
) -> None:
    spent = Spending("/ledger", "2026-11-26", "/in", (), limit=limit, left=limit)
    counted = replace(facts, run=replace(facts.run, cumulative=json.dumps(spent.as_dict())))
    rests = {part.heading: " ".join(part.sentences) for part in decision(counted).rests}
    text = rests["Spent, and what is left"]
    assert "(ledger.path, ledger.table)" in text
    assert "each target" not in text  # one ledger counts all targets of an input


def test_words_that_the_policy_keeps_are_no_worst_words(facts: ReportFacts) -> None:
    model = small_model(words=60)
    engine = model.privatizer.engine
    kept = {
        word for word in map(model.privatizer.vocabulary.word, range(60)) if word in set(engine.policy.stop_list() or ())
    }  # fmt: skip
    assert kept
    worst = [facts.deniability.words[word] for one in facts.deniability.figures for word, _ in one.worst()]
    assert worst
    assert kept.isdisjoint(worst)
    assert "are kept in clear" in facts.deniability.basis
    drawn = gathered(row(model), model=small_model(words=60))
    assert {len(one.words) for one in drawn.deniability.figures} == {60 - len(kept)}


def test_a_glossary_ends_the_annex_and_shows_what_the_page_says(facts: ReportFacts) -> None:
    text = page(facts)
    glossary = text[text.index('id="glossary"') :]
    for term in ("ε (epsilon)", "certificate", "restricted", "lexicon", "verdict"):
        assert f'<th scope="row">{term}</th>' in glossary


def test_a_restricted_page_stays_marked(facts: ReportFacts) -> None:
    model = small_model(words=60)
    internal = gathered(
        row(model), model=None, missing="x", metrics=METRICS, verdict=of("names_kept", "holds")
    )
    assert page(internal).startswith("<!doctype html><!-- RESTRICTED")
    assert not page(replace(facts, verdict=of("names_kept", "holds"))).startswith("<!doctype html><!--")


def test_the_statement_says_what_was_asked_since(facts: ReportFacts) -> None:
    model = small_model(words=60)
    require = [named_requirement("names_kept <= 0.5", FIGURES, "a run")]
    for asked in ([], ["names_kept <= 0.5"]):
        found = gathered(row(model, {"require": asked}), model=None, missing="x", require=require)
        said = [
            one for one in found.statement.under("What is released in clear") if "names_kept <= 0.5" in one
        ]
        assert len(said) == 1


@pytest.mark.parametrize("standings", list(itertools.product(VALUES, repeat=2)))
def test_why_counts(facts: ReportFacts, standings: tuple[str, str]) -> None:
    names = ("names_kept", "bayes_success")
    limits = [named_requirement(f"{name} <= 0.5", FIGURES, "a run") for name in names]
    found = [Metric(name, VALUES[standing]) for name, standing in zip(names, standings, strict=True)]
    said = decision(replace(facts, verdict=verdict(limits, found))).why
    broken, missing = standings.count("broken"), standings.count("not measured")
    if broken:
        assert said == ("A requirement is not met." if broken == 1 else "2 requirements are not met.")
    elif missing:
        assert said.startswith(
            f"{missing} of 2 requirements {'was' if missing == 1 else 'were'} not measured, which is neither"
        )
    else:
        assert said == "All 2 that the settings set are met."


def standings(held: int, broken: int, waiting: int) -> Verdict:
    names = sorted(FIGURES, key=len, reverse=True)
    which = [0.25] * held + [0.75] * broken + [None] * waiting
    named = [names[n % len(names)] for n in range(len(which))]
    limits = [
        named_requirement(f"{name} <= 0.5{n:03d}", FIGURES, "a run")
        for n, name in enumerate(named[: len(names)])
    ]
    return verdict(limits, [Metric(name, value) for name, value in zip(named, which, strict=True)])


def test_whatever_their_number_no_broken_one_is_hidden_and_two_pages_hold_all(facts: ReportFacts) -> None:
    """The estimate of the printed height keeps to two pages, and what is named or counted is every requirement."""
    for counts in itertools.product((0, 1, 4, 20), repeat=3):
        found = replace(facts, verdict=standings(*counts))
        made = decision(found)
        broken = found.verdict.broken
        shown = " ".join(f"{row.requirement} {row.said}" for row in made.rows if row.look == "broken")
        hidden = [one for one in broken if one not in shown]
        if hidden:
            said = (
                "All of them are"
                if len(hidden) == len(broken)
                else f"{len(hidden)} of them {'is' if len(hidden) == 1 else 'are'}"
            )
            assert f"{len(broken)} requirements are not met. {said} named in the annex alone" in made.why
        else:
            assert "annex" not in made.why
        (change,) = (part.sentences for part in made.rests if part.heading == "What would change it")
        assert len([one for one in change if "(broken)" in one]) <= 7
        assert height(made, found.run.run_id) + sum(row.height for row in made.rows) <= 2 * SHEET


def test_the_page_links_to_the_annex_where_all_requirements_stand(facts: ReportFacts) -> None:
    found = replace(facts, verdict=standings(20, 30, 10))
    text = page(found)
    assert '<a href="#required">each in the annex</a>' in text
    annex = text[text.index('<section id="required">') :]
    for one in found.verdict.judged:
        assert html.escape(one.requirement) in annex
    assert '<section id="required">' not in page(facts)


def test_more_warnings_than_there_is_room_for_are_counted_first(facts: ReportFacts) -> None:
    for many in (0, 1, 5, 12, 60):
        warnings = tuple(f"Warning {n} {'of a sentence that goes on ' * 6}." for n in range(many))
        rest = tuple(part for part in facts.statement.sections if part[0] != "Warnings")
        said = replace(facts.statement, sections=(("Warnings", warnings), *rest) if many else rest)
        made = decision(replace(facts, statement=said, verdict=standings(4, 3, 4)))
        assert made.warnings == warnings[: len(made.warnings)]
        beyond = many - len(made.warnings)
        assert made.more_warnings.startswith(f"{beyond} " if beyond else "")
        assert bool(made.more_warnings) == bool(beyond)
        assert beyond == 0 or many > 4
        assert made.rows


def test_what_cannot_be_audited_and_which_columns_go_along_is_said(facts: ReportFacts) -> None:
    def of(**settings: Any) -> ReportFacts:
        config = {**json.loads(facts.run.config), **settings}
        required = [named_requirement("names_kept <= 0.1", FIGURES, "a run")]
        return replace(
            facts, run=replace(facts.run, config=json.dumps(config)), verdict=verdict(required, [])
        )

    def under(heading: str, found: ReportFacts) -> str:
        return " ".join(next(one.sentences for one in decision(found).rests if one.heading == heading))

    unkeyed = of(row_key=None)
    assert "`dptext audit TABLE" not in under("What would change it", unkeyed)
    assert "It cannot be: the table cannot be audited" in under("What would change it", unkeyed)
    output = {"path": "/out", "other_columns": ["id", "stars"]}
    keyed = of(row_key="id", output=output)
    assert "`dptext audit TABLE" in under("What would change it", keyed)
    assert "the columns id, stars." in under("In clear", keyed)
    assert "the columns id, stars." in under(
        "In clear", of(row_key="id", output={**output, "other_columns": ["stars"]})
    )
    nothing = {**output, "other_columns": "drop"}
    assert "the column id." in under("In clear", of(row_key="id", output=nothing))
    assert "columns" not in under("In clear", of(row_key=None, output=nothing))
