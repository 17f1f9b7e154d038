"""A grid of samplers draws as mechanisms that are compiled one at a time do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dptext_spark.audit.comparison.compare import SamplerGrid
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import TEM, CusText, Diffractor, SanText, diffractor
from dptext_spark.mechanisms.samplers import ExponentialSampler
from dptext_spark.randomness.draws import Draws
from tests.core.names import scattered

V = 600
MADE: dict[str, Any] = {
    "custext": CusText(k=5),
    "santext": SanText(),
    "tem": TEM(),
    "tem, narrow": TEM(gamma=1.5),
    "santext+": SanText(sensitive=0.5),
    "tem, exact": TEM(calibration="exact"),
    "geometric": Diffractor(),
    "on lists": Diffractor(form="tem"),
    "two lists": Diffractor(lists=2),
}
TOGETHER = {"santext", "tem", "tem, narrow"}


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(V, 4, 3)


def test_it_draws_as_each_alone(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[int] = []
    inner = diffractor.several_walks

    def counted(embeddings: Any, each: int, seed: int) -> Any:
        walks.append(each)
        return inner(embeddings, each, seed)

    drawn = np.arange(0, V, 3, dtype=np.int32)
    ids = np.resize(drawn, 2_000)
    draws = Draws(bytes(32), np.arange(4_000, dtype=np.uint64).reshape(2_000, 2))
    alone = {
        (name, epsilon): replace(one, epsilon=epsilon).compile(lexicon).sample(ids, draws)
        for name, one in MADE.items()
        for epsilon in (0.8, 3.0)
    }
    monkeypatch.setattr(diffractor, "several_walks", counted)
    grid = SamplerGrid((lexicon,), MADE, alone, drawn)
    for (name, epsilon), wanted in alone.items():
        made: Any = grid.sampler(name, epsilon)
        np.testing.assert_array_equal(made.sample(ids, draws), wanted, err_msg=name)
        assert (isinstance(made, ExponentialSampler) and made.place is not None) == (name in TOGETHER)
    assert walks == [1, 2]  # once for both forms, once for two lists


def test_where_every_law_is_needed_rows_are_made_for_all(lexicon: Lexicon) -> None:
    made: Any = SamplerGrid((lexicon,), MADE, [("tem", 1.0)], None).sampler("tem", 1.0)
    assert made.place is None
    assert made.law(V - 1) is not None


def test_what_does_not_fit_the_lexicon_is_refused(lexicon: Lexicon) -> None:
    grid = SamplerGrid((lexicon,), {"custext": CusText(k=V + 1)}, [("custext", 1.0)], None)
    with pytest.raises(SettingsError, match=r"mechanism\.k"):
        grid.sampler("custext", 1.0)
