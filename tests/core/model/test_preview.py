"""A sentence word by word: actions, reasons, candidates, and that the pieces are the whole."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext_spark.cli.app import main
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.importance.levels import Importance, Level
from dptext_spark.importance.providers import Frequencies
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import MECHANISMS, CusText
from dptext_spark.model.preview import ALL_DRAWS, MOST_CHARACTERS, MOST_DRAWS, Preview, preview
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.record import with_importance
from dptext_spark.text.policy import Policy
from tests.core.mechanisms.lawless import Lawless

WORDS = ["hello", "world", "order", "well", "known", "the", "good", "day", "book", "tree", "stone", "river"]


def lexicon_of(words: list[str] = WORDS) -> Lexicon:
    vectors = np.random.default_rng(3).normal(size=(len(words), 4)).astype(np.float32)
    return Lexicon(Vocabulary.of(words), vectors)


@cache
def privatizer(consistency: str = "token", **policy: str) -> Privatizer:
    return Privatizer(lexicon_of(), CusText(k=4).compile(lexicon_of()), Policy(**policy), consistency)  # type: ignore[arg-type]


def actions(result: Preview) -> dict[str, tuple[str, str]]:
    return {word.text: (word.action, word.reason) for word in result.words}


def law_of_hello() -> dict[str, float]:
    made = privatizer()
    law = made.sampler.law(0)
    return {made.vocabulary.word(int(i)): float(p) for i, p in zip(law.ids, law.probability, strict=True)}


TEXT = "Hello THE well-known Xyzzy 1234 it's ①!"


def test_each_word_has_its_fate_and_the_reason() -> None:
    assert actions(preview(privatizer(), TEXT)) == {
        "Hello": ("drawn", ""),
        "THE": ("kept", "stop word"),
        "well": ("drawn", ""),
        "known": ("drawn", ""),
        "Xyzzy": ("masked", "unknown"),
        "1234": ("random digits", "number"),
        "it": ("kept", "stop word"),
        "s": ("kept", "stop word"),
        "①": ("masked", "unknown"),
    }


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"oov": "keep"}, {"Xyzzy": ("kept", "UNKNOWN, IN CLEAR")}),
        ({"numbers": "keep"}, {"1234": ("kept", "NUMBER, IN CLEAR")}),
        ({"oov": "draw"}, {"Xyzzy": ("drawn uniformly", "unknown")}),
        ({"numbers": "mask"}, {"1234": ("masked", "number")}),
        ({"stop_words": "draw"}, {"THE": ("drawn", ""), "it": ("masked", "unknown")}),
        ({"tokenizer": "whitespace"}, {"well-known": ("masked", "unknown"), "①!": ("masked", "unknown")}),
    ],
)
def test_every_choice_of_the_policy_shows(policy: dict[str, str], expected: dict[str, Any]) -> None:
    assert expected.items() <= actions(preview(privatizer(**policy), TEXT)).items()


@pytest.mark.long
def test_identifiers_are_whole_and_of_their_type() -> None:
    text = "Hello jane@example.com, it's +49 171 1234567!"
    result = preview(privatizer(), text)
    assert actions(result)["jane@example.com"] == ("masked", "identifier (email), by a rule")
    assert [word.became for word in result.words if word.action == "masked"] == ["[EMAIL]", "[PHONE]"]
    policy = Policy(identifiers={"email": "fake", "phone": "keep"})  # type: ignore[arg-type]
    result = preview(Privatizer(privatizer().vocabulary, privatizer().sampler, policy), text)
    (fake,) = (word for word in result.words if word.action == "fake")
    assert fake.became in result.output
    assert fake.became != fake.text
    assert actions(result)["171"] == ("random digits", "number")


def test_candidates_are_the_law_most_likely_first() -> None:
    word, exact = preview(privatizer(), "hello", top=3).words[0], law_of_hello()
    assert dict(word.candidates).items() <= exact.items()
    likely = [probability for _, probability in word.candidates]
    assert likely == sorted(exact.values(), reverse=True)[:3]
    assert word.outputs == len(exact)
    assert word.itself == pytest.approx(exact["hello"])


def test_a_drawn_word_became_one_of_its_candidates_in_its_case() -> None:
    words = preview(privatizer(), "Hello WORLD order", top=99).words
    assert all(word.became.lower() in dict(word.candidates) for word in words)
    capitalised, upper, lower = (word.became for word in words)
    assert capitalised == capitalised.capitalize()
    assert upper == upper.upper()
    assert lower == lower.lower()


def test_every_look_has_a_fresh_key() -> None:
    texts = {preview(privatizer(), " ".join(WORDS)).output for _ in range(5)}
    assert len(texts) == 5


def pieced(result: Preview) -> str:
    """Put the pieces in the places of the words; the gaps are the source's."""
    out, at = "", 0
    for word in result.words:
        start = result.text.index(word.text, at)
        out += result.text[at:start] + word.became
        at = start + len(word.text)
    return out + result.text[at:]


POLICIES = (
    {},
    {"oov": "draw", "numbers": "mask", "stop_words": "draw"},
    {"oov": "keep", "numbers": "keep", "case": "lower"},
)
PIECES = st.characters(exclude_categories=["Cs"]) | st.sampled_from([*WORDS, " ", "-", "'", "7"])
TEXTS = st.lists(PIECES, max_size=40).map("".join) | st.sampled_from(
    [
        "  Hello,\n\tthe  WELL-known World-xyz hello don't o'day 12 12345678901234567890123 ٣٤ ",
        "Don\u2019t ISN'T Istanbul",
        "İstanbul hELLO x①y ¡the! \u200b hello\u0301 world",
        "",
    ]
)


@pytest.mark.parametrize("consistency", ["token", "record", "dataset"])
@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
@given(policy=st.sampled_from(POLICIES), text=TEXTS)
def test_the_pieces_make_the_whole(consistency: str, tokenizer: str, policy: Any, text: str) -> None:
    result = preview(privatizer(consistency, tokenizer=tokenizer, **policy), text)
    assert pieced(result) == result.output


def test_gaps_that_are_normalised_leave_the_words_alone() -> None:
    result = preview(privatizer(gaps="normalise"), "  Hello \n  world  ")
    assert result.output == " ".join(word.became for word in result.words)


def test_equal_words_become_equal_within_a_record_only_at_its_level() -> None:
    text = " ".join(["hello"] * 60)
    assert len({word.became for word in preview(privatizer("record"), text).words}) == 1
    assert len({word.became for word in preview(privatizer("token"), text).words}) > 1


def test_a_text_that_is_too_long_or_no_unicode_is_refused() -> None:
    with pytest.raises(SettingsError, match=f"^text: {MOST_CHARACTERS + 1:,} characters are too many"):
        preview(privatizer(), "x" * (MOST_CHARACTERS + 1))
    with pytest.raises(DataError, match="text: not valid Unicode"):
        preview(privatizer(), "\udc80")


NEEDED = {
    "projection": "m=3",
    "truncated_gumbel": "epsilon=5000",
    "mahalanobis": "epsilon=3",
    "custext": "k=4",
}
IN_CLOSED_FORM = {"custext", "santext", "tem", "diffractor"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("lexicon") / "saved"
    lexicon_of().save(folder)
    return str(folder)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_has_a_preview(name: str, small: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Probabilities where the law is known, and shares of fresh draws, so labelled, where it is not."""
    sets = [f"mechanism.name={name}", f"lexicon.source={small}"]
    sets += [f"mechanism.{NEEDED[name]}"] if name in NEEDED else []
    given = ["preview", "Hello river, the stone", *(part for one in sets for part in ("--set", one))]
    assert main(given) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("Hello", "river", "stone", "kept: stop word"))
    assert ("in 1,000 draws: " in out) == (name not in IN_CLOSED_FORM)
    assert main([*given, "--json"]) == 0
    words = {word["text"]: word for word in json.loads(capsys.readouterr().out)["words"]}
    for text in ("Hello", "river", "stone"):
        word = words[text]
        assert (word["draws"] is None) == (name in IN_CLOSED_FORM)
        shares = [candidate["probability"] for candidate in word["candidates"]]
        assert shares == sorted(shares, reverse=True)
        assert 1 <= len(shares) <= 4
        assert 0 < sum(shares) <= 1 + 1e-12
        assert len(shares) <= word["outputs"] <= len(WORDS)
        assert {candidate["word"] for candidate in word["candidates"]} <= set(WORDS)
    assert words["the"]["candidates"] == []
    assert words["the"]["draws"] is None


def test_shares_of_draws_are_near_the_law() -> None:
    """A sampler that hides its law: 1,000 draws, six standard deviations (a false alarm of about 2e-9 a word)."""
    made, exact = privatizer(), law_of_hello()
    word = preview(replace(made, sampler=Lawless(made.sampler)), "hello", top=99).words[0]
    assert word.draws == MOST_DRAWS
    for name, share in word.candidates:
        assert abs(share - exact[name]) < 6 * (exact[name] * (1 - exact[name]) / MOST_DRAWS) ** 0.5
    assert word.itself == dict(word.candidates).get("hello", 0.0)


def test_a_long_text_is_drawn_less_often() -> None:
    words = [f"w{a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in "lmnr"]
    lexicon = lexicon_of(words)
    made = Privatizer(lexicon, Lawless(CusText(k=4).compile(lexicon)), Policy(), "token")
    assert {word.draws for word in preview(made, " ".join(words)).words} == {ALL_DRAWS // len(words)}


class TestImportance:
    """Words that importance does not choose are shown as what they are: in clear."""

    def model(self, consistency: str = "token", **selection: object) -> Privatizer:
        plain = privatizer(consistency)
        counts = Frequencies.of(plain.engine, ["hello good day", "hello good", "hello"])
        chosen = Importance(**({"percent": 50} | selection))  # type: ignore[arg-type]
        return with_importance(plain, chosen, (plain.sampler,) * (len(chosen.cumulative) - 1), counts)

    @pytest.mark.parametrize("level", ["token", "record"])
    def test_each_word_is_drawn_or_not_and_the_pieces_are_the_whole(self, level: str) -> None:
        clear = dict.fromkeys(("Hello", "hello", "GOOD"), ("kept", "NOT CHOSEN, IN CLEAR"))
        others = {"the": ("kept", "stop word"), "day": ("drawn", ""), "Xyzzy": ("masked", "unknown")}
        for _ in range(20):
            result = preview(self.model(level), "Hello the GOOD day, hello Xyzzy")
            assert actions(result) == clear | others
            assert result.output == "{} {} {} {}, {} {}".format(*(word.became for word in result.words))

    def test_levels_are_named(self) -> None:
        made = self.model(percent=None, levels=(Level(60), Level(None)))
        result = preview(made, "hello good day")
        assert actions(result) == {
            "hello": ("drawn", "level 2"), "good": ("drawn", "level 1"), "day": ("drawn", "level 1"),
        }  # fmt: skip
        assert result.output == " ".join(word.became for word in result.words)

    def test_a_column_has_no_preview(self) -> None:
        own = with_importance(privatizer(), Importance(provider="column", percent=5, weights=("w",)))
        with pytest.raises(SettingsError, match="not valid for a preview"):
            preview(own, "hello")
        with pytest.raises(SettingsError, match=r"importance.corpus: not set"):
            preview(with_importance(privatizer(), Importance(percent=5)), "hello")
