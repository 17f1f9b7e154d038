"""What a search for ε prints: every ε with its bar, what was found, and what could not be."""

from __future__ import annotations

import numpy as np

from dptext_spark.audit.epsilon_search import Calibration, Trial, word_requirement
from dptext_spark.audit.find_epsilon import FoundEpsilon
from dptext_spark.config.requirements import RequirementResult
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.report.mechanism_screens import BAR, calibration
from tests.frozen.written import assert_as_frozen, beyond

LEXICON = Lexicon(Vocabulary.of(["one", "two"]), np.eye(2, dtype=np.float32))
REQUIREMENTS = (word_requirement("N_w max <= 0.5"), word_requirement("S_w mean >= 2"))


def point(epsilon: float, unchanged: float, size: float, exact: bool = True) -> Trial:
    upper = unchanged if exact else unchanged + 0.05
    found = RequirementResult(unchanged, upper, upper <= 0.5, 1, exact)
    return Trial(epsilon, (found, RequirementResult(size, size, size >= 2, None, exact)))


def found(*points: Trial, epsilon: float, **changes: object) -> FoundEpsilon:
    fields: dict[str, object] = {
        "requirements": REQUIREMENTS,
        "points": points,
        "epsilon": epsilon,
        "holds_from": points[0].epsilon,
        "monotone": (True, True),
        "words": 2,
        "chosen": "every word",
        "total": 2,
        "draws": None,
        "confidence": None,
        "open_end": False,
    }
    return FoundEpsilon(Calibration(**(fields | changes)), LEXICON, {})  # type: ignore[arg-type]


POINTS = (point(0.5, 0.25, 4.0), point(1.0, 0.4, 3.0))
REFUSED = Trial(0.1, refused="mechanism.epsilon: too small")
DRAWN = {"draws": 1000, "confidence": 0.99}
CASES = {
    "plain": found(*POINTS, epsilon=1.0),
    "open end": found(*POINTS, epsilon=1.0, open_end=True),
    "from above": found(*POINTS, epsilon=1.0, holds_from=1.0),
    "not one way": found(*POINTS, epsilon=1.0, monotone=(False, True)),
    "some words": found(*POINTS, epsilon=1.0, **DRAWN, words=1, total=30, chosen="the first"),
    "refused": found(REFUSED, point(1.0, 0.4, 3.0, exact=False), epsilon=1.0, **DRAWN),
}


def test_searches_are_as_they_were() -> None:
    plain = calibration(CASES["plain"]).text()
    texts = {name: beyond(calibration(result).text(), plain) for name, result in CASES.items()}
    assert_as_frozen("terminal", "calibration", {**texts, "plain": plain})


def test_the_curve_and_the_finding() -> None:
    points = (point(0.5, 0.25, 4.0), point(1.0, 0.499999, 3.0), point(2.0, 1.0, 1.0))
    rows = calibration(found(*points, epsilon=1.0)).table
    assert [row[-1].split()[0] for row in rows[1:]] == ["holds", "found", "fails"]
    assert [row[-1].count("█") for row in rows[1:]] == [BAR // 4, BAR // 2, BAR]
    assert rows[2][:3] == ("1", "0.5", "3")
