"""The certificate's verdict, in both directions, and ε of a record: what is stated, where nothing can be, and what is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.levels import Importance, Level
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC, CusText, SanText
from dptext_spark.mechanisms.base import Mechanism
from dptext_spark.mechanisms.privacy_loss import Loss
from dptext_spark.mechanisms.samplers.table import TableSampler
from dptext_spark.model import record
from dptext_spark.model.certificate import NO_BOUND, VERDICTS, Certificate, certify, verdict
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.record import loss_of, record_account, with_importance
from tests.core.names import beginning, scattered

CLAIM = Guarantee("epsilon_dp_within_group", 1.0)


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(70, 5, 3)


@pytest.mark.parametrize(
    ("value", "attained", "pairs", "expected"),
    [
        (0.9, 0.9, 10, "confirmed"),
        (0.9, 0.9, 9, "not refuted"),  # a pair was not looked at
        (1.0000001, 0.9, 10, "not refuted"),  # the bound passes the claim, no pair is known to
        (1.2, 1.0000001, 10, "refuted"),
        (1.2, 1.0000001, 1, "refuted"),
    ],
)
def test_it_never_rounds_in_favour(value: float, attained: float, pairs: int, expected: str) -> None:
    loss = Loss(value, attained, pairs, 10, None, "a test")
    assert verdict(CLAIM, loss) == expected


def test_a_claim_over_no_pair_bounds_nothing() -> None:
    """Where each word has a set of its own: as drawn, and after a remap."""
    words = scattered(40, 8, 0)
    for remap in ("none", "bayes"):
        model = Privatizer(words, CusText(epsilon=2.0, k=6, mapping="aggressive", remap=remap).compile(words))
        assert model.sampler.summary.alone_share == 1.0
        found = certify(model)
        assert (found.verdict, found.loss.pairs, found.loss.verdict) == (NO_BOUND, 0, NO_BOUND)
        assert found.sentence.startswith("No bound: ")
        assert Certificate.of(json.loads(json.dumps(found.as_dict()))).verdict == NO_BOUND
        assert "alone on its output set" in record_account(model).loss.why
    assert VERDICTS.index("not refuted") < VERDICTS.index(NO_BOUND) < VERDICTS.index("refuted")
    nothing = Loss(0.0, 0.0, 0, 0, None, "a test")
    assert verdict(CLAIM, nothing) == NO_BOUND
    assert verdict(CLAIM, replace(nothing, others=0.5)) == "confirmed"  # SanText+: one sensitive word


def test_of_two_releases_the_worse_decides() -> None:
    claim = Guarantee("approx_dp", 1.0, delta=0.01)
    word = Loss(float("inf"), 0.0, 4, 10, None, "a test", delta=0.002)
    vector = replace(word, delta=0.02, delta_most=0.5, delta_opposite=0.02, release="vector")
    assert verdict(claim, word) == "not refuted"
    assert verdict(claim, word, vector) == "refuted"
    # The claim is about any clipped vectors, whether a lexicon holds the worst of them or not.
    assert verdict(claim, word, replace(vector, delta=0.002)) == "refuted"
    assert verdict(claim, word, replace(vector, delta=0.01, delta_opposite=0.01)) == "not refuted"
    assert verdict(claim, replace(word, delta=0.02)) == "refuted"


def test_a_refuted_guarantee_stays_refuted() -> None:
    loss = Loss(0.1, 0.1, 10, 10, None, "a test")
    assert verdict(replace(CLAIM, status="refuted"), loss) == "refuted"


def test_each_level_of_importance_is_certified(lexicon: Lexicon) -> None:
    first, second = (CusText(epsilon=epsilon, k=6).compile(lexicon) for epsilon in (1.0, 3.0))
    boasting = TableSampler(second.cells, replace(second.guarantee, epsilon=0.5), second.summary)
    chosen = Importance(provider="random", levels=(Level(20), Level(None)))
    for further, expected in ((second, "confirmed"), (boasting, "refuted")):
        found = certify(with_importance(Privatizer(lexicon, first), chosen, (further,)))
        assert found.verdict == expected
        assert found.sentence.startswith("Level 1: Confirmed")
        assert "Level 2: " in found.sentence
        written = json.loads(json.dumps(found.as_dict()))
        assert Certificate.of(written) == replace(found, seconds=written["seconds"])


@cache
def commonest() -> Lexicon:
    return beginning(Lexicon.default(), 300)


def model_of(mechanism: Mechanism, consistency: Any = "token") -> Privatizer:
    return Privatizer(commonest(), mechanism.compile(commonest()), consistency=consistency)


@pytest.mark.parametrize(
    ("consistency", "words"), [("token", "drawn words"), ("record", "distinct drawn words")]
)
def test_a_record_of_some_words_has_a_figure_with_its_name(consistency: str, words: str) -> None:
    found = record_account(model_of(CusText(epsilon=2.0, k=8), consistency))
    bound = found.of(25)
    assert bound.epsilon < 0.66 * bound.total == 33.0
    assert f"25 {words} has ε = " in found.stated
    assert ("equal words" in found.unit) is (consistency == "record")
    assert found.times(1_000_000) == 1.0


@pytest.mark.parametrize(
    ("mechanism", "consistency", "why"),
    [
        (CusText(epsilon=2.0, k=8), "dataset", "all records share the draws"),
        (SanText(epsilon=2.0), "token", "the sum of the distances"),
        (SanText(epsilon=2.0, sensitive=0.5), "record", "is revealed if it is released as it is"),
        (MVC(epsilon=12.0), "token", "the sum of the distances"),
    ],
)
def test_where_there_is_none_it_says_why(mechanism: Mechanism, consistency: str, why: str) -> None:
    found = record_account(model_of(mechanism, consistency))
    assert found.of(25) is None
    assert why in found.why == found.stated


def test_levels_that_differ_in_epsilon_have_their_sum() -> None:
    mechanism, levels = CusText(epsilon=2.0, k=8), (Level(20.0), Level(None, epsilon=4.0))
    further = tuple(one.drawn_by(mechanism).compile(commonest()) for one in levels[1:])
    chosen = with_importance(model_of(mechanism), Importance(provider="random", levels=levels), further)
    found = record_account(chosen).of(7)  # units of 2
    assert (found.by, found.epsilon, found.delta) == ("sum", 14.0, 0.0)


def test_what_was_found_is_kept_and_damage_is_found_again(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path))
    monkeypatch.setattr(record, "_known", {})
    made = model_of(CusText(epsilon=1.5, k=8))
    found = loss_of(made)
    (file,) = (tmp_path / "records").iterdir()
    record._known.clear()
    monkeypatch.setattr(record, "record_loss", lambda *_: pytest.fail("it was kept"))
    assert loss_of(made) == found
    for text in ("", "{}", json.dumps({**json.loads(file.read_text()), "digest": ""})):
        file.write_text(text)
        assert record._cached_loss(file.stem) is None
