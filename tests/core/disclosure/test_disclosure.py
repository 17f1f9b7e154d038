"""The disclosure statement changes with every setting, and says nothing that does not hold."""

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
CHOICES = [
    (name, value)
    for name, kind in get_type_hints(Policy).items()
    if name not in ("stop_word_list", "providers")
    for value in get_args(kind)
]


GUARANTEE = Guarantee(
    "epsilon_dp_within_group", 2.0, unit="one occurrence of a word", sentence="A bound holds."
)
SETTINGS: dict[str, Any] = {
    "input": {"path": "/in"}, "columns": ["body", "subject"], "row_key": "ticket", "output": {"path": "/out"},
}  # fmt: skip
IN_SETTINGS = (
    "columns",
    "policy",
    "consistency",
    "record_key",
    "output",
    "mechanism",
    "importance",
    "budget",
)


def facts(**more: Any) -> RunFacts:
    """The facts of a run; what belongs to the settings is taken into them."""
    given = {name: more.pop(name) for name in IN_SETTINGS if name in more and name != "importance"}
    if isinstance(more.get("importance"), dict):
        given["importance"] = more.pop("importance")
    plain: dict[str, Any] = {
        "guarantee": GUARANTEE, "mapping": SUMMARY, "identity": "row_key", "other_columns": ("ticket", "city"),
        "key_kind": "os", "releases_in_history": 1,
    }  # fmt: skip
    return RunFacts(config=parse_config({**SETTINGS, **given}), **{**plain, **more})


def said(**more: Any) -> str:
    return disclosure(facts(**more)).markdown()


def said_but_linkage(**more: Any) -> str:
    return said(**more).replace(LINKAGE, "")


def under(heading: str, **more: Any) -> str:
    return " ".join(disclosure(facts(**more)).under(heading))


def policy(**more: Any) -> dict[str, Any]:
    return {"policy": more}


FILE, ROWS = {"file": "/secure/names.txt"}, {"column": "customer"}


@pytest.mark.parametrize(
    ("lists", "heading", "expected"),
    [
        ({"mask": [FILE]}, "What is protected", "stop words and what a list of names holds excepted."),
        ({"mask": [FILE], "stop_words": "draw"}, "What is protected", "included, what a list of names holds excepted."),
        ({"mask": [FILE]}, "What is released in clear", "(policy.mask: 1 list for all rows): it is replaced by [NAME]"),
        (
            {"mask": [FILE, FILE, ROWS]},
            "What is released in clear",
            "(policy.mask: 2 lists for all rows and 1 column of the input, each row's for its own texts)",
        ),
        ({"keep": [FILE]}, "What is released in clear", "(policy.keep: 1 list for all rows), as it stands, like a stop word"),
        ({"keep": [ROWS]}, "Warnings", "WORDS OF A COLUMN ARE RELEASED IN CLEAR (policy.keep)"),
        ({"keep": [FILE]}, "What is not protected", "between what a list masks or keeps and a drawn word there is no bound"),
        ({"mask": [ROWS]}, "What is not protected", "Names that no list holds"),
    ],
)  # fmt: skip
def test_lists_of_names_are_stated(lists: dict[str, Any], heading: str, expected: str) -> None:
    assert expected in under(heading, **policy(**lists))
    assert "/secure" not in said(**policy(**lists))
    for word in ("list of names", "policy.mask", "[NAME]"):
        assert word not in said()
    if "keep" not in lists:
        assert "policy.keep: " not in said(**policy(**lists))
    if lists == {"keep": [FILE]}:
        assert "[NAME]" not in said(**policy(**lists))


NAMED = {"kind": "person", "replace": "pseudonym"}
PLACES = {**NAMED, "kind": "location"}


@pytest.mark.parametrize(
    ("lists", "level", "heading", "expected"),
    [
        ([NAMED], "token", "What is protected", "stop words and what a list of names holds excepted."),
        ([NAMED], "token", "What is released in clear", "holds (policy.mask: 1 list for all rows): that it is such a word"),
        ([NAMED], "token", "What is released in clear", "each time it stands somewhere, so that equal names are not told apart."),
        ([NAMED], "record", "What is released in clear", "throughout a record and in every run with this key"),
        ([NAMED], "dataset", "What is released in clear", "datasets. All text columns share it, and so does that name"),
        ([PLACES], "record", "What is released in clear", "For each place that a list holds (policy.mask: 1 list for all rows)"),
        ([{}, NAMED], "record", "What is released in clear", "(policy.mask: 1 list for all rows): it is replaced by [NAME]"),
        ([NAMED], "token", "What is not protected", "surnames of 1 in 88,747"),
        ([NAMED], "token", "What is not protected", "between what a list masks, replaces or keeps and a drawn word"),
        ([NAMED], "record", "What is not protected", "share the surname's pseudonym; a given name and its initial do not"),
        ([PLACES], "record", "What is not protected", "A place that a list holds is one pseudonym"),
        ([NAMED], "record", "What is not protected", "Names that no list holds"),
    ],
)  # fmt: skip
def test_pseudonyms_of_lists_are_stated(
    lists: list[dict[str, str]], level: str, heading: str, expected: str
) -> None:
    given = {**policy(mask=[FILE | one for one in lists]), "consistency": level}
    assert expected in under(heading, **given)
    assert "/secure" not in said(**given)
    assert ("[NAME]" in said(**given)) is ({} in lists)
    assert ("of a person" in under("What is released in clear", **given)) is (NAMED in lists)
    assert ("each place" in under("What is released in clear", **given)) is (PLACES in lists)
    assert "pseudonym" not in said_but_linkage(**policy(mask=[FILE], keep=[FILE]))
    searching = policy(mask=[FILE | NAMED], names={"lists": True, "person": "pseudonym"})
    assert said(**searching).count("A pseudonym is a keyed choice among public names") == 1


SEARCH = {"lists": True}


@pytest.mark.parametrize(
    ("search", "level", "heading", "expected"),
    [
        ({}, "token", "What is protected", "stop words and names that public lists and rules find excepted."),
        ({}, "token", "What is released in clear", "found, and its kind: [PERSON], [LOCATION]."),
        ({"location": "keep"}, "token", "What is released in clear", "found, and its kind: [PERSON]."),
        ({"location": "keep"}, "token", "What is not protected", "places are not looked for (policy.names.location: keep)"),
        ({"person": "pseudonym"}, "token", "What is released in clear", "so that equal names are not told apart. Less of it"),
        ({"person": "pseudonym"}, "record", "What is released in clear", "throughout a record and in every run with this key"),
        ({"person": "pseudonym"}, "dataset", "What is released in clear", "the same throughout the dataset and in every run"),
        ({"person": "pseudonym"}, "token", "What is not protected", "two given names with a chance of 1 in 5,161"),
        ({}, "token", "What is not protected", "public lists and rules, no guarantee"),
    ],
)  # fmt: skip
def test_the_search_for_names_is_stated(
    search: dict[str, str], level: str, heading: str, expected: str
) -> None:
    assert expected in under(heading, **policy(names=SEARCH | search), consistency=level)
    for words in ("[PERSON]", "public lists", "pseudonym", "policy.names"):
        assert words not in said_but_linkage()
    if "person" not in search:
        assert "pseudonym" not in said_but_linkage(**policy(names=SEARCH | search))
    assert "Names of persons and places are no identifiers here" in said()
    assert "Names of persons and places are no identifiers here" not in said(**policy(names=SEARCH))


CLASSIFIER = {"model": "/secure/classifier", "threshold": 0.6}


@pytest.mark.parametrize(
    ("search", "level", "heading", "expected"),
    [
        ({}, "token", "What is protected", "stop words and names that a classifier finds excepted."),
        (SEARCH, "token", "What is protected", "names that public lists, rules or a classifier finds excepted."),
        ({}, "token", "What is released in clear", "a classifier found, and its kind: [PERSON], [LOCATION]."),
        ({"location": "pseudonym"}, "token", "What is released in clear", "another place without a public list stands"),
        ({}, "token", "What is not protected", "places: a classifier 0123abcd (threshold 0.6), no guarantee."),
        (SEARCH, "token", "What is not protected", "rules (version 1) and a classifier 0123abcd (threshold 0.6), no guarantee."),
        ({}, "token", "What is not protected", "with another onnxruntime, so that a task that is retried there"),
        ({}, "token", "What is not protected", "its words are then drawn there instead of replaced, or the other way"),
        ({}, "record", "What is not protected", "in one text of a record a name may then be replaced, and be drawn in another"),
        ({}, "dataset", "What is not protected", "in one text a name may then be replaced, and be drawn in another"),
        ({}, "token", "What is not protected", "reads a text only where it holds a word with a capital, one that the lexicon"),
    ],
)  # fmt: skip
def test_a_classifier_of_names_is_stated(
    search: dict[str, Any], level: str, heading: str, expected: str
) -> None:
    given = {**policy(names=CLASSIFIER | search), "consistency": level}
    assert expected in under(heading, classifier="0123abcd", **given)
    assert "/secure/classifier" not in said(classifier="0123abcd", **given)
    assert ("public lists and rules" in said(**given)) is bool(search.get("lists"))
    assert "classifier" not in said(**policy(names=SEARCH))


BOTH = ("one draw of each word", "two releases of them", "two releases of it")


@pytest.mark.parametrize(
    ("level", "more", "expected"),
    [
        *((level, {}, BOTH[0]) for level in ("token", "record", "dataset")),
        ("token", {"mechanism": {"name": "custext", "fluent": True}}, BOTH[1]),
        *((level, {"importance": {"percent": 30}}, BOTH[2]) for level in ("token", "record")),
        *((level, {"budget": {"record": 50}}, BOTH[2]) for level in ("token", "record")),
    ],
)
def test_what_another_name_in_a_retry_means_is_stated(
    level: str, more: dict[str, Any], expected: str
) -> None:
    stated = under("What is not protected", **policy(names=CLASSIFIER), consistency=level, **more)
    assert [one for one in BOTH if one in stated] == [expected]
    assert ("An audit of consistency on such a processor" in stated) is (level != "token")
    unsearched = under("What is not protected", **policy(names=SEARCH), consistency=level, **more)
    assert "retried there" not in unsearched


TICKETS = ProviderRecord("finders.tickets:Tickets", "tickets", "2", ("ticket", "order"))
TOOLS = ProviderRecord("finders.tools:Tools", "finders.tools:Tools", "3.1", ("tool",))


@pytest.mark.parametrize(
    ("level", "heading", "expected"),
    [
        ("token", "What is protected", "stop words and what a provider finds excepted."),
        ("token", "What is released in clear", "a provider found, and its type: [TICKET], [ORDER], [TOOL]. Equal and different"),
        ("token", "What is not protected", "tickets, version 2 (finders.tickets:Tickets) for ticket, order; "),
        ("token", "What is not protected", "; finders.tools:Tools, version 3.1 for tool): code of the settings"),
        ("token", "What is not protected", "what they miss is drawn or masked as the policy says"),
        ("token", "What is not protected", "No ε covers this."),
        ("token", "What is not protected", "its words are then drawn there instead of masked, or the other way"),
        ("record", "What is not protected", "it may then be masked in one text of a record, and be drawn in another"),
        ("dataset", "What is not protected", "it may then be masked in one text, and be drawn in another."),
    ],
)  # fmt: skip
def test_providers_are_stated(level: str, heading: str, expected: str) -> None:
    given = {**policy(providers=[TICKETS.path, TOOLS.path]), "consistency": level}
    assert expected in under(heading, providers=(TICKETS, TOOLS), **given)
    assert "Names of persons and places are no identifiers here" not in said(providers=(TICKETS,), **given)
    assert "provider" not in said(consistency=level)


def test_the_headings_stand_in_order_and_warnings_only_where_there_are_any() -> None:
    assert [heading for heading, _ in disclosure(facts()).sections] == HEADINGS
    warned = disclosure(facts(key_kind="insecure"))
    assert [heading for heading, _ in warned.sections] == ["Warnings", *HEADINGS]


def test_every_choice_of_the_policy_has_a_statement_of_its_own() -> None:
    by_field: dict[str, list[str]] = {}
    for name, value in CHOICES:
        by_field.setdefault(name, []).append(said(**policy(**{name: value})))
    assert set(by_field) == {"stop_words", "oov", "numbers", "case", "gaps", "tokenizer"}
    for name, statements in by_field.items():
        assert len(set(statements)) == len(statements) > 1, name


@pytest.mark.parametrize(
    ("choice", "heading", "expected"),
    [
        ({}, "What is released in clear", "Every stop word (the packaged English list"),
        ({"stop_word_list": ["a", "b"]}, "What is released in clear", "Every stop word (a list of 2 words"),
        ({"stop_words": "draw"}, "What is released in clear", "No stop words"),
        ({}, "What is protected", "stop words excepted"),
        ({"stop_words": "draw"}, "What is protected", "stop words included"),
        (
            {},
            "What is released in clear",
            "Which words the lexicon does not hold: each is replaced by [OOV].",
        ),
        ({"oov": "draw"}, "What is released in clear", "Unknown words are not marked"),
        ({"oov": "keep"}, "What is released in clear", "EVERY WORD THAT THE LEXICON DOES NOT HOLD"),
        ({}, "What is released in clear", "how many digits it has."),
        ({"numbers": "mask"}, "What is released in clear", "not how many digits"),
        ({"numbers": "keep"}, "What is released in clear", "EVERY NUMBER, as it stands."),
        ({}, "What is released in clear", "lower case, Capitalised or UPPER case"),
        ({"case": "lower"}, "What is released in clear", "Nothing of upper and lower case"),
        ({}, "What is released in clear", "Every space, line break, punctuation mark and symbol"),
        ({"gaps": "normalise"}, "What is released in clear", "not how many or which"),
        ({"tokenizer": "whitespace"}, "What is released in clear", "A word is what stands between spaces"),
    ],
)
def test_each_choice_is_said_in_its_place(choice: dict[str, Any], heading: str, expected: str) -> None:
    assert expected in under(heading, **policy(**choice))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (policy(oov="keep"), "UNKNOWN WORDS ARE RELEASED IN CLEAR"),
        (policy(numbers="keep"), "NUMBERS ARE RELEASED IN CLEAR"),
        ({"key_kind": "insecure"}, "INSECURE KEY"),
        ({"consistency": "dataset"}, "substitution cipher"),
        ({"second_release": True}, "released a second time"),
        ({"corrupt_records": 1}, "1 RECORD DOES NOT FIT THE INPUT'S COLUMNS"),
        ({"corrupt_records": 3_000}, "3,000 RECORDS DO NOT FIT THE INPUT'S COLUMNS"),
    ],
)
def test_what_is_dangerous_is_warned_of_first(more: dict[str, Any], expected: str) -> None:
    statement = disclosure(facts(**more))
    assert statement.sections[0][0] == "Warnings"
    assert expected in statement.sections[0][1][0]
    assert expected not in said()


def test_the_guarantee_stands_there_with_unit_status_and_factor() -> None:
    protected = under("What is protected")
    assert "A bound holds. [proved; unit: one occurrence of a word]" in protected
    assert "e^ε = 7.39 times" in protected
    assert "the 1,024 words of the lexicon" in protected


@pytest.mark.parametrize("more", [{}, {"consistency": "dataset"}, policy(stop_words="draw", oov="mask")])
def test_linkage_is_stated_under_any_settings(more: dict[str, Any]) -> None:
    unprotected = under("What is not protected", **more)
    for fact in ("pseudonymised, not anonymous", "6,920", "99.4 %", "65.6 %", "0.014 %"):
        assert fact in unprotected


def test_epsilon_of_a_record_follows_the_level() -> None:
    assert "2 for each of its drawn words" in under("What is protected")
    assert "2 for each of its distinct drawn words" in under("What is protected", consistency="record")
    dataset = under("What is protected", consistency="dataset")
    assert "no ε of its own" in dataset
    assert "for each of its" not in dataset


def test_no_figure_is_rounded_in_favour_of_the_release() -> None:
    guarantee = replace(GUARANTEE, epsilon=1.0000004)
    protected = under("What is protected", guarantee=guarantee)
    assert "ε adds up: 1.0000004 for each" in protected
    assert "e^ε = 2.719 times" in protected
    behind = Quantiles(1.0, 135.0, 17.0, 19.59)
    summary = replace(SUMMARY, alone_share=0.00004, ruled_out_bits=5.201, inputs_per_output=behind)
    assert "0.004 % of the lexicon's words share their output set with no other word" in under(
        "What is not protected", mapping=summary
    )
    clear = under("What is released in clear", mapping=summary)
    assert "stand at most 17 words" in clear
    assert "5.3 of 10.0 bits" in clear
    told = under("What is released in clear", mapping=replace(summary, told_bits=5.61))
    assert (
        "5.7 of 10.0 bits of the word on average: 5.3 of them by what it rules out, which no ε lessens"
        in told
    )


def test_how_many_words_a_record_has_drawn_is_not_for_sharing() -> None:
    protected = under("What is protected")
    assert "the figures are in the restricted metrics" in protected
    assert "restricted metrics" not in under("What is protected", consistency="dataset")


def test_outputs_that_only_one_word_can_become_are_said() -> None:
    clear = under("What is released in clear", mapping=replace(SUMMARY, one_input_share=0.02301))
    assert "the output is one of the 2.31 % that only one word can become" in clear
    assert "such an output reveals its word at any ε" in clear
    assert "reveals its word" not in under("What is released in clear")


@pytest.mark.parametrize("epsilon", [9.9, 10.0, 1e9])
def test_a_guarantee_that_says_next_to_nothing_is_warned_of(epsilon: float) -> None:
    guarantee = replace(GUARANTEE, epsilon=epsilon)
    assert ("protects next to nothing" in under("Warnings", guarantee=guarantee)) == (epsilon >= 10)
    assert "times as likely" in under("What is protected", guarantee=guarantee)


@pytest.mark.parametrize("share", [0.03, 1.0])
def test_words_without_a_neighbour_are_warned_of(share: float) -> None:
    summary = replace(SUMMARY, alone_share=share)
    assert ("ALONE ON THEIR OUTPUT SET" in under("Warnings", mapping=summary)) == (share == 1)


def test_words_that_santext_plus_keeps_are_released() -> None:
    summary = Summary(words=1024, outputs=512)
    for p, outputs, there in ((0.3, 512, True), (1.0, 512, False), (0.3, 1024, False)):
        mechanism = {"name": "santext", "sensitive": 0.5, "p": p}
        text = under(
            "What is released in clear", mechanism=mechanism, mapping=replace(summary, outputs=outputs)
        )
        assert ("NOT SENSITIVE, 70 % of the time, as they stand: 512 of the 1,024 words" in text) == there


@pytest.mark.parametrize(
    ("level", "shared"),
    [("token", "no two rows share"), ("record", "within a record"), ("dataset", "in all rows")],
)
def test_it_says_which_rows_share_draws(level: str, shared: str) -> None:
    text = under("What is assumed", consistency=level)
    assert shared in text
    assert ("no two rows" in text) == (level == "token")


def test_an_insecure_key_is_not_called_secret() -> None:
    text = under("What is assumed", key_kind="insecure")
    assert "no secret" in text
    assert "under a secret key" not in text
    assert "as secret as" not in text


def test_a_condition_on_the_text_is_warned_of() -> None:
    where = "Body LIKE '%x%'"
    assert "input.where reads a column that is not released" in under("Warnings", where=where)
    assert "satisfies input.where" in under("What is released in clear", where=where)
    hidden = "(hidden: it reads age, lang; 0123)"
    assert "input.where reads a column that is not released" in under("Warnings", where=hidden)
    assert "input.where reads a column that is not released" not in under("Warnings", where="bodyguard = 1")


def test_a_metric_guarantee_never_names_a_product() -> None:
    metric = Guarantee("metric_dp", 2.0, metric="euclidean", sentence="A bound by distance.")
    text = said(guarantee=metric)
    assert "sum of the distances" in text
    assert "for each of its" not in text
    assert "e^ε" not in text
    assert "output set" not in under("What is not protected", guarantee=metric, mapping=Summary())


def test_an_approximate_guarantee_names_its_delta_and_no_factor() -> None:
    made = Guarantee("approx_dp", 2.0, 0.001, sentence="A bound with δ.")
    protected = under("What is protected", guarantee=made)
    assert "ε adds up: 2, and δ = 0.001, for each" in protected
    assert "e^ε" not in protected
    assert "output sets" not in protected


def test_a_refuted_guarantee_is_warned_of() -> None:
    assert "DOES NOT HOLD" in under("Warnings", guarantee=replace(GUARANTEE, status="refuted"))


def test_a_guarantee_over_no_pair_is_warned_of() -> None:
    certificate = Certificate("no bound", GUARANTEE, None, "No bound: nothing to compare.")
    assert "COMPARES NO TWO WORDS" in under("Warnings", certificate=certificate)
    assert "COMPARES NO TWO WORDS" not in under(
        "Warnings", certificate=replace(certificate, verdict="confirmed")
    )


def test_the_case_of_an_unknown_word_is_told() -> None:
    assert "itself but its case." in under("What is protected", **policy(oov="draw"))
    assert "the word itself." in under("What is protected", **policy(oov="draw", case="lower"))


def test_what_the_output_sets_rule_out_is_said_in_figures() -> None:
    clear = under("What is released in clear")
    assert "hold 20 to 22 words" in clear
    assert "at most 17 words (1 to 135) of 1,024" in clear
    assert "5.3 of 10.0 bits" in clear
    assert "2.6 % of the lexicon's words share their output set with no other word" in under(
        "What is not protected"
    )
    same = replace(SUMMARY, set_size=Quantiles(20.0, 20.0, 20.0, 20.0))
    assert "The sets hold 20 words;" in under("What is released in clear", mapping=same)
    assert "rules out" not in said(mapping=Summary())


def test_the_equality_pattern_follows_the_level() -> None:
    heading = "What is released in clear"
    assert "No equality pattern" in under(heading)
    assert "Which words of a record are equal" in under(heading, consistency="record")
    assert "Which words of the whole dataset are equal" in under(heading, consistency="dataset")


def test_other_columns_are_named() -> None:
    heading = "What is released in clear"
    assert "the columns ticket, city" in under(heading)
    assert "No other column." in under(heading, other_columns=())
    key = facts().config.row_key
    assert key is not None
    alone = under(heading, other_columns=(key,))
    assert f"the column {key} (" in alone
    assert "Fewer with output.other_columns" not in alone  # the setting is what it names
    for setting, expected in (
        ("keep", "all other columns of the input"),
        ("drop", "the column ticket ("),
        (["a"], "columns ticket, a ("),
        (["a", "b"], "columns ticket, a, b ("),
    ):
        output = {"path": "/out", "other_columns": setting}
        assert expected in under(heading, other_columns=None, output=output)


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        ("row_key", "identified by 'ticket'"),
        ("file_row", "by its file and its place in it"),
        ("ordinal:8", "by its place in the scan"),
        (None, "not known before the run"),
    ],
)
def test_the_identity_is_assumed(identity: str | None, expected: str) -> None:
    assert expected in under("What is assumed", identity=identity)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("os", "gone when the run ends"),
        ("file", "outlives the run: it is as secret as the text"),
        ("env", "an environment variable of the driver"),
        ("secret", "whoever may read that secret"),
        ("given", "given by the calling program"),
        ("insecure", "under a key that is no secret"),
        (None, "The kind of the key is not known."),
    ],
)
def test_the_key_is_assumed_to_be_secret(kind: str | None, expected: str) -> None:
    assert expected in under("What is assumed", key_kind=kind)


def test_a_record_is_what_the_record_key_says() -> None:
    assert "A record is a row." in under("What is assumed")
    assert "A record is all rows with the same 'customer'." in under("What is assumed", record_key="customer")


def test_what_is_said_of_other_runs() -> None:
    heading = "Across runs"
    assert under(heading).startswith(
        "Every further release of the same records with new draws adds its bound to this one."
    )
    assert "this release only" in under(heading)
    assert "holds 3 releases of this tool" in under(heading, releases_in_history=3)
    assert "not known before the run" in under(heading, releases_in_history=None)
    assert "a new run id gives new draws" in under(heading)
    assert "every further run draws anew" in under(heading, consistency="record")
    for kind in ("file", "given", "insecure"):
        assert "the same replacements again" in under(heading, consistency="record", key_kind=kind)
    assert "may have held raw text" in under(heading, output={"path": "/out", "overwrite_raw": True})


def test_the_statement_is_json_and_markdown() -> None:
    statement = disclosure(facts())
    plain = json.loads(json.dumps(statement.as_dict()))
    assert [section["heading"] for section in plain["sections"]] == HEADINGS
    assert statement.markdown().startswith("### What is protected\n\n- Drawn words in body, subject")
    assert Statement(()).under("What is assumed") == ()


LEDGER = Spending(
    "/ledger",
    "2026-01-01",
    "/in",
    (),
    sentence="All releases have spent ε = 3.",
    notes=("Counted since then.",),
)


def test_what_the_ledger_says_stands_under_across_runs() -> None:
    before = under("Across runs")
    assert "A run counts them in its ledger" in before
    counted = disclosure(facts(ledger=LEDGER))
    assert counted.under("Across runs")[:2] == ("All releases have spent ε = 3.", "Counted since then.")
    assert "Warnings" not in dict(counted.sections)
    passed = replace(LEDGER, warnings=("THE LIMIT OF THE BUDGET WAS PASSED: why.",))
    assert under("Warnings", ledger=passed) == "THE LIMIT OF THE BUDGET WAS PASSED: why."


class TestImportance:
    """Where only some words are drawn, the statement says which, that the others are in clear, and what the choice tells."""

    def config(self, **selection: Any) -> dict[str, Any]:
        return {"columns": ["body"], "importance": {"percent": 30, **selection}}

    def test_what_is_drawn_and_what_is_not(self) -> None:
        found = self.config()
        assert "only the most important words (30 %) are drawn" in under("Warnings", **found)
        protected = under("What is protected", **found)
        assert (
            "the most important words (30 %) of each record, rounded up and ties to the earlier" in protected
        )
        assert "each occurrence by itself" in protected
        assert "counted in the private texts themselves" in protected
        assert "EVERY WORD THAT IS NOT CHOSEN" in under("What is released in clear", **found)
        hidden = under("What is not protected", **found)
        assert "Which words are chosen" in hidden
        assert "How frequent words are in the other texts" in hidden

    def test_nothing_of_it_where_all_words_are_drawn(self) -> None:
        for word in ("chosen", "importance"):
            assert word not in said()

    def test_each_provider_is_named(self) -> None:
        assert "counted in /c.txt" in said(**self.config(corpus="/c.txt"))
        own = {"provider": "column", "weights": "w"}
        assert "the numbers in the column w" in said(**self.config(**own))
        assert "What the column of weights was made from" in said(**self.config(**own))
        random = said(**self.config(provider="random"))
        assert "anybody can compute them" in random
        assert "Which words are chosen" not in random
        found = replace(facts(**self.config()), importance="It says more.")
        assert "It says more." in disclosure(found).markdown()

    def test_the_strategy_is_told_by_the_consistency(self) -> None:
        record = {**self.config(), "consistency": "record"}
        assert "all occurrences of a word in the record, alike, if one of them comes first" in said(**record)

    def test_levels(self) -> None:
        levels = [{"share": 10}, {"share": 20, "epsilon": 2}, {"mechanism": {"name": "tem"}}]
        found = said(**self.config(percent=None, levels=levels))
        assert "(10 % and 20 % and what is left)" in found
        assert "Level 1, 10 %: drawn by the mechanism as it is." in found
        assert "Level 2, 20 %: drawn by the mechanism with ε = 2." in found
        assert "Level 3, what is left: drawn by tem (" in found
        assert "ε adds up: the ε of its level for each of its drawn words" in found
        assert "RELEASED IN CLEAR (importance)" not in found  # the last level takes the rest
