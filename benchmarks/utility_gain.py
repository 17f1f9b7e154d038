"""What a text is still good for where an attack succeeds equally: mechanisms of one lexicon, or lexicons under one mechanism.

The texts are sentences of SST-2, and texts of ten of one label. The adversary knows the law, and word pairs of other sentences
of SST-2. Word order is judged by the word pairs of a third text (tweets), which neither the adversary nor a mechanism has seen.

Each candidate is drawn at the ε at which the adversary guesses the same share of the replaced words. A label is told by a
classifier that learnt from the release of the other three quarters of the texts: of a bag of words, and of sentence embeddings.
Intervals are paired: each resample takes the same records for every candidate, and draws them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.interpolate import PchipInterpolator

from benchmarks.embeddings import embedded, encoder
from benchmarks.labelled_names import tweets
from benchmarks.measure import Grid, Section
from benchmarks.sentiment import KEY, Say, Task
from benchmarks.sizes import FULL, Sizes
from benchmarks.sources import lexicons, packaged, row_ids
from dptext_spark.arrays import F64
from dptext_spark.audit.attacks.attacked_text import Bigrams, Tokens
from dptext_spark.audit.attacks.bayes import candidates, candidates_after
from dptext_spark.audit.attacks.context import posterior_guesses
from dptext_spark.audit.frontier import Text
from dptext_spark.audit.results import RESAMPLES
from dptext_spark.audit.text_classifier import TextClassifier
from dptext_spark.audit.text_utility import TESTED, joined, order_by_record, record_cosines, released
from dptext_spark.config.load import load_model_config
from dptext_spark.config.values import parse_mechanism
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.model.compile import for_policy, in_table_order, prepare
from dptext_spark.runtime.paths import folder_of
from dptext_spark.text.engine import Engine
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import drawn_words, read
from dptext_spark.text.word_table import WordTable

PLAIN, REMAP, CLUSTERED = "CusText", "with remap", "clustered, with remap"
VARIANTS: Mapping[str, Mapping[str, object]] = {
    PLAIN: {"calibration": "exact"},
    REMAP: {"calibration": "exact", "remap": "bayes"},
    CLUSTERED: {"calibration": "exact", "remap": "bayes", "mapping": "clustered"},
    "fluent": {"fluent": True},
}
LEVELS = (0.4, 0.5)  # of success, between variants
K, OTHER_K = 20, (10, 40)
BEST_K_AT, K_AT = 0.4, (0.45, 0.5)  # of success, between lexicons: at the first, each has the best K for it
START, STEP, BOUNDS = 3.0, 1.5, (0.1, 32.0)  # of the search for an ε
CLOSE, TRIES = 0.001, 20
DRAWS = 3  # of each text, between lexicons
TOGETHER = 10  # sentences of one label in a longer text
MOST = 512  # words that the adversary weighs for an output
ATTACK, KEPT, ORDER, COSINE = "attack", "kept", "order", "cosine"
ACCURACY, EMBEDDED = "accuracy, bag of words", "accuracy, sentence embeddings"
UNCHANGED, DISTINCT = "the texts as they are", "different words"
FACTS = ("ε", "K", DISTINCT)
Row = tuple[str | float | None, ...]
Point = Mapping[
    str, F64
]  # of a release, by name: sums of each record and what they are divided by, float64[2, s]


@dataclass(frozen=True, eq=False)
class Candidate:
    """CusText over a lexicon; `samplers` has what draws at each ε that a search ended at."""

    name: str
    lexicon: Lexicon
    fields: Mapping[str, object]
    k: int = K
    samplers: dict[float, Sampler] = field(default_factory=dict)

    @cached_property
    def _compile_at(self) -> Callable[[float], Sampler]:
        k = min(self.k, len(self.lexicon) // 2)
        mechanism: Any = parse_mechanism({"name": "custext", "k": k, "epsilon": 1.0, **self.fields})
        (known,) = in_table_order(for_policy(mechanism, [self.lexicon], Policy()), Policy())
        return mechanism.over_epsilons(known)  # type: ignore[no-any-return]

    def sampler(self, epsilon: float) -> Sampler:
        """Return what draws at an ε."""
        return self.samplers.get(epsilon) or self._compile_at(epsilon)


@dataclass(frozen=True, eq=False)
class Material:
    """Texts that are replaced, with labels; other public texts, and a third one that judges word order.

    Each is replaced `draws` times, and the encoder reads `embedded` of these releases.
    """

    texts: list[str]
    labels: list[str]
    public: list[str]
    third: list[str] | None
    draws: int = 1
    embedded: int = 0

    def kinds(self) -> dict[str, Material]:
        """Return the sentences, and texts of ten of them."""
        texts, labels = longer(self.texts, self.labels)
        return {"sentences": self, "longer texts": replace(self, texts=texts, labels=labels)}

    def told(self, releases: Sequence[Any], learn: Callable[[Any, Any], Callable[[Any], Any]]) -> F64:
        """Return (how often the label of each record is told by what learnt from the others, of how many releases)."""
        labels, right = np.array(self.labels), np.zeros(len(self.labels))
        part = np.arange(len(labels)) % TESTED
        for release, fold in product(releases, range(TESTED)):
            tested = part == fold
            right[tested] += learn(release[~tested], labels[~tested])(release[tested]) == labels[tested]
        return np.stack([right, np.full(len(labels), float(len(releases)))])

    def accuracies(self, releases: Sequence[Any]) -> dict[str, F64]:
        """Return how often labels are told from releases, by each classifier."""
        accuracies = {ACCURACY: self.told(releases, _bag_of_words)}
        if self.embedded:
            vectors = [embedded(texts.tolist()) for texts in releases[: self.embedded]]
            accuracies[EMBEDDED] = self.told(vectors, _by_vectors)
        return accuracies


def _bag_of_words(texts: Any, labels: Any) -> Callable[[Any], Any]:
    model = TextClassifier().fit(texts.tolist(), labels.tolist())
    return lambda others: np.array(model.classes)[model.predict(others.tolist())]


def _by_vectors(vectors: Any, labels: Any) -> Callable[[Any], Any]:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=TextClassifier().strength, max_iter=1_000, random_state=0)
    return model.fit(vectors, labels).predict  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Corpus:
    """The material as words of a lexicon, all draws one after the other."""

    material: Material
    lexicon: Lexicon
    text: Text
    judge: Bigrams | None

    @classmethod
    def of(cls, material: Material, lexicon: Lexicon) -> Corpus:
        """Read the material."""
        engine = Engine(WordTable.build(lexicon.vocabulary, Policy().stop_list()), Policy())

        def pairs(texts: list[str]) -> Bigrams:
            known = read(engine, pa.array(texts, pa.string()))
            return Bigrams.of(known.words, known.bounds, len(lexicon))

        own = read(engine, pa.array(material.texts * material.draws, pa.string()))
        text = Text(own.words, own.drawn, own.bounds, drawn_words(engine), pairs(material.public), "token")
        return cls(material, lexicon, text, None if material.third is None else pairs(material.third))

    def _by_record(self, *sums: Any) -> F64:
        """Sum float64[draws * s] each over the draws of a record."""
        return np.stack([np.reshape(values, (self.material.draws, -1)).sum(axis=0) for values in sums]) * 1.0

    def attacked(self, sampler: Sampler) -> tuple[Tokens, F64]:
        """Release the texts and attack them: (the release; float64[2, s], replaced words that are guessed, and all of them)."""
        tokens = self.text.replaced(sampler)
        prior = of_drawn(self.text.public.unigram[: self.text.public.words], self.text.drawable)
        at = np.flatnonzero(tokens.drawn)
        observed = None
        if sampler.reads_context:  # what a draw came from is told by the word before it, too
            plausible, pairs = candidates_after(sampler, prior, tokens.outputs[at], tokens.before[at], MOST)
            observed = np.zeros(len(tokens.words), np.int32)
            observed[at] = pairs
        else:
            plausible = candidates(sampler, prior, tokens.outputs[at], MOST)
        guesses, _ = posterior_guesses(tokens, plausible, self.text.public, observed)
        hits = tokens.drawn & (guesses == tokens.words)
        return tokens, self._by_record(*map(tokens.by_record, (hits, tokens.drawn)))

    def left(self, tokens: Tokens) -> Point:
        """Measure what a release is still good for."""
        shown = released(tokens)
        cosine = record_cosines(self.lexicon.vectors, tokens, replace(tokens, words=shown))
        same = tokens.drawn & (tokens.words == tokens.outputs)
        utilities = {
            KEPT: self._by_record(*map(tokens.by_record, (same, tokens.drawn))),
            COSINE: self._by_record(np.nan_to_num(cosine), ~np.isnan(cosine)),
        }
        if self.judge is not None:
            utilities[ORDER] = self._by_record(*order_by_record(shown, tokens.bounds, self.judge))
        texts = np.array(joined(shown, tokens.bounds, self.lexicon.vocabulary.strings()), object)
        utilities |= self.material.accuracies(np.split(texts, self.material.draws))
        return {**utilities, DISTINCT: self.fact(len(np.unique(tokens.outputs[tokens.drawn])))}

    def fact(self, value: float) -> F64:
        """Return a figure that is the same for each record."""
        return np.stack([np.full(len(self.material.labels), part) for part in (float(value), 1.0)])


def epsilon_at(level: float, attack: Callable[[float], float], tried: dict[float, float]) -> float | None:
    """Return an ε at which an attack has some success, as nearly as the search comes; None where none within `BOUNDS` has.

    `tried` has the success at each ε that was tried so far, one at least; more are added.
    """
    for number in range(TRIES):
        success, epsilons = np.array(sorted((value, epsilon) for epsilon, value in tried.items())).T
        near = int(np.abs(success - level).argmin())
        if abs(success[near] - level) <= CLOSE:
            break
        if success[0] < level < success[-1]:
            ascending, first = np.unique(success, return_index=True)
            above = int(np.searchsorted(ascending, level))
            middle = epsilons[first][
                above - 1 : above + 1
            ].mean()  # every third time, for a success that has steps
            epsilon = float(
                middle if number % 3 == 2 else PchipInterpolator(ascending, epsilons[first])(level)
            )
        else:
            edge = max(tried) * STEP if level > success[-1] else min(tried) / STEP
            epsilon = float(np.clip(edge, *BOUNDS))
            if epsilon in tried:
                return None
        tried[epsilon] = attack(epsilon)
    return float(epsilons[near])


def _ratio(weights: F64, sums: F64) -> F64:
    return np.asarray((weights @ sums[0]) / np.maximum(weights @ sums[1], 1e-300), np.float64)


def resamples(records: int) -> F64:
    """Return float64[RESAMPLES + 1, s]: every record once, then records drawn anew, by a public seed."""
    drawn = np.random.default_rng(2022).multinomial(records, np.full(records, 1 / records), RESAMPLES)
    return np.concatenate([np.ones((1, records)), drawn])


def gains(level: float, points: Sequence[Point | None]) -> list[Row]:
    """Return of each figure: name, level, of the texts as they are, of the first candidate, of each other and its gain."""
    weights = resamples(next(iter(points[0].values())).shape[1]) if points[0] else np.ones((1, 0))
    rows: list[Row] = []
    for name in dict.fromkeys(name for point in points[1:] for name in point or ()):
        values = [_ratio(weights, point[name]) if point and name in point else None for point in points]
        base, shown = values[1], [None if value is None else round(float(value[0]), 4) for value in values]
        cells = shown[:2]
        for value, number in zip(values[2:], shown[2:], strict=True):
            known = value is not None and base is not None and name not in FACTS
            cells += [number, interval(value - base) if known else None]
        rows.append((name, level, *cells))
    return rows


def interval(values: F64) -> str:
    """Write the figure of all records with the interval of the resamples."""
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return f"{values[0]:+.3f} ({low:+.3f} to {high:+.3f})"


class Comparison:
    """Candidates on one material, each at the ε of a level of success."""

    def __init__(self, title: str, material: Material, say: Say) -> None:
        """Take the material."""
        self.title, self._say = title, say
        self.corpus = cache(partial(Corpus.of, material))
        self._tried: dict[Candidate, dict[float, float]] = {}

    def at(self, candidate: Candidate, level: float) -> Point | None:
        """Measure a candidate where the attack has some success; None where it never has."""
        self._say(f"utility_gain: {self.title}, {candidate.name}, K = {candidate.k}, attack {level:g}")
        corpus = self.corpus(candidate.lexicon)
        samplers: dict[float, Sampler] = {}

        def attack(epsilon: float) -> float:
            samplers[epsilon] = candidate.sampler(epsilon)
            guessed, replaced = corpus.attacked(samplers[epsilon])[1].sum(axis=1)
            return float(guessed / replaced)

        tried = self._tried.setdefault(candidate, {})
        tried |= {epsilon: attack(epsilon) for epsilon in candidate.samplers or (START,) if not tried}
        epsilon = epsilon_at(level, attack, tried)
        if epsilon is None:
            return None
        sampler = candidate.samplers[epsilon] = samplers.get(epsilon) or candidate.sampler(epsilon)
        tokens, hits = corpus.attacked(sampler)
        facts = {"ε": corpus.fact(epsilon), "K": corpus.fact(candidate.k)}
        return {**facts, ATTACK: hits, **corpus.left(tokens)}

    def grid(self, entrants: Mapping[float, Sequence[Candidate]]) -> Grid:
        """Compare candidates with the first one at each level."""
        first, *others = next(iter(entrants.values()))
        text = self.corpus(first.lexicon).text
        unchanged = self.corpus(first.lexicon).left(Tokens(text.words, text.words, text.drawn, text.bounds))
        heads = [f"{entrant.name}{what}" for entrant in others for what in ("", ", gain")]
        rows: list[Row] = []
        for level, each in entrants.items():
            rows += gains(level, [unchanged, *(self.at(candidate, level) for candidate in each)])
        headings = ("figure", "attack", UNCHANGED, first.name, *heads)
        return Grid(f"{self.title}: at equal success", headings, tuple(rows))


def judged(entrants: Sequence[Candidate], material: Material, say: Say, *, part: int = 1) -> list[Grid]:
    """Compare lexicons with the first one on a half of the sentences, 1 those with odd numbers; K is chosen on the other."""
    texts, labels = material.texts, material.labels
    halves = [replace(material, texts=texts[half::2], labels=labels[half::2]) for half in (0, 1)]
    choosing = Comparison("choosing K", replace(halves[1 - part], embedded=0), say)

    def told(candidate: Candidate) -> float:
        point = choosing.at(candidate, BEST_K_AT)
        return -1.0 if point is None else float(point[ACCURACY][0].sum())

    chosen = [max((each, *(replace(each, k=k, samplers={}) for k in OTHER_K)), key=told) for each in entrants]
    at = {BEST_K_AT: chosen, **dict.fromkeys(K_AT, entrants)}
    return [Comparison(kind, half, say).grid(at) for kind, half in halves[part].kinds().items()]


def released_as(style: str, materials: Mapping[str, Material]) -> Grid:
    """Compare the accuracy on texts that a style releases with that on the texts as they are."""
    model, _ = prepare(load_model_config(folder_of("conf") / f"{style}.yaml"))
    rows: list[Row] = []
    for kind, material in materials.items():
        ids = row_ids(len(material.texts))
        out, _ = model.privatize(pa.array(material.texts), column="text", row_ids=ids, key=KEY)
        sides = [np.array(texts, object) for texts in (material.texts, out.to_pylist())]
        plain, private = (material.accuracies([texts]) for texts in sides)
        rows += [(kind, name, *cells[2:]) for name, *cells in gains(0.0, [plain, plain, private])]
    return Grid(f"Style `{style}`", ("texts", "figure", UNCHANGED, style, "gain"), tuple(rows))


def measure(sizes: Sizes, say: Say) -> Section:
    """Compare the variants with the packaged lexicon and with GloVe; or the packaged lexicon with that of a folder."""
    section = Section("utility_gain", "What a text is still good for where an attack succeeds equally")
    own, (third, reason), (model, reader) = packaged(sizes.lexicon_words), tweets(), encoder()
    task, missing = Task.sst2(own, None if sizes.name == FULL.name else 4 * sizes.rows)
    texts = (task.train.to_pylist(), task.train_labels, task.test.to_pylist())
    material = Material(*texts, third, 1, int(model is not None))
    section.skipped = [*missing, *([] if third else [f"word order: {reason}"]), *([] if model else [reader])]
    section.facts = {"records": len(task.train), "resamples": RESAMPLES, "reader": model and reader}
    if sizes.against is not None:
        pair = {Path(sizes.against).name: Lexicon.open(sizes.against), "packaged": own}
        entrants = [Candidate(name, lexicon, VARIANTS[REMAP]) for name, lexicon in pair.items()]
        entrants.append(Candidate("packaged, clustered", own, VARIANTS[CLUSTERED]))
        section.facts["lexicons"] = {name: lexicon.fingerprint for name, lexicon in pair.items()}
        section.grids = judged(entrants, replace(material, draws=DRAWS), say)
        section.grids.append(released_as("balanced", material.kinds()))
        return section
    available, lacking = lexicons(sizes.lexicon_words)
    section.skipped += lacking
    for name, lexicon in available:
        fluent = bool(lexicon.prior.pairs)
        section.skipped += [] if fluent else [f"fluent draws with {name}: its prior has no pairs of words"]
        variants = {key: fields for key, fields in VARIANTS.items() if fluent or not fields.get("fluent")}
        entrants = tuple(Candidate(variant, lexicon, fields) for variant, fields in variants.items())
        for kind, of_kind in material.kinds().items():
            comparison = Comparison(f"{name}, {kind}", of_kind, say)
            section.grids.append(comparison.grid(dict.fromkeys(LEVELS, entrants)))
    section.grids.append(released_as("balanced", material.kinds()))
    section.notes.append(
        "Attack: the share of the replaced words that the contextual adversary guesses. Stop words are kept, token level."
    )
    return section


def longer(texts: list[str], labels: list[str]) -> tuple[list[str], list[str]]:
    """Join sentences of one label to longer texts, in an order by chance."""
    made: list[tuple[str, str]] = []
    for label in sorted(set(labels)):
        mine = [text for text, its in zip(texts, labels, strict=True) if its == label]
        whole = range(0, len(mine) - TOGETHER + 1, TOGETHER)
        made += [(" ".join(mine[i : i + TOGETHER]), label) for i in whole]
    order = np.random.default_rng(2022).permutation(len(made))
    return [made[i][0] for i in order], [made[i][1] for i in order]
