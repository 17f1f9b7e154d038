"""The search for names judged: how many are found, how many other words are taken for one, and how many names stay."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import yaml

from benchmarks.classifier import PACKAGE
from benchmarks.measure import Grid, Section
from benchmarks.sizes import Sizes
from benchmarks.sources import packaged, shared_file, sst2
from dptext_spark.arrays import Bools
from dptext_spark.audit.table.annotations import ConllText, conll_texts
from dptext_spark.config.load import load_model_config
from dptext_spark.demo.tickets import tickets
from dptext_spark.encoder.candidates import candidates
from dptext_spark.encoder.classifier import Classifier
from dptext_spark.errors import DPTextError
from dptext_spark.lexicon.characters import look_up_form
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.runtime.paths import folder_of
from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.presidio import Presidio
from dptext_spark.text.names.public_lists import listed_names
from dptext_spark.text.names.public_names import parts_of_names
from dptext_spark.text.policy import packaged_stop_words
from dptext_spark.text.word_table import WordTable

TWEETS = "wnut17/train.conll"
KINDS = ("person", "location")
LISTS, RULES = "lists and a capital", "lists and how names are written"
MODEL = "lists, how names are written, and a classifier"
TAKEN = "Words of reviews that are taken for names, of the parts that no threshold comes from"
NO_MODEL = "a classifier: not installed"
# Of the words of plain reviews that are taken for names, with a classifier, too.
GOAL = 0.02
NO_PEER = "Presidio: not installed, or without a model en_core_web_*"
SETTINGS = ("strict", "balanced")
TICKETS, SEED = 600, 7
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")


class Labelled(NamedTuple):
    """A labelled text: its tokens are joined by spaces.

    Attributes:
        text: the tokens.
        places: where each token begins and ends, in characters.
        labelled: the tokens and their tags.
    """

    text: str
    places: tuple[tuple[int, int], ...]
    labelled: ConllText

    @property
    def tags(self) -> tuple[str, ...]:
        """The tag of each token, such as B-person, I-person and O."""
        return self.labelled.tags


def labelled(file: Path) -> list[Labelled]:
    """Read texts in CoNLL's form."""
    return [_joined(one) for one in conll_texts(str(file))]


def _joined(text: ConllText) -> Labelled:
    ends = np.cumsum([len(token) + 1 for token in text.tokens]).tolist()
    places = tuple((end - 1 - len(token), end - 1) for end, token in zip(ends, text.tokens, strict=True))
    return Labelled(" ".join(text.tokens), places, text)


def covered_by_rules(texts: Sequence[str]) -> list[Bools]:
    """Return which characters of each text are in a name that the search finds."""
    data, rows = padded(pa.array(texts, pa.string()))
    starts, ends, _, _, row = parts_of_names(data, rows).T
    found = []
    for number, text in enumerate(texts):
        place = np.append(0, np.cumsum([len(char.encode()) for char in text]))
        marks = np.zeros(len(text), np.bool_)
        for i in np.flatnonzero(row == number):
            low, high = np.searchsorted(place, (starts[i] - rows[number], ends[i] - rows[number]))
            marks[low:high] = True
        found.append(marks)
    return found


def covered_by_lists(texts: Sequence[str]) -> list[Bools]:
    """Return which characters of each text are in a capitalised word that the lists hold as a likely name."""
    words = [[(one.start(), one.end(), one.group()) for one in _WORD.finditer(text)] for text in texts]
    known = sorted({look_up_form(word) for some in words for _, _, word in some})
    listed = {word for word, held in zip(known, listed_names(Vocabulary.of(known)), strict=True) if held}
    found = []
    for text, some in zip(texts, words, strict=True):
        marks = np.zeros(len(text), np.bool_)
        for start, end, word in some:
            marks[start:end] = word[0].isupper() and look_up_form(word) in listed
        found.append(marks)
    return found


def presidio() -> Presidio | None:
    """Return Presidio with an installed English model of spaCy, the first by name; None where one of both is not there."""
    if find_spec("presidio_analyzer") is None:
        return None
    from spacy.util import get_installed_models

    models = sorted(name for name in get_installed_models() if name.startswith("en_core_web_"))
    return Presidio(model=models[0]) if models else None


def covered_by(provider: Presidio, texts: Sequence[str]) -> list[Bools]:
    """Return which characters of each text are in what a provider finds."""
    spans = provider.find(pa.array(texts, pa.string()))
    found = [np.zeros(len(text), np.bool_) for text in texts]
    for row, start, end in zip(spans.rows.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True):
        raw = texts[row].encode()
        found[row][len(raw[:start].decode()) : len(raw[:end].decode())] = True
    return found


def classifier() -> Classifier | None:
    """Return the classifier that `DPTEXT_CLASSIFIER` names, else the one of an installed package; None where there is none."""
    try:
        return Classifier.read(os.environ.get("DPTEXT_CLASSIFIER", PACKAGE))
    except DPTextError:
        return None


def covered_by_model(model: Classifier, table: WordTable, texts: Sequence[str]) -> list[Bools]:
    """Return which characters of each text are in a name that the search finds, or a classifier beside it."""
    data, rows = padded(pa.array(texts, pa.string()))
    spans = model.found_in(data, rows, candidates(data, rows, table))
    found = covered_by_rules(texts)
    for row, start, end, kind in zip(
        spans.texts.tolist(), spans.starts.tolist(), spans.ends.tolist(), spans.kinds.tolist(), strict=True
    ):
        if model.types[kind] in KINDS:
            raw = texts[row].encode()
            found[row][len(raw[:start].decode()) : len(raw[:end].decode())] = True
    return found


def ways_of(lexicon: Lexicon) -> dict[str, Callable[[Sequence[str]], list[Bools]] | None]:
    """Return each way to find names, by its name; None where what it needs is not installed."""
    model, peer = classifier(), presidio()
    table = WordTable.build(lexicon.vocabulary, packaged_stop_words())
    return {
        LISTS: covered_by_lists,
        RULES: covered_by_rules,
        NO_MODEL if model is None else MODEL: None
        if model is None
        else partial(covered_by_model, model, table),
        NO_PEER if peer is None else peer.name: None if peer is None else partial(covered_by, peer),
    }


def mentions(text: Labelled) -> Iterator[tuple[str, list[int]]]:
    """Yield each name of a text: its kind, and its tokens that hold a letter."""
    for start, end, kind in text.labelled.mentions:
        tokens = [
            n for n in range(start, end) if any(char.isalpha() for char in text.text[slice(*text.places[n])])
        ]
        if tokens:
            yield kind, tokens


def found_grid(
    texts: Sequence[Labelled], ways: Mapping[str, Callable[[Sequence[str]], list[Bools]] | None]
) -> Grid:
    """Return how many names each way finds, and how many other words it takes for one."""
    rows: list[tuple[str | float | None, ...]] = []
    for name, cover in ways.items():
        if cover is None:
            rows.append((name, *(None for _ in range(2 * len(KINDS) + 1))))
            continue
        marks = cover([one.text for one in texts])
        whole, part, total = (dict.fromkeys(KINDS, 0) for _ in range(3))
        wrong = others = 0
        for one, seen in zip(texts, marks, strict=True):
            hit = [bool(seen[start:end].any()) for start, end in one.places]
            for kind, tokens in mentions(one):
                if kind in total:
                    total[kind] += 1
                    whole[kind] += all(hit[token] for token in tokens)
                    part[kind] += any(hit[token] for token in tokens)
            plain = [
                n
                for n, tag in enumerate(one.tags)
                if tag == "O" and _WORD.search(one.text[slice(*one.places[n])])
            ]
            others, wrong = others + len(plain), wrong + sum(hit[n] for n in plain)
        shares = [share for kind in KINDS for share in (whole[kind] / total[kind], part[kind] / total[kind])]
        rows.append((name, *shares, wrong / others))
    head = (
        "found by",
        *(f"{kind}s {how}" for kind in KINDS for how in ("whole", "in part")),
        "other words taken",
    )
    return Grid("Names of tweets that are found, shares", head, tuple(rows))


class Stay(NamedTuple):
    """How likely each word stays as it is under a model.

    Attributes:
        drawn: of each word of the lexicon in look-up form.
        kept: stop words that stay.
    """

    drawn: Mapping[str, float]
    kept: frozenset[str]

    @classmethod
    def of(cls, model: Privatizer, words: set[str]) -> Stay:
        """Read the laws of some words."""
        ids = {word: i for i, word in enumerate(model.vocabulary.strings().to_pylist()) if word in words}
        drawn = {}
        for word, number in ids.items():
            law = model.sampler.law(number)
            assert law is not None  # the mechanisms of the settings have laws
            drawn[word] = float(law.probability[law.ids == number].sum())
        return cls(drawn, frozenset(model.policy.kept_words()))

    def share(self, token: str) -> float:
        """Return how likely all words of a token stay."""
        forms = [look_up_form(word) for word in _WORD.findall(token)]
        return float(np.prod([1.0 if one in self.kept else self.drawn.get(one, 0.0) for one in forms]))


def stays_grid(texts: Sequence[Labelled], say: Callable[[str], None]) -> Grid:
    """Return how many names stay under the files of settings, without and with the search: exact expectations."""
    words = {look_up_form(word) for one in texts for word in _WORD.findall(one.text)}
    rows: list[tuple[str | float | None, ...]] = []
    for settings in SETTINGS:
        say(f"name_search: {settings}")
        model = prepare(load_model_config(folder_of("conf") / f"{settings}.yaml"))[0]
        stay = Stay.of(model, words)
        marks = covered_by_rules([one.text for one in texts])
        for searched in (False, True):
            total, kept, whole = (dict.fromkeys(KINDS, 0.0) for _ in range(3))
            count = dict.fromkeys(KINDS, 0)
            for one, seen in zip(texts, marks, strict=True):
                for kind, tokens in mentions(one):
                    if kind not in total:
                        continue
                    places = [one.places[token] for token in tokens]
                    shares = [
                        0.0 if searched and seen[start:end].any() else stay.share(one.text[start:end])
                        for start, end in places
                    ]
                    count[kind] += 1
                    total[kind] += len(shares)
                    kept[kind] += sum(shares)
                    whole[kind] += float(np.prod(shares))
            figures = [
                share for kind in KINDS for share in (whole[kind] / count[kind], kept[kind] / total[kind])
            ]
            rows.append((settings, "on" if searched else "off", *figures))
    head = ("settings", "search", *(f"{kind}s {how}" for kind in KINDS for how in ("whole", "words")))
    return Grid("Names of tweets that stay as they were, expected shares", head, tuple(rows))


def taken_grid(
    reviews: Sequence[str], ways: Mapping[str, Callable[[Sequence[str]], list[Bools]] | None]
) -> Grid:
    """Return how many words of plain reviews each way takes for names."""
    rows: list[tuple[str | float | None, ...]] = []
    words = [[(one.start(), one.end()) for one in _WORD.finditer(text)] for text in reviews]
    count = sum(map(len, words))
    for name, cover in ways.items():
        marks = None if cover is None else cover(reviews)
        taken = (
            None
            if marks is None
            else sum(
                bool(seen[start:end].any())
                for seen, some in zip(marks, words, strict=True)
                for start, end in some
            )
        )
        share = None if taken is None else taken / count
        rows.append(
            (name, count, taken, share, GOAL, None if share is None else "met" if share <= GOAL else "missed")
        )
    return Grid(
        TAKEN,
        ("found by", "words", "taken", "share", "goal: at most", "which is"), tuple(rows),
    )  # fmt: skip


def tickets_grid(rows: int, ways: Mapping[str, Callable[[Sequence[str]], list[Bools]] | None]) -> Grid:
    """Return how many of the words that the demo's tickets take from its lists of names are found, each way."""
    lists = yaml.safe_load(Path("tools/ticket_grammar.yaml").read_text(encoding="utf-8"))
    names = {kind: {str(one) for one in lists[kind]} for kind in ("given", "family", "city")}
    texts = [text for text in tickets(min(rows, 4_000))["body"].to_pylist() if text]
    found: list[tuple[str | float | None, ...]] = []
    for name, cover in ways.items():
        marks = None if cover is None else cover(texts)
        for kind, wanted in names.items() if marks is not None else ():
            seen = [
                bool(mark[one.start() : one.end()].all())
                for text, mark in zip(texts, marks or (), strict=True)
                for one in _WORD.finditer(text)
                if one.group() in wanted
            ]
            found.append((name, kind, len(seen), sum(seen) / len(seen)))
    return Grid("Names of the demo's tickets", ("found by", "list", "words", "share found"), tuple(found))


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Judge the search on the odd half of the tweets (its rules come from the even half), on reviews, on the demo's tickets."""
    section = Section("name_search", "Names: how many are found, and how many stay")
    ways = ways_of(packaged(sizes.lexicon_words))
    say("name_search: tickets")
    section.grids.append(tickets_grid(min(TICKETS, sizes.rows), ways))
    file, reason = shared_file(TWEETS)
    if file is None:
        section.skipped.append(f"tweets: {reason}")
    else:
        texts = labelled(file)[1::2]
        section.facts |= {"tweets": len(texts)}
        say("name_search: tweets")
        section.grids += [found_grid(texts, ways), stays_grid(texts, say)]
    held, _ = sst2(("dev", "test"))
    if held is not None:
        say("name_search: reviews")
        section.grids.append(taken_grid(held[: sizes.texts].to_pylist(), ways))
    reviews, reason = sst2()
    if reviews is None:
        section.skipped.append(f"reviews: {reason}")
    else:
        some = reviews.to_pylist()
        words = sum(len(_WORD.findall(text)) for text in some)
        parts = parts_of_names(*padded(reviews))
        section.facts["reviews"] = {
            "words": words,
            "taken for names": len(parts),
            "share": round(len(parts) / words, 5),
        }
        section.notes.append(
            f"Of the {words:,} words of SST-2, which is in lower case, {len(parts) / words:.2%} are taken for names; many of "
            "them are."
        )
    section.notes += [
        "Tweets: the odd half of WNUT 2017's training part; rules and classes were made on the even half. A name counts as whole "
        "where every token of it is touched.",
        "Names that stay: the probability that each word comes out as it was, by its law, 0 where the search finds it or the "
        "lexicon lacks it; of a whole name the product. Other identifiers, which are found before, are not taken off.",
    ]
    return section
