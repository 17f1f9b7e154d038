"""The largest ε whose worst words still meet the requirements: a grid over the range, then bisection from below.

Every ε between the ends of the range has four significant digits, so that the answer can be written down as it is. The first
unbroken stretch of grid points that satisfy everything is taken. Where all figures move one way only, the interval above it is
halved in ln ε. The result is the curve and the upper end of the stretch, an ε that was examined.

Requirements on a mechanism over the words of a lexicon: `N_w max <= 0.5`, `bayes token <= 0.3`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from dptext_spark.arrays import F32, F64, Bools, Ids
from dptext_spark.audit.attacks.adversary import BayesVulnerability, Guesses, bayes_vulnerability
from dptext_spark.audit.deniability import CONFIDENCE, EVERY, WordValues, measure
from dptext_spark.audit.word_figures import DRAWS, ETA, DistinctOutputs, SmallestSet, StayRate, WordFigure
from dptext_spark.config.requirements import FORM, Requirement, RequirementResult
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.neighbors import nearest
from dptext_spark.lexicon.prior import ZIPF, zipf
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.runtime.display import Progress, counted, silent
from dptext_spark.runtime.validation import Json

MOST_DRAWS = 1_000_000
VALID = (
    "a figure (N_w, S_w, S_w(η) with η between 0 and 1, S_w[n] with n draws, bayes), a statistic over the words (max, min, mean, "
    f"or a percentile such as p99; of bayes also token, worst, names and words), {FORM}, as in 'N_w max <= 0.5', "
    "'S_w[1000] p5 >= 20' or 'bayes token <= 0.3'; with a public text (--public FILE) also figures of linkage, as in "
    "'linkage_top1(10000) <= 0.1'"
)
_FORM = re.compile(r"(\S+)\s+(\S+)")
_PERCENTILE = re.compile(r"p(\d{1,3}(?:\.\d+)?)")


def _smallest_set(share: str) -> WordFigure:
    eta = float(share) if share else ETA
    if not 0 < eta < 1:
        raise ValueError
    return SmallestSet(eta)


def _distinct(draws: str) -> WordFigure:
    if not 1 <= int(draws) <= MOST_DRAWS:
        raise ValueError
    return DistinctOutputs(int(draws))


# What a figure looks like, and what makes it from the part in parentheses or brackets.
FIGURES: dict[str, Callable[[str], WordFigure | BayesVulnerability]] = {
    r"N_w()": lambda _: StayRate(),
    r"S_w(?:\(([0-9.eE+-]+)\))?": _smallest_set,
    r"S_w\[(\d+)\]": _distinct,
    r"bayes()": lambda _: BayesVulnerability(),
}


@dataclass(frozen=True)
class WordStatistic:
    """A statistic of a figure over the words of a lexicon, as requirements name it.

    `name`: `max`, `min`, `mean` or `pNN`; of `bayes` also `token`, `worst`, `names` and `words`.
    """

    figure: WordFigure | BayesVulnerability
    name: str

    def __str__(self) -> str:
        """Write the figure and the statistic."""
        return f"{self.figure.name} {self.name}"


WordRequirement: TypeAlias = Requirement[WordStatistic]


def word_requirement(text: str) -> WordRequirement:
    """Read a requirement of a mechanism over a lexicon.

    Raises:
        SettingsError: it has another form; the message says which forms are valid.
    """
    return Requirement.parse(text, _statistic, VALID, "require")


def judge(requirement: WordRequirement, measured: WordValues | Guesses) -> RequirementResult:
    """Compare the measurement with the limit; of an estimate, take its bound on the cautious side.

    Raises:
        SettingsError: the statistic is not known of this mechanism.
    """
    name = requirement.subject.name
    value, _ = measured.statistic("values", name)
    judged, word = measured.statistic("upper" if requirement.caps else "lower", name)
    return RequirementResult(value, judged, requirement.holds(judged), word, measured.exact)


def described(requirement: WordRequirement) -> dict[str, Json]:
    """Return a requirement and what its figure means, JSON-able."""
    figure, name = requirement.subject.figure, requirement.subject.name
    return {
        "text": str(requirement),
        "figure": figure.name,
        "meaning": figure.meaning,
        "statistic": name,
        "relation": requirement.relation,
        "limit": requirement.limit,
    }


def figures_of(requirements: Iterable[WordRequirement]) -> list[WordFigure]:
    """Return the figures of single laws that requirements speak of, each once."""
    figures = dict.fromkeys(requirement.subject.figure for requirement in requirements)
    return [figure for figure in figures if not isinstance(figure, BayesVulnerability)]


def _statistic(text: str) -> WordStatistic | None:
    match = _FORM.fullmatch(text)
    figure = _figure(match.group(1)) if match else None
    if match is None or figure is None or not _is_statistic(figure, match.group(2)):
        return None
    return WordStatistic(figure, match.group(2))


def _figure(text: str) -> WordFigure | BayesVulnerability | None:
    for form, make in FIGURES.items():
        match = re.fullmatch(form, text)
        if match:
            try:
                return make(match.group(1) or "")
            except ValueError:
                return None
    return None


def _is_statistic(figure: WordFigure | BayesVulnerability, text: str) -> bool:
    if isinstance(figure, BayesVulnerability) and text in figure.statistics:
        return True
    rank = _PERCENTILE.fullmatch(text)
    return text in ("max", "min", "mean") or (rank is not None and float(rank.group(1)) <= 100)


LOW, HIGH = 0.01, 100.0
STEPS = 24
LEAST_STEPS = 4
DIGITS = 4
TIE = 1e-12  # relative; exact figures that differ by less are equal
CHOSEN = "half of them evenly spaced by id, half those farthest from their nearest word, with the least deniability"


@dataclass(kw_only=True)
class Search:
    """The search for the largest ε that satisfies every requirement, and the points that it has looked at.

    Attributes:
        compile_at: compiles the mechanism at an ε; its :class:`SettingsError` marks an ε that the mechanism refuses.
        total: V.
        sample: returns int32[n], the words that are drawn from, where there is no law; see :func:`worst_and_typical`.
        draws: of each word, where there is no law.
        confidence: that all bounds at one ε hold, for each figure, where there is no law.
        prior: float64[V], how frequent the words are that can be the input, for `bayes`; None for Zipf's law over all words.
        groups: bool[V], words that have a statistic of `bayes` of their own, by its name: `names`, `words`.
        say: progress callback, called with each step.
    """

    compile_at: Callable[[float], Sampler]
    requirements: Sequence[WordRequirement]
    total: int
    sample: Callable[[], Ids]
    draws: int = DRAWS
    confidence: float = CONFIDENCE
    prior: F64 | None = None
    prior_name: str = "given"
    groups: Mapping[str, Bools] = field(default_factory=dict)
    say: Progress = silent
    seen: dict[float, Trial] = field(default_factory=dict, init=False)
    words: Ids | None = field(default=None, init=False)
    drawn: int | None = field(default=None, init=False)
    guesses: Guesses | None = field(default=None, init=False)

    def largest(self, low: float = LOW, high: float = HIGH, steps: int = STEPS) -> Calibration:
        """Search a range.

        Args:
            low: the smallest ε, > 0.
            high: the largest one.
            steps: number of ε to look at, half on the grid.

        Raises:
            SettingsError: no requirement, an invalid range or number of steps; or the mechanism refuses every ε.
        """
        _check(self.requirements, low, high, steps)
        grid = _grid(low, high, (steps + 1) // 2)
        for epsilon in grid:
            self.look(epsilon)
        stretch = _stretch(self.seen)
        if not any(point.findings for point in self.seen.values()):
            raise SettingsError(
                f"the mechanism refuses all ε from {low:g} to {high:g}: {self.seen[grid[-1]].refused}"
            )
        if stretch and stretch[-1] != grid[-1] and all(_monotone(self)):
            bisect(self, stretch[-1], steps - len(grid))
            stretch = _stretch(self.seen)
        guesses = self.guesses
        return Calibration(
            tuple(self.requirements),
            tuple(self.seen[epsilon] for epsilon in sorted(self.seen)),
            stretch[-1] if stretch else None,
            stretch[0] if stretch else None,
            _monotone(self),
            0 if self.words is None else len(self.words),
            EVERY if self.drawn is None else CHOSEN,
            self.total,
            self.drawn,
            None if self.drawn is None else self.confidence,
            bool(stretch) and stretch[-1] == grid[-1],
            None
            if guesses is None
            else Guessing(
                len(guesses.words), guesses.how, guesses.exact, self.confidence,
                ZIPF if self.prior is None else self.prior_name,
            ),
        )  # fmt: skip

    def look(self, epsilon: float) -> Trial:
        """Examine an ε, once."""
        if epsilon not in self.seen:
            self.seen[epsilon] = self._trial(epsilon)
        return self.seen[epsilon]

    def _trial(self, epsilon: float) -> Trial:
        step = f"ε = {epsilon:g}"
        self.say(step, None)
        try:
            sampler = self.compile_at(epsilon)
        except SettingsError as error:
            return Trial(epsilon, refused=str(error))
        return Trial(
            epsilon, self.judged(sampler, step), names=None if self.guesses is None else self.guesses.of_names
        )

    def judged(self, sampler: Sampler, step: str) -> tuple[RequirementResult, ...]:
        """Compare a compiled mechanism with each requirement; progress receives `step`."""
        figures = figures_of(self.requirements)
        by_figure: dict[WordFigure | BayesVulnerability, WordValues | Guesses] = {}
        if figures:
            if self.words is None:
                lawless = sampler.law(0) is None
                self.words = self.sample() if lawless else np.arange(self.total, dtype=np.int32)
            measured_figures = measure(
                sampler, self.words, self.total, figures, self.draws, self.confidence,
                counted(step, self.say),
            )  # fmt: skip
            self.drawn = next((figure.draws for figure in measured_figures if not figure.exact), None)
            by_figure |= {figure.figure: figure for figure in measured_figures}
        if any(isinstance(limit.subject.figure, BayesVulnerability) for limit in self.requirements):
            self.say(f"{step}: guessing", None)
            prior = zipf(self.total) if self.prior is None else self.prior
            self.guesses = by_figure[BayesVulnerability()] = bayes_vulnerability(
                sampler, prior, self.confidence, groups=self.groups
            )
        return tuple(judge(limit, by_figure[limit.subject.figure]) for limit in self.requirements)


def _check(requirements: Sequence[WordRequirement], low: float, high: float, steps: int) -> None:
    if not requirements:
        raise SettingsError("require: none given. Give one requirement or more.")
    check_range(low, high)
    if steps < LEAST_STEPS:
        raise SettingsError(f"steps: {steps} is not valid. Use {LEAST_STEPS} or more.")


def check_range(low: float, high: float) -> None:
    """Refuse an invalid range of ε, by a :class:`SettingsError`."""
    if not (math.isfinite(high) and 0 < low < high):
        raise SettingsError(
            f"low, high: {low:g} and {high:g} are not valid. Use finite numbers with 0 < low < high."
        )


def worst_and_typical(vectors: F32, count: int) -> Ids:
    """Return the words to draw from where there is no law: int32[n], ascending, `count` or a few less.

    Half are evenly spaced by id. The others are those with the farthest nearest word: noise hardly moves them.

    Args:
        vectors: float32[V, d], C order, finite.
        count: at least 2; V or more for all words.
    """
    words = len(vectors)
    if count >= words:
        return np.arange(words, dtype=np.int32)
    spaced = np.linspace(0, words - 1, count - count // 2).astype(np.int32)
    _, far = nearest(vectors, np.arange(words, dtype=np.int32), 2, "euclidean")
    alone = np.argsort(-far[:, 1], kind="stable")[: count // 2].astype(np.int32)
    return np.union1d(spaced, alone).astype(np.int32)


def short(epsilon: float) -> float:
    """Return a number of four significant digits, no greater."""
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - DIGITS + 1)
    return float(f"{math.floor(epsilon / unit * (1 + 1e-12)) * unit:.{DIGITS}g}")


def _grid(low: float, high: float, count: int) -> list[float]:
    """Return ε from `low` to `high`, evenly spaced in ln ε; all but the two ends are rounded down to `DIGITS` digits."""
    inner = [short(float(epsilon)) for epsilon in np.geomspace(low, high, max(count, 2))[1:-1]]
    return sorted({low, high, *(epsilon for epsilon in inner if low < epsilon < high)})


def _stretch(points: dict[float, Trial]) -> list[float]:
    """Return the ε where all hold, from the first one up to where one no longer does."""
    stretch: list[float] = []
    for epsilon in sorted(points):
        if points[epsilon].holds:
            stretch.append(epsilon)
        elif stretch:
            break
    return stretch


def bisect(search: Search, below: float, steps: int) -> None:
    """Halve the interval above an ε that holds, in ln ε."""
    above = min(epsilon for epsilon in search.seen if epsilon > below)
    for _ in range(steps):
        middle = short(math.sqrt(below) * math.sqrt(above))
        if not below < middle < above:
            return
        if search.look(middle).holds:
            below = middle
        else:
            above = middle


def _monotone(search: Search) -> tuple[bool, ...]:
    """Check that the figure of each requirement moves one way only, as far as the points and their bounds show."""
    points = [search.seen[epsilon] for epsilon in sorted(search.seen) if search.seen[epsilon].findings]
    flags = []
    for number in range(len(search.requirements)):
        findings = [point.findings[number] for point in points]
        # An estimate is off by what lies between it and its bound.
        room = [max(abs(finding.judged - finding.value), TIE * abs(finding.value)) for finding in findings]
        steps = [
            (b.value - a.value, left + right)
            for (a, left), (b, right) in pairwise(zip(findings, room, strict=True))
        ]
        rises = any(step > slack for step, slack in steps)
        falls = any(step < -slack for step, slack in steps)
        flags.append(not (rises and falls))
    return tuple(flags)


@dataclass(frozen=True)
class Trial:
    """Findings at one ε.

    Attributes:
        findings: of each requirement; empty where the mechanism refuses this ε.
        refused: why it does, or None.
        names: how often a name that public lists hold is guessed, where `bayes` was found by laws, and there are such words.
    """

    epsilon: float
    findings: tuple[RequirementResult, ...] = ()
    refused: str | None = None
    names: float | None = None

    @property
    def holds(self) -> bool:
        """True if every requirement holds."""
        return bool(self.findings) and all(finding.holds for finding in self.findings)


@dataclass(frozen=True)
class Guessing:
    """The method of `bayes`.

    Attributes:
        words: that can be the input.
        how: as a sentence without its end; empty where it is exact.
        confidence: of the bounds at one ε, where they are estimated.
        prior: the name of the public prior that words are drawn from.
    """

    words: int
    how: str
    exact: bool
    confidence: float
    prior: str = ZIPF


@dataclass(frozen=True)
class Calibration:
    """Result of a search.

    Attributes:
        points: every ε that was looked at, ascending.
        epsilon: the largest one from which down to `holds_from` all hold; None where none does.
        holds_from: the smallest ε of that stretch.
        monotone: for each requirement, whether its figure was seen to move one way only.
        words: how many words were looked at; 0 where `bayes` alone is asked for.
        draws: of each word; None where the figures are exact.
        open_end: all hold up to the end of the range.
        guessing: how `bayes` was found; None where it is not asked for.
    """

    requirements: tuple[WordRequirement, ...]
    points: tuple[Trial, ...]
    epsilon: float | None
    holds_from: float | None
    monotone: tuple[bool, ...]
    words: int
    chosen: str
    total: int
    draws: int | None
    confidence: float | None
    open_end: bool
    guessing: Guessing | None = None

    def at(self, epsilon: float) -> Trial:
        """Return the findings at an examined ε."""
        return next(point for point in self.points if point.epsilon == epsilon)

    def closest(self) -> Trial:
        """Return the point that misses the limits by least."""
        able = [point for point in self.points if point.findings]
        return min(able, key=self._shortfall)

    def _shortfall(self, point: Trial) -> float:
        pairs = zip(self.requirements, point.findings, strict=True)
        return max(requirement.shortfall(finding) for requirement, finding in pairs)

    def as_dict(self, word: Callable[[int], str | int] = int) -> dict[str, Json]:
        """Return everything, JSON-able."""
        return {
            "name": "calibration",
            "meaning": "the largest ε at which the words of the lexicon meet the requirements",
            "restricted": False,
            "requirements": [described(limit) for limit in self.requirements],
            "epsilon": self.epsilon,
            "holds_from": self.holds_from,
            "open_end": self.open_end,
            "monotone": {
                str(limit): flag for limit, flag in zip(self.requirements, self.monotone, strict=True)
            },
            "exact": self.draws is None and (self.guessing is None or self.guessing.exact),
            "draws": self.draws,
            "confidence": self.confidence,
            "words": self.words,
            "words_chosen": self.chosen,
            "words_in_lexicon": self.total,
            "guessing": None if self.guessing is None else asdict(self.guessing),
            "curve": [
                {
                    "epsilon": point.epsilon,
                    "holds": point.holds,
                    "refused": point.refused,
                    "names": point.names,
                    "figures": [
                        {
                            "name": str(limit.subject),
                            **vars(finding),
                            "word": None if finding.word is None else word(finding.word),
                        }
                        for limit, finding in zip(self.requirements, point.findings, strict=False)
                    ],
                }
                for point in self.points
            ],
        }
