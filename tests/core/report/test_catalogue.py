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
from dptext_spark.report.console import LINES
from dptext_spark.report.mechanism_screens import catalogue, described, overview, rows

REQUIRED = {"projection": {"m": 3}}  # parameters without a default, which is null then
RECORDS = Path(__file__).resolve().parents[3] / "benchmarks" / "records"


def test_every_mechanism_and_every_parameter_is_explained() -> None:
    records = json.loads(json.dumps(catalogue()))
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


def test_every_sampler_has_its_cost_and_its_certificate() -> None:
    samplers = {kind.sampler for kind in MECHANISMS.values()}
    assert len(samplers) == 5
    for sampler in samplers:
        assert sampler.cost != Sampler.cost
        assert sampler.certified_by != Sampler.certified_by


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_certificate_is_the_one_that_certify_gives(name: str) -> None:
    """Over nine words in three dimensions, at an ε that the mechanism keeps: its surety and the verdict."""
    vectors = np.random.default_rng(4).normal(size=(9, 3)).astype(np.float32)
    lexicon = Lexicon(Vocabulary.of([f"w{letter}" for letter in "abcdefghi"]), vectors)
    smallest: dict[str, Any] = {"truncated_gumbel": {"epsilon": 2_000.0}, "custext": {"k": 3}}
    parameters = REQUIRED.get(name, {}) | smallest.get(name, {})
    certificate = certify(Privatizer(lexicon, MECHANISMS[name](**parameters).compile(lexicon)))
    kind, loss = MECHANISMS[name], certificate.loss
    described_as = kind.certified_by or kind.sampler.certified_by
    assert loss is not None
    assert certificate.verdict == ("not refuted" if "`not refuted`" in described_as else "confirmed")
    assert ("by draws" in described_as) == (loss.confidence is not None)
    assert ("noisy vector exactly" in described_as) == (certificate.vector is not None)


def test_a_measured_figure_stands_in_a_record() -> None:
    """What is said of CusText: 5 ns of 50, to the order of magnitude."""
    assert [name for name, kind in MECHANISMS.items() if kind.measured] == ["custext"]
    assert [ns in str(MECHANISMS["custext"].measured) for ns in ("5 ns", "50 ns")] == [True, True]
    record = json.loads(max(RECORDS.glob("*-all-full.json")).read_text(encoding="utf-8"))
    figures = {
        figure["name"]: figure["value"]["median"]
        for figure in record["sections"]["engine"]["figures"]
        if figure["name"].startswith("packaged")
    }
    (whole,) = [value for name, value in figures.items() if name.endswith(", token")]
    (draw,) = [value for name, value in figures.items() if name.endswith("token: sample")]
    assert 25 < whole < 100
    assert 2.5 < draw < 10


@pytest.mark.parametrize("columns", [40, 77, 100, 200])
def test_the_text_keeps_to_its_columns(columns: int) -> None:
    text = overview().text(columns, full=True)
    assert max(map(len, text.splitlines())) <= columns
    assert len(overview().text(columns).splitlines()) <= LINES
    for record in catalogue():
        words = " ".join(text.split())
        told = (record["paper"], record["guarantee"], record["certificate"])
        assert all(" ".join(said.split()) in words for said in told)


def test_what_must_be_given_and_what_is_null_are_told_apart() -> None:
    assert "m (required)" in dict(rows(described("projection")))
    assert "gamma = null" in dict(rows(described("tem")))
    with pytest.raises(SettingsError, match=r"name: 'tem2' is not valid. Choose custext, .* mean 'tem'"):
        described("tem2")
