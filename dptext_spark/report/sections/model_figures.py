"""What the compiled model alone says of the deniability of its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dptext_spark.arrays import Ids, spaced
from dptext_spark.audit.deniability import STANDARD, Measured, measure
from dptext_spark.audit.word_figures import SmallestSet, Unchanged, WordFigure
from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.runtime.display import Progress, counted
from dptext_spark.runtime.validation import Json
from dptext_spark.text.tokens import drawn_words

SAMPLED = 200  # words that are looked at where a law is as long as the lexicon
DRAWN = 50  # where there is none, and each word takes a thousand draws
CURVES = 10  # of those, at each ε of the curves
TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the run's ε, for the curves


@dataclass(frozen=True)
class Model:
    """The compiled model of a run.

    Attributes:
        privatizer: opened; its fingerprint is the run's.
        compile_at: compiles the same mechanism at another ε; None where its lexicon cannot be read.
    """

    privatizer: Privatizer
    compile_at: Callable[[float], Sampler] | None = None


@dataclass(frozen=True)
class Deniability:
    """Figures at the run's ε and at others.

    Attributes:
        figures: at the run's ε.
        by_epsilon: those of the curves, by ε, ascending.
        basis: how exact they are, in a sentence.
        words: the worst words by id, as text.
        why_missing: what is missing, and why.
        basis_of_curves: how exact the curves are, where they are estimated.
    """

    figures: Sequence[Measured] = ()
    by_epsilon: Mapping[float, Sequence[Measured]] = field(default_factory=dict)
    basis: str = ""
    words: Mapping[int, str] = field(default_factory=dict)
    why_missing: str = ""
    basis_of_curves: str = ""

    def figure(self, name: str) -> Measured | None:
        """Return a figure at the run's ε by its name; None where it was not measured."""
        return next((one for one in self.figures if one.figure.name == name), None)

    def as_dict(self) -> dict[str, Json]:
        """Return the fields, JSON-able."""
        return {
            "figures": [one.as_dict() for one in self.figures],
            "by_epsilon": [
                {"epsilon": epsilon, "figures": [one.as_dict() for one in found]}
                for epsilon, found in self.by_epsilon.items()
            ],
            "basis": self.basis,
            "words": {str(word): text for word, text in self.words.items()},
            "missing": self.why_missing,
            "basis_of_curves": self.basis_of_curves,
        }


def deniability_of(epsilon: float, model: Model, say: Progress) -> Deniability:
    """Measure plausible deniability at the run's ε and around it."""
    sampler, total = model.privatizer.sampler, len(model.privatizer.vocabulary)
    # What the policy keeps in clear is never drawn: no word of it can be the worst.
    drawn = np.flatnonzero(drawn_words(model.privatizer.engine)[:total]).astype(np.int32)
    drawn = drawn if len(drawn) else np.arange(total, dtype=np.int32)
    words = _looked_at(model.privatizer, drawn)
    found = _measured(sampler, words, drawn, total, STANDARD, counted("deniability", say))
    grid: dict[float, list[Measured]] = {}
    why = basis = ""
    if model.compile_at is None:
        why = "There are no curves over ε: the lexicon that the model was compiled from cannot be read here."
    else:
        at = [epsilon * times for times in TIMES] if epsilon else [0.0, 0.5, 1.0, 2.0, 4.0]
        some = words if found[-1].exact or len(words) <= CURVES else words[:: -(-len(words) // CURVES)]
        grid, refused = _over(model.compile_at, at, total, some, drawn, say)
        why = f"The mechanism refuses {', '.join(f'ε = {each:g}' for each in refused)}." if refused else ""
        basis = "" if found[-1].exact else _of_curves(found[-1], len(some))
    strings = model.privatizer.vocabulary.strings()
    named = {word: strings[word].as_py() for figure in found for word, _ in figure.worst()}
    laws = f" Laws are {sampler.law_is}." if sampler.law_is else ""
    return Deniability(found, grid, f"{_basis(found, total)}{laws}", named, why, basis)


def _over(
    compile_at: Callable[[float], Sampler],
    epsilons: Sequence[float],
    total: int,
    words: Ids,
    drawn: Ids,
    say: Progress,
) -> tuple[dict[float, list[Measured]], list[float]]:
    """Return (the figures of the curves by ε, the ε that the mechanism refuses)."""
    grid: dict[float, list[Measured]] = {}
    refused: list[float] = []
    for epsilon in epsilons:
        step = f"ε = {epsilon:g}"
        say(f"{step}: compiling", None)
        try:
            sampler = compile_at(epsilon)
        except SettingsError:
            refused.append(epsilon)
            continue
        say(step, None)
        grid[epsilon] = _measured(sampler, words, drawn, total, (Unchanged(), SmallestSet()))
    return grid, refused


def _measured(
    sampler: Sampler,
    words: Ids,
    drawn: Ids,
    total: int,
    figures: Sequence[WordFigure],
    progress: Callable[[int, int], None] | None = None,
) -> list[Measured]:
    """Return figures of some words; of every drawn word where a figure has a short cut, for the worst may be any."""
    found: list[Measured] = []
    for figure in figures:
        if figure.shortcut(sampler, words[:1]) is not None:
            found += measure(sampler, drawn, total, [figure])
    whole = [one.figure for one in found]
    rest = [figure for figure in figures if figure not in whole]
    found += measure(sampler, words, total, rest, progress=progress)
    return [replace(one, pool=len(drawn)) for one in found]


def _of_curves(one: Measured, words: int) -> str:
    return (
        f"Estimated from {one.draws:,} draws of each of {words:,} words; the line of the worst word is the bound that holds for "
        f"all of them with a confidence of {one.confidence}."
    )


def _looked_at(privatizer: Privatizer, drawn: Ids) -> Ids:
    """Return all drawn words where that is quick, else some, evenly spaced over them: int32[n]."""
    if privatizer.sampler.has_short_laws:
        return drawn
    some = SAMPLED if privatizer.sampler.law(0) is not None else DRAWN
    return np.asarray(drawn[spaced(len(drawn), some)])


def _basis(found: Sequence[Measured], lexicon: int) -> str:
    one = found[-1]
    words, total = len(one.words), one.pool or lexicon
    of = (
        "words of the lexicon"
        if total == lexicon
        else f"drawn words of the lexicon ({lexicon - total:,} are kept in clear)"
    )
    if not one.exact:
        return (
            f"Estimated from {one.draws:,} draws of each of {words:,} words of {total:,}, evenly spaced; the bounds of all of "
            f"them hold together with a confidence of {one.confidence}. Other words may be worse."
        )
    if words == total:
        return f"Exact, over all {total:,} {of}."
    some = f"xact for {words:,} words of {total:,}, evenly spaced; other words may be worse."
    every = [each.figure.name for each in found if len(each.words) == total]
    return (
        f"{' and '.join(every)}: exact, over all {total:,} {of}. The rest: e{some}" if every else f"E{some}"
    )
