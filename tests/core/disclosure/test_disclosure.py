"""The disclosure statement: what each change does to it, that every setting changes it, and that no figure flatters."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.disclosure.disclosure import LINKAGE, disclosure
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.disclosure.statement import Statement
from dptext_spark.guarantee import Guarantee
from dptext_spark.ledger.balance import Balance
from dptext_spark.mechanisms import MECHANISMS, Mechanism
from dptext_spark.mechanisms.base import Quantiles, Summary
from dptext_spark.model.certificate import Certificate
from dptext_spark.text.identifiers.provider import ImportedProvider, ProviderRecord
from dptext_spark.text.names.search import NAME_ACTIONS
from dptext_spark.text.policy import IN_LANGUAGES, TYPES, Policy
from tests.frozen.written import assert_as_frozen

SUMMARY = Summary(
    words=1024,
    alone_share=0.026,
    set_size=Quantiles(20.0, 22.0, 20.0, 20.0),
    inputs_per_output=Quantiles(1.0, 135.0, 17.0, 19.5),
    ruled_out_bits=5.25,
)
HEADINGS = ["Protected", "Released in clear", "Not protected", "Assumptions", "Across runs"]
TOKEN = "one occurrence of a word"
GUARANTEE = Guarantee("epsilon_dp_within_group", 2.0, unit=TOKEN, sentence="A bound holds.")
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
SPENT = "All releases have spent ε = 3."
LEDGER = Balance("/ledger", "2026-01-01", "/in", (), sentence=SPENT, notes=("Counted since then.",))
LEVELS = [{"share": 10}, {"share": 20, "epsilon": 2}, {"mechanism": {"name": "tem"}}]


def classified(level: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    return {**policy(names=CLASSIFIER | (more or {})), "consistency": level, "classifier": "0123abcd"}


def providing(level: str) -> dict[str, Any]:
    paths = [finder.path for finder in FINDERS]
    return {**policy(providers=paths), "providers": FINDERS, "consistency": level}


def important(**selection: Any) -> dict[str, Any]:
    return {"columns": ["body"], "importance": {"percent": 30, **selection}}


NAMES_BY_PSEUDONYMS = policy(names=SEARCH | {"person": "pseudonym"})
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
        f"names by pseudonyms, {level}": {**NAMES_BY_PSEUDONYMS, "consistency": level}
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
        f"other_columns {each}": {"other_columns": None, "output": {"path": "/out", "other_columns": each}}
        for each in ("keep", "drop", ["a"], ["a", "b"])
    },
    **{f"identity {identity}": {"identity": identity} for identity in ("file_row", "ordinal:8", None)},
    "record key": {"record_key": "customer"},
    **{f"{releases} releases": {"releases_in_history": releases} for releases in (3, None)},
    "ledger": {"ledger": LEDGER},
    "ledger, limit passed": {"ledger": replace(LEDGER, warnings=("THE LIMIT WAS PASSED: why.",))},
    "importance": important(),
    "importance of a corpus": important(corpus="/c.txt"),
    "importance of a column": important(provider="column", weights="w"),
    "importance at random": important(provider="random"),
    "importance, record": {**important(), "consistency": "record"},
    "levels of importance": important(percent=None, levels=LEVELS),
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
    assert headings in (HEADINGS, ["Warnings", *HEADINGS])
    assert LINKAGE in statement.under("Not protected")
    assert "/secure" not in statement.markdown()


@pytest.mark.parametrize("name", ["key insecure", "record level, key insecure"])
def test_an_insecure_key_is_not_called_secret(name: str) -> None:
    text = under("Assumptions", **CHANGES[name])
    assert "under a secret key" not in text
    assert "as secret as" not in text


def test_no_figure_is_rounded_in_favour_of_the_release() -> None:
    protected = under("Protected", guarantee=replace(GUARANTEE, epsilon=1.0000004))
    assert "1.0000004 for each" in protected
    assert "= 2.719 times" in protected
    behind = Quantiles(1.0, 135.0, 17.0, 19.59)
    summary = replace(SUMMARY, alone_share=0.00004, ruled_out_bits=5.201, inputs_per_output=behind)
    assert "0.004 % of" in under("Not protected", mapping=summary)
    clear = under("Released in clear", mapping=replace(summary, told_bits=5.61))
    for figure in ("at most 17 words", "5.7 of 10.0 bits", "5.3 of these bits"):
        assert figure in clear
    assert "5.3 of 10.0 bits" in under("Released in clear", mapping=summary)


@pytest.mark.parametrize("epsilon", [9.9, 10.0, 1e9])
def test_a_guarantee_that_says_next_to_nothing_is_warned_of(epsilon: float) -> None:
    statement = disclosure(facts(guarantee=replace(GUARANTEE, epsilon=epsilon)))
    assert len(statement.under("Warnings")) == (epsilon >= 10)


PLAIN: dict[str, Any] = {"input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}}
# The model is held fixed: what changes the statement is the setting alone.
BOUND = Guarantee("epsilon_dp", 1.0, unit="one occurrence of a word", sentence="A bound holds.")
MODEL: Any = SimpleNamespace(
    guarantee=lambda of_rows: BOUND,
    sampler=SimpleNamespace(summary=Summary(words=1024)),
    selector=None,
    classifier=None,
    imported=(),
)

# The choices of the policy that are not the default ones.
CHOICES: dict[str, list[Any]] = {
    f"policy.{name}": [value for value in get_args(kind) if value != getattr(Policy(), name)]
    for name, kind in get_type_hints(Policy).items()
    if get_args(kind) and name not in ("stop_word_list", "providers")
}
LISTED: list[Any] = [[FILE], [FILE, {"table": "people", "column": "name"}], [ROWS], [FILE, ROWS]]
ROW_PERSONS = {**ROWS, "kind": "person", "replace": "pseudonym"}
BY_MODEL: list[dict[str, Any]] = [
    *({}, {"threshold": 0.6}, SEARCH, {"person": "pseudonym"}, {"location": "pseudonym"}, {"person": "keep"}),
    {**SEARCH, "location": "pseudonym"},
]
SEARCHES = [
    {**SEARCH, "person": person, "location": location}
    for person, location in itertools.product(NAME_ACTIONS, repeat=2)
    if {person, location} not in ({"mask"}, {"keep"})
]
IMPORTANCE: list[dict[str, Any]] = [
    *(
        {},
        {"direction": "medium"},
        {"direction": "bottom"},
        {"rank_punctuation": True},
        {"corpus": "/corpus.txt"},
    ),
    *({"provider": "random"}, *({"provider": "column", "weights": weights} for weights in "wv")),
    *({"provider": "attention", "model": model} for model in ("/encoder", "/another")),
]
SECOND_LEVELS: list[dict[str, Any]] = [
    *({"share": 20}, {"share": 20, "epsilon": 2}, {"share": 20, "epsilon": 3}, {"epsilon": 2}),
    {"share": 20, "mechanism": {"name": "tem"}},
]
RELEASES: dict[str, list[Any]] = {
    "input.where": [{"lang": "en"}],
    "columns": [["title"], ["body", "title"]],
    "row_key": ["id"],
    "record_key": ["customer"],
    "consistency": ["record", "dataset"],
    "lexicon.source": ["/lexicon.txt"],
    "lexicon.limit": [100],
    "lexicon.vocabulary": ["/words.txt"],
    "lexicon.more": [[{"source": "/second.txt"}]],
    "lexicon.exclude": ["/unfit.txt"],
    "lexicon.prior": [{"corpus": "/public.txt"}],
    **CHOICES,
    "policy.stop_word_list": [["a", "b"]],
    **{f"policy.identifiers.{name}": ["fake", "keep"] for name in TYPES if name != "date"},
    "policy.identifiers.date": ["mask"],
    "policy.identifiers.languages": [["de"], ["de", "fr"]],
    "policy.names": [SEARCH, *({"model": "/classifier", **more} for more in BY_MODEL), *SEARCHES],
    "policy.providers": [["finders.a:A"], ["finders.a:B"], ["finders.a:A", "finders.a:B"]],
    "policy.keep": LISTED,
    "policy.mask": [
        *(*LISTED, [PERSONS], [PLACES], [PERSONS, ROWS], [FILE, ROW_PERSONS], [PERSONS, ROW_PERSONS]),
        [PERSONS, {**ROW_PERSONS, "kind": "location"}],
    ],
    "importance": [
        {"percent": 31},
        *({"percent": 30, **more} for more in IMPORTANCE),
        *({"levels": [{"share": 10}, second]} for second in SECOND_LEVELS),
    ],
    "budget": [{"record": 50}, {"record": 51}, {"record": 50, "delta": 1e-5}],
    "output.other_columns": ["keep", ["city"]],
    "key.file": ["/run.key"],
    "key.env": ["RUN_KEY"],
    "key.secret": [{"scope": "text", "name": "run-key"}],
    "mode": ["incremental", "streaming"],
    "stream.changes": ["ignore"],
    "stream.duplicates": ["drop", "accept"],
}
STREAM: dict[str, Any] = {**PLAIN, "mode": "incremental", "row_key": "id"}
SAME = {
    **dict.fromkeys(("input.path", "input.table", "input.format", "input.options"), "what is read"),
    **dict.fromkeys(("output.path", "output.table", "output.mode"), "where it is written"),
    "output.partition_by": "how rows lie in files, which is released anyway",
    "run.second_release": "what it allows is said by the facts: second_release, and the releases in the history",
    "lexicon.format": "how a file is read",
    **dict.fromkeys(("run.id", "run.artifact", "run.ship", "run.udf"), "how the job runs"),
    "run.artifact_fingerprint": "which model is expected; another one is refused",
    "run.partitions": "how the job runs: rows keep their identity where they are dealt out",
    **dict.fromkeys(("stream.checkpoint", "stream.trigger", "stream.max_files"), "how a stream reads"),
    "stream.starting_version": "which rows are read",
    "key.deliver": "how the key reaches the workers: what they draw is the same",
    **dict.fromkeys(
        (f"ledger.{name}" for name in ("path", "table", "limit", "raise_limit", "override")),
        "what is counted is said by the run's own statement",
    ),
    **dict.fromkeys(("audit.shareable", "audit.restricted"), "the account's"),
}
# Another valid value of each parameter; of a name that several mechanisms have, one that all of them take.
PARAMETERS: dict[str, Any] = {
    "epsilon": 3.5, "k": 30, "mapping": "conservative", "metric": "euclidean", "remainder": "own", "sensitive": 0.5,
    "p": 0.3, "beta": 0.01, "gamma": 2.0, "form": "tem", "lists": 3, "list_seed": 7, "preset": "L2", "lam": 0.3, "t": 0.25,
    "noise": "mahalanobis", "m": 10, "seed": 7, "unsafe": "refuse", "clip": 0.5, "snap": "published", "delta": 0.25,
    "search": "ivf", "fluent": True, "remap": "bayes",
}  # fmt: skip
NEEDED: dict[str, dict[str, Any]] = {"truncated_gumbel": {"unsafe": "published"}, "projection": {"m": 5}}
CALIBRATION = {"gaussian": "published", "truncated_laplace": "published"}  # the others: exact


def _with(name: str, value: Any) -> dict[str, Any]:
    section, _, field = name.partition(".")
    if field.startswith("identifiers."):
        field, _, kind = field.partition(".")
        value = {kind: value} if kind != IN_LANGUAGES else {"date": "mask", kind: value}
    plain = STREAM if section in ("mode", "stream") else PLAIN
    changed = {**plain, section: {**plain.get(section, {}), field: value} if field else value}
    if name in ("lexicon.limit", "lexicon.vocabulary"):
        changed["lexicon"] |= {"source": "/lexicon.txt"}
    if name == "lexicon.more":
        changed["mechanism"] = {"name": "diffractor"}
    return changed


def _statement(settings: Mapping[str, Any]) -> str:
    config = parse_config(settings)
    records = [ProviderRecord(path, path, "1", ("tool",)) for path in config.policy.providers]
    model: Any = SimpleNamespace(**{**vars(MODEL), "imported": [ImportedProvider(one, 0) for one in records]})
    return disclosure(RunFacts.planned(config, model)).markdown()


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict) and f"{prefix}{name}" != "input.options":
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_no_setting_is_left_out() -> None:
    known = {name for name in _leaves(parse_config(PLAIN).as_dict()) if not name.startswith("mechanism.")}
    untraced = {
        "lexicon.exclude",
        "lexicon.prior",
        "budget",
        "policy.identifiers.languages",
        "policy.names",
        "policy.providers",
        "policy.mask",
        "policy.keep",
    }  # where they are not used
    assert known | untraced == RELEASES.keys() | SAME.keys()
    assert not RELEASES.keys() & SAME.keys()
    assert all(CHOICES.values())
    parameters = {field.name for kind in MECHANISMS.values() for field in fields(kind)}  # type: ignore[arg-type]
    assert parameters == PARAMETERS.keys() | {"calibration"}


@pytest.mark.parametrize("name", RELEASES)
def test_a_setting_that_changes_what_is_released_changes_the_statement(name: str) -> None:
    before = {
        "lexicon.limit": {**PLAIN, "lexicon": {"source": "/lexicon.txt"}},
        "lexicon.vocabulary": {**PLAIN, "lexicon": {"source": "/lexicon.txt"}},
        "lexicon.more": {**PLAIN, "mechanism": {"name": "diffractor"}},
        "policy.identifiers.languages": {**PLAIN, "policy": {"identifiers": {"date": "mask"}}},
        "mode": {**PLAIN, "row_key": "id"},
        "stream.changes": STREAM,
        "stream.duplicates": STREAM,
    }.get(name, PLAIN)
    statements = [_statement(before), *(_statement(_with(name, value)) for value in RELEASES[name])]
    assert len(set(statements)) == len(statements)


def changed(mechanism: Mechanism, name: str, value: Any) -> Mechanism:
    """A mechanism with another value of one parameter, whether it would agree with the others or not."""
    other = copy(mechanism)
    object.__setattr__(other, name, value)
    return other


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_parameter_of_a_mechanism_stands_in_the_statement(name: str) -> None:
    plain = MECHANISMS[name](**NEEDED.get(name, {}))
    facts = RunFacts.planned(parse_config(PLAIN), MODEL)

    def said(mechanism: Mechanism) -> str:
        config = facts.config.model_copy(update={"mechanism": mechanism})
        return disclosure(replace(facts, config=config)).markdown()

    statements = {said(plain)}
    for field in fields(plain):  # type: ignore[arg-type]
        value = CALIBRATION.get(name, "exact") if field.name == "calibration" else PARAMETERS[field.name]
        assert value != getattr(plain, field.name)
        statements.add(said(changed(plain, field.name, value)))
    assert len(statements) == len(fields(plain)) + 1  # type: ignore[arg-type]


def test_a_mechanism_of_another_name_is_another_statement() -> None:
    made = [{"name": name, **NEEDED.get(name, {})} for name in MECHANISMS]
    assert len({_statement({**PLAIN, "mechanism": one}) for one in made}) == len(MECHANISMS)


def test_a_condition_on_the_text_is_not_shown() -> None:
    assert "marker" not in _statement({**PLAIN, "input": {"path": "/in", "where": {"body": "marker"}}})
