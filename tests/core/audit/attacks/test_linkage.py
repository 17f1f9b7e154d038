"""Linkage against a plain implementation, word by word and row by row, and the counts that follow from it."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dptext_spark as dp
from dptext_spark.audit.attacks.aligned_rows import DRAWN, LAW
from dptext_spark.audit.attacks.linkage import (
    NOT_ASKED,
    SIZES,
    ByCosine,
    ByLaw,
    ByWords,
    Laws,
    Linker,
    Pairs,
    joined,
    read_pairs,
    success,
)
from dptext_spark.audit.text_classifier import Pair
from dptext_spark.mechanisms import TEM, CusText, Mechanism
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from tests.core.mechanisms.fluent_toys import lexicon_of
from tests.core.names import beginning

ROWS, QUERIES, KEY = 500, 60, RunKey.insecure(7)
MECHANISMS = {
    "short": CusText(epsilon=3.0, k=6),
    "remapped": CusText(epsilon=3.0, k=6, remap="bayes"),
    "long": TEM(epsilon=9.0),
    "in_context": CusText(epsilon=3.0, k=6, fluent=True),
}


def sentences(words: list[str], many: int) -> list[str]:
    """Rows of one to eight words, some of them kept, unknown or numbers, some rows twice."""
    random = np.random.default_rng(3)
    kinds = [words[40:], ["the", "of", "and"], ["qqqa", "qqqb"], ["17", "2024", "5"]]
    rows = [
        " ".join(random.choice(kinds[random.choice(4, p=[0.7, 0.15, 0.1, 0.05])]) for _ in range(random.integers(1, 9)))
        for _ in range(many - 20)
    ]  # fmt: skip
    return rows + rows[:20]


class World:
    def __init__(self, mechanism: Mechanism, level: Any, oov: Any = "mask") -> None:
        lexicon = lexicon_of(400, 1) if mechanism.reads_context else beginning(dp.Lexicon.default(), 400)
        stop_words: Any = "draw" if mechanism.reads_context else "keep"
        policy = dp.Policy(oov=oov, numbers="random", stop_words=stop_words)
        self.model: Privatizer = dp.compile(mechanism, lexicon, policy, consistency=level)
        self.source = sentences([*lexicon.vocabulary.strings().to_pylist()], ROWS)
        ids = pa.array(np.arange(ROWS))
        output, _ = self.model.privatize(pa.array(self.source), column="t", row_ids=ids, key=KEY)
        self.output = output.to_pylist()

    def pairs(self, chosen: slice = slice(None)) -> Pairs:
        texts = [[pa.array(side[chosen])] for side in (self.source, self.output)]
        rows = np.arange(ROWS, dtype=np.uint64)[chosen]
        return read_pairs(self.model, self.model, Pair(*texts), rows, KEY)


class Plain:
    """The same, told from the formulas alone."""

    def __init__(self, world: World) -> None:
        model = world.model
        self.level, self.words = model.consistency, model.vocabulary.strings().to_pylist()
        self.place = {word: place for place, word in enumerate(self.words)}
        self.stops = set(model.policy.kept_words())
        self.sampler, self.oov = model.sampler, model.policy.oov
        drawn = np.array([word not in self.stops for word in self.words])
        self.prior = np.where(drawn, model.prior.words, 0.0)
        self.prior = self.prior / self.prior.sum()
        self.laws: dict[tuple[int, int], dict[int, float]] = {}
        self.marginals: dict[tuple[int, int], float] = {}

    def law(self, word: int, before: int) -> dict[int, float]:
        key = (word, before if self.sampler.reads_context else -1)
        if key not in self.laws:
            sampler = self.sampler
            law = sampler.law_after(word, before) if sampler.reads_context else sampler.law(word)
            assert law is not None
            weight = law.weight.astype(float)
            self.laws[key] = dict(zip(law.ids.tolist(), (weight / weight.sum()).tolist(), strict=True))
        return self.laws[key]

    def is_drawn(self, word: str) -> bool:
        return word in self.place and word not in self.stops

    def marginal(self, output: int, before: int) -> float:
        key = (output, before if self.sampler.reads_context else -1)
        if key not in self.marginals:
            self.marginals[key] = self._marginal(*key)
        return self.marginals[key]

    def _marginal(self, output: int, before: int) -> float:
        words = np.flatnonzero(self.prior > 0).tolist()
        return sum(self.prior[w] * self.law(w, before).get(output, 0.0) for w in words)

    def score(self, source: str, output: str, back: bool) -> float:
        first, second = source.split(), output.split()
        if len(first) != len(second):
            return -math.inf
        total, drawn = 0.0, dict[str, str]()
        for place, (x, y) in enumerate(zip(first, second, strict=True)):
            before = self.place.get(second[place - 1], -1) if place else -1
            if self.is_drawn(x):
                if y not in self.place:
                    return -math.inf
                if self.level != "token" and x in drawn:
                    if drawn[x] != y:
                        return -math.inf
                    continue
                drawn[x] = y
                likely = self.law(self.place[x], before).get(self.place[y], 0.0)
                if likely == 0.0:
                    return -math.inf
                total += math.log(likely)
                if back:
                    total -= math.log(self.marginal(self.place[y], before))
            elif x.isdigit():
                if not y.isdigit() or len(x) != len(y):
                    return -math.inf
            elif x in self.stops or self.oov == "keep":
                if x != y:
                    return -math.inf
            elif self.oov == "draw":
                if y not in self.place:
                    return -math.inf
                total += self.uniform(self.place[y], back)
            elif y != "[OOV]":
                return -math.inf
        return total

    def uniform(self, output: int, back: bool) -> float:
        remap = self.sampler.remap
        many = 1 if remap is None else sum(released == output for released in remap.tolist())
        if not back:
            return math.log(many / len(self.words)) if many else -math.inf
        public = self.prior[output] if self.sampler.reads_context else self.marginal(output, -1)
        return math.log(many / len(self.words)) - math.log(public) if many and public else 0.0

    def known(self, words: list[int], output: str) -> float:
        """The score of a release for who knows some words of its source."""
        tokens = output.split()
        places = [at for at, y in enumerate(tokens) if y in self.place and y not in self.stops]
        if self.level != "token":
            places = [at for at in places if tokens[at] not in tokens[:at]]
        total = 0.0
        for w in words:
            absent = 1.0
            for at in places:
                before = self.place.get(tokens[at - 1], -1) if at else -1
                y = self.place[tokens[at]]
                likely = self.law(w, before).get(y, 0.0)
                absent *= 1.0 - (self.prior[w] * likely / self.marginal(y, before) if likely else 0.0)
            if absent == 1.0:
                return -math.inf
            total += math.log((1.0 - absent) / (1.0 - (1.0 - self.prior[w]) ** len(places)))
        return total


def counts(scores: list[float], own: int) -> tuple[int, int, int]:
    """How many others score higher than the own row, the same, and at all."""
    others = [score for row, score in enumerate(scores) if row != own and score > -math.inf]
    if scores[own] == -math.inf:
        return 0, 0, 0
    better = sum(score > scores[own] + 1e-9 for score in others)
    return better, sum(abs(score - scores[own]) <= 1e-9 for score in others), len(others)


CASES = [
    ("short", "token", "mask"),
    ("short", "record", "keep"),
    ("remapped", "record", "keep"),
    ("remapped", "token", "draw"),
    ("long", "token", "mask"),
    ("long", "record", "draw"),
    ("in_context", "token", "draw"),
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(case))
def world(request: pytest.FixtureRequest) -> World:
    mechanism, level, oov = request.param
    return World(MECHANISMS[mechanism], level, oov)


@pytest.mark.parametrize("back", [False, True])
def test_who_holds_the_texts_ranks_rows_as_the_formula_does(world: World, back: bool) -> None:
    plain, chosen = Plain(world), slice(0, QUERIES)
    attack = ByLaw(Laws(world.model), world.pairs(chosen), back=back)
    for part in (slice(0, 200), slice(200, ROWS)):
        attack.add(world.pairs(part))
    for query in range(QUERIES):
        if back:
            scores = [plain.score(world.source[query], output, back) for output in world.output]
        else:
            scores = [plain.score(source, world.output[query], back) for source in world.source]
        assert attack.true[query] == pytest.approx(scores[query], abs=1e-9)
        fit = attack.fit
        assert (fit.better[query], fit.equal[query], fit.possible[query]) == counts(scores, query)
    assert (attack.true > -math.inf).all()
    assert back or attack.fit.equal.sum() >= 20  # the rows that come twice


def test_who_knows_words_ranks_releases_as_the_formula_does(world: World) -> None:
    plain, queries = Plain(world), world.pairs(slice(0, QUERIES))
    attack = ByWords(Laws(world.model), queries, KEY, only_first=world.model.consistency != "token")
    for part in (slice(0, 200), slice(200, ROWS)):
        attack.add(world.pairs(part))
    compared = 0
    for query in range(QUERIES):
        words = {plain.place[w] for w in world.source[query].split() if plain.is_drawn(w)}
        assert set(attack.known[query, : attack.counts[query]].tolist()) <= words
        assert attack.counts[query] == min(len(words), SIZES[-1])
        for place, size in enumerate(SIZES):
            standing = int(attack.standing(f"{size}_words")[query])
            if attack.counts[query] < size:
                assert standing == NOT_ASKED
                continue
            scores = [plain.known(attack.known[query, :size].tolist(), output) for output in world.output]
            assert attack.fit.true[query, place] == pytest.approx(scores[query], abs=1e-9)
            fit = attack.fits[f"{size}_words"]
            assert (fit.better[query], fit.equal[query], fit.possible[query]) == counts(scores, query)
            compared += 1
    assert compared > 30


def test_tables_of_few_words_at_a_time_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(MECHANISMS["long"], "token")
    queries, rows = world.pairs(slice(0, QUERIES)), world.pairs()

    def fits() -> list[list[int]]:
        linker = Linker(queries, KEY, None, Laws(world.model), shared=False)
        linker.add(rows)
        return [column.tolist() for _, _, fit in linker.standings for column in fit]

    whole = fits()
    monkeypatch.setattr("dptext_spark.audit.attacks.linkage_scores.TABLE_WORDS", 20)
    assert fits() == whole


def test_cosines_are_those_of_scikit_learn() -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    world = World(MECHANISMS["short"], "token", "keep")
    rows = world.pairs()
    attack = ByCosine("tfidf", rows.output, rows.source, rows)
    attack.add(rows)
    vectors = text.TfidfVectorizer(token_pattern=r"(?u)\b\w+\b")
    source = vectors.fit_transform(world.source)
    scores = (vectors.transform(world.output) @ source.T).toarray()
    for query in range(ROWS):
        better = (scores[query] > scores[query, query] + 1e-12).sum()
        if scores[query, query] > 0:
            assert attack.fit.better[query] == better


def test_success_among_fewer_candidates_is_that_of_every_choice() -> None:
    better, equal, others = np.array([2, 0, 1, 0]), np.array([1, 2, 0, 0]), 6
    lost = np.array([False, False, False, True])
    for candidates in range(1, others + 2):
        for top in (1, 2, 10):
            found = success(better, equal, lost, others, candidates, top)
            for query in range(4):
                shares = []
                for chosen in combinations(range(others), candidates - 1):
                    above = sum(row < better[query] for row in chosen)
                    same = sum(better[query] <= row < better[query] + equal[query] for row in chosen)
                    shares.append(sum(above + place < top for place in range(same + 1)) / (same + 1))
                assert found[query] == pytest.approx(0.0 if lost[query] else np.mean(shares))


def test_rows_of_several_columns_are_one_row() -> None:
    world = World(MECHANISMS["short"], "record")
    texts = [[pa.array([text.split(" ", 1)[0] for text in side]), pa.array([" ".join(text.split(" ")[1:]) for text in side])]
             for side in (world.source, world.output)]  # fmt: skip
    rows = np.arange(ROWS, dtype=np.uint64)
    two = read_pairs(world.model, world.model, Pair(*texts), rows, KEY)
    one = world.pairs()
    for side in ("source", "output"):
        split, whole = getattr(two, side), getattr(one, side)
        for name in ("ids", "form", "plain", "kind", "first", "starts", "pieces"):
            assert np.array_equal(getattr(split, name), getattr(whole, name)), name
    parts = joined([world.pairs(slice(0, 100)), world.pairs(slice(100, ROWS))])
    for side in ("source", "output"):
        for name, values in getattr(parts, side)._asdict().items():
            assert np.array_equal(values, getattr(getattr(one, side), name)), name


def test_a_number_behind_an_unknown_word_is_released_as_what_reads_like_an_identifier() -> None:
    policy = dp.Policy(oov="mask", numbers="random", identifiers={"digits": "mask"})
    lexicon = beginning(dp.Lexicon.default(), 400)
    model = dp.compile(CusText(epsilon=3.0, k=6), lexicon, policy, consistency="record")
    source = pa.array([f"people JD{8000 + n}4567 city" for n in range(20)])
    rows = np.arange(20, dtype=np.uint64)
    output = model.privatize(source, column="t", row_ids=pa.array(rows), key=KEY)[0]
    assert all(text.startswith("[OOV]", len(text.split()[0]) + 1) for text in output.to_pylist())
    pairs = read_pairs(model, model, Pair([source], [output]), rows, KEY)
    for back in (False, True):
        adversary = ByLaw(Laws(model), pairs, back=back)
        adversary.add(pairs)
        assert np.isfinite(adversary.true).all()


def test_drawn_words_that_are_names_and_masks_of_names() -> None:
    policy = dp.Policy(names={"lists": True}, stop_words="draw")
    model = dp.compile(CusText(epsilon=3.0, k=6), dp.Lexicon.default(), policy, consistency="token")
    texts = Pair([pa.array(["ask Anna Smith"])], [pa.array(["erich [PERSON]"])])
    rows = read_pairs(model, model, texts, np.zeros(1, np.uint64), KEY)
    assert rows.source.kind.tolist()[0] == LAW
    assert rows.output.kind.tolist()[0] == DRAWN
    assert rows.output.ids[0] >= 0
    attack = ByLaw(Laws(model), rows, back=False)
    assert rows.source.shape[0] == rows.output.shape[0]
    attack.add(rows)
