"""CusText, its output sets and the types of words of its Table 4, against the paper's definitions in plain Python."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.neighbors import METRICS
from dptext_spark.mechanisms import CusText, Law
from dptext_spark.mechanisms.base import Quantiles
from dptext_spark.mechanisms.custext import MAPPINGS, REMAINDERS, mapping_summary, output_sets
from dptext_spark.mechanisms.privacy_loss import within_groups
from dptext_spark.model.certificate import verdict
from dptext_spark.rounding import percent_up
from tests.core.mechanisms import plain_custext as plain
from tests.core.mechanisms import plain_whole
from tests.core.mechanisms.plain_whole import gaussian, lexicon, tables

TOTAL = 2**63


CHOICES = st.builds(
    CusText,
    epsilon=st.sampled_from([0, 0.1, 1.0, 5, 40.0, 1e3, 1e6, 1.7e308]),
    k=st.integers(2, 14),
    mapping=st.sampled_from(MAPPINGS),
    metric=st.sampled_from(METRICS),
    remainder=st.sampled_from(REMAINDERS),
)


class TestParameters:
    def test_k_larger_than_the_lexicon(self) -> None:
        with pytest.raises(SettingsError, match=r"mechanism\.k: 20 is not valid.*6 words.*2 to 6"):
            CusText().compile(lexicon(gaussian(6)))

    @pytest.mark.parametrize(
        ("words", "k", "fits"),
        [(8000, 4000, True), (8096, 4000, True), (8097, 4000, False), (4096, 4096, True), (4097, 4096, False),
         (4097, 2049, False), (6143, 2048, True), (6144, 2049, True), (6145, 2049, True), (6146, 2049, False)],
    )  # fmt: skip
    @pytest.mark.parametrize("mapping", ["conservative", "clustered"])
    def test_a_last_set_that_no_law_has_room_for_is_refused_before_the_walk(
        self, mapping: Any, words: int, k: int, fits: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("dptext_spark.mechanisms.custext.output_sets", lambda *_: 1 / 0)
        small, other = lexicon(gaussian(words, 1)), 2048
        with pytest.raises(ZeroDivisionError if fits else SettingsError) as found:
            CusText(k=k, mapping=mapping).compile(small)
        if not fits:
            said = str(found.value)
            assert said.startswith(f"mechanism.k: {k} is not valid. ")
            assert "mechanism.remainder=own" in said
            other = int(said.split("such as ")[1].split()[0])
            assert 2 <= other < k
            assert other + words % other <= 4096
        own, smaller = CusText(k=k, mapping=mapping, remainder="own"), CusText(k=other, mapping=mapping)
        for choice in (own, CusText(k=k), smaller):
            with pytest.raises(ZeroDivisionError):
                choice.compile(small)


def check_law(found: Law, wanted: dict[int, float], tolerance: float) -> None:
    assert sum(map(int, found.weight)) == TOTAL
    assert found.ids.tolist() == sorted(wanted)
    for u, weight, probability in zip(found.ids.tolist(), found.weight, found.probability, strict=True):
        assert probability == pytest.approx(int(weight) / TOTAL, rel=1e-15)
        assert int(weight) >= 1
        # Integers of 2^63 round a probability by half of one; the remainder goes to the largest.
        assert abs(Fraction(int(weight), TOTAL) - Fraction(wanted[u])) <= tolerance * wanted[u] + 2**-63


class TestLaw:
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("mapping", MAPPINGS)
    @pytest.mark.parametrize("epsilon", [0, 0.5, 1, 3.0, 10.0, 60.0])
    def test_it_is_the_formula(self, mapping: str, metric: str, epsilon: float) -> None:
        vectors = gaussian(50)
        made = CusText(epsilon, 8, mapping, metric).compile(lexicon(vectors))
        listed = vectors.astype(np.float64).tolist()
        sets = plain.output_sets(listed, 8, mapping, metric, "join")
        for w in range(50):
            wanted = plain.law(listed, w, sorted(sets[w]), epsilon, metric)
            check_law(made.law(w), wanted, 1e-12)

    @pytest.mark.parametrize("metric", METRICS)
    def test_equal_scores_are_uniform(self, metric: str) -> None:
        """Cosines of parallel vectors differ by rounding; min-max must not blow that up to [0, 1]."""
        rng = np.random.default_rng(3)
        # Small integers times powers of two: exactly parallel in float32.
        vectors = np.outer(2.0 ** rng.integers(-9, 9, size=40), rng.integers(-9, 9, size=7))
        vectors[::3] *= 3
        if metric == "euclidean":
            vectors[:] = vectors[0]
        made = CusText(8.0, 10, "balanced", metric).compile(lexicon(vectors))
        for w in range(40):
            found = made.law(w)
            check_law(found, dict.fromkeys(found.ids.tolist(), 0.1), 3e-15)
        vectors = np.eye(6, 3) * (np.arange(6) == 0)[:, None]  # and zero vectors score alike
        found = CusText(5.0, 4, "aggressive", metric).compile(lexicon(vectors)).law(3)
        check_law(found, dict.fromkeys(found.ids.tolist(), 1 / 4), 1e-15)

    @settings(max_examples=150)
    @given(vectors=tables(), choice=CHOICES)
    def test_epsilon_dp_between_words_that_share_a_set(self, vectors: np.ndarray, choice: CusText) -> None:
        """From the integer weights: no ratio above e^ε; every output possible for one is possible for all."""
        choice = dataclasses.replace(choice, k=min(choice.k, len(vectors)))
        made = choice.compile(lexicon(vectors))
        sets = plain.output_sets(vectors.tolist(), choice.k, choice.mapping, choice.metric, choice.remainder)
        laws = [made.law(w) for w in range(len(vectors))]
        for w, found in enumerate(laws):
            assert sum(map(int, found.weight)) == TOTAL
            assert frozenset(found.ids.tolist()) == sets[w]
        for w, v in itertools.combinations(range(len(vectors)), 2):
            if sets[w] == sets[v]:
                for a, b in zip(map(int, laws[w].weight), map(int, laws[v].weight), strict=True):
                    assert abs(math.log(a) - math.log(b)) <= choice.epsilon

    def test_a_very_large_epsilon_keeps_the_word_but_rules_nothing_out(self) -> None:
        made = CusText(1e6, 5).compile(lexicon(gaussian(20)))
        for w in range(20):
            found = made.law(w)
            weight = dict(zip(found.ids.tolist(), map(int, found.weight), strict=True))
            assert weight.pop(w) == TOTAL - 4
            assert set(weight.values()) == {1}


class TestSmallEpsilon:
    """What is promised, compared with the integers that are sampled, in exact arithmetic."""

    EPSILONS = (0, 1e-6, 3e-6, 1e-5)

    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize("k", [2, 7, 20, 60, 240])
    def test_no_pair_loses_more(self, k: int, epsilon: float) -> None:
        """One word in each set scores all others at the top, another all but one at the bottom: the worst that scores allow."""
        angles = np.append(np.linspace(0, 1e-3, k - 1), 3.0) if k > 2 else np.array([0.0, 3.0])
        angles = np.concatenate([angles, angles + 1])
        vectors = lexicon(np.stack([np.cos(angles), np.sin(angles)], axis=1))
        made = CusText(epsilon, k, "conservative").compile(vectors)
        found = within_groups(made, 2 * k)
        groups: dict[tuple[int, ...], list[list[int]]] = {}
        for law in map(made.law, range(2 * k)):
            groups.setdefault(tuple(law.ids.tolist()), []).append(list(map(int, law.weight)))
        columns = (column for laws in groups.values() for column in zip(*laws, strict=True))
        worst = max(Fraction(max(column), min(column)) for column in columns)
        assert worst <= 1 + Fraction(epsilon)  # which is less than e^ε
        assert found.attained <= epsilon
        if epsilon < max(1e-12, k**2 * 2.0**-47):
            assert worst == 1
            assert (found.value, found.attained) == (0.0, 0.0)
            uniform = CusText(0, k, "conservative").compile(vectors)
            assert made.law(0).weight.tolist() == uniform.law(0).weight.tolist()
        else:
            assert found.value == pytest.approx(math.log1p(float(worst - 1)), rel=3e-14)
            assert worst > 1
        assert verdict(made.guarantee, found) == "confirmed"

    def test_the_guarantee_counts_the_words_of_a_set_and_those_alone(self) -> None:
        made = CusText(2.5, 4, "aggressive").compile(lexicon(gaussian(40)))
        said, shared = made.guarantee.sentence, made.summary.class_size_of_words
        median, least = int(shared.p50) - 1, int(shared.min) - 1
        assert f"at least {least} others, and half of the words with at most {median}." in said
        assert f"{percent_up(made.summary.alone_share)} of the lexicon's words are alone" in said
        alike = CusText(1, 4, "conservative").compile(lexicon(gaussian(40))).guarantee.sentence
        assert "at least 3 others. No" in alike
        assert "alone" not in alike


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("epsilon", [0, 1, 7.5, 1e6])
def test_draws_follow_the_law(mapping: str, epsilon: float) -> None:
    made = CusText(epsilon, 11, mapping).compile(lexicon(gaussian(40)))
    for w in (0, 3, 17, 39):
        plain_whole.check_draws(plain_whole.draw(made, w, 20_000, f"{mapping} {epsilon}"), made.law(w))


@settings(max_examples=250)
@given(
    vectors=tables(),
    size=st.integers(2, 14),
    mapping=st.sampled_from(MAPPINGS),
    metric=st.sampled_from(METRICS),
    remainder=st.sampled_from(REMAINDERS),
)
def test_the_walks(vectors: np.ndarray, size: int, mapping: str, metric: str, remainder: str) -> None:
    k = min(size, len(vectors))
    sets, of_word = output_sets(vectors, k, mapping, metric, remainder)
    wanted = plain.output_sets(vectors.tolist(), k, mapping, metric, remainder)
    assert [frozenset(sets[s][sets[s] >= 0].tolist()) for s in of_word] == wanted
    assert all(w in outputs for w, outputs in enumerate(wanted))
    # Words share a set in the arrays exactly where they share one as a set: the guarantee goes by it.
    assert (np.equal.outer(of_word, of_word) == [[a == b for b in wanted] for a in wanted]).all()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("mapping", MAPPINGS)
def test_more_words_than_one_search_takes(mapping: str, metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = gaussian(240, 3)
    vectors[100:120] = vectors[7]
    monkeypatch.setattr("dptext_spark.mechanisms.custext.WALK", 16)
    sets, of_word = output_sets(vectors, 7, mapping, metric, "own")
    wanted = plain.output_sets(vectors.tolist(), 7, mapping, metric, "own")
    assert [frozenset(sets[s][sets[s] >= 0].tolist()) for s in of_word] == wanted


def test_a_clustering_is_the_same_for_any_number_of_threads() -> None:
    vectors, threads, of_threads = gaussian(1500, 20, 2), faiss.omp_get_max_threads(), []
    for count in (1, 2, 5):
        faiss.omp_set_num_threads(count)
        try:
            of_threads.append(output_sets(vectors, 12, "clustered", "cosine"))
        finally:
            faiss.omp_set_num_threads(threads)
    for sets, of_word in of_threads:
        assert (sets == of_threads[0][0]).all()
        assert (of_word == of_threads[0][1]).all()


def test_types_of_words() -> None:
    """Table 4: how many inputs share the set, and how many outputs it holds."""
    sets = np.array([[0, 1, 2], [3, 4, 5], [6, -1, -1]], np.int32)
    figures = mapping_summary(sets, np.array([0, 0, 0, 1, 1, 0, 2, 0], np.int32))
    assert figures.type_share == {"1-1": 1 / 8, "1-N": 0.0, "N-1": 0.0, "N-M": 7 / 8}
    assert figures.alone_share == 1 / 8
    assert figures.class_size == Quantiles(1.0, 5.0, 2.0, 8 / 3)
    assert figures.set_size == Quantiles(1.0, 3.0, 3.0, 7 / 3)
    # Outputs 0, 1, 2 can come from five words, 3, 4, 5 from two, 6 from one; 7 is never released.
    assert figures.inputs_per_output == Quantiles(1.0, 5.0, 2.0, 22 / 7)
    # Of eight words five draw one of the first three, two one of the next three, and one is released.
    bits = (5 * math.log2(8 / 5) + 2 * math.log2(8 / 2) + math.log2(8)) / 8
    assert figures.ruled_out_bits == pytest.approx(bits)
    assert (figures.words, figures.sets) == (8, 3)


def test_bits_that_a_draw_tells_are_those_of_the_joint_law() -> None:
    """I(w; u) by its definition, and the mean of log2(V / n(u)): what a draw rules out is told at ε = 0 too."""
    vectors = np.random.default_rng(4).normal(size=(40, 5)).astype(np.float32)
    for epsilon, remap in ((0.0, "none"), (3.0, "none"), (3.0, "bayes")):
        made = CusText(epsilon, 4, remap=remap).compile(lexicon(vectors))
        joint = np.zeros((40, 40))
        for word in range(40):
            law = made.law(word)
            joint[word, law.ids] = law.weight / 2.0**63 / 40
        drawn, behind = joint.sum(axis=0), (joint > 0).sum(axis=0)
        word, output = np.nonzero(joint)
        told = sum(
            joint[i, j] * math.log2(joint[i, j] * 40 / drawn[j]) for i, j in zip(word, output, strict=True)
        )
        ruled_out = sum(drawn[j] * math.log2(40 / behind[j]) for j in np.flatnonzero(drawn))
        assert made.summary.told_bits == pytest.approx(told)
        assert made.summary.ruled_out_bits == pytest.approx(ruled_out)
        assert told >= ruled_out - 1e-12
        assert epsilon or told == pytest.approx(ruled_out)
        assert epsilon or ruled_out == pytest.approx(
            mapping_summary(*output_sets(vectors, 4, "balanced", "cosine")).ruled_out_bits
        )
