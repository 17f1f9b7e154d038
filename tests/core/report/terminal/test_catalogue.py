"""The catalogue of mechanisms is what the registry and the declarations say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.parameters import parameters_of
from dptext_spark.model.certificate import certify
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.report.terminal.catalogue import catalogue, catalogue_text, described

REQUIRED = {"projection": {"m": 3}}  # parameters without a default, which is null then
RECORDS = Path(__file__).resolve().parents[4] / "benchmarks" / "records"


def test_every_mechanism_and_every_parameter_is_explained() -> None:
    records = json.loads(json.dumps([one.as_dict() for one in catalogue()]))
    assert [record["name"] for record in records] == list(MECHANISMS)
    for record, kind in zip(records, MECHANISMS.values(), strict=True):
        assert all(record[name] for name in ("paper", "guarantee", "cost", "certificate"))
        parameters = record["parameters"]
        assert [parameter["name"] for parameter in parameters] == list(parameters_of(kind))
        assert all(parameter["meaning"] and parameter["valid"] for parameter in parameters)
        required = REQUIRED.get(record["name"], {})
        assert [parameter["name"] for parameter in parameters if parameter["required"]] == list(required)
        defaults = {parameter["name"]: parameter["default"] for parameter in parameters}
        assert kind(**defaults | required) == kind(**required)


def test_the_ranges_are_those_that_are_checked() -> None:
    """Each end of each range is accepted or refused as the record says, and each choice is accepted."""
    for record in (one.as_dict() for one in catalogue()):
        kind, required = MECHANISMS[record["name"]], REQUIRED.get(record["name"], {})
        for parameter in record["parameters"]:
            name = parameter["name"]
            for end in ("min", "max"):
                if parameter[end] is None:
                    continue
                given: dict[str, Any] = required | {name: parameter[end]}
                if parameter[f"{end}_excluded"]:
                    with pytest.raises(SettingsError, match=rf"mechanism\.{name}: "):
                        kind(**given)
                else:
                    kind(**given)
            for one in parameter["choices"] or ():
                assert getattr(kind(**required | {name: one}), name) == one


def test_every_sampler_has_its_cost_and_its_certificate() -> None:
    samplers = {kind.sampler for kind in MECHANISMS.values()}
    assert len(samplers) == 5
    for sampler in samplers:
        assert sampler.cost != Sampler.cost
        assert sampler.certified_by != Sampler.certified_by


# What the catalogue says of a search, and what the certificate says of its method.
METHODS = {
    "all pairs of words that share an output set": "every pair of words that share an output set, and every output",
    "every two neighbours in a list": "every two neighbours of a list and every output",
    "by the exact sum of each law": "by the exact sum of each law",
    "near and distant pairs": "near and distant pairs; such a search can refute, not confirm",
    "half-spaces between distant words": "half-spaces between distant words",
    "every word and its nearest other one": "each word against its nearest other word",
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_certificate_is_the_one_that_certify_gives(name: str) -> None:
    """Over nine words in three dimensions, at an ε that the mechanism keeps: kind of search, its surety, and the verdict."""
    vectors = np.random.default_rng(4).normal(size=(9, 3)).astype(np.float32)
    lexicon = Lexicon(Vocabulary.of([f"w{letter}" for letter in "abcdefghi"]), vectors)
    given = REQUIRED.get(name, {}) | {"truncated_gumbel": {"epsilon": 2_000.0}, "custext": {"k": 3}}.get(
        name, {}
    )
    found = certify(Privatizer(lexicon, MECHANISMS[name](**given).compile(lexicon)))
    kind, loss = MECHANISMS[name], found.loss
    said_of_it = kind.certified_by or kind.sampler.certified_by
    assert loss is not None
    assert found.verdict == ("confirmed" if kind.sampler.is_confirmed else "not refuted")
    assert [said for said in METHODS if said in said_of_it] == [
        said for said in METHODS if METHODS[said] in loss.method
    ]
    assert (
        ("by draws" in said_of_it)
        == (loss.confidence is not None)
        == ("at a stated confidence" in said_of_it)
    )
    assert ("noisy vector exactly" in said_of_it) == (found.vector is not None)
    assert ("it confirms the claim or refutes it" in said_of_it) == (found.verdict == "confirmed")
    assert ("`not refuted` is the best verdict" in said_of_it) == (found.verdict == "not refuted")


def test_a_measured_figure_stands_in_a_record() -> None:
    """What is said of CusText: 5 ns of 50, to the order of magnitude."""
    assert [name for name, kind in MECHANISMS.items() if kind.measured] == ["custext"]
    said = str(MECHANISMS["custext"].measured)
    assert "some 5 ns" in said
    assert "50 ns" in said
    record = json.loads(max(RECORDS.glob("*-all-full.json")).read_text(encoding="utf-8"))
    figures = {
        figure["name"]: figure["value"]["median"] for figure in record["sections"]["engine"]["figures"]
    }
    (whole,) = [
        value for name, value in figures.items() if name.startswith("packaged") and name.endswith(", token")
    ]
    (draw,) = [
        value
        for name, value in figures.items()
        if name.startswith("packaged") and name.endswith("token: sample")
    ]
    assert 25 < whole < 100
    assert 2.5 < draw < 10


@pytest.mark.parametrize("columns", [40, 77, 100, 200])
def test_the_text_keeps_to_its_columns(columns: int) -> None:
    text = catalogue_text(catalogue(), columns)
    assert max(map(len, text.splitlines())) <= columns
    for record in catalogue():
        words = " ".join(text.split())
        assert all(
            " ".join(said.split()) in words for said in (record.paper, record.guarantee, record.certificate)
        )


def test_what_must_be_given_and_what_is_null_are_told_apart() -> None:
    assert "m (required)" in catalogue_text([described("projection")], 100)
    assert "gamma = null" in catalogue_text([described("tem")], 100)
    with pytest.raises(
        SettingsError, match=r"name: 'tem2' is not known; valid: custext, .* Did you mean 'tem'"
    ):
        described("tem2")
