"""What a search for ε has found: the curve, and the largest ε that meets what is asked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dptext_spark.audit.deniability.requirement import Finding, Requirement


@dataclass(frozen=True)
class Point:
    """What was found at one ε.

    Attributes:
        epsilon: ε.
        findings: of each requirement; empty where the mechanism refuses this ε.
        refused: why it does, or None.
    """

    epsilon: float
    findings: tuple[Finding, ...] = ()
    refused: str | None = None

    @property
    def holds(self) -> bool:
        """Whether every requirement does."""
        return bool(self.findings) and all(finding.holds for finding in self.findings)


@dataclass(frozen=True)
class Guessing:
    """How `bayes` was found.

    Attributes:
        words: that can be the input.
        how: as a sentence without its end; empty where it is exact.
        exact: whether it was read off laws.
        confidence: of the bounds at one ε, where they are estimated.
    """

    words: int
    how: str
    exact: bool
    confidence: float


@dataclass(frozen=True)
class Calibration:
    """What a search has found.

    Attributes:
        requirements: what was asked.
        points: every ε that was looked at, ascending.
        epsilon: the largest one from which down to `holds_from` all hold; None where none does.
        holds_from: the smallest ε of that stretch.
        monotone: for each requirement, whether its figure was seen to move one way only.
        words: how many words were looked at; 0 where `bayes` alone is asked for.
        chosen: which.
        total: V.
        draws: of each word; None where the figures are exact.
        confidence: of the bounds at one ε, where they are not.
        open_end: all hold up to the end of the range.
        guessing: how `bayes` was found; None where it is not asked for.
    """

    requirements: tuple[Requirement, ...]
    points: tuple[Point, ...]
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

    def at(self, epsilon: float) -> Point:
        """Return what was found at an ε that was looked at."""
        return next(point for point in self.points if point.epsilon == epsilon)

    def closest(self) -> Point:
        """Return the point that misses the limits by least."""
        able = [point for point in self.points if point.findings]
        return min(able, key=self._shortfall)

    def _shortfall(self, point: Point) -> float:
        pairs = zip(self.requirements, point.findings, strict=True)
        return max(requirement.shortfall(finding) for requirement, finding in pairs)

    def as_dict(self) -> dict[str, Any]:
        """Return everything, JSON-able; words as ids."""
        return {
            "name": "calibration",
            "meaning": "the largest ε whose figures over the words of the lexicon meet the requirements",
            "restricted": False,
            "requirements": [one.as_dict() for one in self.requirements],
            "epsilon": self.epsilon,
            "holds_from": self.holds_from,
            "open_end": self.open_end,
            "monotone": {str(one): flag for one, flag in zip(self.requirements, self.monotone, strict=True)},
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
                    "figures": [
                        {"name": one.name, **vars(found)}
                        for one, found in zip(self.requirements, point.findings, strict=False)
                    ],
                }
                for point in self.points
            ],
        }
