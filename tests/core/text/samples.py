"""A small lexicon full of corners, laws whose draws are known, and texts that try to break words apart."""

# Look-alikes of other scripts are what these texts are about.
# ruff: noqa: RUF001, SIM905
from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms.base import Sampler, Summary
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import Draws, RunKey
from dptext_spark.text.engine import Counters
from dptext_spark.text.names.name_table import WordList
from dptext_spark.text.names.search import NameSearch
from dptext_spark.text.policy import NO_IDENTIFIERS, Identifiers, Policy
from tests.core.text.plain_engine import Plain, comparable, upper

# Words and numbers alone, as the plain engine knows them.
WordsOnly = functools.partial(Policy, identifiers=NO_IDENTIFIERS)

WORDS = (
    *"cat a dog i the don ox zebra s big-time o'clock self-made rock'n'roll mother-in-law".split(),
    *"seventh eightish ninthword fifteen-letters exactlyfifteenx sixteencharacter seventeenletterss".split(),
    *("internationalisation", "twentyfourlettersinaword", "a" * 29, "b" * 30, "c" * 31, "d" * 90),
    *"straße naïve été e\u0301te\u0301 привет ημέρα 日本 日本語日本語 한국어 ﬁn ǆep ɐlpha".split(),
    *("достопримечательность", "می\u200cخواهم", "नमस्ते", "𐐨𐐩", "ⱥx", "x\u0345y", "z" * 33 + "é"),
)
STOP_ONLY = (*"it is not don't it's n't you're ourselves THE yes-no".split(), "who\u2019ll")
SEPARATORS = (
    *("--", "'", "-", "\u2019", "\u2010", "\u200d", "\u00ad", "\u00a0", "\0"),
    *(" ", " ", " ", "  ", "\n", "\t", ", ", ". ", " - "),
)
CORNERS = (
    *(" 's", "\u2019s", "n't", " 've", "'ll ", "d's", "O'Brien's", "can't", "3rd", "b2b", "1,000", "007"),
    *("1" * 16, "2" * 17, "９９", "१२३", "٣٤", "𝟘𝟙𝟚", "1️⃣", "½", "Ⅷ", "²", "①", "Ⓐ", "㎏", "™", "\ue000"),
    *("\U0001f1e9\U0001f1ea", "👩\u200d👩\u200d👧", "👍🏽", "❤️", "e\u0301", "\u0301", "'\u0301", "\u202eabc"),
    *("İ", "\u212a", "ẞ", "ß", "ǅ", "ſ", "ŉ", "Σ", "ς", "\u0378", "\x7f", "\x85", "\ufeff"),
    *("CAT'S", "Don\u2019t", "O\u2019CLOCK", "o\u2019clock", "O'clock", "SELF-MADE", "Self-Made"),
    *("cat-dog", "x-'y", "a--b", "[OOV]"),
)


@dataclass(frozen=True, eq=False)
class Step(Sampler):
    """A law of one outcome: the word `step` places further on; 0 is the identity."""

    step: int
    size: int
    guarantee: Guarantee = field(default_factory=lambda: Guarantee("epsilon_dp", 0.0, status="refuted"))
    summary: Summary = field(default_factory=Summary)

    def sample(self, ids: np.ndarray, draws: Draws) -> np.ndarray:
        assert len(draws) == len(ids)
        return ((ids.astype(np.int64) + self.step) % self.size).astype(np.int32)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"step": np.array([self.step])}


@dataclass(frozen=True, eq=False)
class FirstLane(Step):
    """A law that shows its draw: the word number is the upper bits of lane 0."""

    def sample(self, ids: np.ndarray, draws: Draws) -> np.ndarray:
        return ((draws.u64(0) >> np.uint64(32)) * np.uint64(self.size) >> np.uint64(32)).astype(np.int32)


@functools.cache
def privatizer(policy: Policy = WordsOnly(), step: int = 0, consistency: str = "token") -> Privatizer:  # noqa: B008
    """The small lexicon under a policy."""
    return Privatizer(Vocabulary.of(list(WORDS)), Step(step, len(WORDS)), policy, consistency)  # type: ignore[arg-type]


def plain(policy: Policy, step: int = 0) -> Plain:
    """The plain engine with the same law."""
    return Plain(WORDS, lambda i: (i + step) % len(WORDS), policy)


def run(
    made: Privatizer, texts: pa.Array | Sequence[Any], kind: pa.DataType | None = None, **kwargs: Any
) -> tuple[list, Counters]:
    """Privatize with row numbers for identities and a fixed key."""
    array = texts if isinstance(texts, pa.Array) else pa.array(texts, kind or pa.string())
    settings = {
        "column": "body",
        "row_ids": pa.array(range(len(array)), pa.int64()),
        "key": RunKey.insecure(1),
    }
    out, counters = made.privatize(array, **(settings | kwargs))
    out.validate()
    return [None if not x.is_valid else x.as_buffer().to_pybytes() for x in out], counters


def list_of(*entries: str, name: str = "list") -> WordList:
    return WordList.of(name, [entry.encode() for entry in entries])


def row(counters: Counters, index: int) -> dict[str, int]:
    """The counters of one row by name."""
    return {name: int(counters.column(name)[index]) for name in counters.totals() if name != "rows"}


def mixed(word: str) -> str:
    """Every second character in upper case."""
    return "".join(upper(c) if i % 2 else c for i, c in enumerate(word))


CHARACTERS = st.characters(exclude_categories=["Cs"]).filter(comparable)
SPELLINGS = st.sampled_from([str, upper, lambda w: upper(w[0]) + w[1:], mixed])
TEXTS = st.lists(
    st.one_of(
        st.builds(lambda how, word: how(word), SPELLINGS, st.sampled_from(WORDS)),
        st.sampled_from(STOP_ONLY),
        st.sampled_from(SEPARATORS),
        st.sampled_from(SEPARATORS),
        st.sampled_from([c for c in CORNERS if all(map(comparable, c))]),
        st.text(CHARACTERS, max_size=6),
        st.text("abcXYZ'- 0", max_size=24),
    ),
    max_size=12,
).map("".join)
POLICIES = st.builds(
    Policy,
    stop_words=st.sampled_from(["keep", "draw"]),
    stop_word_list=st.sampled_from([None, STOP_ONLY]),
    oov=st.sampled_from(["mask", "draw", "keep"]),
    numbers=st.sampled_from(["random", "mask", "keep"]),
    case=st.sampled_from(["carry", "lower"]),
    gaps=st.sampled_from(["keep", "normalise"]),
    tokenizer=st.sampled_from(["words", "whitespace"]),
    identifiers=st.just(NO_IDENTIFIERS),
)
FAKES = Identifiers(*["fake"] * 6, "keep", "fake", "fake")
IDENTIFYING = st.builds(
    dataclasses.replace,
    POLICIES,
    identifiers=st.sampled_from([NO_IDENTIFIERS, Identifiers(date="mask"), FAKES, Identifiers(phone="fake")]),
)
IDENTIFIERS = (
    *("jane.doe@example.com", "https://example.com/a(b)?c=1.", "www.example.org/x", "+49 171 1234567"),
    *("(030) 1234567", "DE89 3704 0044 0532 0130 00", "4111-1111-1111-1111", "10.0.0.1", "2001:db8::1"),
    *("12345678", "@jane_doe", "[EMAIL]", "jane@exam\nple.com", "ja\u200bne@exámple.com"),
    *("４１１１ １１１１ １１１１ １１１１", "2021-03-04", "[PHONE]'s"),
)
# Texts with identifiers between their words, and joined to them.
IDENTIFYING_TEXTS = st.lists(
    st.one_of(TEXTS, st.sampled_from(IDENTIFIERS), st.sampled_from([" ", " "])), max_size=5
).map("".join)
PSEUDONYMS = functools.partial(NameSearch, True, "pseudonym")  # what is done with places follows
NAMING = st.builds(
    dataclasses.replace,
    IDENTIFYING,
    names=st.sampled_from([NameSearch(), NameSearch(lists=True), *map(PSEUDONYMS, ("pseudonym", "keep"))]),
)
NAMES = (
    "Ada Lovelace", "Dr. O'Brien's ", "in New York", "ADA", " J. Smith-Jones ", "Mr van der Berg", "london", "Ada-cat ", "Oslo1",
    "\nBest,\nMary Ann", "Ada@x.org", "(Robert)",
)  # fmt: skip
NAMING_TEXTS = st.lists(
    st.one_of(IDENTIFYING_TEXTS, st.sampled_from(NAMES), st.sampled_from([" ", ". "])), max_size=6
).map("".join)
KEPT = WordsOnly(stop_words="keep", oov="keep", numbers="keep", case="carry", gaps="keep")
