"""Utility against risk: which mechanism keeps most of a text at equal success of an attack.

ε means another thing for each mechanism, so curves over ε cannot be compared. A curve here runs over ε, but each point lies at
its measured risk. Between two neighbours in risk, utility is taken as linear in risk. There is no result outside the measured
risks, or where the bounds of the outermost points leave open whether a level lies within. Two mechanisms whose intervals overlap
at a level are not told apart. The interval at a level covers both errors. Its lower end comes from the points' largest possible
risk and least utility, its upper end from their least risk and largest utility.

A point is a mechanism at one ε: its risks and the utility of the text, each with bounds.

The two risks at which mechanisms are compared, in a time that a comparison can afford, and how each was found.

:mod:`dptext_spark.audit.attacks.adversary` says what the best adversary on one word is held to. The contextual one weighs the
same words. Its upper bound counts all others as found; for noise on vectors, its adversary sees the noisy vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np

from dptext_spark.arrays import F64, I64, Bools, Ids
from dptext_spark.audit.attacks.adversary import DRAWS, FEW, adversary, candidates_of_vectors, is_small
from dptext_spark.audit.attacks.attacked_text import Bigrams, Level, Tokens, simulate
from dptext_spark.audit.attacks.bayes import TRIES, drawn_from
from dptext_spark.audit.attacks.context import context_attack, posterior_guesses
from dptext_spark.audit.results import Estimate, rate_interval
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.parameters import is_number
from dptext_spark.runtime.validation import Json

LEAST_POINTS = 2
LEVELS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
NOT_REACHED = "not reached"
UNDECIDED = "undecided"


@dataclass(frozen=True)
class Curve:
    """Utility against risk for one mechanism. `epsilons`: float[n], ascending in risk, where it is equal in utility."""

    mechanism: str
    epsilons: tuple[float, ...]
    risk: tuple[Estimate, ...]
    utility: tuple[Estimate, ...]

    @classmethod
    def of(cls, points: Sequence[Point], risk: str, utility: str) -> Curve:
        """Take one risk and one utility of a mechanism's points; :class:`SettingsError`: fewer than two points."""
        name = points[0].mechanism if points else "?"
        if len(points) < LEAST_POINTS:
            raise SettingsError(
                f"epsilons: the curve of {name} has {len(points)} point(s). Give {LEAST_POINTS} or more ε that the "
                "mechanism accepts."
            )
        placed = sorted(points, key=lambda point: (point.risks[risk].value, point.utilities[utility].value))
        return cls(
            name,
            tuple(point.epsilon for point in placed),
            tuple(point.risks[risk] for point in placed),
            tuple(point.utilities[utility] for point in placed),
        )

    @property
    def reach(self) -> tuple[float, float]:
        """The risks that were surely passed: from the least upper bound to the largest lower one."""
        return min(risk.upper for risk in self.risk), max(risk.lower for risk in self.risk)

    def at(self, level: float) -> UtilityAtRisk | None:
        """Return the utility at a risk, None where that does not surely lie within the measured ones."""
        low, high = self.reach
        if not low <= level <= high:
            return None
        # At a risk that several points share the last of them counts: the one of largest utility.
        left, right = _segment([risk.value for risk in self.risk], level)
        width = self.risk[right].value - self.risk[left].value
        share = (level - self.risk[left].value) / width if width > 0 else 1.0
        ends = self.utility[left].value, self.utility[right].value
        value = ends[0] + share * (ends[1] - ends[0])
        lower = _along([risk.upper for risk in self.risk], [risk.lower for risk in self.utility], level)
        upper = _along([risk.lower for risk in self.risk], [risk.upper for risk in self.utility], level)
        around = self.epsilons[left], self.epsilons[right]
        return UtilityAtRisk(
            self.mechanism, value, min(lower, value), max(upper, value), (min(around), max(around))
        )


@dataclass(frozen=True)
class UtilityAtRisk:
    """The utility of a mechanism at a level of risk. `between`: the ε of the two points that it lies between."""

    mechanism: str
    utility: float
    lower: float
    upper: float
    between: tuple[float, float]


@dataclass(frozen=True)
class Best:
    """The best mechanisms at a level of risk.

    Attributes:
        reached: of the mechanisms that reach it, the largest utility first, ties by name.
        best: the names that cannot be told apart from the first: the first alone where it is clearly best.
        missing: the names of mechanisms that do not reach it.
    """

    level: float
    reached: tuple[UtilityAtRisk, ...]
    best: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The verdict as a table shows it."""
        if not self.reached:
            return NOT_REACHED
        if len(self.best) > 1:
            return f"{UNDECIDED}: {', '.join(self.best)}"
        return self.best[0] if len(self.reached) > 1 else f"{self.best[0]} (no other reaches it)"

    def as_dict(self) -> dict[str, Json]:
        """Return everything, JSON-able."""
        return {**asdict(self), "verdict": self.verdict}


@dataclass(frozen=True)
class Frontier:
    """The curves of all mechanisms for one risk and one utility, and the best at each level.

    `levels`: the best at each level of risk, ascending.
    """

    risk: str
    utility: str
    curves: tuple[Curve, ...]
    levels: tuple[Best, ...]

    def as_dict(self) -> dict[str, Json]:
        """Return everything, JSON-able."""
        return {**asdict(self), "levels": [level.as_dict() for level in self.levels]}


def frontier(
    points: Sequence[Point], risk: str, utility: str, levels: Iterable[float] | None = None
) -> Frontier:
    """Compare mechanisms at equal risk.

    Args:
        points: of all mechanisms, in any order; mechanisms are listed as they first occur.
        risk: which attack.
        utility: which utility.
        levels: of risk, ascending; None for round ones that at least one mechanism reaches.

    Raises:
        SettingsError: fewer than two points of a mechanism, or levels that do not ascend within 0..1.
    """
    names = list(dict.fromkeys(point.mechanism for point in points))
    curves = tuple(
        Curve.of([point for point in points if point.mechanism == name], risk, utility) for name in names
    )
    if levels is None:
        chosen = [
            level for level in LEVELS if any(curve.reach[0] <= level <= curve.reach[1] for curve in curves)
        ]
    else:
        chosen = check_levels("levels", levels)
    return Frontier(risk, utility, curves, tuple(best_at(curves, level) for level in chosen))


def best_at(curves: Sequence[Curve], level: float) -> Best:
    """Return the best of some curves at a level of risk."""
    reached_by = [(curve.mechanism, curve.at(level)) for curve in curves]
    reached = sorted(
        (place for _, place in reached_by if place is not None),
        key=lambda place: (-place.utility, place.mechanism),
    )
    alike = tuple(place.mechanism for place in reached if place.upper >= reached[0].lower)
    return Best(level, tuple(reached), alike, tuple(name for name, place in reached_by if place is None))


def check_levels(field: str, levels: Iterable[float]) -> list[float]:
    """Return levels of risk as a list; refuse an empty list, and levels that do not ascend within 0..1."""
    grid = list(levels)
    fits = all(is_number(level) and 0 <= level <= 1 for level in grid)
    if not grid or not fits or any(a >= b for a, b in pairwise(grid)):
        raise SettingsError(f"{field}: {grid} is not valid. Give numbers of 0 to 1 in ascending order.")
    return [float(level) for level in grid]


def _segment(values: Sequence[float], level: float) -> tuple[int, int]:
    """Return the places of the ascending values that a level lies between, twice the last of those that are the level."""
    right = int(np.searchsorted(values, level, side="right"))
    return (right - 1, right - 1) if values[right - 1] == level else (right - 1, right)


def _along(x: Sequence[float], y: Sequence[float], level: float) -> float:
    """Return a line through points at a level within them, in the order of x."""
    order = sorted(range(len(x)), key=lambda i: (x[i], y[i]))
    return float(np.interp(level, [x[i] for i in order], [y[i] for i in order]))


@dataclass(frozen=True)
class Baselines:
    """The baselines of a point's risks, and the method behind the risks.

    Attributes:
        how: the success on one word was found, as a sentence without its end.
        in_context_without_output: what the context alone finds.
        in_context_of_one_word_alone: what is found of the same words without their context.
    """

    how: str
    baseline: float
    in_context_without_output: float | None
    in_context_words_attacked: int
    in_context_records: int
    in_context_of_one_word_alone: float | None


@dataclass(frozen=True)
class Point:
    """A mechanism at one ε. `utilities`: what the text is still good for, by name; more is better."""

    mechanism: str
    epsilon: float
    risks: dict[str, Estimate]
    utilities: dict[str, Estimate]
    more: Baselines


BAYES, CONTEXT = "one word alone", "word in context"
EXPLAINED = {
    BAYES: "Success of the Bayes-optimal adversary on a replaced word, from its replacement alone, at the "
    "public text's word frequencies.",
    CONTEXT: "The share of the replaced words of the private text that the contextual adversary guesses from the "
    "replacements and the words around them. Word pairs come from the public text.",
}


@dataclass(frozen=True, eq=False)
class Text:
    """The attacked text, with the adversary's knowledge.

    Attributes:
        words: int32[n], as :class:`~dptext_spark.audit.attacks.attacked_text.Tokens`.
        drawn: bool[n].
        bounds: int64[s + 1].
        drawable: bool[V], the words that the policy draws.
        public: word pairs of the public text.
        level: at which draws are shared.
        numbers: int32[n], the words by their numbers in the word table; None: `words`.
    """

    words: Ids
    drawn: Bools
    bounds: I64
    drawable: Bools
    public: Bigrams
    level: Level
    numbers: Ids | None = None

    def replaced(self, sampler: Sampler) -> Tokens:
        """Return the text with the mechanism's draws."""
        return simulate(sampler, self.words, self.drawn, self.bounds, self.level, numbers=self.numbers)


def risks(
    sampler: Sampler, text: Text, *, few: int = FEW, draws: int = DRAWS, tries: int = TRIES
) -> tuple[dict[str, Estimate], Baselines]:
    """Measure both risks: (the risks by name, how they were found).

    Args:
        sampler: of any mechanism.
        text: the private text.
        few: words that the adversary considers at most, where there is no other way.
        draws: of each word, where there is no law.
        tries: words drawn from the prior, where the attack on one word is estimated.
    """
    words = text.public.words
    prior = of_drawn(text.public.unigram[:words], text.drawable)
    tokens = text.replaced(sampler)
    best = adversary(sampler, prior, few=few, draws=draws, tries=tries)
    more_found = float((~best.considered[tokens.words[tokens.drawn]]).mean())
    above = seen_vectors(sampler, text, prior)
    assert best.alone is not None
    plausible = best.plausible(tokens.outputs[tokens.drawn])
    context = context_attack(
        sampler, tokens, text.public, text.drawable, level=text.level, plausible=plausible
    )
    highest = min(1.0, max(context.upper + more_found, above))
    basis = Baselines(
        best.how, float(prior.max()), context.bigram_baseline, context.tokens, context.records, context.bayes
    )
    return {BAYES: best.alone, CONTEXT: Estimate(context.success, context.lower, highest)}, basis


def words_of(text: Text, tries: int = TRIES) -> Ids | None:
    """Return the words that :func:`risks` draws, ascending; None where it also reads the laws of all."""
    words = text.public.words
    if is_small(words):
        return None
    prior = of_drawn(text.public.unigram[:words], text.drawable)
    return np.unique(np.append(text.words[text.drawn], drawn_from(prior, tries)[0]))


def seen_vectors(sampler: Sampler, text: Text, prior: F64) -> float:
    """Return the upper end of what the contextual adversary finds who sees the noisy vectors of a text.

    It is 0 for mechanisms without noise on vectors, and 1 where draws are shared: occurrences would have to be put together.
    """
    noisy = sampler.noisy_vectors()
    if noisy is None:
        return 0.0
    if text.level != "token":
        return 1.0
    at = np.flatnonzero(text.drawn)
    plausible = candidates_of_vectors(noisy, prior, text.words[at])
    observed = np.zeros(len(text.words), np.int32)
    observed[at] = np.arange(len(at), dtype=np.int32)
    tokens = Tokens(text.words, text.words, text.drawn, text.bounds)
    guesses, _ = posterior_guesses(tokens, plausible, text.public, observed)
    hits = tokens.by_record(text.drawn & (guesses == text.words))
    return rate_interval(hits, tokens.by_record(text.drawn))[1]
