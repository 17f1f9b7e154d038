"""Words that importance chooses are drawn, and the others leave as they came; which come first, against the definition."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.levels import DIRECTIONS, Importance, Level
from dptext_spark.importance.providers import ColumnWeights, InvalidWeightsError, RandomImportance
from dptext_spark.importance.selector import Selector, levels_of, shared_by_word, units_of
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.record import with_importance
from dptext_spark.randomness import Draws, RunKey
from dptext_spark.text import chunks
from dptext_spark.text.chunks import Spans
from dptext_spark.text.engine import Counters
from dptext_spark.text.policy import Policy
from dptext_spark.text.selection import Texts
from dptext_spark.text.tokens import list_words
from tests.core.text.samples import POLICIES, TEXTS, WORDS, FirstLane, Step, privatizer

KEY = RunKey.insecure(5)
DRAW = Policy(stop_words="draw")
OWN = Importance(provider="column", percent=40, weights=("w",))


class Lengths:
    name = "random"
    fingerprint = "lengths"
    sentence = ""

    def weights(self, words: Spans) -> np.ndarray:
        return (words.ends - words.starts).astype(np.float32)

    def arrays(self) -> dict[str, np.ndarray]:
        return {}


def model(
    policy: Policy = DRAW, consistency: str = "token", *, step: int = 1, **selection: Any
) -> Privatizer:
    """A model that draws the next word of the lexicon, of words that are long."""
    chosen = Importance(provider="random", **({"percent": 40} | selection))
    further = tuple(Step(step * (n + 1), len(WORDS)) for n in range(1, len(chosen.cumulative)))
    selector = Selector(chosen, Lengths(), further)
    plain = privatizer(policy, step, consistency)
    return replace(plain, selector=selector, fingerprint="")


def sanitized(made: Privatizer, texts: list[str | None], **more: Any) -> tuple[list[str | None], Counters]:
    ids = pa.array(range(len(texts)), pa.int64())
    more = {"run_id": "r", **more}
    out, counters = made.privatize(pa.array(texts, pa.string()), column="b", row_ids=ids, key=KEY, **more)
    return out.to_pylist(), counters


def next_word(word: str, steps: int = 1) -> str:
    return WORDS[(WORDS.index(word) + steps) % len(WORDS)]


class TestOneLevel:
    def test_the_share_that_comes_first_is_drawn(self) -> None:
        text = "cat seventh a eightish dog"  # 40 % of five words
        (out,), counters = sanitized(model(), [text])
        assert out == f"cat {next_word('seventh')} a {next_word('eightish')} dog"
        assert counters.column("drawn").tolist() == counters.units.tolist() == [2]
        assert counters.column("words").tolist() == [5]
        (out,), _ = sanitized(model(direction="bottom"), [text])
        assert out == f"{next_word('cat')} seventh {next_word('a')} eightish dog"

    def test_words_that_stay_keep_their_bytes_and_their_case(self) -> None:
        (out,), _ = sanitized(model(percent=10), ["The CAT, tHe Dog\u2019s SEVENTH  oX"])
        assert out == f"The CAT, tHe Dog\u2019s {next_word('seventh').upper()}  oX"
        low = replace(DRAW, case="lower", gaps="normalise")
        (out,), _ = sanitized(model(low, percent=10), ["SEVENTH, tHe ÉTÉ  ox"])
        assert out == f"{next_word('seventh')}, the été ox"

    def test_words_that_are_not_drawn_take_places(self) -> None:
        keep = Policy(stop_words="keep")
        out, counters = sanitized(model(keep, percent=50), ["ourselves cat", None, "", " "])
        assert out == ["ourselves cat", None, "", " "]
        assert counters.units.tolist() == [0] * 4
        (out,), counters = sanitized(model(percent=1, direction="bottom"), ["a frobnicate 123 cat quux"])
        assert re.fullmatch(rf"{next_word('a')} \[OOV\] \d+ cat \[OOV\]", out or "")
        assert " 123 " not in (out or "")
        assert (counters.totals()["oov"], counters.totals()["numbers"]) == (2, 1)

    def test_punctuation_takes_places_where_it_is_ranked(self) -> None:
        text = "cat, ox! , ."
        assert sanitized(model(percent=50, direction="bottom"), [text])[0] == [f"cat, {next_word('ox')}! , ."]
        (out,), _ = sanitized(model(percent=50, direction="bottom", rank_punctuation=True), [text])
        assert out == text  # three marks are shorter than any word

    @settings(max_examples=100)
    @given(policy=POLICIES, texts=st.lists(st.one_of(st.none(), TEXTS), min_size=1, max_size=3))
    def test_all_words_are_as_without_a_choice(self, policy: Policy, texts: list[str | None]) -> None:
        for level in ("token", "record"):
            law = FirstLane(0, len(WORDS))
            plain = Privatizer(Vocabulary.of(list(WORDS)), law, policy, level, "same")  # type: ignore[arg-type]
            selector = Selector(Importance(provider="random", percent=100), Lengths())
            all_words = replace(plain, selector=selector)
            out, counters = sanitized(plain, texts)
            again, recounted = sanitized(all_words, texts)
            assert out == again
            assert counters.rows.tolist() == recounted.rows.tolist()
            assert counters.units.tolist() == recounted.units.tolist()

    @settings(max_examples=100)
    @given(
        policy=POLICIES, texts=st.lists(st.one_of(st.none(), TEXTS), max_size=3), least=st.sampled_from([1, 9]),
        direction=st.sampled_from(DIRECTIONS), level=st.sampled_from(["token", "record"]),
    )  # fmt: skip
    def test_a_text_of_many_strips_is_ranked_whole(
        self, policy: Policy, texts: list[str | None], least: int, direction: str, level: str
    ) -> None:
        made = model(policy, level, direction=direction, percent=None, levels=(Level(20), Level(30)))
        whole, counters = sanitized(made, texts)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chunks, "STRIP_BYTES", least)
            parts, recounted = sanitized(made, texts)
        assert whole == parts
        assert counters.rows.tolist() == recounted.rows.tolist()
        for i, text in enumerate(texts):  # nor does it depend on the other texts
            alone, _ = sanitized(made, [*[None] * i, text])
            assert alone[i] == whole[i]


class TestStrategies:
    def test_aggressive_looks_at_each_occurrence(self) -> None:
        (out,), counters = sanitized(model(percent=25), ["cat cat dog dog"])
        assert out == f"{next_word('cat')} cat dog dog"
        assert counters.units.tolist() == [1]

    def test_conservative_draws_all_occurrences_of_a_chosen_word(self) -> None:
        (out,), counters = sanitized(model(consistency="record", percent=25), ["cat CAT dog Cat"])
        assert out == f"{next_word('cat')} {next_word('cat').upper()} dog {next_word('cat').capitalize()}"
        assert counters.column("drawn").tolist() == [3]
        assert counters.units.tolist() == [1]

    def test_dataset_level_is_refused(self) -> None:
        with pytest.raises(SettingsError, match="consistency: 'dataset' is not valid with importance"):
            model(consistency="dataset")
        with pytest.raises(SettingsError, match="strategy"):
            model(consistency="token", strategy="conservative")


class TestLevels:
    def test_each_level_has_its_law(self) -> None:
        made = model(percent=None, levels=(Level(20), Level(40)))
        (out,), _ = sanitized(made, ["seventh cat ox a dog"])
        assert out == f"{next_word('seventh')} {next_word('cat', 2)} ox a {next_word('dog', 2)}"

    def test_a_word_has_the_level_of_its_most_important_occurrence(self) -> None:
        made = model(consistency="record", percent=None, levels=(Level(20), Level(None)))
        (out,), _ = sanitized(made, ["cat cat dog cat"])
        one = next_word("cat")
        assert out == f"{one} {one} {next_word('dog', 2)} {one}"

    def test_no_number_serves_two_levels(self) -> None:
        seen: list[list[int]] = [[], []]

        class Spy(Step):
            def sample(self, ids: np.ndarray, draws: Draws) -> np.ndarray:
                seen[self.step].extend(draws.u64(0).tolist())
                return ids.copy()

        words = Vocabulary.of(list(WORDS))
        for percent in (20, 60):  # the same words at one level and at the other
            chosen = Importance(provider="random", levels=(Level(percent), Level(None)))
            selector = Selector(chosen, Lengths(), (Spy(1, len(WORDS)),))
            made = Privatizer(words, Spy(0, len(WORDS)), DRAW, "token", "same", selector=selector)  # type: ignore[arg-type]
            sanitized(made, ["cat dog ox a cat dog ox a cat dog"] * 20)
        assert len(seen[0]) == 160
        assert len(seen[1]) == 240
        assert not set(seen[0]) & set(seen[1])

    def test_units_are_counted_by_level(self) -> None:
        laws = [Guarantee("epsilon_dp", epsilon, sentence=f"ε is {epsilon}.") for epsilon in (0.5, 2.0)]
        for level, expected in (("token", 1 + 4 * 4), ("record", 1 + 4 * 2)):
            first, second = (Step(n, len(WORDS), law) for n, law in enumerate(laws))
            chosen = Importance(provider="random", levels=(Level(20), Level(None)))
            selector = Selector(chosen, Lengths(), (second,))
            made = Privatizer(Vocabulary.of(list(WORDS)), first, DRAW, level, selector=selector)  # type: ignore[arg-type]
            _, counters = sanitized(made, ["seventh cat dog cat dog"])
            assert made.units.multiples == (1, 4)
            assert made.units.of_one.epsilon == 0.5
            assert counters.units.tolist() == [expected]
            promised = made.guarantee()
            assert promised.epsilon == 2.0
            assert "Level 1: ε is 0.5. Level 2: ε is 2.0." in promised.sentence
            assert "depends on its number of words alone." in promised.sentence


class TestWeights:
    def made(self) -> Privatizer:
        return with_importance(privatizer(DRAW, 1), OWN)

    def test_they_choose(self) -> None:
        texts: list[str | None] = ["cat dog ox", None, "a cat"]
        weights = pa.array([[0.1, 0.5, 0.2], None, [3.0, 2.0]], pa.list_(pa.float32()))
        assert [one.selector.reads_weights for one in (self.made(), model())] == [True, False]  # type: ignore[union-attr]
        for given_weights in (weights, weights.cast(pa.large_list(pa.float64()))):
            out, _ = sanitized(self.made(), texts, weights=given_weights)
            assert out == [f"cat {next_word('dog')} {next_word('ox')}", None, f"{next_word('a')} cat"]

    @pytest.mark.parametrize(
        ("weights", "said"),
        [
            (None, "weights are missing"),
            ([[1.0]], "1 texts have another number of weights"),
            ([[1.0, 2.0, 3.0]], "1 texts have another number"),
            ([None], "1 texts have another number"),
            ([], "0 lists of weights do not fit 1 texts"),
            ([[1.0, None]], "1 weights are NULL"),
            ([[1.0, float("nan")]], "1 weights that are negative or not finite"),
            ([[-1.0, float("inf")]], "2 weights that are negative or not finite"),
            ([[1.0, 1e300]], "1 weights that are negative or not finite"),
            ([1.0], "weights of type double"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, weights: list[Any] | None, said: str) -> None:
        kind = pa.float64() if weights == [1.0] else pa.list_(pa.float64())
        array = None if weights is None else pa.array(weights, kind)
        with pytest.raises(InvalidWeightsError, match=said) as caught:
            sanitized(self.made(), ["markerword cat"], weights=array)
        assert "marker" not in str(caught.value)

    def test_a_provider_and_what_it_is_given_must_fit(self) -> None:
        class Short(Lengths):
            def weights(self, words: Spans) -> np.ndarray:
                return np.ones(1, np.float32)

        made = replace(model(), selector=Selector(Importance(provider="random", percent=5), Short()))
        with pytest.raises(InvalidWeightsError, match="returned 1 weights for 2 words"):
            sanitized(made, ["cat dog"])
        with pytest.raises(DataError, match="weights: not valid with provider random"):
            sanitized(model(), ["cat"], weights=pa.array([[1.0]]))
        with pytest.raises(SettingsError, match=r"importance.provider: 'idf' differs"):
            Selector(Importance(percent=10), ColumnWeights())
        with pytest.raises(SettingsError, match=r"importance.levels: 2 levels do not fit 1 samplers"):
            Selector(replace(OWN, percent=None, levels=(Level(3), Level(4))), ColumnWeights())


class TestChance:
    def weights(self, texts: list[str], **more: Any) -> list[float]:
        words = list_words(privatizer(DRAW).engine, pa.array(texts)).words
        return RandomImportance(**more).weights(words).tolist()

    def test_places_depend_on_the_number_of_words_alone(self) -> None:
        one = self.weights(["cat dog ox"])
        assert one == self.weights(["seventh a s", "cat dog ox"])[:3] == self.weights(["cat", "a dog ox"])[1:]
        assert one != self.weights(["cat dog ox a"])[:3]
        assert one != self.weights(["cat dog ox"], seed=1)

    def test_every_place_comes_first_as_often(self) -> None:
        sizes = range(20, 220)
        first = [int(np.argmax(self.weights([" ".join(["cat"] * n)]))) / n for n in sizes]
        assert 0.4 < float(np.mean(first)) < 0.6
        assert 0.04 < float(np.var(first)) < 0.13


def test_a_model_that_chooses_otherwise_draws_otherwise() -> None:
    found = {
        model().fingerprint, model(percent=41).fingerprint, model(direction="bottom").fingerprint,
        model(rank_punctuation=True).fingerprint, privatizer(DRAW, 1).fingerprint,
        model(percent=None, levels=(Level(40),)).fingerprint,
    }  # fmt: skip
    assert len(found) == 5  # one level of 40 % is 40 %


def test_words_of_other_texts_are_refused() -> None:
    made = privatizer(DRAW, 1)
    chosen = model().selector
    assert chosen is not None
    (other,) = chosen.choose(made.engine, [Texts(pa.array(["dog"]))], "token", made.units)
    noise = made.noise(pa.array([1]), "b", KEY, "r")
    with pytest.raises(DataError, match="not those of the texts"):
        made.engine.privatize(pa.array(["  cat ox"]), noise, other)


WEIGHTS = st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.5, 7.0]), max_size=40), max_size=4)
SHARES = st.lists(st.sampled_from([0.5, 5, 10, 12.5, 20, 33.333333]), min_size=1, max_size=3)


def plainly(weights: list[float], shares: list[float], direction: str) -> list[int]:
    n, none = len(weights), len(shares)
    sign = 1 if direction == "bottom" else -1
    order = sorted(range(n), key=lambda i: (sign * weights[i], i))
    levels = [none] * n
    for level in reversed(range(none)):
        share = sum(Fraction(str(one)) for one in shares[: level + 1])
        size = ceil(share * n / 100)
        first = (n - size) // 2 if direction == "medium" else 0
        for i in order[first : first + size]:
            levels[i] = level
    return levels


def ranked(rows: list[list[float]], shares: list[float], direction: str) -> list[list[int]]:
    bounds = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    weights = np.array([w for row in rows for w in row], np.float32)
    selection = Importance(levels=tuple(Level(share) for share in shares))
    levels = levels_of(weights, bounds, selection.cumulative, direction).tolist()
    return [levels[a:b] for a, b in pairwise(bounds)]


@given(rows=WEIGHTS, shares=SHARES, direction=st.sampled_from(DIRECTIONS))
def test_levels_are_as_defined(rows: list[list[float]], shares: list[float], direction: str) -> None:
    assert ranked(rows, shares, direction) == [plainly(row, shares, direction) for row in rows]


@pytest.mark.parametrize(
    ("percent", "n", "m"),
    [(30, 10, 3), (30, 11, 4), (0.1, 1000, 1), (5, 1, 1), (55.1, 1000, 551), (100, 7, 7), (7, 100, 7)],
)
def test_the_share_is_rounded_up_and_exact(percent: float, n: int, m: int) -> None:
    assert ranked([[1.0] * n], [percent], "top") == [[0] * m + [1] * (n - m)]


def test_a_word_has_the_level_of_its_first_occurrence_in_rank() -> None:
    codes = np.array([4, -1, 4, 2, 2, 4, 4], np.int32)
    levels = np.array([2, 2, 0, 1, 2, 2, 2], np.uint8)
    bounds = np.array([0, 5, 5, 7], np.int64)
    shared_by_word(codes, levels, bounds, 5)
    assert levels.tolist() == [0, 2, 0, 1, 1, 2, 2]  # the last text is another one
    multiples = np.array([1, 10], np.int64)
    assert units_of(codes, levels, bounds, bounds, multiples, 5, True).tolist() == [11, 0, 0]
    assert units_of(codes, levels, bounds, bounds, multiples, 5, False).tolist() == [22, 0, 0]
    # Each record counts a word anew.
    assert units_of(codes, np.zeros_like(levels), bounds, bounds, multiples, 5, True).tolist() == [2, 0, 1]
    # Of a record of several texts what is shared counts with the first, texts without words with nothing.
    texts = np.array([0, 1, 1, 3, 5, 7], np.int64)
    assert units_of(codes, levels, bounds, texts, multiples, 5, True).tolist() == [1, 0, 0, 10, 0]
    assert units_of(codes, levels, bounds, texts, multiples, 5, False).tolist() == [1, 0, 1, 20, 0]
