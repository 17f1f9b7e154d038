"""What the compiled model alone says of the deniability of its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dptext_spark.audit.deniability import STANDARD, Measured, deniability, over_epsilons
from dptext_spark.audit.unchanged import Unchanged
from dptext_spark.audit.word_figures import SmallestSet
from dptext_spark.mechanisms.base import Ids
from dptext_spark.mechanisms.kernels.alias import TableSampler
from dptext_spark.privatizer import Privatizer

Progress = Callable[[str, float | None], None]
SAMPLED = 200  # words that are looked at where a law is as long as the lexicon
DRAWN = 50  # where there is none, and each word takes a thousand draws
TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the run's ε, for the curves


@dataclass(frozen=True)
class Model:
    """The compiled model of a run.

    Attributes:
        privatizer: opened; its fingerprint is the run's.
        compile_at: compiles the same mechanism at another ε; None where its lexicon cannot be read.
    """

    privatizer: Privatizer
    compile_at: Callable[[float], Any] | None = None


@dataclass(frozen=True)
class Deniability:
    """Figures at the run's ε and at others.

    Attributes:
        figures: at the run's ε, as dictionaries.
        by_epsilon: `epsilon` and `figures` each.
        basis: how exact they are, in a sentence.
        words: the worst words by id, as text.
        why_missing: what is missing, and why.
    """

    figures: Sequence[Mapping[str, Any]]
    by_epsilon: Sequence[Mapping[str, Any]]
    basis: str
    words: Mapping[str, str]
    why_missing: str = ""

    @staticmethod
    def missing(why: str) -> Deniability:
        """Return no figures, with the reason."""
        return Deniability((), (), "", {}, why)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-able."""
        return {
            "figures": list(self.figures),
            "by_epsilon": list(self.by_epsilon),
            "basis": self.basis,
            "words": dict(self.words),
            "missing": self.why_missing,
        }


def deniability_of(run: Mapping[str, Any], model: Model, say: Progress) -> Deniability:
    """Measure plausible deniability at the run's ε and, where that is quick, around it."""
    sampler, total = model.privatizer.sampler, len(model.privatizer.vocabulary)
    words = _looked_at(model.privatizer)
    found = deniability(
        sampler, total, STANDARD, words=words, progress=lambda done, whole: say("deniability", done / whole)
    )
    grid, why = [], ""
    if sampler.law(0) is None:
        why = (
            "There are no curves over ε: this mechanism has no law to read, and drawing at several ε takes minutes. "
            "`dptext calibrate` draws them."
        )
    elif model.compile_at is None:
        why = "There are no curves over ε: the lexicon that the model was compiled from cannot be read here."
    else:
        epsilon = float(run["guarantee"]["epsilon"])
        at = [epsilon * times for times in TIMES] if epsilon else [0.0, 0.5, 1.0, 2.0, 4.0]
        measured = over_epsilons(
            model.compile_at, at, total, (Unchanged(), SmallestSet()), words=words, progress=say
        )
        grid = [{"epsilon": each, "figures": _plain(figures)} for each, figures in measured.items()]
    figures = _plain(found)
    strings = model.privatizer.vocabulary.strings()
    named = {str(one["word"]): strings[one["word"]].as_py() for figure in figures for one in figure["worst"]}
    return Deniability(figures, grid, _basis(found[0], len(words), total), named, why)


def _looked_at(privatizer: Privatizer) -> Ids:
    """Return all words where that is quick, else some, evenly spaced over the lexicon: int32[n]."""
    total = len(privatizer.vocabulary)
    if isinstance(privatizer.sampler, TableSampler):
        return np.arange(total, dtype=np.int32)
    some = SAMPLED if privatizer.sampler.law(0) is not None else DRAWN
    return np.unique(np.linspace(0, total - 1, min(some, total)).astype(np.int32))


def _basis(one: Measured, words: int, total: int) -> str:
    if not one.exact:
        return (
            f"Estimated from {one.draws:,} draws of each of {words:,} words of {total:,}, evenly spaced; the bounds of all of "
            f"them hold together with a confidence of {one.confidence}. Other words may be worse."
        )
    if words == total:
        return f"Exact, over all {total:,} words of the lexicon."
    return f"Exact for {words:,} words of {total:,}, evenly spaced; other words may be worse."


def _plain(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    return [one.as_dict() for one in measured]
