"""1-Diffractor against the paper's definitions: parameters, lists, the paper's figures, the guarantee, draws."""

from __future__ import annotations

import dataclasses
import math
from typing import get_args

import numpy as np
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import Diffractor
from dptext_spark.mechanisms.diffractor import PRESETS, Form, orderings, start_words
from tests.core.mechanisms import plain_whole as plain

EPSILONS = (0.1, 0.5, 1.0, 3.0, 5.0, 10.0)


def lexicon(words: int, dimensions: int = 4, seed: int = 0, first: int = 0) -> Lexicon:
    vectors = np.random.default_rng(seed).normal(size=(words, dimensions)).astype(np.float32)
    return Lexicon(Vocabulary.of([f"w{i}" for i in range(first, first + words)]), vectors)


class TestParameters:
    def test_lists_beside_a_preset(self) -> None:
        assert Diffractor(preset="L1", lists=2)
        assert Diffractor(preset="L1")
        for preset, lists in (("L0", 2), ("L1", 3), ("L2", 5)):
            with pytest.raises(SettingsError, match=rf"mechanism\.lists: {lists} .* preset {preset}"):
                Diffractor(preset=preset, lists=lists)  # type: ignore[arg-type]


class TestLists:
    def test_they_are_greedy_walks_from_public_starts(self) -> None:
        made = Diffractor(lists=3, list_seed=7).compile(lexicon(200))
        starts = start_words(200, 3, 7)
        assert (made.order == orderings(lexicon(200).vectors, starts)).all()
        assert made.summary.list_seed == 7
        assert made.summary.starts == tuple(starts)
        assert made.order[:, 0].tolist() == starts
        assert len(set(starts)) == 3

    def test_the_lexicon_s_metric_is_not_used(self) -> None:
        one = lexicon(100)
        other = dataclasses.replace(one, metric="euclidean", checked=True)
        assert (Diffractor().compile(one).order == Diffractor().compile(other).order).all()

    @pytest.mark.parametrize(("preset", "lists", "embeddings"), [("L0", 5, 5), ("L1", 10, 5), ("L2", 1, 1)])
    def test_presets(self, preset: str, lists: int, embeddings: int) -> None:
        given = [lexicon(40, 3 + n, seed=n) for n in range(embeddings)]
        made = Diffractor(preset=preset).compile(*given)  # type: ignore[arg-type]
        assert made.order.shape == (lists, 40)
        assert (made.summary.lists, made.summary.embeddings) == (lists, embeddings)
        starts = start_words(40, lists, 0)
        each = lists // embeddings
        for n, one in enumerate(given):
            part = slice(n * each, (n + 1) * each)
            assert (made.order[part] == orderings(one.vectors, starts[part])).all()

    @pytest.mark.parametrize("preset", [name for name in PRESETS if name != "none"])
    def test_a_preset_needs_its_embeddings(self, preset: str) -> None:
        needed = PRESETS[preset][1]  # type: ignore[index]
        for number in {1, 2, 4, 5, 6} - {needed}:
            with pytest.raises(SettingsError, match=rf"lexicon\.more: {number - 1} .* {preset}"):
                Diffractor(preset=preset).compile(*[lexicon(10)] * number)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "other", [lexicon(39), lexicon(41), lexicon(40, first=1)], ids=["fewer", "more", "others"]
    )
    def test_lists_of_different_words_are_refused(self, other: Lexicon) -> None:
        """Of two lists, the second with every other word, a pair loses more than five times the bound."""
        for given in ((lexicon(40), other), (other, lexicon(40))):
            with pytest.raises(SettingsError, match=r"lexicon\.more.*guarantee would not hold"):
                Diffractor().compile(*given)

    def test_the_same_words_in_another_order_are_refused(self) -> None:
        words = lexicon(40).vocabulary.strings().to_pylist()
        turned = Lexicon(Vocabulary.of(words[::-1]), lexicon(40).vectors)
        with pytest.raises(SettingsError, match=r"lexicon\.more.*order of words"):
            Diffractor().compile(lexicon(40), turned)


class TestPaper:
    """Exact figures mid-list, from the laws that are sampled."""

    @pytest.mark.parametrize(
        ("form", "wanted"),
        [
            ("geometric", (0.050, 0.245, 0.462, 0.905, 0.987, 0.9999)),
            ("tem", (0.025, 0.124, 0.245, 0.635, 0.848, 0.987)),
        ],
    )
    def test_unchanged(self, form: str, wanted: tuple[float, ...]) -> None:
        """N_w = tanh(ε/2) and, up to β, tanh(ε/4): PAPERS, 1-Diffractor."""
        made = lexicon(4001)
        for epsilon, figure in zip(EPSILONS, wanted, strict=True):
            sampler = Diffractor(epsilon, form).compile(made)  # type: ignore[arg-type]
            middle = int(sampler.order[0, 2000])
            found = float(sampler.law(middle).probability[middle])
            exact = math.tanh(epsilon / (2 if form == "geometric" else 4))
            assert found == pytest.approx(exact, rel=1e-9 if form == "geometric" else 0.0011)
            assert exact == pytest.approx(figure, abs=0.00051 if figure < 0.99 else 0.00005)
            assert sampler.summary.unchanged_mid_list == pytest.approx(found, rel=1e-12)

    @pytest.mark.parametrize(("epsilon", "wanted"), [(0.1, 89.8), (1.0, 13.4), (3.0, 5.0)])
    def test_distinct_words_of_1000_draws(self, epsilon: float, wanted: float) -> None:
        sampler = Diffractor(epsilon).compile(lexicon(2001))
        p = sampler.law(int(sampler.order[0, 1000])).probability
        assert (1 - (1 - p) ** 1000).sum() == pytest.approx(wanted, abs=0.05)

    def test_gamma_is_that_of_the_formula(self) -> None:
        """The public package has 5 at every ε; the formula has V, the list's length."""
        for words, epsilon in ((100, 1.0), (1000, 3.0), (1000, 40.0)):
            gamma = Diffractor(epsilon, "tem").compile(lexicon(words)).summary.gamma
            assert gamma == pytest.approx(
                min(words - 1, 2 / epsilon * math.log(0.999 * (words - 1) / 0.001)), rel=1e-12
            )
        made = Diffractor(0.3, "tem", beta=0.5).compile(lexicon(1000))
        gamma = made.summary.gamma
        order = made.order[0]
        weight = made.law(int(order[500])).probability[order]
        assert weight[499] / weight[498] == pytest.approx(math.exp(0.15), rel=1e-9)
        assert 40 < gamma < 50
        assert np.ptp(weight[500 + math.ceil(gamma) :]) < 1e-17


class TestSampling:
    @pytest.mark.parametrize("form", get_args(Form))
    @pytest.mark.parametrize("epsilon", [1e-6, 0.05, 1.0, 7.5, 1e6])
    @pytest.mark.parametrize("lists", [1, 3])
    def test_draws_follow_the_law(self, form: str, epsilon: float, lists: int) -> None:
        made = Diffractor(epsilon, form, lists=lists).compile(lexicon(50))  # type: ignore[arg-type]
        for w in (int(made.order[0, 0]), int(made.order[0, 49]), 3, 17):
            plain.check_draws(plain.draw(made, w, 20_000, f"{form} {epsilon}"), made.law(w))
