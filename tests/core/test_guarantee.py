"""A guarantee is a value: it compares, prints, travels as JSON, and composes only where that is allowed."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from dptext_spark.guarantee import Guarantee

WITHIN = Guarantee("epsilon_dp_within_group", 1.5, sentence="One drawn word is private.")


def test_it_is_a_frozen_value() -> None:
    assert Guarantee("epsilon_dp_within_group", 1.5, sentence="One drawn word is private.") == WITHIN
    assert hash(dataclasses.replace(WITHIN)) == hash(WITHIN)
    with pytest.raises(dataclasses.FrozenInstanceError):
        WITHIN.epsilon = 0.1  # type: ignore[misc]
    assert (WITHIN.delta, WITHIN.metric, WITHIN.unit, WITHIN.status) == (0.0, None, "word", "proved")


def test_it_prints_its_status() -> None:
    assert str(WITHIN) == "One drawn word is private. [proved]"
    assert str(dataclasses.replace(WITHIN, status="refuted")).endswith("[refuted]")


def test_it_travels_as_json() -> None:
    made = Guarantee("approx_dp", 0.1 + 0.2, 1 / 1200, None, "word", "verified", "ε")
    assert Guarantee(**json.loads(json.dumps(made.as_dict()))) == made


@pytest.mark.parametrize("kind", ["epsilon_dp", "epsilon_dp_within_group", "approx_dp"])
def test_draws_of_a_record_add_up(kind: str) -> None:
    made = Guarantee(kind, 1.5)  # type: ignore[arg-type]
    assert [made.compose(n) for n in (0, 1, 10)] == [0.0, 1.5, 15.0]


def test_a_metric_guarantee_never_becomes_a_product() -> None:
    assert Guarantee("metric_dp", 1.0, metric="euclidean").compose(10) is None


def test_no_bound_stays_no_bound() -> None:
    assert Guarantee("epsilon_dp", math.inf, status="refuted").compose(3) == math.inf
