"""Presidio's own library, with recognisers that need no model, as a provider of identifiers."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.text.identifiers.presidio import Presidio
from tests.core.text.samples import WORDS, Step, privatizer


def engine() -> Any:
    """An analyzer whose recognisers are lists and patterns; spaCy only cuts the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pytest.importorskip("presidio_analyzer", reason="the extra [presidio] is not installed")
        spacy = pytest.importorskip("spacy", reason="Presidio came without spaCy")
        from presidio_analyzer.nlp_engine import SpacyNlpEngine

        class Blank(SpacyNlpEngine):
            def __init__(self) -> None:
                super().__init__()
                self.nlp = {"en": spacy.blank("en")}

        registry = library.RecognizerRegistry(recognizers=[], supported_languages=["en"])
        people = library.PatternRecognizer("PERSON", deny_list=["Jane Doe Smith", "Jane Doe", "Jané"])
        place = library.Pattern("capital", r"\b(?:Oslo|Lima)\b", 0.6)
        registry.add_recognizer(people)
        registry.add_recognizer(library.PatternRecognizer("LOCATION", patterns=[place]))
        return library.AnalyzerEngine(registry=registry, nlp_engine=Blank(), supported_languages=["en"])


def texts(provider: Presidio, rows: list[str | None]) -> list[str | None]:
    made = Privatizer(privatizer().vocabulary, Step(0, len(WORDS)), providers=(provider,))
    out, _ = made.privatize(
        pa.array(rows), column="c", row_ids=pa.array(range(len(rows))), key=RunKey.insecure(1)
    )
    return list(out.to_pylist())


@pytest.mark.filterwarnings("ignore")
def test_persons_and_places_are_masked_beside_the_built_in_types() -> None:
    provider = Presidio(analyzer=engine())
    assert texts(provider, ["it is Jane Doe, jane@example.com", None, "", "été Jané is not Oslo", "cat"]) == [
        "it is [PERSON], [EMAIL]", None, "", "été [PERSON] is not [LOCATION]", "cat",
    ]  # fmt: skip
    assert texts(provider, ["is Jane Doe Smith not"]) == ["is [PERSON] not"]


@pytest.mark.filterwarnings("ignore")
def test_entities_and_the_threshold_choose() -> None:
    rows: list[str | None] = ["not Oslo, it is Jane Doe"]
    assert texts(Presidio(("PERSON",), analyzer=engine()), rows) == ["not [OOV], it is [PERSON]"]
    assert texts(Presidio(threshold=0.7, analyzer=engine()), rows) == ["not [OOV], it is [PERSON]"]


@pytest.mark.filterwarnings("ignore")
def test_its_name_tells_library_and_settings() -> None:
    made = engine()
    names = {
        one.name
        for one in (
            Presidio(analyzer=made), Presidio(("PERSON",), analyzer=made), Presidio(threshold=0.7, analyzer=made),
            Presidio(analyzer=made, label="mine"),
        )
    }  # fmt: skip
    assert len(names) == 4
    assert all(name.startswith("presidio 2.") for name in names)
    with pytest.raises(SettingsError, match="no entities given"):
        Presidio((), analyzer=made)


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dptext_spark.errors.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"dptext-spark\[presidio\]"):
        Presidio()
