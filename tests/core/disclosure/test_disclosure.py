"""The disclosure statement: what each change of the settings and facts does to it, and that no figure flatters the release."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args, get_type_hints

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.disclosure.disclosure import LINKAGE, disclosure
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.disclosure.statement import Statement
from dptext_spark.guarantee import Guarantee
from dptext_spark.ledger.balance import Spending
from dptext_spark.mechanisms.summary import Quantiles, Summary
from dptext_spark.model.certificate import Certificate
from dptext_spark.text.identifiers.imported import ProviderRecord
from dptext_spark.text.policy import Policy
from tests.frozen.written import assert_as_frozen

SUMMARY = Summary(
    words=1024,
    alone_share=0.026,
    set_size=Quantiles(20.0, 22.0, 20.0, 20.0),
    inputs_per_output=Quantiles(1.0, 135.0, 17.0, 19.5),
    ruled_out_bits=5.25,
)
HEADINGS = [
    "What is protected",
    "What is released in clear",
    "What is not protected",
    "What is assumed",
    "Across runs",
]
GUARANTEE = Guarantee(
    "epsilon_dp_within_group", 2.0, unit="one occurrence of a word", sentence="A bound holds."
)
SETTINGS: dict[str, Any] = {
    "input": {"path": "/in"}, "columns": ["body", "subject"], "row_key": "ticket", "output": {"path": "/out"},
}  # fmt: skip
IN_SETTINGS = ("input", "columns", "policy", "consistency", "record_key", "output", "mechanism", "budget")


def facts(**more: Any) -> RunFacts:
    """The facts of a run; what belongs to the settings is taken into them."""
    settings = {name: more.pop(name) for name in IN_SETTINGS if name in more}
    if isinstance(more.get("importance"), dict):
        settings["importance"] = more.pop("importance")
    plain: dict[str, Any] = {
        "guarantee": GUARANTEE, "mapping": SUMMARY, "identity": "row_key", "other_columns": ("ticket", "city"),
        "key_kind": "os", "releases_in_history": 1,
    }  # fmt: skip
    return RunFacts(config=parse_config({**SETTINGS, **settings}), **{**plain, **more})


def said(**more: Any) -> str:
    return disclosure(facts(**more)).markdown()


def under(heading: str, **more: Any) -> str:
    return " ".join(disclosure(facts(**more)).under(heading))


def policy(**more: Any) -> dict[str, Any]:
    return {"policy": more}


FILE, ROWS = {"file": "/secure/names.txt"}, {"column": "customer"}
PERSONS = {**FILE, "kind": "person", "replace": "pseudonym"}
PLACES = {**PERSONS, "kind": "location"}
SEARCH = {"lists": True}
CLASSIFIER = {"model": "/secure/classifier", "threshold": 0.6}
FINDERS = (
    ProviderRecord("finders.tickets:Tickets", "tickets", "2", ("ticket", "order")),
    ProviderRecord("finders.tools:Tools", "finders.tools:Tools", "3.1", ("tool",)),
)
SANTEXT = {"name": "santext", "sensitive": 0.5}
HALF = Summary(words=1024, outputs=512)
METRIC = Guarantee("metric_dp", 2.0, metric="euclidean", sentence="A bound by distance.")
WITH_DELTA = Guarantee("approx_dp", 2.0, 0.001, sentence="A bound with δ.")
NO_BOUND = Certificate("no bound", GUARANTEE, None, "No bound: nothing to compare.")
LEDGER = Spending(
    "/ledger",
    "2026-01-01",
    "/in",
    (),
    sentence="All releases have spent ε = 3.",
    notes=("Counted since then.",),
)
IMPORTANT = {"columns": ["body"], "importance": {"percent": 30}}
LEVELS = [{"share": 10}, {"share": 20, "epsilon": 2}, {"mechanism": {"name": "tem"}}]


def classified(level: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    return {**policy(names=CLASSIFIER | (more or {})), "consistency": level, "classifier": "0123abcd"}


def providing(level: str) -> dict[str, Any]:
    return {
        **policy(providers=[finder.path for finder in FINDERS]),
        "providers": FINDERS,
        "consistency": level,
    }


def important(**selection: Any) -> dict[str, Any]:
    return {"columns": ["body"], "importance": {"percent": 30, **selection}}


# What each changes of the statement is kept as text in tests/frozen/texts.
CHANGES: dict[str, dict[str, Any]] = {
    **{f"consistency {level}": {"consistency": level} for level in ("record", "dataset")},
    "stop words of a list": policy(stop_word_list=["a", "b"]),
    **{
        f"{name} {value}": policy(**{name: value})
        for name, value in (
            ("stop_words", "draw"), ("oov", "draw"), ("oov", "keep"), ("numbers", "mask"), ("numbers", "keep"),
            ("case", "lower"), ("gaps", "normalise"), ("tokenizer", "whitespace"),
        )
    },
    "oov draw, case lower": policy(oov="draw", case="lower"),
    "mask: a file": policy(mask=[FILE]),
    "mask: a file, stop words drawn": policy(mask=[FILE], stop_words="draw"),
    "mask: two files and a column": policy(mask=[FILE, FILE, ROWS]),
    "keep: a file": policy(keep=[FILE]),
    "keep: a column": policy(keep=[ROWS]),
    **{
        f"pseudonyms of a list, {level}": {**policy(mask=[PERSONS]), "consistency": level}
        for level in ("token", "record", "dataset")
    },
    "pseudonyms of places": {**policy(mask=[PLACES]), "consistency": "record"},
    "mask and pseudonyms": {**policy(mask=[FILE, PERSONS]), "consistency": "record"},
    "pseudonyms of a list and of a search": policy(mask=[PERSONS], names=SEARCH | {"person": "pseudonym"}),
    "names": policy(names=SEARCH),
    "names, not places": policy(names=SEARCH | {"location": "keep"}),
    **{
        f"names by pseudonyms, {level}": {
            **policy(names=SEARCH | {"person": "pseudonym"}),
            "consistency": level,
        }
        for level in ("token", "record", "dataset")
    },
    **{f"classifier, {level}": classified(level) for level in ("token", "record", "dataset")},
    "classifier and lists": classified("token", SEARCH),
    "classifier, places by pseudonyms": classified("token", {"location": "pseudonym"}),
    "classifier, fluent": {**classified("token"), "mechanism": {"name": "custext", "fluent": True}},
    **{
        f"classifier, {name}, {level}": {**classified(level), name: value}
        for name, value in (("importance", {"percent": 30}), ("budget", {"record": 50}))
        for level in ("token", "record")
    },
    **{f"providers, {level}": providing(level) for level in ("token", "record", "dataset")},
    **{
        f"key {kind}": {"key_kind": kind} for kind in ("file", "env", "secret", "given", "insecure", None)
    },
    **{
        f"record level, key {kind}": {"consistency": "record", "key_kind": kind}
        for kind in ("file", "given", "insecure")
    },
    "second release": {"second_release": True},
    "a corrupt record": {"corrupt_records": 1},
    "corrupt records": {"corrupt_records": 3_000},
    "ε of 10": {"guarantee": replace(GUARANTEE, epsilon=10.0)},
    "refuted": {"guarantee": replace(GUARANTEE, status="refuted")},
    "no bound": {"certificate": NO_BOUND},
    "by distance": {"guarantee": METRIC, "mapping": Summary()},
    "with δ": {"guarantee": WITH_DELTA},
    "all words alone": {"mapping": replace(SUMMARY, alone_share=1.0)},
    "outputs of one word": {"mapping": replace(SUMMARY, one_input_share=0.02301)},
    "output sets of one size": {"mapping": replace(SUMMARY, set_size=Quantiles(20.0, 20.0, 20.0, 20.0))},
    "no output sets": {"mapping": Summary()},
    "santext+": {"mechanism": {**SANTEXT, "p": 0.3}, "mapping": HALF},
    "santext, p = 1": {"mechanism": {**SANTEXT, "p": 1.0}, "mapping": HALF},
    "santext+ over all outputs": {"mechanism": {**SANTEXT, "p": 0.3}, "mapping": replace(HALF, outputs=1024)},
    "where on the text": {"input": {"path": "/in", "where": {"Body": "x"}}},
    "where on a column that is left out": {"input": {"path": "/in", "where": {"bodyguard": 1}}},
    "where on another column": {"input": {"path": "/in", "where": {"ticket": 1}}},
    "no other column": {"other_columns": ()},
    "the row key alone": {"other_columns": ("ticket",)},
    **{
        f"other_columns {columns}": {
            "other_columns": None,
            "output": {"path": "/out", "other_columns": columns},
        }
        for columns in ("keep", "drop", ["a"], ["a", "b"])
    },
    **{f"identity {identity}": {"identity": identity} for identity in ("file_row", "ordinal:8", None)},
    "record key": {"record_key": "customer"},
    **{f"{releases} releases": {"releases_in_history": releases} for releases in (3, None)},
    "overwrite_raw": {"output": {"path": "/out", "overwrite_raw": True}},
    "ledger": {"ledger": LEDGER},
    "ledger, limit passed": {"ledger": replace(LEDGER, warnings=("THE LIMIT WAS PASSED: why.",))},
    "importance": important(),
    "importance of a corpus": important(corpus="/c.txt"),
    "importance of a column": important(provider="column", weights="w"),
    "importance at random": important(provider="random"),
    "importance, record": {**important(), "consistency": "record"},
    "levels of importance": important(percent=None, levels=LEVELS),
}  # fmt: skip
WARNED = {
    "consistency dataset", "oov keep", "numbers keep", "keep: a column", "pseudonyms of a list, dataset",
    "names by pseudonyms, dataset", "classifier, dataset", "providers, dataset", "key insecure", "record level, key insecure",
    "second release", "a corrupt record", "corrupt records", "ε of 10", "refuted", "no bound", "all words alone",
    "where on the text", "where on a column that is left out", "ledger, limit passed", "classifier, importance, token",
    "classifier, importance, record", "importance", "importance of a corpus", "importance of a column", "importance at random",
    "importance, record",
}  # fmt: skip


def changes(statement: Statement, plain: Statement) -> str:
    """Return what a statement has that the plain one has not, in full, and what it lacks by its first words."""
    lines = []
    for heading in dict.fromkeys(heading for heading, _ in (*statement.sections, *plain.sections)):
        after, before = statement.under(heading), plain.under(heading)
        more = [f"+ {text}" for text in after if text not in before]
        less = [f"- {text[:50]} ..." for text in before if text not in after]
        lines += [f"### {heading}", *more, *less] if more or less else []
    return "\n".join(lines)


def test_what_each_change_does_to_the_statement_is_as_it_was() -> None:
    plain = disclosure(facts())
    texts = {"plain": plain.markdown()}
    texts |= {name: changes(disclosure(facts(**change)), plain) for name, change in CHANGES.items()}
    assert_as_frozen("statements", "change", texts)


@pytest.mark.parametrize("name", CHANGES)
def test_any_statement_has_its_headings_tells_of_linkage_and_names_no_file(name: str) -> None:
    statement = disclosure(facts(**CHANGES[name]))
    headings = [heading for heading, _ in statement.sections]
    assert headings == (["Warnings"] if name in WARNED else []) + HEADINGS
    assert LINKAGE in statement.under("What is not protected")
    assert "/secure" not in statement.markdown()


@pytest.mark.parametrize("name", ["key insecure", "record level, key insecure"])
def test_an_insecure_key_is_not_called_secret(name: str) -> None:
    text = under("What is assumed", **CHANGES[name])
    assert "under a secret key" not in text
    assert "as secret as" not in text


def test_every_choice_of_the_policy_has_a_statement_of_its_own() -> None:
    choices = {name: get_args(kind) for name, kind in get_type_hints(Policy).items() if get_args(kind)}
    fields = {"stop_words", "oov", "numbers", "case", "gaps", "tokenizer"}
    assert fields == choices.keys() - {"stop_word_list", "providers"}
    for name in fields:
        statements = {said(**policy(**{name: value})) for value in choices[name]}
        assert len(statements) == len(choices[name]) > 1, name


def test_no_figure_is_rounded_in_favour_of_the_release() -> None:
    protected = under("What is protected", guarantee=replace(GUARANTEE, epsilon=1.0000004))
    assert "1.0000004 for each" in protected
    assert "= 2.719 times" in protected
    behind = Quantiles(1.0, 135.0, 17.0, 19.59)
    summary = replace(SUMMARY, alone_share=0.00004, ruled_out_bits=5.201, inputs_per_output=behind)
    assert "0.004 % of" in under("What is not protected", mapping=summary)
    clear = under("What is released in clear", mapping=replace(summary, told_bits=5.61))
    for figure in ("at most 17 words", "5.7 of 10.0 bits", "5.3 of them"):
        assert figure in clear
    assert "5.3 of 10.0 bits" in under("What is released in clear", mapping=summary)


@pytest.mark.parametrize("epsilon", [9.9, 10.0, 1e9])
def test_a_guarantee_that_says_next_to_nothing_is_warned_of(epsilon: float) -> None:
    statement = disclosure(facts(guarantee=replace(GUARANTEE, epsilon=epsilon)))
    assert len(statement.under("Warnings")) == (epsilon >= 10)


@pytest.mark.parametrize("guarantee", [METRIC, WITH_DELTA])
def test_only_a_plain_epsilon_names_a_factor_and_output_sets(guarantee: Guarantee) -> None:
    text = said(guarantee=guarantee, mapping=Summary())
    assert "e^ε" in said()
    assert "e^ε" not in text
    assert "output set" not in text
    assert ("for each of its" in text) == (guarantee is WITH_DELTA)


def test_the_statement_is_json_and_markdown() -> None:
    statement = disclosure(facts())
    plain = json.loads(json.dumps(statement.as_dict()))
    assert [section["heading"] for section in plain["sections"]] == HEADINGS
    assert statement.markdown().startswith("### What is protected\n\n- Drawn words in body, subject")
    assert Statement(()).under("What is assumed") == ()
