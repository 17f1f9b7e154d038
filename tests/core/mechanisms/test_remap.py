"""Bayes remap against its definition in plain NumPy: the table, the law that is released, its loss, and who must be refused."""

from __future__ import annotations

import dataclasses
import itertools
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.audit.deniability import measure
from dptext_spark.config.load import parse_model_config
from dptext_spark.errors import SettingsError
from dptext_spark.importance.levels import Importance, Level
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import Prior
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import TEM, CusText, Diffractor, SanText
from dptext_spark.mechanisms import remap as module
from dptext_spark.mechanisms.largest_scores import Points, largest_scores
from dptext_spark.mechanisms.privacy_loss import worst_loss
from dptext_spark.mechanisms.remap import Remappable
from dptext_spark.mechanisms.samplers.table import RemappedSampler, RemappedTable, groups_of, laws_of
from dptext_spark.model.artifact import open_model, save_model
from dptext_spark.model.certificate import certify
from dptext_spark.model.compile import compile as compile_model
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import Draws, RunKey
from dptext_spark.text.policy import Policy
from tests.core.mechanisms.plain_whole import check_draws
from tests.core.names import names

WORDS, DRAWS = 48, 20_000
KINDS: dict[str, Remappable] = {
    "custext": CusText(epsilon=2.0, k=6, remap="bayes"),
    "custext aggressive euclidean": CusText(3.0, 5, "aggressive", "euclidean", remap="bayes"),
    "custext conservative exact": CusText(2.0, 7, "conservative", calibration="exact", remap="bayes"),
    "diffractor": Diffractor(epsilon=0.4, lists=3, remap="bayes"),
    "diffractor tem": Diffractor(epsilon=0.9, form="tem", remap="bayes"),
    "santext": SanText(epsilon=3.0, remap="bayes"),
    "santext plus": SanText(epsilon=2.0, sensitive=0.5, p=0.3, remap="bayes"),
    "tem": TEM(epsilon=3.0, calibration="exact", remap="bayes"),
}


@cache
def lexicon() -> Lexicon:
    """Two equal vectors, one of length 0, and words that are not drawn."""
    vectors = np.random.default_rng(8).normal(size=(WORDS, 5)) + 0.7
    vectors[9], vectors[30] = vectors[31], 0.0
    found = Lexicon(Vocabulary.of(names(WORDS)), vectors.astype(np.float32))
    return found.drawing(np.arange(WORDS) % 6 != 1)


@cache
def sampler(kind: str) -> RemappedSampler:
    return KINDS[kind].compile(lexicon())


def weights(one: Any) -> list[list[int]]:
    """Return the law of every word in integers, V rows of V."""
    found = [[0] * WORDS for _ in range(WORDS)]
    for word, law in enumerate(map(one.law, range(WORDS))):
        for output, weight in zip(law.ids.tolist(), law.weight.tolist(), strict=True):
            found[word][output] = weight
    return found


def expected_gain(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return (Σ_w π(w)·P(y|w)·s(w, z) for each y and z, the words that can come out)."""
    vectors = lexicon().vectors.astype(np.float64)
    law = np.array(weights(sampler(kind).before), np.float64) / 2.0**63
    if KINDS[kind].similarity == "cosine":
        norm = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(norm > 0, norm, 1.0)
        likeness = vectors @ vectors.T
    else:
        likeness = -((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)
    return (law * lexicon().drawn_prior[:, None]).T @ likeness, law.any(axis=0)


def loss_of(law: list[list[int]], word: int, other: int) -> float:
    """Return max over outputs of |ln Q(z|w) - ln Q(z|w')|."""
    pairs = [(a, b) for a, b in zip(law[word], law[other], strict=True) if a or b]
    return max(math.inf if 0 in pair else abs(math.log(pair[0] / pair[1])) for pair in pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_is_the_best_reply_to_each_output(kind: str) -> None:
    gain, possible = expected_gain(kind)
    led = np.array(weights(sampler(kind).before), np.float64).T @ lexicon().drawn_prior > 0
    gain[:, ~possible] = -np.inf
    best = gain.max(axis=1)
    table = sampler(kind).remap
    assert possible[table].all()
    for output in np.flatnonzero(led):
        near = np.flatnonzero(gain[output] >= best[output] - 1e-12 * abs(best).max())
        assert table[output] in near
        # Of equal vectors the lower id: word 9 for 31.
        assert table[output] != 31
    assert len(np.unique(table)) < WORDS


@pytest.mark.parametrize("kind", KINDS)
def test_the_law_is_the_pushforward_in_integers_and_loses_no_more(kind: str) -> None:
    made = sampler(kind)
    drawn, released = weights(made.before), weights(made)
    laws = made.laws(np.arange(WORDS, dtype=np.int32))
    for word in range(WORDS):
        wanted = [0] * WORDS
        for output, weight in enumerate(drawn[word]):
            wanted[int(made.remap[output])] += weight
        assert released[word] == wanted
        assert sum(wanted) == 2**63
        part = slice(laws.starts[word], laws.starts[word + 1])
        found = dict(zip(laws.ids[part].tolist(), laws.weight[part].tolist(), strict=True))
        assert found == {z: weight for z, weight in enumerate(wanted) if weight}
    before, after = worst_loss(made.before, WORDS), worst_loss(made, WORDS)
    pairs = list(itertools.combinations(range(WORDS), 2))
    losses = [(loss_of(released, *pair), loss_of(drawn, *pair)) for pair in pairs]
    assert all(a <= b * (1 + 1e-12) + 1e-12 for a, b in losses)
    if isinstance(made, RemappedTable):
        groups = groups_of(laws_of(made.before.cells))
        within = (a for (a, _), (w, v) in zip(losses, pairs, strict=True) if groups[w] == groups[v])
        assert after.value == pytest.approx(max(within, default=0.0), abs=1e-12)
        assert after.value <= before.value * (1 + 1e-12)
    else:
        assert after.value == before.value
        assert 0.0 <= after.attained <= before.value * (1 + 1e-9)
    assert made.guarantee.epsilon == KINDS[kind].epsilon
    assert "Bayes remap" in made.guarantee.sentence


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_those_of_the_law(kind: str) -> None:
    made = sampler(kind)
    ids = np.repeat(np.array([0, 17, 30], np.int32), DRAWS)
    numbers = np.arange(2 * len(ids), dtype=np.uint64).reshape(-1, 2)
    out = made.sample(ids, Draws(bytes(32), numbers))
    assert np.array_equal(out, made.remap[made.before.sample(ids, Draws(bytes(32), numbers))])
    for place, word in enumerate((0, 17, 30)):
        check_draws(out[place * DRAWS : (place + 1) * DRAWS], made.law(word))


@pytest.mark.parametrize("kind", ["diffractor", "santext plus", "tem"])
def test_columns_and_words_that_stay(kind: str) -> None:
    made, every = sampler(kind), np.arange(WORDS, dtype=np.int32)
    law, columns = np.array(weights(made), np.float64) / 2.0**63, made.law_columns()
    np.testing.assert_allclose(columns(every), law.T, rtol=2e-3, atol=1e-6)  # float32: equal vectors
    if kind != "diffractor":
        np.testing.assert_allclose(columns.precise(every), law.T, rtol=1e-8, atol=1e-12)
    each = columns.probability(np.repeat(every, WORDS), np.tile(every, WORDS)).reshape(WORDS, WORDS)
    np.testing.assert_allclose(each, law, rtol=1e-9, atol=1e-15)
    values, _ = made.unchanged(every)
    np.testing.assert_allclose(values, law.diagonal(), rtol=1e-9, atol=1e-15)
    assert (values == 0).any()  # some words never stay, and every audit bears it
    assert all(one.as_dict() for one in measure(made, every, WORDS))


def test_sums_of_a_library_are_told_apart_in_a_fixed_order(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {kind: sampler(kind).remap for kind in ("diffractor", "santext plus", "tem")}
    monkeypatch.setattr(module, "TOLERANCE", 1e6)  # every output is unsure
    for kind, table in tables.items():
        assert np.array_equal(KINDS[kind].compile(lexicon()).remap, table)


@pytest.mark.parametrize(("size", "scale"), [(7, 1.0), (100, 1.0), (100, 1e16)])
def test_the_largest_score_is_found_whatever_is_left_out(size: int, scale: float) -> None:
    random = np.random.default_rng(size)
    points = random.normal(size=(700, size)) * scale + 0.5
    points[5] = points[600]
    queries = np.vstack([points[:200] + random.normal(size=(200, size)) * scale, points[600:601]])
    bias = -0.5 * (points**2).sum(axis=1)
    allowed = np.union1d(np.flatnonzero(random.random(700) < 0.9), [5, 600]).astype(np.int32)
    found = largest_scores(queries, Points(points, bias, allowed)).point
    scores = queries @ points[allowed].T + bias[allowed]
    assert np.array_equal(found[:-1], allowed[scores.argmax(axis=1)][:-1])
    assert found[-1] == 5
    guesses = (np.arange(len(queries) + 1), np.full(len(queries), allowed[0], np.int32))
    assert np.array_equal(
        largest_scores(queries, Points(points, bias, allowed), guesses=guesses).point, found
    )


def test_groups_are_those_before_the_remap() -> None:
    """Two sets whose outputs all become one word: their laws agree, and of a pair across them nothing is promised."""
    one = CusText(epsilon=2.0, k=6).remapped(sampler("custext").before, np.zeros(WORDS, np.int32), "a prior")
    assert len({one.law(word).ids.tobytes() for word in range(WORDS)}) == 1
    found, groups = worst_loss(one, WORDS), np.bincount(one.group)
    assert found.pairs == int((groups * (groups - 1) // 2).sum()) < WORDS * (WORDS - 1) // 2
    assert found.value == 0.0


def test_what_is_not_sensitive_may_come_of_others() -> None:
    made = sampler("santext plus")
    law, alone = np.array(weights(made), np.float64), np.setdiff1d(np.arange(WORDS), made.before.outputs)
    naming = [z for z in alone if (law[:, z] > 0).sum() == 1]
    assert made.summary.remap.telling == len(naming) < len(alone)
    assert f"reveals {len(naming)} of these {len(alone)} words" in made.guarantee.sentence
    assert f"by {len(naming)} of {len(alone)} outputs" in certify(Privatizer(lexicon(), made)).sentence


@pytest.mark.parametrize("kind", KINDS)
def test_figures_are_those_of_what_is_released(kind: str) -> None:
    law, summary = np.array(weights(sampler(kind))) > 0, sampler(kind).summary
    assert summary.remap.outputs == law.any(axis=0).sum()
    if isinstance(sampler(kind), RemappedTable):
        behind = law.sum(axis=0)[law.any(axis=0)]
        assert summary.one_input_share == pytest.approx((behind == 1).mean())
        assert summary.inputs_per_output.mean == pytest.approx(behind.mean())


def texts() -> pa.Array:
    return pa.array([" ".join([*names(WORDS), "unknown", "other"]), "nothing known"] * 40)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", [False, True])
def test_a_stored_model_releases_the_same(kind: str, levels: bool, tmp_path: Path) -> None:
    chosen = (Level(30.0), Level(40.0, epsilon=KINDS[kind].epsilon * 2))
    importance = Importance(provider="random", levels=chosen) if levels else None
    policy = Policy(oov="draw", stop_words="draw")
    model = compile_model(KINDS[kind], lexicon(), policy, "record", importance)
    save_model(model, tmp_path / "model")
    again = open_model(tmp_path / "model")
    rows, key = pa.array(range(80)), RunKey.insecure(4)
    first, _ = model.privatize(texts(), column="a", row_ids=rows, key=key)
    second, _ = again.privatize(texts(), column="a", row_ids=rows, key=key)
    assert first.equals(second)
    image = {names(WORDS)[word] for word in np.unique(model.sampler.remap)}
    drawn = {word for text in first.to_pylist() for word in text.split()}
    # With levels, words that are not chosen are kept, and kept words do not pass through the table.
    assert (drawn <= image) is not levels
    assert all(np.array_equal(one.remap, model.sampler.remap) for one in model.samplers)
    found = certify(again)
    assert found.verdict == "confirmed"
    assert found.loss.value <= found.before.value
    epsilons = [KINDS[kind].epsilon, KINDS[kind].epsilon * 2][: len(again.samplers)]
    assert [one.guarantee.epsilon for one in again.samplers] == epsilons


def test_levels_share_the_table_of_their_average() -> None:
    mechanism = CusText(epsilon=0.5, k=6, remap="bayes")
    levels = Importance(provider="random", levels=(Level(10.0), Level(60.0, epsilon=9.0)))
    model = compile_model(mechanism, lexicon(), Policy(stop_words="draw"), importance=levels)
    law = sum(
        share * np.array(weights(one.before), np.float64) / 2.0**63
        for share, one in zip((1 / 7, 6 / 7), model.samplers, strict=True)
    )
    vectors = lexicon().vectors.astype(np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    gain = (law * Prior.by_rank(WORDS).words[:, None]).T @ (vectors @ vectors.T)
    best = gain[np.arange(WORDS), model.sampler.remap]
    assert (best >= gain.max(axis=1) - 1e-12).all()
    alone = compile_model(mechanism, lexicon(), Policy(stop_words="draw"))
    assert not np.array_equal(alone.sampler.remap, model.sampler.remap)


def test_another_prior_or_policy_is_another_release() -> None:
    mechanism = KINDS["custext"]
    plain = Lexicon(lexicon().vocabulary, lexicon().vectors)
    reversed_prior = Prior("reversed", np.ascontiguousarray(plain.prior.words[::-1]))
    made = [
        compile_model(mechanism, one, policy).fingerprint
        for one in (plain, plain.with_prior(reversed_prior))
        for policy in (Policy(), Policy(stop_words="draw", stop_word_list=tuple(names(9))))
    ]
    assert len(set(made)) == 4
    unmapped = dataclasses.replace(mechanism, remap="none")  # type: ignore[call-arg]
    prints = {compile_model(unmapped, one).fingerprint for one in (plain, plain.with_prior(reversed_prior))}
    assert prints == {Privatizer(plain, unmapped.compile(plain)).fingerprint}


def test_what_cannot_be_remapped_is_refused() -> None:
    assert parse_model_config({"mechanism": {"name": "mvc", "remap": "none"}}).mechanism.name == "mvc"
    cases = {
        "remap none": (CusText(k=6, remap="bayes"), CusText(k=6)),
        "uses euclidean": (CusText(k=6, remap="bayes"), CusText(k=6, metric="euclidean", remap="bayes")),
        "remap bayes": (CusText(k=6), CusText(k=6, remap="bayes")),
    }
    for message, (first, second) in cases.items():
        levels = Importance(provider="random", levels=(Level(30.0), Level(40.0, mechanism=second)))
        with pytest.raises(SettingsError, match=message):
            compile_model(first, lexicon(), importance=levels)
