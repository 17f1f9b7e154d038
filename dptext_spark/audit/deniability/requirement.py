"""What is asked of a mechanism over a lexicon, as a user writes it: `N_w max <= 0.5`, `bayes token <= 0.3`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from dptext_spark.audit.attacks.bayes_vulnerability import BayesVulnerability, Guesses
from dptext_spark.audit.deniability.deniability import Measured
from dptext_spark.audit.deniability.word_figures import (
    ETA,
    DistinctOutputs,
    SmallestSet,
    Unchanged,
    WordFigure,
)
from dptext_spark.errors import SettingsError

MOST_DRAWS = 1_000_000
RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
VALID = (
    "a figure (N_w, S_w, S_w(η) with η between 0 and 1, S_w[n] with n draws, bayes), a statistic over the words (max, min, mean, "
    "or a percentile such as p99; of bayes also token and worst), one of <=, <, >=, > and a number, as in 'N_w max <= 0.5', "
    "'S_w[1000] p5 >= 20' or 'bayes token <= 0.3'"
)
_FORM = re.compile(r"\s*(\S+)\s+(\S+?)\s*(<=|>=|<|>)\s*(\S+)\s*")
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
class RequirementResult:
    """How a requirement stands at one ε.

    Attributes:
        value: the statistic, exact or estimated.
        judged: what the limit is compared with: the value itself where it is exact, else its bound on the cautious side.
        holds: whether the requirement does.
        word: id of a word that has the judged value; None for a mean.
        exact: whether it is read off laws.
    """

    value: float
    judged: float
    holds: bool
    word: int | None
    exact: bool


@dataclass(frozen=True)
class Requirement:
    """A limit on a statistic of a figure over the words of a lexicon.

    Attributes:
        figure: of each word.
        statistic: `max`, `min`, `mean` or `pNN`; of `bayes` also `token` and `worst`.
        relation: one of `RELATIONS`.
        limit: what the statistic is compared with.
    """

    figure: WordFigure | BayesVulnerability
    statistic: str
    relation: str
    limit: float

    @classmethod
    def parse(cls, text: str, field: str = "require") -> Requirement:
        """Read a requirement.

        Raises:
            SettingsError: it has another form; the message says which forms are valid.
        """
        found = _FORM.fullmatch(text)
        figure = _figure(found.group(1)) if found else None
        if (
            found is None
            or figure is None
            or not _is_statistic(figure, found.group(2))
            or not _is_number(found.group(4))
        ):
            raise SettingsError(f"{field}: {text!r} given; valid: {VALID}.")
        return cls(figure, found.group(2), found.group(3), float(found.group(4)))

    def __str__(self) -> str:
        """Write it as it is read."""
        return f"{self.name} {self.relation} {self.limit:g}"

    @property
    def name(self) -> str:
        """The figure and the statistic."""
        return f"{self.figure.name} {self.statistic}"

    @property
    def caps(self) -> bool:
        """Whether it limits the statistic from above."""
        return self.relation.startswith("<")

    def judge(self, measured: Measured | Guesses) -> RequirementResult:
        """Compare what was measured with the limit; where it is an estimate, its bound on the cautious side.

        Raises:
            SettingsError: the statistic is not known of this mechanism.
        """
        value, _ = measured.statistic("values", self.statistic)
        judged, word = measured.statistic("upper" if self.caps else "lower", self.statistic)
        return RequirementResult(
            value, judged, RELATIONS[self.relation](judged, self.limit), word, measured.exact
        )

    def shortfall(self, finding: RequirementResult) -> float:
        """Return by how much the limit is missed, relative to it; 0 where it holds."""
        if finding.holds:
            return 0.0
        return abs(finding.judged - self.limit) / (abs(self.limit) or 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-able, with what the figure means."""
        return {
            "text": str(self),
            "figure": self.figure.name,
            "meaning": self.figure.meaning,
            "statistic": self.statistic,
            "relation": self.relation,
            "limit": self.limit,
        }


def figures_of(requirements: Iterable[Requirement]) -> list[WordFigure]:
    """Return the figures of single laws that requirements speak of, each once."""
    figures = dict.fromkeys(requirement.figure for requirement in requirements)
    return [figure for figure in figures if not isinstance(figure, BayesVulnerability)]


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


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
