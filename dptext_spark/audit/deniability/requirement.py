"""What can be required of a mechanism over the words of a lexicon: `N_w max <= 0.5`, `bayes token <= 0.3`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from dptext_spark.audit.attacks.bayes_vulnerability import BayesVulnerability, Guesses
from dptext_spark.audit.deniability.deniability import Measured
from dptext_spark.audit.deniability.word_figures import (
    ETA,
    DistinctOutputs,
    SmallestSet,
    Unchanged,
    WordFigure,
)
from dptext_spark.config.requirements import FORM, Requirement, RequirementResult
from dptext_spark.runtime.record import Json

MOST_DRAWS = 1_000_000
VALID = (
    "a figure (N_w, S_w, S_w(η) with η between 0 and 1, S_w[n] with n draws, bayes), a statistic over the words (max, min, mean, "
    f"or a percentile such as p99; of bayes also token, worst, names and words), {FORM}, as in 'N_w max <= 0.5', "
    "'S_w[1000] p5 >= 20' or 'bayes token <= 0.3'"
)
_FORM = re.compile(r"(\S+)\s+(\S+)")
_PERCENTILE = re.compile(r"p(\d{1,3}(?:\.\d+)?)")


def _smallest_set(given: str) -> WordFigure:
    eta = float(given) if given else ETA
    if not 0 < eta < 1:
        raise ValueError
    return SmallestSet(eta)


def _distinct(given: str) -> WordFigure:
    if not 1 <= int(given) <= MOST_DRAWS:
        raise ValueError
    return DistinctOutputs(int(given))


# What a figure looks like, and what makes it from the part in parentheses or brackets.
FIGURES: dict[str, Callable[[str], WordFigure | BayesVulnerability]] = {
    r"N_w()": lambda _: Unchanged(),
    r"S_w(?:\(([0-9.eE+-]+)\))?": _smallest_set,
    r"S_w\[(\d+)\]": _distinct,
    r"bayes()": lambda _: BayesVulnerability(),
}


@dataclass(frozen=True)
class WordStatistic:
    """A statistic of a figure over the words of a lexicon, as requirements name it.

    Attributes:
        figure: of each word.
        name: `max`, `min`, `mean` or `pNN`; of `bayes` also `token`, `worst`, `names` and `words`.
    """

    figure: WordFigure | BayesVulnerability
    name: str

    def __str__(self) -> str:
        """Write the figure and the statistic."""
        return f"{self.figure.name} {self.name}"


WordRequirement: TypeAlias = Requirement[WordStatistic]


def word_requirement(text: str, field: str = "require") -> WordRequirement:
    """Read a requirement of a mechanism over a lexicon.

    Raises:
        SettingsError: it has another form; the message says which forms are valid.
    """
    return Requirement.parse(text, _statistic, VALID, field)


def judge(requirement: WordRequirement, measured: Measured | Guesses) -> RequirementResult:
    """Compare what was measured with the limit; where it is an estimate, its bound on the cautious side.

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
    found = _FORM.fullmatch(text)
    figure = _figure(found.group(1)) if found else None
    if found is None or figure is None or not _is_statistic(figure, found.group(2)):
        return None
    return WordStatistic(figure, found.group(2))


def _figure(text: str) -> WordFigure | BayesVulnerability | None:
    for form, make in FIGURES.items():
        found = re.fullmatch(form, text)
        if found:
            try:
                return make(found.group(1) or "")
            except ValueError:
                return None
    return None


def _is_statistic(figure: WordFigure | BayesVulnerability, text: str) -> bool:
    if isinstance(figure, BayesVulnerability) and text in figure.statistics:
        return True
    rank = _PERCENTILE.fullmatch(text)
    return text in ("max", "min", "mean") or (rank is not None and float(rank.group(1)) <= 100)
