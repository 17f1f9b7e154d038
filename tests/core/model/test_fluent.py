"""Fluent draws in whole texts: the theorem by brute force, what stands before each word, equal bytes however texts are cut."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

from dptext_spark.errors import SettingsError
from dptext_spark.importance.levels import Importance, Level
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.mechanisms.base import NO_WORD, PREVIOUS
from dptext_spark.mechanisms.privacy_loss import by_log_range
from dptext_spark.mechanisms.samplers.fluent import FluentSampler
from dptext_spark.model.artifact import open_model, save_model
from dptext_spark.model.certificate import certify
from dptext_spark.model.compile import compile as compile_model
from dptext_spark.model.preview import preview
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.text import chunks, engine
from dptext_spark.text.policy import Policy
from tests.core.mechanisms.fluent_toys import lexicon_of, number_of

KEY = RunKey.insecure(4)
FLUENT = CusText(epsilon=2.0, k=4, fluent=True)


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return lexicon_of(30, 5, among=("john", "of", "well"))


@pytest.fixture(scope="module")
def model(lexicon: Lexicon) -> Privatizer:
    return compile_model(FLUENT, lexicon)


def released(model: Privatizer, texts: pa.Array, **given: Any) -> pa.Array:
    ids = given.pop("row_ids", pa.array(range(len(texts)), pa.int64()))
    return model.privatize(texts, column="c", row_ids=ids, key=KEY, **given)[0]


def before_of(model: Privatizer, text: str) -> tuple[list[int], list[int]]:
    """Return what was before each drawn word of a text as the engine says it, and the outputs."""
    noise, seen = model.noise(pa.array([0]), "c", KEY, ""), list[tuple[Any, Any]]()
    draw = noise.in_context

    def noted(ids: Any, before: Any, blocks: Any) -> Any:
        outputs = draw(ids, before, blocks)
        seen.append((before.copy(), outputs))
        return outputs

    model.engine.privatize(pa.array([text]), noise._replace(in_context=noted))
    before, outputs = (np.concatenate(part).tolist() for part in zip(*seen, strict=True))
    return before, outputs


class TestTheorem:
    """All texts of three words with one skeleton, all outputs, three priors, kept words between or a boundary."""

    # What is before each of the three words: a word in clear, no known word, or what came out before (PREVIOUS).
    SKELETONS = (
        (NO_WORD, PREVIOUS, PREVIOUS),  # w w w
        (NO_WORD, 25, PREVIOUS),  # w kept w w
        (NO_WORD, PREVIOUS, NO_WORD),  # w w, w
        (28, 27, 26),  # kept w kept w kept w
    )

    @pytest.mark.parametrize("prior", range(3))
    def test_no_two_texts_lose_more_than_the_ranges_of_the_words_that_differ(self, prior: int) -> None:
        sampler = FLUENT.compile(lexicon_of(30, 40 + prior, share=(0.05, 0.5, 1.0)[prior]))
        shared = max((np.flatnonzero(sampler.of_word == s) for s in range(len(sampler.sets))), key=len)[:3]
        words, outputs = shared.tolist(), sampler.sets[sampler.of_word[shared[0]]].tolist()
        assert len(words) == 3
        each = itertools.product(words, range(-1, 30))
        laws = {(w, h): dict(zip(*law(sampler, w, h), strict=True)) for w, h in each}
        pairs = list(itertools.product(words, repeat=2))
        spread = {(a, b): self._range(sampler.factor[a] / sampler.factor[b]) for a, b in pairs}
        assert max(spread.values()) <= by_log_range(sampler).value <= 2.0
        worst, texts = 0.0, list(itertools.product(words, repeat=3))
        sums = [[sum(spread[pair] for pair in zip(s, t, strict=True)) for t in texts] for s in texts]
        bound = np.array(sums)
        for skeleton in self.SKELETONS:
            table = np.array([list(self._all(laws, text, skeleton, outputs)) for text in texts])
            np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)
            loss = np.abs(np.log(table)[:, None] - np.log(table)[None]).max(axis=2)
            assert (loss <= bound + 1e-12).all()
            worst = max(worst, float((loss / np.maximum(bound, 1e-300)).max()))
        assert worst > 0.3  # the bound is not idle

    @staticmethod
    def _range(ratio: np.ndarray) -> float:
        return math.log(ratio.max() / ratio.min())

    @staticmethod
    def _all(
        law: Any, text: tuple[int, ...], skeleton: tuple[int, ...], outputs: list[int]
    ) -> Iterator[float]:
        for out in itertools.product(outputs, repeat=len(text)):
            chance = 1.0
            for place, (word, h) in enumerate(zip(text, skeleton, strict=True)):
                chance *= law[word, out[place - 1] if h == PREVIOUS else h][out[place]]
            yield chance


def test_texts_follow_the_product_of_their_laws(lexicon: Lexicon, model: Privatizer) -> None:
    """Chi-square over the joint outputs of three words, the second after a stop word, at a false-alarm rate of 1e-6."""
    count, seen = 60_000, dict[tuple[int, ...], int]()
    for text, times in Counter(released(model, pa.array(["qab the qac qad."] * count)).to_pylist()).items():
        first, _, second, third = text.rstrip(".").split()
        seen[tuple(number_of_word(model, word) for word in (first, second, third))] = times
    ids = [number_of_word(model, word) for word in ("qab", "qac", "qad")]
    laws, the, terms = model.sampler, number_of(lexicon, "the"), []
    for a, p in zip(*law(laws, ids[0], NO_WORD), strict=True):
        for b, q in zip(*law(laws, ids[1], the), strict=True):
            for c, r in zip(*law(laws, ids[2], b), strict=True):
                if (expected := count * p * q * r) >= 5:
                    terms.append((seen.get((a, b, c), 0) - expected) ** 2 / expected)
    assert len(terms) >= 20
    assert sum(terms) < chi2.ppf(1 - 1e-6, len(terms))


def law(sampler: FluentSampler, word: int, before: int) -> tuple[list[int], list[float]]:
    found = sampler.law(word, before)
    return found.ids.tolist(), found.probability.tolist()


def number_of_word(model: Privatizer, word: str) -> int:
    return int(model.vocabulary.ids(pa.array([word]))[0])


def check_before(lexicon: Lexicon, model: Privatizer, text: str, expected: list[str]) -> None:
    known = {"-": NO_WORD, "<": PREVIOUS}
    before = [known[one] if one in known else number_of(lexicon, one) for one in expected]
    assert before_of(model, text)[0] == before


class TestBefore:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("qab qac", ["-", "<"]),
            ("qab  \n\tqac", ["-", "<"]),
            ("the qab", ["the"]),
            ("THE qab", ["the"]),
            ("don't qab", ["don't"]),
            ("don\u2019t qab", ["don't"]),
            ("qab, qac", ["-", "-"]),
            ("qab. The qac", ["-", "the"]),
            ("the (qab) of qac", ["-", "of"]),
            ("the-qab", ["the"]),
            ("qab-qac", ["-", "<"]),
            ("john's qab", ["-", "s"]),
            ("qab zzunknown qac", ["-", "-"]),
            ("qab 42 qac", ["-", "-"]),
            ("qab a@b.cc qac", ["-", "-"]),
            ("the \u2014 qab", ["-"]),
            ("'the' qab", ["the"]),
            ("qab to the qac", ["-", "the"]),
            ("qab the1 qac", ["-", "-"]),
            ("QAB Qac", ["-", "<"]),
        ],
    )
    @pytest.mark.parametrize("case", ["carry", "lower"])
    def test_it_is_what_is_released(
        self, lexicon: Lexicon, model: Any, text: str, expected: Any, case: Any
    ) -> None:
        policy = Policy(case=case, identifiers={"email": "mask"})  # type: ignore[arg-type]
        check_before(lexicon, Privatizer(lexicon, model.sampler, policy), text, expected)

    @pytest.mark.parametrize(
        ("policy", "text", "expected"),
        [
            ({"oov": "keep", "numbers": "keep"}, "qab zzunknown qac 7 qad", ["-", "-", "-"]),
            ({"stop_words": "draw"}, "of qab the qac", ["-", "<", "-"]),
            (
                {"tokenizer": "whitespace"},
                "the qab , qac do n't qad - qab ( of ) qac",
                ["the", "-", "n't", "<", "-"],
            ),
        ],
    )
    def test_it_is_what_the_policy_releases(
        self, lexicon: Lexicon, model: Privatizer, policy: Any, text: str, expected: list[str]
    ) -> None:
        check_before(lexicon, Privatizer(lexicon, model.sampler, Policy(**policy)), text, expected)

    def test_an_unknown_word_that_is_drawn_is_the_word_it_becomes(self, lexicon: Lexicon, model: Any) -> None:
        told = Privatizer(lexicon, model.sampler, Policy(oov="draw"))
        text = released(told, pa.array(["zzunknown qac"]), row_ids=pa.array([0]))[0].as_py()
        assert before_of(told, "zzunknown qac")[0] == [number_of(lexicon, text.split()[0])]

    def test_words_of_another_stop_list_are_not_taken_for_the_packaged_ones(self, lexicon, model) -> None:  # type: ignore[no-untyped-def]
        listed = ("the", "don't", "of")
        made = [
            compile_model(FLUENT, lexicon, Policy(stop_word_list=some)) for some in (listed, listed[::-1])
        ]
        assert made[0].fingerprint != made[1].fingerprint
        packaged = model.sampler.law(3, number_of(lexicon, "the")).weight.tolist()
        for told in made:
            after_the = told.sampler.law(3, 30 + told.table.beyond().index("the"))
            assert after_the.weight.tolist() == packaged
            assert len(released(told, pa.array(["of qab the qac don't qad"] * 200))) == 200
        with pytest.raises(SettingsError, match=r"policy\.stop_word_list: .* pairs"):
            Privatizer(lexicon, model.sampler, Policy(stop_word_list=listed))


def corpus() -> pa.Array:
    random = np.random.default_rng(7)
    words = [f"q{a}{b}" for a in "ab" for b in "abcdefghij"]
    words += ["the", "of", "don't", "to", "zzunknown", "17", "a@b.cc", "john's"]
    marks = [" ", " ", " ", " ", ", ", ". ", "\n", " - ", "  "]
    sizes = [random.integers(0, 120) for _ in range(120)]
    rows = ["".join(str(random.choice(words)) + str(random.choice(marks)) for _ in range(n)) for n in sizes]
    return pa.array([*rows, None, ""])


@pytest.mark.long
@pytest.mark.parametrize(
    "settings", [{}, {"gaps": "normalise", "case": "lower"}, {"oov": "draw", "stop_words": "draw"}]
)
def test_bytes_do_not_depend_on_batches_blocks_and_strips(
    lexicon: Lexicon, model: Privatizer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Privatizer(lexicon, model.sampler, Policy(identifiers={"email": "fake"}, **settings))  # type: ignore[arg-type]
    texts = corpus()
    whole = released(told, texts)
    assert whole.null_count == 1
    for size in (1, 7, 50):
        parts = [
            released(told, texts.slice(at, size), row_ids=pa.array(range(at, min(len(texts), at + size))))
            for at in range(0, len(texts), size)
        ]
        assert pa.concat_arrays(parts).equals(whole)
    for block, strip in ((64, 16_384), (98_304, 32), (100, 64)):
        monkeypatch.setattr(engine, "BLOCK_BYTES", block)
        monkeypatch.setattr(chunks, "STRIP_BYTES", strip)
        assert released(told, texts).equals(whole)


def test_a_stored_model_draws_the_same(model: Privatizer, tmp_path: Any) -> None:
    save_model(model, tmp_path / "model")
    again = open_model(tmp_path / "model")
    assert (again.fingerprint, again.guarantee()) == (model.fingerprint, model.guarantee())
    assert released(again, corpus()).equals(released(model, corpus()))
    found = certify(again)
    assert (found.verdict, found.guarantee.status) == ("confirmed", "proved")
    assert found.loss.value <= 2.0
    assert "released before it" in again.guarantee().sentence


def test_the_prior_is_part_of_a_fluent_model_alone(lexicon: Lexicon, model: Privatizer) -> None:
    other = lexicon.with_prior(lexicon_of(30, 6, among=("john", "of", "well")).prior)
    assert other.fingerprint == lexicon.fingerprint
    assert compile_model(FLUENT, other).fingerprint != model.fingerprint
    plain = CusText(epsilon=2.0, k=4)
    assert compile_model(plain, other).fingerprint == compile_model(plain, lexicon).fingerprint
    assert "fluent" not in plain.as_dict()
    assert FLUENT.as_dict()["fluent"] is True
    assert FLUENT.without_context() == plain


def test_a_preview_shows_laws_where_they_stand(lexicon: Lexicon, model: Privatizer) -> None:
    shown = preview(model, "The qab qac, QAD zzunknown", top=3)
    words = {word.text: word for word in shown.words}
    became = [words[text].became for text in ("qab", "qac", "QAD")]
    before = (number_of(lexicon, "the"), number_of_word(model, became[0]))
    for text, h in zip(("qab", "qac"), before, strict=True):
        likeliest = model.sampler.law(number_of_word(model, text), h).probability.max()
        assert words[text].candidates[0][1] == pytest.approx(float(likeliest))
    assert shown.output == "The {} {}, {} [OOV]".format(*became)


class TestRefused:
    @pytest.mark.parametrize("consistency", ["record", "dataset"])
    def test_another_level_of_consistency(self, lexicon: Lexicon, model: Any, consistency: Any) -> None:
        for make in (
            lambda: compile_model(FLUENT, lexicon, consistency=consistency),
            lambda: Privatizer(lexicon, model.sampler, consistency=consistency),
        ):
            with pytest.raises(SettingsError, match=f"^consistency: '{consistency}' is not valid .*fluent"):
                make()

    def test_levels_of_importance(self, lexicon: Lexicon) -> None:
        levels = Importance(provider="random", levels=(Level(30, 1.0), Level(None, 2.0)))
        with pytest.raises(SettingsError, match=r"importance\.levels: 2 .* with mechanism\.fluent"):
            compile_model(FLUENT, lexicon, importance=levels)

    def test_an_epsilon_beyond_what_its_integers_hold(self) -> None:
        with pytest.raises(SettingsError, match=r"^mechanism\.epsilon: 33 is not valid .*Choose 32 or less"):
            CusText(33, fluent=True)

    def test_a_prior_without_pairs(self) -> None:
        plain = lexicon_of(30)
        bare = Lexicon(plain.vocabulary, plain.vectors)
        with pytest.raises(SettingsError, match=r"^mechanism\.fluent: not valid, because .*lexicon\.prior"):
            FLUENT.compile(bare)
