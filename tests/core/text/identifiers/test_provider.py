"""Who adds spans to the built-in patterns: what overlaps is joined by a rule, and what is no span is refused."""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.artifact import save_model
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.identifiers.types import NO_IDENTIFIERS
from dptext_spark.text.policy import Policy
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
    ("pattern", "out"),
    [
        ("jane", "[EMAIL] cat"),  # inside a longer one
        ("Dr jane@example.com cat", "[PERSON]"),  # around it
        ("jane@example.com", "[EMAIL] cat"),  # just as long: the built-in rule's type
        ("com cat", "[EMAIL]"),  # joined, of the longer one's type
        (r"\.com cat", "[EMAIL]"),
    ],
)
def test_what_overlaps_becomes_one_of_the_longest_type(pattern: str, out: str) -> None:
    before = "Dr " if pattern.startswith("Dr") else ""
    assert run(model(Names(pattern)), [f"{before}jane@example.com cat"])[0] == [out.encode()]


def test_the_first_provider_counts_of_two_as_long() -> None:
    other = Names(name="others", types=("animal",))
    assert run(model(Names(), other), ["Dog"])[0] == [b"[PERSON]"]
    assert run(model(other, Names()), ["Dog"])[0] == [b"[ANIMAL]"]


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        (([0, 0], [0, 3], [4, 6], [0, 0]), "overlaps another"),
        (([0, 0], [4, 0], [6, 2], [0, 0]), "stands before"),
        (([0], [2], [9], [0]), "empty or lies outside its text"),
        (([0], [-1], [2], [0]), "empty or lies outside its text"),
        (([0], [0], [7], [0]), "cuts a character in two"),
        (([2], [0], [1], [0]), "no rows of the batch"),
        (([1, 0], [0, 0], [1, 1], [0, 0]), "rows that are out of order"),
        (([0], [0], [1], [1]), "a type that is none of its own; valid: person."),
        (([0], [0, 1], [1], [0]), "of different lengths"),
    ],
)
def test_spans_that_are_wrong_are_refused_without_a_word_of_the_text(spans: Any, said: str) -> None:
    with pytest.raises(DataError) as caught:
        run(model(Says(spans)), ["secreté", "x"])
    assert "provider 'says'" in str(caught.value)
    assert said in str(caught.value)
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
        (Names(types=("Person",)), "has types ['Person']; valid: names of letters"),
        (Names(types=()), "has types []"),
        (Names(types=("email",)), "the type 'email' of 'names 1' is taken"),
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
    with pytest.raises(SettingsError, match="a provider cannot be stored"):
        save_model(model(Names()), tmp_path / "artifact")
