"""1-Diffractor against the paper's definitions: parameters, lists, the paper's figures, the guarantee, draws."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.orderings import orderings, start_words
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import MECHANISMS, Diffractor
from dptext_spark.mechanisms.diffractor import PRESETS, Form
from dptext_spark.mechanisms.samplers.ordering import OrderingSummary
from dptext_spark.randomness.draws import Draws, RunKey

TOTAL = 2**63
EPSILONS = (0.1, 0.5, 1.0, 3.0, 5.0, 10.0)


def lexicon(words: int, dimensions: int = 4, seed: int = 0, first: int = 0) -> Lexicon:
    vectors = np.random.default_rng(seed).normal(size=(words, dimensions)).astype(np.float32)
    return Lexicon(Vocabulary.of([f"w{i}" for i in range(first, first + words)]), vectors)


class TestParameters:
    def test_defaults(self) -> None:
        assert dataclasses.asdict(Diffractor()) == {
            "epsilon": 1.0, "form": "geometric", "lists": 1, "list_seed": 0, "preset": "none", "beta": 0.001,
            "calibration": "published", "remap": "none",
        }  # fmt: skip
        assert MECHANISMS["diffractor"] is Diffractor

    @pytest.mark.parametrize("epsilon", [0, 0.0, -1, math.nan, math.inf, "1", True, None, [1], 10**400])
    def test_epsilon(self, epsilon: object) -> None:
        with pytest.raises(SettingsError, match=r"mechanism\.epsilon.*0\.000001 or greater"):
            Diffractor(epsilon=epsilon)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("lists", [0, -1, 65, 1.0, "1", None, True]),
            ("list_seed", [-1, 2**63, 0.0, "0", None, False]),
            ("beta", [0, 1, 0.0, 1.0, -0.1, 1.1, math.nan, math.inf, "0.1", None, True]),
            ("form", ["geo", "TEM", "", None, 1, ["tem"]]),
            ("preset", ["L3", "l0", None, 0, ""]),
        ],
    )
    def test_bad_values(self, name: str, values: list[object]) -> None:
        for value in values:
            with pytest.raises(SettingsError, match=rf"mechanism\.{name}.*valid"):
                Diffractor(**{name: value})  # type: ignore[arg-type]

    def test_a_near_miss_is_suggested(self) -> None:
        with pytest.raises(SettingsError, match="Did you mean 'geometric'"):
            Diffractor(form="geometrical")  # type: ignore[arg-type]

    def test_lists_beside_a_preset(self) -> None:
        assert Diffractor(preset="L1", lists=2)
        assert Diffractor(preset="L1")
        for preset, lists in (("L0", 2), ("L1", 3), ("L2", 5)):
            with pytest.raises(SettingsError, match=rf"mechanism\.lists: {lists} given, but preset {preset}"):
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

    def test_a_seed_gives_the_same_lists_again_and_another_others(self) -> None:
        first, second, other = (Diffractor(list_seed=s).compile(lexicon(100)).order for s in (1, 1, 2))
        assert (first == second).all()
        assert not (first == other).all()

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
            with pytest.raises(SettingsError, match=rf"mechanism\.preset: {preset}.*{number} given"):
                Diffractor(preset=preset).compile(*[lexicon(10)] * number)  # type: ignore[arg-type]

    def test_any_number_of_embeddings_without_a_preset(self) -> None:
        made = Diffractor(lists=2).compile(*[lexicon(30, seed=n) for n in range(3)])
        assert made.order.shape == (6, 30)

    @pytest.mark.parametrize(
        "other", [lexicon(39), lexicon(41), lexicon(40, first=1)], ids=["fewer", "more", "others"]
    )
    def test_lists_of_different_words_are_refused(self, other: Lexicon) -> None:
        """With them the bound breaks: see test_words_missing_from_a_list_break_it of the kernel."""
        for given in ((lexicon(40), other), (other, lexicon(40))):
            with pytest.raises(SettingsError, match=r"lexicon\.more.*guarantee does not hold"):
                Diffractor().compile(*given)

    def test_the_same_words_in_another_order_are_refused(self) -> None:
        words = lexicon(40).vocabulary.strings().to_pylist()
        turned = Lexicon(Vocabulary.of(words[::-1]), lexicon(40).vectors)
        with pytest.raises(SettingsError, match=r"lexicon\.more.*same order"):
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

    @pytest.mark.parametrize("epsilon", [0.2, 1.0, 6.0])
    def test_tem_is_close_to_geometric_at_half(self, epsilon: float) -> None:
        """Total variation at most β in mid-list, β = 0.001."""
        made = lexicon(2001)
        one, other = Diffractor(epsilon, "tem").compile(made), Diffractor(epsilon / 2).compile(made)
        middle = int(one.order[0, 1000])
        a, b = one.law(middle).probability, other.law(middle).probability
        assert np.abs(a - b).sum() / 2 <= 0.001

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


class TestGuarantee:
    @pytest.mark.parametrize("form", get_args(Form))
    def test_what_it_says(self, form: str) -> None:
        made = Diffractor(2.5, form, lists=4).compile(lexicon(60)).guarantee  # type: ignore[arg-type]
        assert (made.kind, made.epsilon, made.delta, made.status) == ("metric_dp", 2.5, 0.0, "proved")
        assert made.metric == "list places"
        assert made.unit == "word"
        assert "ε = 2.5" in made.sentence
        assert "4 lists" in made.sentence
        assert "4 lists" not in Diffractor().compile(lexicon(60)).guarantee.sentence
        assert "ε = 1.0000001:" in Diffractor(1.0000001).compile(lexicon(9)).guarantee.sentence

    @pytest.mark.parametrize("form", get_args(Form))
    @pytest.mark.parametrize("epsilon", [1e-6, 0.2, 4.0, 300.0, 1e308])
    @pytest.mark.parametrize("embeddings", [1, 3])
    def test_it_holds_for_all_pairs(self, form: str, epsilon: float, embeddings: int) -> None:
        """ε·max_l d_l for the law that is drawn; logarithms of integers are good to 1e-14."""
        given = [lexicon(24, 2, seed=n) for n in range(embeddings)]
        made = Diffractor(epsilon, form, lists=2).compile(*given)  # type: ignore[arg-type]
        logs = np.array([np.log(made.law(w).weight.astype(np.float64)) for w in range(24)])
        loss = (logs[:, None] - logs[None]).max(axis=2)
        away = np.abs(made.place[:, None].astype(int) - made.place[None]).max(axis=2)
        with np.errstate(over="ignore"):
            assert (loss <= epsilon * away + 3e-14).all()

    def test_the_summary_is_json_and_public(self) -> None:
        for form in get_args(Form):
            for epsilon in (1e-6, 1.0, 1e308):
                made = Diffractor(epsilon, form, lists=2, beta=5e-324).compile(lexicon(50)).summary  # type: ignore[arg-type]
                assert (
                    OrderingSummary.from_dict(json.loads(json.dumps(made.as_dict(), allow_nan=False))) == made
                )
                assert made.words == 50
                assert made.form == form
                assert made.list_seed == 0
                assert ("gamma" in made.as_dict()) == ("beta" in made.as_dict()) == (form == "tem")
                assert 0 < (made.floor or 0.0) <= 1


class TestSampling:
    @pytest.mark.parametrize("form", get_args(Form))
    @pytest.mark.parametrize("epsilon", [1e-6, 0.05, 1.0, 7.5, 1e6])
    @pytest.mark.parametrize("lists", [1, 3])
    def test_draws_follow_the_law(self, form: str, epsilon: float, lists: int) -> None:
        """Chi-square at a false-alarm rate of 1e-6 a word; the key is fixed, so it fails always or never."""
        stats = pytest.importorskip("scipy.stats")
        made = Diffractor(epsilon, form, lists=lists).compile(lexicon(50))  # type: ignore[arg-type]
        n = 20_000
        blocks = np.arange(2 * n, dtype=np.uint64).reshape(n, 2)
        for w in (int(made.order[0, 0]), int(made.order[0, 49]), 3, 17):
            key = RunKey.insecure(w).derive("chi-square", form, str(epsilon))
            drawn = made.sample(np.full(n, w, np.int32), Draws(key, blocks))
            law = made.law(w)
            expected = law.probability * n
            seen = np.bincount(drawn, minlength=50)
            many = expected >= 5
            rest = expected[~many].sum()
            if rest < 1e-3:
                assert seen[~many].sum() == 0
            else:
                seen, expected = np.append(seen[many], seen[~many].sum()), np.append(expected[many], rest)
                many = np.ones(len(seen), bool)
            seen, expected = seen[many], expected[many]
            if len(seen) > 1:
                statistic = ((seen - expected) ** 2 / expected).sum()
                assert statistic < stats.chi2.isf(1e-6, len(seen) - 1)

    def test_lists_are_drawn_uniformly(self) -> None:
        """At a large ε a draw stays, at a small one of two words it tells the list: six standard deviations."""
        made = Diffractor(1e-3, lists=7).compile(lexicon(2000))
        n = 70_000
        drawn = made.sample(
            np.full(n, 5, np.int32), Draws(bytes(32), np.arange(2 * n, dtype=np.uint64).reshape(n, 2))
        )
        ends = made.order[:, -1]
        law = made.law(5)
        for end in ends:
            p = float(law.probability[end])
            assert abs((drawn == end).mean() - p) < 6 * math.sqrt(p * (1 - p) / n)

    def test_two_words(self) -> None:
        for form in get_args(Form):
            made = Diffractor(2.0, form).compile(lexicon(2))  # type: ignore[arg-type]
            kept = 1 / (1 + math.exp(-2.0 if form == "geometric" else -1.0))
            for w in (0, 1):
                assert made.law(w).probability[w] == pytest.approx(kept, rel=1e-9)

    @pytest.mark.cluster
    def test_other_processors_and_batches(self, on_another_processor: Callable[[str], str]) -> None:
        """A process without vector instructions, on one thread, with nothing cached, gives every byte."""
        assert on_another_processor("tests.core.mechanisms.test_diffractor.digest") == digest()


def digest() -> str:
    """A hash of lists, tables, laws and draws."""
    whole = Lexicon.default()
    words = Vocabulary.of(whole.vocabulary.strings()[:3000])
    given = [Lexicon(words, np.ascontiguousarray(whole.vectors[:3000, :d])) for d in (100, 37)]
    ids = np.random.default_rng(0).integers(0, 3000, 20_000).astype(np.int32)
    draws = Draws(bytes(32), np.arange(40_000, dtype=np.uint64).reshape(-1, 2))
    found = hashlib.sha256()
    for form in get_args(Form):
        for epsilon in (0.03, 1.7):
            made = Diffractor(epsilon, form, lists=2).compile(*given)  # type: ignore[arg-type]
            for array in made.arrays().values():
                found.update(np.ascontiguousarray(array).tobytes())
            found.update(made.sample(ids, draws).tobytes() + made.law(8).weight.tobytes())
            found.update(json.dumps(made.summary.as_dict()).encode())
    return found.hexdigest()
