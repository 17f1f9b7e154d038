"""Identifiers: how many of a labelled sample are found and of what is found how much is right, by type; and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.engine import one_core, runner
from benchmarks.labelled import Labelled, sample
from benchmarks.measure import Figure, Goal, Grid, Section, in_turn, quotient, scaled
from benchmarks.sizes import Sizes
from benchmarks.sources import packaged, sst2, texts
from dptext_spark.mechanisms import CusText
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.finder import Finder
from dptext_spark.text.identifiers.types import NO_IDENTIFIERS, TYPES, Identifiers
from dptext_spark.text.policy import Policy

OWN = (
    "The sample is made by the project's own templates (benchmarks/labelled.py), forms that no pattern finds among them: it says "
    "what is found of such forms, not of anybody's texts."
)
PLAIN_GOALS = (Goal(1.05, 1.10, "ratio"),)
FAKES = Identifiers("fake", "fake", "fake", "fake", "fake", "fake", "keep", "fake", "fake")


class Score(NamedTuple):
    """What was found of one type.

    Attributes:
        name: the type.
        held: how many the sample holds.
        covered: how many of them are found whole, of whatever type.
        typed: how many are found whole, as this type.
        found: how many are found as this type.
        right: how many of those lie on one of the sample's identifiers.
    """

    name: str
    held: int
    covered: int
    typed: int
    found: int
    right: int

    @property
    def recall(self) -> float:
        """Share of the identifiers that are found whole."""
        return self.covered / self.held if self.held else 1.0

    @property
    def precision(self) -> float:
        """Share of what is found that is an identifier."""
        return self.right / self.found if self.found else 1.0


def scores(labelled: Sequence[Labelled], identifiers: Identifiers) -> list[Score]:
    """Compare what is found with what is there, by type.

    Args:
        labelled: the sample.
        identifiers: what is looked for.
    """
    finder = Finder(identifiers)
    rows = pa.array([one.text for one in labelled], pa.string())
    data, bounds = padded(rows)
    spans, types, *_ = finder.find(data, bounds, rows)
    counts = {name: [0] * 5 for name in TYPES}
    for row, one in enumerate(labelled):
        first, last = spans.bounds[row], spans.bounds[row + 1]
        found = [
            (finder.names[types[i]], int(spans.starts[i] - bounds[row]), int(spans.ends[i] - bounds[row]))
            for i in range(first, last)
        ]
        for name, start, end in one.spans:
            over = [kind for kind, a, b in found if a <= start and end <= b]
            counts[name][0] += 1
            counts[name][1] += bool(over)
            counts[name][2] += name in over
        for name, start, end in found:
            counts[name][3] += 1
            counts[name][4] += any(a < end and start < b for _, a, b in one.spans)
    return [Score(name, *counts[name]) for name in TYPES]


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure what is found, and the cost on plain reviews and on texts full of identifiers."""
    section = Section("identifiers", "Identifiers: what is found, and what it costs")
    say("identifiers: the labelled sample")
    labelled = sample(10 * sizes.texts)
    found = scores(labelled, Identifiers(date="mask"))
    section.facts = {"sample": len(labelled), "identifiers": sum(one.held for one in found)}
    section.grids.append(
        Grid(
            f"{len(labelled):,} texts of the project's templates, all types looked for",
            ("type", "in the sample", "found whole, %", "as their type, %", "found", "of these right, %"),
            tuple(
                (
                    one.name, one.held, 100 * one.recall, 100 * one.typed / max(1, one.held), one.found, 100 * one.precision,
                )
                for one in found
            ),
        )
    )  # fmt: skip
    section.notes.append(OWN)
    lexicon = packaged(sizes.lexicon_words)
    sampler = (CusText() if len(lexicon) > CusText().k else CusText(k=2)).compile(lexicon)
    without = Privatizer(lexicon, sampler, Policy(identifiers=NO_IDENTIFIERS))
    made, reason = sst2()
    name, plain = "SST-2's sentences", made
    if plain is None:
        section.skipped.append(reason)
        name, plain = "texts of the lexicon's words", texts(lexicon, sizes.rows, sizes.words_a_row)
    full = [one.text for one in labelled if one.spans]
    # As many rows as the engine is measured on elsewhere: what a batch costs whatever it holds counts as little as there.
    plain, full = (
        pa.array(np.resize(np.array(rows, object), sizes.rows)) for rows in (plain.to_pylist(), full)
    )
    with one_core() as core:
        section.facts["core"] = core
        for shown, batch, goals in ((name, plain, PLAIN_GOALS), ("texts full of identifiers", full, ())):
            peer = runner(without, batch)
            words = peer()[1].totals()["words"]
            for how, identifiers in (("masked", Identifiers()), ("as fakes", FAKES)):
                say(f"identifiers: {shown}, {how}")
                run = runner(Privatizer(lexicon, sampler, Policy(identifiers=identifiers)), batch)
                held = run()[1].totals()["identifiers"]
                ours, theirs = in_turn(sizes.rounds, run, peer)
                value, plain_run = scaled(ours, 1e9 / words), scaled(theirs, 1e9 / words)
                section.figures.append(
                    Figure(
                        f"{shown}, identifiers {how}", "ns/word", value, "identifiers: none", plain_run,
                        quotient(value, plain_run), "x its time", goals if how == "masked" else (),
                        f"{held:,} identifiers; words as they are cut without looking for identifiers: {words:,}",
                    )
                )  # fmt: skip
    return section
