"""Who adds spans to the built-in patterns, Presidio too: what overlaps is joined, and what is no span is refused."""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.artifact import save_model
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.identifiers.presidio import Presidio
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.policy import NO_IDENTIFIERS, Policy
from tests.core.text.samples import WORDS, Step, privatizer, row, run


@dataclass(frozen=True)
class Names:
    """Finds what an expression finds."""

    pattern: str = "Dog|Cat"
    name: str = "names 1"
    types: tuple[str, ...] = ("person", "place")

    def find(self, texts: pa.Array) -> TypedSpans:
        found = [
            (i, len(text[: match.start()].encode()), len(text[: match.end()].encode()), 0)
            for i, text in enumerate(texts.to_pylist())
            for match in re.finditer(self.pattern, text or "")
        ]
        return TypedSpans(*([place[k] for place in found] for k in range(4)))


@dataclass(frozen=True)
class Says:
    """Says what it was told to."""

    spans: tuple[list[int], list[int], list[int], list[int]]
    name: str = "says"
    types: tuple[str, ...] = ("person",)

    def find(self, texts: pa.Array) -> TypedSpans:
        return TypedSpans(*self.spans)


def model(*providers: Any, policy: Policy = Policy(), step: int = 0) -> Privatizer:  # noqa: B008
    return Privatizer(privatizer().vocabulary, Step(step, len(WORDS)), policy, providers=providers)


def test_what_it_finds_is_masked_by_its_type() -> None:
    out, counters = run(model(Names()), ["été Dog cat Cat.", None, "dog Dog"])
    assert out == [b"\xc3\xa9t\xc3\xa9 [PERSON] cat [PERSON].", None, b"dog [PERSON]"]
    counts = row(counters, 0)
    assert (counts["identifiers"], counts["identifiers_provided"], counts["words"]) == (2, 2, 2)


def test_it_works_where_no_pattern_is_wanted() -> None:
    made = model(Names(), policy=Policy(identifiers=NO_IDENTIFIERS))
    assert run(made, ["Dog a@b.com"])[0] == [b"[PERSON] a@[OOV].[OOV]"]


@pytest.mark.parametrize(
    ("pattern", "text", "out"),
    [
        ("jane", "jane@example.com cat", "[EMAIL] cat"),  # inside a longer one
        ("Dr jane@example.com cat", "Dr jane@example.com cat", "[PERSON]"),  # around it
        ("jane@example.com", "jane@example.com cat", "[EMAIL] cat"),  # just as long: the built-in rule's type
        ("com cat", "jane@example.com cat", "[EMAIL]"),  # joined, of the longer one's type
        (r"\.com cat", "jane@example.com cat", "[EMAIL]"),
    ],
)
def test_what_overlaps_becomes_one_of_the_longest_type(pattern: str, text: str, out: str) -> None:
    assert run(model(Names(pattern)), [text])[0] == [out.encode()]


def test_the_first_provider_counts_of_two_as_long() -> None:
    other = Names(name="others", types=("animal",))
    assert run(model(Names(), other), ["Dog"])[0] == [b"[PERSON]"]
    assert run(model(other, Names()), ["Dog"])[0] == [b"[ANIMAL]"]


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        (([0, 0], [0, 3], [4, 6], [0, 0]), "overlaps another"),
        (([0, 0], [4, 0], [6, 2], [0, 0]), "begins before"),
        (([0], [-1], [2], [0]), "empty or lies outside its text"),
        (([1, 0], [0, 0], [1, 1], [0, 0]), "rows do not ascend"),
        (([0], [0], [1], [1]), "a type that it does not declare. Return person."),
    ],
)
def test_spans_that_are_wrong_are_refused_without_a_word_of_the_text(spans: Any, said: str) -> None:
    with pytest.raises(DataError, match=f"provider 'says'.*{said}") as caught:
        run(model(Says(spans)), ["secreté", "x"])
    assert "secret" not in str(caught.value)


def test_what_goes_wrong_in_it_leaves_without_a_word_of_the_text() -> None:
    class Fails(Names):
        def find(self, texts: pa.Array) -> TypedSpans:
            raise ValueError(str(texts[0]))

    with pytest.raises(DataError, match="provider 'names 1': it failed with ValueError") as caught:
        run(model(Fails()), ["secret"])
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert run(model(Names()), pa.array([b"Dog"], pa.binary()))[0] == [b"[PERSON]"]


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        (Names(types=("Person",)), "has types ['Person']. Choose names of letters"),
        (Names(types=()), "has types []"),
        (Names(name=""), "a provider needs a name"),
        (object(), "a provider needs a name"),
    ],
)
def test_providers_that_are_none(provider: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        model(provider)


def test_providers_are_part_of_the_fingerprint_and_travel() -> None:
    prints = {model(*some).fingerprint for some in ((), (Names(),), (Names(name="names 2"),))}
    assert len(prints) == 3
    again = pickle.loads(pickle.dumps(Names()))
    assert run(model(again), ["Dog"])[0] == [b"[PERSON]"]


def test_an_artifact_cannot_hold_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="a provider is code"):
        save_model(model(Names()), tmp_path / "artifact")


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


def masked(provider: Presidio, rows: list[str | None]) -> list[str | None]:
    out, _ = run(model(provider), rows)
    return [text if text is None else text.decode() for text in out]


@pytest.mark.filterwarnings("ignore")
def test_entities_and_the_threshold_choose() -> None:
    rows: list[str | None] = ["été Oslo, it is Jane Doe Smith", None]
    assert masked(Presidio(analyzer=engine()), rows) == ["été [LOCATION], it is [PERSON]", None]
    assert masked(Presidio(("PERSON",), analyzer=engine()), rows) == ["été [OOV], it is [PERSON]", None]
    assert masked(Presidio(threshold=0.7, analyzer=engine()), rows) == ["été [OOV], it is [PERSON]", None]


@pytest.mark.filterwarnings("ignore")
def test_its_name_tells_library_and_settings() -> None:
    made = engine()
    settings: list[dict[str, Any]] = [{}, {"entities": ("PERSON",)}, {"threshold": 0.7}, {"label": "mine"}]
    names = {Presidio(**some, analyzer=made).name for some in settings}
    assert len(names) == 4
    assert all(name.startswith("presidio 2.") for name in names)
    with pytest.raises(SettingsError, match="no entities"):
        Presidio((), analyzer=made)


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dptext_spark.errors.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"dptext-spark\[presidio\]"):
        Presidio()


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_is_not_there_is_not_fetched() -> None:
    pytest.importorskip("presidio_analyzer", reason="the extra [presidio] is not installed")
    with pytest.raises(SettingsError, match="is not a spaCy model"):
        Presidio(model="no_such_model_of_spacy")
