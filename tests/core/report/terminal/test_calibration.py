"""What a search for ε prints: every ε with its bar, what was found, and what could not be."""

from __future__ import annotations

import numpy as np
import pytest

from dptext_spark.audit.deniability.calibrate import Calibration, Point, word_requirement
from dptext_spark.audit.deniability.find_epsilon import FoundEpsilon
from dptext_spark.config.requirements import RequirementResult
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.report.terminal.calibration import BAR, calibration_text

LEXICON = Lexicon(Vocabulary.of(["one", "two"]), np.eye(2, dtype=np.float32))
REQUIREMENTS = (word_requirement("N_w max <= 0.5"), word_requirement("S_w mean >= 2"))


def point(epsilon: float, unchanged: float, size: float, exact: bool = True) -> Point:
    upper = unchanged if exact else unchanged + 0.05
    return Point(
        epsilon,
        (
            RequirementResult(unchanged, upper, upper <= 0.5, 1, exact),
            RequirementResult(size, size, size >= 2, None, exact),
        ),
    )


def found(*points: Point, epsilon: float, **changes: object) -> FoundEpsilon:
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


def text(result: FoundEpsilon) -> str:
    return " ".join(calibration_text(result, 100).split())


def test_the_curve_and_the_finding() -> None:
    points = (point(0.5, 0.25, 4.0), point(1.0, 0.499999, 3.0), point(2.0, 1.0, 1.0))
    rows = calibration_text(found(*points, epsilon=1.0), 100).splitlines()
    assert [row.split()[-2] for row in rows[1:4]] == ["holds", "found", "fails"]
    assert [row.count("█") for row in rows[1:4]] == [BAR // 4, BAR // 2, BAR]
    assert rows[2].split()[:3] == ["1", "0.5", "3"]
    said = text(found(*points, epsilon=1.0))
    assert "satisfies N_w max <= 0.5 (there 0.5, the word 'two') and S_w mean >= 2 (there 3)." in said
    assert "Exact, over all 2 words" in said
    assert "--high" not in said
    assert "one way" not in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"open_end": True}, "end of the range: a larger ε may satisfy it too (--high)"),
        ({"holds_from": 1.0}, "It holds from ε = 1 on, not below"),
        ({"monotone": (False, True)}, "N_w max does not move one way only as ε grows"),
        (
            {"draws": 1000, "confidence": 0.99, "words": 1, "total": 30, "chosen": "the first"},
            "Estimated from 1,000 draws of each of 1 of 30 words (the first)",
        ),
    ],
)
def test_what_must_be_said_besides(changes: dict[str, object], said: str) -> None:
    points = (point(0.5, 0.25, 4.0), point(1.0, 0.4, 3.0))
    assert said not in text(found(*points, epsilon=1.0))
    assert said in text(found(*points, epsilon=1.0, **changes))


def test_estimates_stand_beside_their_bounds_and_a_refusal_is_a_row() -> None:
    points = (Point(0.1, refused="mechanism.epsilon: too small"), point(1.0, 0.4, 3.0, exact=False))
    rows = calibration_text(found(*points, epsilon=1.0, draws=1000, confidence=0.99), 100).splitlines()
    assert rows[1].split() == ["0.1", "-", "-", "refused"]
    assert "0.4 (<= 0.45)" in rows[2]
    assert "3 (>= 3)" in rows[2]
