"""The section on what variants gain where an attack succeeds equally: figures at a level, and the section on a little text."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import utility_gain
from benchmarks.sizes import TOY
from benchmarks.utility_gain import KEPT, PLAIN, Point, at_levels, gains
from tests.core.mechanisms.fluent_toys import lexicon_of

pytest.importorskip("sklearn", reason="the extra [audit] is not installed")


def point(epsilon: float, attacked: list[float], kept: list[float]) -> Point:
    """Ten words a record, of which so many are guessed and kept."""
    ten = np.full(len(kept), 10.0)
    return Point(epsilon, np.array([attacked, ten]), 0.1, {KEPT: np.array([kept, ten])}, 5)


def test_a_utility_at_a_level_is_linear_between_two_points_and_gains_are_paired() -> None:
    plain = [point(1.0, [2.0, 2.0], [0.0, 2.0]), point(2.0, [6.0, 6.0], [4.0, 6.0])]
    better = [point(1.0, [2.0, 2.0], [1.0, 3.0]), point(2.0, [6.0, 6.0], [5.0, 7.0])]
    weights = np.array([[1.0, 1.0], [2.0, 0.0]])
    found = at_levels(plain, KEPT, weights)
    # Success .4 lies in the middle of .2 and .6; .7 and more are not reached.
    assert found[:, 1].tolist() == pytest.approx([0.3, 0.2])
    rows = gains({PLAIN: plain, "better": better}, 2)
    assert [row[:2] for row in rows] == [(KEPT, level) for level in utility_gain.LEVELS]
    # Whichever records are drawn, the gain is the same: it is taken on the same records.
    assert rows[1][4] == "+0.100 (+0.100 to +0.100)"
    assert gains({PLAIN: plain[:1] * 2, "better": better}, 2)[1][2] is None


def test_a_ratio_to_no_word_kept_is_left_out() -> None:
    better = [point(1.0, [2.0, 2.0], [1.0, 3.0]), point(2.0, [6.0, 6.0], [5.0, 7.0])]
    # The plain variant keeps no word in a resample that draws the first record twice.
    some = [point(1.0, [2.0, 2.0], [0.0, 2.0]), point(2.0, [6.0, 6.0], [0.0, 2.0])]
    assert "resamples do not reach it" in str(gains({PLAIN: some, "better": better}, 2)[1][5])
    none = [point(1.0, [2.0, 2.0], [0.0, 0.0]), point(2.0, [6.0, 6.0], [0.0, 0.0])]
    row = gains({PLAIN: none, "better": better}, 2)[1]
    assert row[3] == 0.4
    assert row[5] is None


@pytest.mark.usefixtures("shared_data")
def test_the_section_on_a_little_text(monkeypatch: pytest.MonkeyPatch) -> None:
    common = ("film", "movie", "story", "good", "bad", "funny", "comedy", "character", "performance")
    monkeypatch.setattr(utility_gain, "lexicons", lambda _: ([("toy", lexicon_of(40, 3, among=common))], []))
    section = utility_gain.measure(TOY, lambda _: None)
    assert [grid.title for grid in section.grids] == [
        f"toy, {kind}: {what}"
        for kind in ("sentences", "longer texts")
        for what in ("at equal success", "all points")
    ]
    points = section.grids[1].rows
    assert len(points) == 3 * len(utility_gain.TOY_EPSILONS)
    for variant in utility_gain.VARIANTS:
        first, last = (row for row in points if row[0] == variant)
        assert first[2] < last[2] <= 1  # type: ignore[operator]  # more is guessed at a larger ε
        assert all(0 < row[3] <= row[2] for row in (first, last))  # type: ignore[operator]  # the better attack counts
