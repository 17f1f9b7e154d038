"""ε of a record under a model: what is stated, where nothing can be, and what is kept."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.importance.selection import Importance, Level
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC, CusText, SanText
from dptext_spark.mechanisms.base import Mechanism
from dptext_spark.model import record
from dptext_spark.model.budget import with_importance
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.record import loss_of, record_account
from tests.core.names import beginning


@cache
def small() -> Lexicon:
    return beginning(Lexicon.default(), 300)


def model(mechanism: Mechanism, consistency: Any = "token") -> Privatizer:
    return Privatizer(small(), mechanism.compile(small()), consistency=consistency)


@pytest.mark.parametrize(
    ("consistency", "words"), [("token", "drawn words"), ("record", "distinct drawn words")]
)
def test_a_record_of_some_words_has_a_figure_with_its_name(consistency: str, words: str) -> None:
    found = record_account(model(CusText(epsilon=2.0, k=8), consistency))
    bound = found.of(25)
    assert bound is not None
    assert bound.epsilon < 0.66 * bound.total == 33.0
    assert f"25 {words}: ε = " in found.stated
    assert "where the sum is 50" in found.stated
    assert ("equal words" in found.unit) is (consistency == "record")
    assert "all text columns and all rows of its record key" in found.unit
    assert "What the sets themselves tell is not counted" in found.unit
    assert found.times(1_000_000) == 1.0
    assert "about 0.5 of 500,000 records" in found.meaning(500_000)


@pytest.mark.parametrize(
    ("mechanism", "consistency", "why"),
    [
        (CusText(epsilon=2.0, k=8), "dataset", "all records share the draws"),
        (SanText(epsilon=2.0), "token", "the sum of the distances"),
        (SanText(epsilon=2.0, sensitive=0.5), "record", "is revealed where it is released as it is"),
        (MVC(epsilon=12.0), "token", "the sum of the distances"),
    ],
)
def test_where_there_is_none_it_says_why(mechanism: Mechanism, consistency: str, why: str) -> None:
    found = record_account(model(mechanism, consistency))
    assert found.of(25) is None
    assert why in found.why == found.stated


def test_levels_that_differ_in_epsilon_have_their_sum() -> None:
    levels = (Level(20.0), Level(None, epsilon=4.0))
    further = tuple(one.drawn_by(CusText(epsilon=2.0, k=8)).compile(small()) for one in levels[1:])
    chosen = with_importance(
        model(CusText(epsilon=2.0, k=8)), Importance(provider="random", levels=levels), further
    )
    found = record_account(chosen).of(7)  # units of 2
    assert found is not None
    assert (found.by, found.epsilon, found.delta) == ("sum", 14.0, 0.0)


def test_what_was_found_is_kept_and_damage_is_found_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path))
    monkeypatch.setattr(record, "_known", {})
    made = model(CusText(epsilon=1.5, k=8))
    found = loss_of(made)
    (file,) = (tmp_path / "records").iterdir()
    record._known.clear()
    monkeypatch.setattr(record, "record_loss", lambda *_: pytest.fail("it was kept"))
    assert loss_of(made) == found
    for text in ("", "{}", json.dumps({**json.loads(file.read_text()), "digest": ""})):
        file.write_text(text)
        assert record._read(file.stem) is None
