"""Every setting that changes what is released changes the statement, and no setting is left out of this test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms import MECHANISMS, Mechanism
from dptext_spark.mechanisms.summary import Summary
from dptext_spark.text.identifiers.imported import ImportedProvider, ProviderRecord
from dptext_spark.text.identifiers.types import IN_LANGUAGES, TYPES
from dptext_spark.text.names.search import NAME_ACTIONS

PLAIN: dict[str, Any] = {"input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}}
# The model is held fixed: what changes the statement is the setting alone.
GUARANTEE = Guarantee("epsilon_dp", 1.0, unit="one occurrence of a word", sentence="A bound holds.")
MODEL: Any = SimpleNamespace(
    guarantee=lambda of_rows: GUARANTEE,
    sampler=SimpleNamespace(summary=Summary(words=1024)),
    selector=None,
    classifier=None,
    imported=(),
)

PERSONS = {"kind": "person", "replace": "pseudonym"}
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
    "policy.stop_words": ["draw"],
    "policy.stop_word_list": [["a", "b"]],
    "policy.oov": ["draw", "keep"],
    "policy.numbers": ["mask", "keep"],
    "policy.case": ["lower"],
    "policy.gaps": ["normalise"],
    "policy.tokenizer": ["whitespace"],
    **{f"policy.identifiers.{name}": ["fake", "keep"] for name in TYPES if name != "date"},
    "policy.identifiers.date": ["mask"],
    "policy.identifiers.languages": [["de"], ["de", "fr"]],
    "policy.names": [
        {"lists": True},
        {"model": "/classifier"},
        {"model": "/classifier", "threshold": 0.6},
        {"model": "/classifier", "lists": True},
        {"model": "/classifier", "person": "pseudonym"},
        {"model": "/classifier", "location": "pseudonym"},
        {"model": "/classifier", "lists": True, "location": "pseudonym"},
        {"model": "/classifier", "person": "keep"},
        *(
            {"lists": True, "person": person, "location": location}
            for person in NAME_ACTIONS
            for location in NAME_ACTIONS
            if {person, location} not in ({"mask"}, {"keep"})
        ),
    ],
    "policy.providers": [["finders.a:A"], ["finders.a:B"], ["finders.a:A", "finders.a:B"]],
    "policy.keep": [
        [{"file": "/names.txt"}],
        [{"file": "/names.txt"}, {"table": "people", "column": "name"}],
        [{"column": "customer"}],
        [{"file": "/names.txt"}, {"column": "customer"}],
    ],
    "policy.mask": [
        [{"file": "/names.txt"}],
        [{"file": "/names.txt"}, {"table": "people", "column": "name"}],
        [{"column": "customer"}],
        [{"file": "/names.txt"}, {"column": "customer"}],
        [{"file": "/names.txt", **PERSONS}],
        [{"file": "/names.txt", **PERSONS, "kind": "location"}],
        [{"file": "/names.txt", **PERSONS}, {"column": "customer"}],
        [{"file": "/names.txt"}, {"column": "customer", **PERSONS}],
        [{"file": "/names.txt", **PERSONS}, {"column": "customer", **PERSONS}],
        [{"file": "/names.txt", **PERSONS}, {"column": "customer", **PERSONS, "kind": "location"}],
    ],
    "importance": [
        {"percent": 30},
        {"percent": 31},
        {"percent": 30, "direction": "medium"},
        {"percent": 30, "direction": "bottom"},
        {"percent": 30, "rank_punctuation": True},
        {"percent": 30, "corpus": "/corpus.txt"},
        {"percent": 30, "provider": "random"},
        {"percent": 30, "provider": "column", "weights": "w"},
        {"percent": 30, "provider": "column", "weights": "v"},
        {"percent": 30, "provider": "attention", "model": "/encoder"},
        {"percent": 30, "provider": "attention", "model": "/another"},
        {"levels": [{"share": 10}, {"share": 20}]},
        {"levels": [{"share": 10}, {"share": 20, "epsilon": 2}]},
        {"levels": [{"share": 10}, {"share": 20, "epsilon": 3}]},
        {"levels": [{"share": 10}, {"share": 20, "mechanism": {"name": "tem"}}]},
        {"levels": [{"share": 10}, {"epsilon": 2}]},
    ],
    "budget": [{"record": 50}, {"record": 51}, {"record": 50, "delta": 1e-5}],
    "output.other_columns": ["keep", ["city"]],
    "output.overwrite_raw": [True],
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
    "output.fresh_noise": "what it allows is counted: the releases in the history",
    "run.second_release": "what it allows is said where it happened: second_release of the facts",
    "lexicon.format": "how a file is read",
    "lexicon.version": "no other than this package's can be asked for, and the statement names it",
    **dict.fromkeys(("run.id", "run.artifact", "run.ship", "run.udf", "run.batch_rows"), "how the job runs"),
    "run.artifact_fingerprint": "which model is expected; another one is refused",
    "run.partitions": "how the job runs: rows keep their identity where they are dealt out",
    **dict.fromkeys(("stream.checkpoint", "stream.trigger", "stream.max_files"), "how a stream reads"),
    "stream.starting_version": "which rows are read",
    "key.deliver": "how the key reaches the workers: what they draw is the same",
    **dict.fromkeys(
        (
            "ledger.path",
            "ledger.table",
            "ledger.limit",
            "ledger.raise_limit",
            "ledger.override",
        ),
        "what is counted is said by the run's own statement",
    ),
    **dict.fromkeys(("audit.shareable", "audit.restricted", "audit.consistency_scopes"), "the account's"),
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
