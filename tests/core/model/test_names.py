"""Names in a model: of lists, masked, kept or replaced, and of the search, at every level and beside every feature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import SettingsError
from dptext_spark.model.preview import preview
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_table import NameTable
from dptext_spark.text.policy import Policy
from dptext_spark.text.replacements import pool
from tests.core.model.small_models import KEY, compiled, drawn
from tests.core.text.names.plain_listed_parts import parts_of, words_of
from tests.core.text.names.plain_names import find
from tests.core.text.samples import list_of

MASK = ("Good Time", "World", "o'zorbla", "The")
KEEP = ("new music", "school", "Qwxyz", "world school")


@cache
def names() -> NameMatcher:
    return NameMatcher(NameTable.of([list_of(*MASK), list_of(*KEEP)], ("mask", "keep")))


@cache
def model(which: str, consistency: Any) -> Privatizer:
    return compiled(Policy(), consistency, which)


CASES = [
    (which, level)
    for which, level in product(
        ("plain", "remap", "fluent", "importance", "budget"), ("token", "record", "dataset")
    )
    if level == "token" or which in ("plain", "remap") or (level == "record" and which != "fluent")
]


@pytest.mark.parametrize(("which", "level"), CASES)
def test_what_is_listed_is_masked_or_kept_and_the_rest_is_as_it_would_be(which: str, level: str) -> None:
    made = model(which, level).with_names(names())
    (found,) = drawn(made, ["The GOOD time's people like New  Music, o'Zorbla! qwxyz time."])
    words = found.split(" ")
    assert words[:2] == ["[NAME]", "[NAME]'s"]
    assert words[4:7] == ["New", "", "Music,"]
    assert words[7:9] == ["[NAME]!", "qwxyz"]
    assert drawn(made, ["World", "world school", "new music"]) == ["[NAME]", "world school", "new music"]
    # An identifier counts more than what is kept, and a placeholder that is there stays.
    mail, placeholder = drawn(made, ["mail school@world.com about school", "[NAME] likes [NAME]"])
    assert (mail.split()[1], mail.split()[-1]) == ("[EMAIL]", "school")
    assert (placeholder.split()[0], placeholder.split()[-1]) == ("[NAME]", "[NAME]")


@pytest.mark.parametrize("level", ["token", "record"])
def test_other_words_are_drawn_as_beside_any_placeholder(level: str) -> None:
    """The draws of other words depend on their places in the text (token level) or on themselves (record level) alone."""
    made = model("plain", level)
    listed, plain = "World people time", "12345 people time"
    (with_lists,), (without,) = drawn(made.with_names(names()), [listed]), drawn(made, [plain])
    assert with_lists.split()[0] == "[NAME]"
    assert with_lists.split()[1:] == without.split()[1:]


SEARCHED = ("mask", "pseudonym")
TEXT = "World, Ada Lovelace met Mrs. A. Lovelace in Oslo.\nBest,\nADA LOVELACE"


def searching(action: str, which: str, consistency: Any, **names: str) -> Privatizer:
    made = model(which, consistency)
    search = {"lists": True, "person": action, "location": action, **names}
    return replace(made, policy=replace(made.policy, names=search), fingerprint="")  # type: ignore[arg-type]


@pytest.mark.parametrize(("which", "level"), CASES)
def test_names_are_found_at_every_level_and_a_batch_equals_its_rows(which: str, level: str) -> None:
    masked = searching("mask", which, level)
    (found,) = drawn(masked, [TEXT])
    assert found.count("[PERSON]") == 3
    assert found.count("[LOCATION]") == 1
    assert not {"ada", "lovelace", "oslo"} & set(found.lower().replace(".", " ").split())
    named = searching("pseudonym", which, level)
    texts = [TEXT, "", "Dr. Ada Lovelace", TEXT]
    together = drawn(named, texts)
    for number, text in enumerate(texts):
        alone, _ = named.privatize(
            pa.array([text]), column="c", row_ids=pa.array([number]), key=KEY, run_id="r"
        )
        assert alone.to_pylist() == [together[number]]
    surnames = [line.split(" ")[-1].strip(".").lower() for line in together[0].splitlines()[-1:]]
    repeated = sum(together[0].lower().count(one) for one in surnames)
    assert (repeated == 3) is (level != "token")


@pytest.mark.parametrize("action", SEARCHED)
def test_what_a_list_keeps_or_masks_comes_before_the_search(action: str) -> None:
    lists = [list_of("Oslo"), list_of("Ada Lovelace", "Mary")]
    made = searching(action, "plain", "token").with_names(NameMatcher(NameTable.of(lists, ("mask", "keep"))))
    (found,) = drawn(made, ["Ada Lovelace, Mary Smith and Oslo"])
    assert found.startswith("Ada Lovelace, Mary ")
    assert found.endswith("[NAME]")
    assert "Smith" not in found


def test_a_search_enters_the_fingerprint_and_its_absence_does_not() -> None:
    plain = model("plain", "token")
    without = replace(plain, policy=replace(plain.policy, names="none"), fingerprint="")  # type: ignore[arg-type]
    assert without.fingerprint == plain.fingerprint
    pairs = product(SEARCHED, SEARCHED)
    prints = {searching(person, "plain", "token", location=place).fingerprint for person, place in pairs}
    assert len(prints | {plain.fingerprint}) == 5


def test_a_provider_may_not_take_the_types_of_parts() -> None:
    made = model("plain", "token")

    @dataclass(frozen=True)
    class Own:
        name: str = "own"
        types: tuple[str, ...] = ("surname",)

        def find(self, texts: pa.Array) -> TypedSpans:
            return TypedSpans([], [], [], [])

    assert replace(made, providers=(Own(),), fingerprint="").providers
    with pytest.raises(SettingsError, match="has the type 'surname' of 'own'"):
        replace(searching("mask", "plain", "token"), providers=(Own(),), fingerprint="")


@pytest.mark.parametrize("action", SEARCHED)
def test_a_preview_shows_what_takes_the_place_of_a_name(action: str) -> None:
    found = preview(searching(action, "plain", "token"), "World, Ada Lovelace of Oslo met Dr. Zorblax")
    shown = {word.text: word for word in found.words}
    parts = ("Ada", "Lovelace") if action == "pseudonym" else ("Ada Lovelace",)
    for name in (*parts, "Oslo", "Zorblax"):
        word = shown[name]
        assert word.action == ("pseudonym" if action == "pseudonym" else "masked")
        assert word.reason == "a name, by public lists"
        assert word.became
        assert word.became in found.output
        assert word.became != name
    assert ("[PERSON]" in found.output) is (action == "mask")


PERSONS = ("Ada Lovelace", "Abraham van Helsing", "James", "Jean-Luc Picard", "Mary Smith")
PLACES = ("New York", "France", "Zorbtown")
MASKED, KEPT = ("World",), ("school", "Mary Smith school")
USES = ("person", "location", "mask", "keep")
LISTED_TEXT = "World, Ada Lovelace met Mrs. A. Lovelace; Lovelace, Ada of Zorbtown.\nBest,\nADA LOVELACE"
PIECES = (
    "Ada Lovelace", "Lovelace, Ada", "A. Lovelace", "Dr. Lovelace", "ADA LOVELACE", "ada lovelace's", "Abraham van Helsing",
    "Dr. Helsing", "James", "Mr James", "Jean-Luc Picard", "Picard, J. L.", "New York", "france", "ZORBTOWN", "World", "school",
    "mary smith school", "time", "people", "like", "the", "12345", "ada@example.org", "Mary Smith",
)  # fmt: skip
TEXTS = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from((" ", " ", ". ", "\n", "-", ""))).map("".join),
    max_size=7,
).map("".join)


@cache
def listed() -> NameMatcher:
    return NameMatcher(NameTable.of([list_of(*some) for some in (PERSONS, PLACES, MASKED, KEPT)], USES))


def pseudonymous(which: str = "plain", consistency: Any = "token") -> Privatizer:
    return model(which, consistency).with_names(listed())


def spelt(kind: int, written: str) -> set[str]:
    """All that may take the place of a part, in its case."""
    data, bounds, size = pool(kind)
    letters = [char for char in written if char.isalpha()]
    capitals = [char for char in letters if char.lower() != char]
    case = 2 if len(letters) > 1 and len(capitals) == len(letters) else 1 if capitals else 0
    return {bytes(data[a:b]).decode() for a, b in pairwise(bounds[case * size : (case + 1) * size + 1])}


def read_off(source: str, made: Privatizer, output: str, at: int = 0) -> list[tuple[int, str, str]]:
    """(kind, written, pseudonym) of each part that the lists hold in a text, by the plain rules, as the output has them."""
    given = {"column": "c", "row_ids": pa.array([at]), "key": KEY, "run_id": "r"}
    _, _, placed = made.privatize_with_spans(pa.array([source]), **given)
    if placed is None:
        return []
    spans, raw, out, found = placed.found.spans, source.encode(), output.encode(), []
    where = {
        (len(raw[:a].decode()), len(raw[:b].decode())): out[c:d].decode()
        for a, b, (c, d), named in zip(spans.starts, spans.ends, placed.places, placed.named, strict=True)
        if named
    }
    for start, end, number in find(source, [list(one) for one in (PERSONS, PLACES, MASKED, KEPT)]):
        for a, b, part in parts_of(source, start, end, USES[number]) if number < 2 else ():
            if (a, b) in where:  # what became part of an identifier has none
                found.append((part, source[a:b], where[a, b]))
    assert len(found) == len(where)
    return found


@pytest.mark.cluster
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=3), level=st.sampled_from(["token", "record", "dataset"]))
def test_each_part_has_a_name_of_its_kind_and_case_equal_where_the_level_says_so(
    texts: list[str], level: str
) -> None:
    made, seen = pseudonymous("plain", level), [{} for _ in texts]
    for at, (text, output) in enumerate(zip(texts, drawn(made, texts), strict=True)):
        scope = seen[0 if level == "dataset" else at]
        for kind, written, became in read_off(text, made, output, at):
            assert became in spelt(kind, written)
            form = " ".join(word.form for word in words_of(written, 0, len(written)))
            if level != "token":
                assert scope.setdefault((kind, form), became.lower()) == became.lower()


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, min_size=2, max_size=4), level=st.sampled_from(["token", "record", "dataset"]))
def test_a_batch_equals_its_rows_alone(texts: list[str], level: str) -> None:
    made = pseudonymous("plain", level)
    rows = [drawn(made, [text], row_ids=pa.array([number]))[0] for number, text in enumerate(texts)]
    assert drawn(made, texts) == rows


@pytest.mark.parametrize("level", ["token", "record", "dataset"])
def test_pseudonyms_are_those_of_every_run_column_and_model_with_the_key_and_the_level(level: str) -> None:
    text, found = "Ada Lovelace of New York", set()
    for which, run_id, column in product(("plain", "remap"), ("r", "s"), ("c", "d")):
        found.add(drawn(pseudonymous(which, level), [text], run_id=run_id, column=column)[0].split(" ")[0])
    assert (len(found) == 1) is (level != "token")
    others = drawn(pseudonymous("plain", level), [text], key=RunKey.insecure(6))
    assert others[0].split(" ")[0] not in found
    assert level != "record" or drawn(pseudonymous("plain", "dataset"), [text])[0].split(" ")[0] not in found


@pytest.mark.parametrize("level", ["record", "dataset"])
def test_records_tell_names_apart_and_the_dataset_does_not(level: str) -> None:
    texts, records = ["Ada Lovelace", "ADA LOVELACE", "Lovelace, Ada"], pa.array(["a", "a", "b"])
    found = drawn(pseudonymous("plain", level), texts, record_ids=records)
    first, second, third = (one.lower() for one in found)
    assert first == second
    assert (first == " ".join(reversed(third.split(", ")))) is (level == "dataset")


@pytest.mark.parametrize("level", ["token", "record", "dataset"])
def test_a_list_and_the_search_give_a_name_the_same_pseudonym(level: str) -> None:
    texts = ["time for Ada Lovelace", "Dr. A. Lovelace of New York", "Mr. James in France", "Jean-Luc Picard"]
    made, searched = pseudonymous("plain", level), searching("pseudonym", "plain", level)
    both = drawn(searched.with_names(listed()), texts)
    assert both == drawn(searched, texts)
    for at, (source, one, other) in enumerate(zip(texts, drawn(made, texts), both, strict=True)):
        wanted = [became for _, _, became in read_off(source, made, one, at)]
        assert len(wanted) > 1
        assert all(became in other for became in wanted)


@pytest.mark.parametrize("action", ["mask", "pseudonym"])
def test_what_a_list_replaces_counts_before_the_search_within_it_and_not_beyond(action: str) -> None:
    plain = pseudonymous("plain", "dataset")
    made = searching(action, "plain", "dataset").with_names(listed())
    (alone,) = drawn(plain, ["Ada Lovelace"])
    (found,) = drawn(made, ["Ada Lovelace, Robert Smith"])
    assert found.startswith(f"{alone}, ")
    assert found.endswith("[PERSON]") is (action == "mask")
    # The search finds a longer name: no word of it stays, and where it masks, the whole is masked.
    (found,) = drawn(made, ["Ada Lovelace Smith"])
    assert (found == "[PERSON]") is (action == "mask")
    assert not {"ada", "lovelace", "smith"} & set(found.lower().split())


def test_what_is_kept_masked_or_an_identifier_has_no_pseudonym() -> None:
    texts = ["Mary Smith school", "World", "james@example.org"]
    assert drawn(pseudonymous("plain", "dataset"), texts) == ["Mary Smith school", "[NAME]", "[EMAIL]"]


def test_counts_are_those_of_lists() -> None:
    given = {"column": "c", "row_ids": pa.array([1, 2, 3]), "key": KEY, "run_id": "r"}
    for made in (model("plain", "token"), searching("pseudonym", "plain", "token")):
        named = made.with_names(listed())
        totals = named.privatize(pa.array([LISTED_TEXT, "Zorbtown school", None]), **given)[1].totals()
        assert (totals["names_masked"], totals["names_kept"]) == (1 + 9 + 1, 1)
        assert totals["persons_found"] == totals["locations_found"] == totals["identifiers"] == 0


def test_a_preview_says_that_a_name_is_in_a_list() -> None:
    found = preview(pseudonymous(), "World, Ada Lovelace at school in New York")
    said = {word.text: (word.action, word.reason, word.became) for word in found.words}
    for name in ("Ada", "Lovelace", "New York"):
        action, reason, became = said[name]
        assert (action, reason) == ("pseudonym", "a name in a list")
        assert became in found.output
    assert said["World"] == ("masked", "in a list", "[NAME]")
    assert said["school"][0] == "kept"
