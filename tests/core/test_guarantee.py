"""A guarantee is a value: it compares, prints, travels as JSON, and composes only where that is allowed."""

from __future__ import annotations

import json
import math

import pytest

from dptext_spark.errors import DPTextError
from dptext_spark.guarantee import Guarantee

WITHIN = Guarantee("epsilon_dp_within_group", 1.5, sentence="One drawn word is private.")


def test_it_travels_as_json() -> None:
    made = Guarantee("approx_dp", 0.1 + 0.2, 1 / 1200, None, "word", "verified", "ε")
    assert Guarantee(**json.loads(json.dumps(made.as_dict()))) == made


@pytest.mark.parametrize("kind", ["epsilon_dp", "epsilon_dp_within_group", "approx_dp"])
@pytest.mark.parametrize("status", ["proved", "verified", "claimed", "refuted"])
def test_draws_of_a_record_add_up(kind: str, status: str) -> None:
    made = Guarantee(kind, 1.5, status=status, sentence="One.")  # type: ignore[arg-type]
    for draws, epsilon in ((0, 0.0), (1, 1.5), (10, 15.0), (2.5, 3.75)):
        whole = made.compose(draws)
        assert (whole.kind, whole.epsilon, whole.delta) == (kind, epsilon, 0.0)
        assert (whole.unit, whole.status) == ("record", status)
    assert made.compose(1).sentence != made.sentence


def test_delta_adds_up_to_1() -> None:
    made = Guarantee("approx_dp", 0.1, 0.3)
    composed = [(made.compose(n).epsilon, made.compose(n).delta) for n in (0, 3, 4)]
    assert composed == [(0, 0), (0.3, 0.9), (0.4, 1)]
    assert "ε = 0.3 up to a probability δ = 0.9" in str(made.compose(3))


def test_what_is_composed_holds_within_output_sets_alone_where_one_draw_does() -> None:
    assert "ε = 4.5" in str(WITHIN.compose(3))
    assert "output sets" in str(WITHIN.compose(3))
    assert "output sets" not in str(Guarantee("epsilon_dp", 1.5).compose(3))


def test_a_metric_guarantee_never_becomes_a_product() -> None:
    made = Guarantee("metric_dp", 1.0, metric="euclidean")
    assert not made.adds_up
    for draws in (0, 1, 10):
        with pytest.raises(DPTextError, match="sum of the distances"):
            made.compose(draws)


def test_no_bound_stays_no_bound() -> None:
    made = Guarantee("epsilon_dp", math.inf, status="refuted")
    assert (made.compose(3).epsilon, made.compose(0).epsilon) == (math.inf, 0.0)


@pytest.mark.parametrize("draws", [-1, math.nan, math.inf])
def test_what_is_no_number_of_draws_is_refused(draws: float) -> None:
    with pytest.raises(DPTextError, match="draws"):
        WITHIN.compose(draws)
