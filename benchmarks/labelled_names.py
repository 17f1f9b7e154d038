"""Labelled names: how many the search for names finds, how many other words it takes for one, and how many stay.

A text is CoNLL: a token, a tab and its label a line (`O`, `B-person`, `I-person`), a blank line between texts. `$DPTEXT_LABELLED`
names a file of yours; else it is the odd half of WNUT 2017's training part, for the rules were made on the even half.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.measure import Grid, Section
from benchmarks.sizes import Sizes
from benchmarks.sources import shared_file
from dptext_spark.arrays import F64, Bools
from dptext_spark.config.load import load_model_config
from dptext_spark.encoder.name_classifier import KIND_OF, LOCATION, PERSON, type_of
from dptext_spark.lexicon.characters import look_up_form
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.runtime.paths import folder_of
from dptext_spark.text.chunks import padded
from dptext_spark.text.names.public_names import parts_of_names

TWEETS = "wnut17/train.conll"
STYLES = ("balanced", "strict")
GROUPS, OTHERS = {PERSON: "persons", LOCATION: "places"}, "others"
WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")


class Labelled(NamedTuple):
    """The tokens of a text, of each name its group and its tokens, and the tokens with a letter that have no label."""

    tokens: list[str]
    names: list[tuple[str, list[int]]]
    others: list[int]


def tweets() -> tuple[list[str] | None, str]:
    """Return the tweets of WNUT 2017's training part, or None and the reason."""
    file, reason = shared_file(TWEETS)
    every = None if file is None else labelled(file.read_text(encoding="utf-8-sig"))
    return every and [" ".join(text.tokens) for text in every], reason


def labelled(text: str) -> Iterator[Labelled]:
    """Read texts in CoNLL's form; a token without a letter is no word of a name."""
    for block in re.split(r"\n\s*\n", text.strip()):
        rows = [line.split("\t") for line in block.split("\n") if line.strip()]
        names: list[tuple[str, list[int]]] = []
        before, others = "O", []
        for place, (token, tag) in enumerate(row[:2] for row in rows):
            if WORD.search(token) and tag == "O":
                others.append(place)
            elif WORD.search(token) and tag.startswith("I-") and before != "O" and names:
                names[-1][1].append(place)
            elif WORD.search(token):
                names.append((GROUPS.get(KIND_OF.get(type_of(tag[2:]), ""), OTHERS), [place]))
            before = tag
        yield Labelled([row[0] for row in rows], names, others)


def found_tokens(texts: Sequence[Labelled]) -> list[Bools]:
    """Return which tokens of each text overlap a name that public lists and rules find."""
    strings = pa.array([" ".join(text.tokens) for text in texts], pa.string())
    data, rows = padded(strings)
    inside = np.zeros(len(data) + 1, np.int64)
    for start, end, *_ in parts_of_names(data, rows):
        inside[start + 1 : end + 1] = 1
    total, marks = np.cumsum(inside), []
    for text, row in zip(texts, rows.tolist(), strict=False):
        ends = row + np.cumsum([len(token.encode()) + 1 for token in text.tokens])
        marks.append(total[ends - 1] > total[np.append(row, ends[:-1])])
    return marks


def by_group(names: Sequence[tuple[str, F64]]) -> dict[str, tuple[int, float | None, float | None]]:
    """Return of each group how many names it has, the mean over their words and the mean of each name's product."""
    found: dict[str, tuple[int, float | None, float | None]] = {}
    for group in (*GROUPS.values(), OTHERS):
        shares = [values for name, values in names if name == group]
        whole = [np.prod(values) for values in shares]
        found[group] = (len(shares), _mean(np.concatenate([[], *shares])), _mean(np.array(whole)))
    return found


def _mean(values: F64) -> float | None:
    return float(values.mean()) if len(values) else None


def found_grid(texts: Sequence[Labelled], marks: Sequence[Bools]) -> Grid:
    """Return how many labelled names the search finds, and how many words without a label it takes."""
    both = list(zip(texts, marks, strict=True))
    names = [(group, mark[tokens].astype(float)) for text, mark in both for group, tokens in text.names]
    rows = [(group, *cells) for group, cells in by_group(names).items()]
    taken = np.concatenate([mark[text.others] for text, mark in both])
    rows.append(("words without a label that are taken", len(taken), _mean(taken), None))
    return Grid("Labelled names that are found", ("names", "of", "words", "whole names"), tuple(rows))


def stays(model: Privatizer, words: set[str]) -> Mapping[str, float]:
    """Return how likely each word comes out as it was: its law's own probability, 1 for a kept stop word."""
    own = dict.fromkeys(model.policy.kept_words(), 1.0)
    for number, word in enumerate(model.vocabulary.strings().to_pylist()):
        if word in words and word not in own and (law := model.sampler.law(number)) is not None:
            own[word] = float(law.probability[law.ids == number].sum())
    return own


def stays_grid(texts: Sequence[Labelled], marks: Sequence[Bools], say: Callable[[str], None]) -> Grid:
    """Return the expected shares of names that stay under each style, without the search and with it."""
    words = [[[look_up_form(word) for word in WORD.findall(one)] for one in text.tokens] for text in texts]
    every = {word for text in words for token in text for word in token}
    rows: list[tuple[str | float | None, ...]] = []
    for style in STYLES:
        say(f"labelled: {style}")
        own = stays(prepare(load_model_config(folder_of("conf") / f"{style}.yaml"))[0], every)
        for search in ("off", "on"):
            names: list[tuple[str, F64]] = []
            for text, of_text, mark in zip(texts, words, marks, strict=True):
                plain = np.array([np.prod([own.get(word, 0.0) for word in token]) for token in of_text])
                staying = np.where(mark & (search == "on"), 0.0, plain)
                names += [(group, staying[tokens]) for group, tokens in text.names]
            shares = by_group(names)
            rows.append((style, search, *(share for group in GROUPS.values() for share in shares[group][1:])))
    groups = [f"{group}, {how}" for group in GROUPS.values() for how in ("words", "whole")]
    return Grid("Labelled names that stay, expected shares", ("style", "search", *groups), tuple(rows))


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Judge the search by public lists and rules; other identifiers, which are found before it, are not taken off."""
    section = Section("labelled", "Labelled names: how many are found, and how many stay")
    own = os.environ.get("DPTEXT_LABELLED")
    file, reason = (Path(own), "") if own else shared_file(TWEETS)
    if file is None:
        section.skipped.append(reason)
        return section
    every = list(labelled(file.read_text(encoding="utf-8-sig")))
    texts = (every if own else every[1::2])[: 10 * sizes.texts]
    marks = found_tokens(texts)
    section.facts = {"texts": len(texts), "file": file.name}
    section.grids += [found_grid(texts, marks), stays_grid(texts, marks, say)]
    return section
