"""What the Bayes remap and fluent draws gain where an attack succeeds equally: sentences of SST-2, and longer texts made of them.

The adversary knows the law and has other sentences of SST-2. It attacks every replaced word of the records that are reported, in
two ways, of which the better one counts at each point: by the word pairs of its sentences along the whole text, and by what it
learns of neighbours from a release of its own of these sentences. Word order is judged by the word pairs of a third text
(tweets), which neither the adversary nor a mechanism has seen.

All variants of a mechanism are drawn of the same records, at a grid of ε each; between two points a utility is taken as linear in
the attack's success. Intervals are paired: each resample takes the same records for every variant, and draws them anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.labelled_names import tweets
from benchmarks.learned_attack import ReleasedNeighbours, learned_guesses
from benchmarks.measure import Grid, Section
from benchmarks.sentiment import Say, Task
from benchmarks.sizes import FULL, Sizes
from benchmarks.sources import lexicons, packaged
from dptext_spark.arrays import F64
from dptext_spark.audit.attacks.attacked_text import Bigrams
from dptext_spark.audit.attacks.bayes import candidates, candidates_after
from dptext_spark.audit.attacks.context import posterior_guesses
from dptext_spark.audit.frontier import Text
from dptext_spark.audit.results import RESAMPLES
from dptext_spark.audit.text_classifier import TextClassifier
from dptext_spark.audit.text_utility import TESTED, joined, order_by_record, record_cosines, released
from dptext_spark.config.values import parse_mechanism
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.model.compile import for_policy, in_table_order
from dptext_spark.text.engine import Engine
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import Reading, drawn_words, read
from dptext_spark.text.word_table import WordTable

PLAIN = "CusText"
VARIANTS: Mapping[str, Mapping[str, object]] = {
    PLAIN: {"calibration": "exact"},
    "with remap": {"calibration": "exact", "remap": "bayes"},
    "fluent": {"fluent": True},
}
EPSILONS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
TOY_EPSILONS = (1.0, 30.0)
LEVELS = (0.3, 0.4, 0.5)  # of success
TOGETHER = 10  # sentences of one label in a longer text
MOST = 512  # words that the adversary weighs for an output
KEPT, ACCURACY, ORDER, COSINE = "kept", "accuracy", "order", "cosine"


@dataclass(frozen=True, eq=False)
class Point:
    """A variant at one ε, by record, so that records can be drawn anew.

    Attributes:
        epsilon: of it.
        attack: float64[2, s], words that were guessed by the better attack, and that could be.
        learned: the success of the one that learns from a release.
        utilities: by name, float64[2, s]: sums and what they are divided by.
        distinct: how many different words came out.
    """

    epsilon: float
    attack: F64
    learned: float
    utilities: Mapping[str, F64]
    distinct: int


@dataclass(frozen=True, eq=False)
class Corpus:
    """Texts with labels, what is known of them, and what judges them.

    Attributes:
        text: what is replaced.
        own: what the adversary releases to learn from.
        labels: of each record.
        judge: word pairs of a third text; None where there is none.
        lexicon: of their words.
    """

    text: Text
    own: Text
    labels: Sequence[str]
    judge: Bigrams | None
    lexicon: Lexicon

    def measured(self, sampler: Sampler, epsilon: float) -> Point:
        """Attack a release of the texts, and say what is left of them."""
        tokens = self.text.replaced(sampler)
        words = self.text.public.words
        prior = of_drawn(self.text.public.unigram[:words], self.text.drawable)
        at = np.flatnonzero(tokens.drawn)
        observed = None
        if sampler.reads_context:  # what a draw came from is told by the word before it, too
            plausible, pairs = candidates_after(sampler, prior, tokens.outputs[at], tokens.before[at], MOST)
            observed = np.zeros(len(tokens.words), np.int32)
            observed[at] = pairs
        else:
            plausible = candidates(sampler, prior, tokens.outputs[at], MOST)
        guesses, _ = posterior_guesses(tokens, plausible, self.text.public, observed)
        neighbours = ReleasedNeighbours.of(self.own.replaced(sampler), words)
        learned = learned_guesses(tokens, plausible, prior, neighbours, observed)
        in_chain, by_learning = (
            tokens.by_record(tokens.drawn & (found == tokens.words)) for found in (guesses, learned)
        )
        hits = max(in_chain, by_learning, key=lambda found: int(found.sum()))
        total = tokens.by_record(tokens.drawn)
        shown = released(tokens)
        cosine = record_cosines(self.lexicon.vectors, tokens, replace(tokens, words=shown))
        there = ~np.isnan(cosine)
        found = {
            KEPT: np.stack([tokens.by_record(tokens.drawn & (tokens.words == tokens.outputs)), total]).astype(
                np.float64
            ),
            COSINE: np.stack([np.where(there, cosine, 0.0), there]).astype(np.float64),
            ACCURACY: self._classified(joined(shown, tokens.bounds, self.lexicon.vocabulary.strings())),
        }
        if self.judge is not None:
            found[ORDER] = np.stack(order_by_record(shown, tokens.bounds, self.judge))
        attack, success = np.stack([hits, total]).astype(np.float64), float(by_learning.sum() / total.sum())
        return Point(epsilon, attack, success, found, len(np.unique(tokens.outputs[at])))

    def _classified(self, texts: Sequence[str]) -> F64:
        """Return (whether the label of a tested record is found by what learnt from the others, whether it is tested)."""
        test = np.arange(len(texts)) % TESTED == TESTED - 1
        learnt, tried = np.flatnonzero(~test), np.flatnonzero(test)
        model = TextClassifier().fit([texts[i] for i in learnt], [self.labels[i] for i in learnt])
        right = np.zeros(len(texts))
        right[tried] = model.predict([texts[i] for i in tried]) == model.places(
            [self.labels[i] for i in tried]
        )
        return np.stack([right, test.astype(np.float64)])


def at_levels(points: Sequence[Point], name: str, weights: F64) -> F64:
    """Return a utility at each level of success, NaN where it is not reached: float64[r, levels].

    Args:
        points: of a variant.
        name: of the utility.
        weights: float64[r, s], how often each record is in each resample.
    """
    attack = np.stack([_ratio(weights, one.attack) for one in points], axis=1)
    use = np.stack([_ratio(weights, one.utilities[name]) for one in points], axis=1)
    order = np.argsort(attack, axis=1)
    attack, use = np.take_along_axis(attack, order, 1), np.take_along_axis(use, order, 1)
    return np.array(
        [np.interp(LEVELS, x, y, left=np.nan, right=np.nan) for x, y in zip(attack, use, strict=True)]
    )


def _ratio(weights: F64, sums: F64) -> F64:
    above, below = weights @ sums[0], weights @ sums[1]
    return np.asarray(above / np.maximum(below, 1e-300), np.float64)


def resamples(records: int, times: int = RESAMPLES) -> F64:
    """Return float64[times + 1, s]: every record once, then records drawn anew, by a public seed."""
    drawn = np.random.default_rng(2022).multinomial(records, np.full(records, 1 / records), times)
    return np.concatenate([np.ones((1, records)), drawn])


def gains(points: Mapping[str, Sequence[Point]], records: int) -> list[tuple[str | float | None, ...]]:
    """Return (utility, success, of the plain variant, then of each other: value, gain, its interval)."""
    weights = resamples(records)
    rows: list[tuple[str | float | None, ...]] = []
    for name in points[PLAIN][0].utilities:
        found = {variant: at_levels(one, name, weights) for variant, one in points.items()}
        for place, level in enumerate(LEVELS):
            base = found[PLAIN][:, place]
            cells: list[str | float | None] = [name, level, _number(base[0])]
            for variant in list(points)[1:]:
                other = found[variant][:, place]
                cells += [_number(other[0]), _interval(other - base)]
                # Where the plain variant keeps no word, no other keeps so many times more.
                ratio = np.divide(other, base, out=np.full_like(other, np.nan), where=base > 0)
                cells += [_interval(ratio)] if name == KEPT else [None]
            rows.append(tuple(cells))
    return rows


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 4)


def _interval(values: F64) -> str | None:
    """Write the figure of all records with the interval of the resamples; None where the level is not reached."""
    if np.isnan(values[0]):
        return None
    known = values[1:][~np.isnan(values[1:])]
    if not len(known):
        return f"{values[0]:+.3f}; no resample reaches it"
    low, high = np.quantile(known, [0.025, 0.975])
    left_out = len(values) - 1 - len(known)
    return f"{values[0]:+.3f} ({low:+.3f} to {high:+.3f})" + (
        f"; {left_out} resamples do not reach it" if left_out else ""
    )


def measure(sizes: Sizes, say: Say) -> Section:
    """Compare the variants on sentences and on longer texts, with the packaged lexicon and GloVe."""
    section = Section(
        "utility_gain", "What Bayes remap and fluent draws gain where an attack succeeds equally"
    )
    found, section.skipped = lexicons(sizes.lexicon_words)
    most, grid = (None, EPSILONS) if sizes.name == FULL.name else (4 * sizes.rows, TOY_EPSILONS)
    task, missing = Task.sst2(packaged(sizes.lexicon_words), most)
    third, reason = tweets()
    section.skipped += [*missing, *([] if third else [f"word order: {reason}"])]
    sentences = (task.train.to_pylist(), task.train_labels)
    for name, lexicon in found:
        variants = [
            one for one, fields in VARIANTS.items() if lexicon.prior.pairs or not fields.get("fluent")
        ]
        if len(variants) < len(VARIANTS):
            section.skipped.append(f"fluent draws with {name}: its prior has no pairs of words")
        for kind, records in (("sentences", sentences), ("longer texts", longer(*sentences))):
            corpus = _corpus(lexicon, records, task.test.to_pylist(), third and pa.array(third))
            points = {
                variant: [*map(partial(_point, corpus, lexicon, variant, say), grid)] for variant in variants
            }
            size = len(corpus.labels)
            heads = [f"{variant}{what}" for variant in variants[1:] for what in ("", ", gain", ", ratio")]
            title, headings = f"{name}, {kind}: at equal success", ("utility", "attack", PLAIN, *heads)
            section.grids.append(Grid(title, headings, tuple(gains(points, size))))
            rows = tuple(_row(variant, one) for variant, each in points.items() for one in each)
            heads = [*points[PLAIN][0].utilities, "different words"]
            headings = ("variant", "ε", "attack", "attack by learning", *heads)
            section.grids.append(Grid(f"{name}, {kind}: all points", headings, rows))
    count = len(sentences[0])
    section.facts = {"records": count, "longer": count // TOGETHER, "resamples": RESAMPLES}
    section.notes.append(
        "Attack: the share of the replaced words that the better of two adversaries guesses: the contextual one, and one that "
        "learns from a release of its own. Stop words are kept, token level. "
        "Nothing was chosen on these texts: the variants are the settings as they come, at one grid of ε."
    )
    return section


def _row(variant: str, one: Point) -> tuple[str | float | None, ...]:
    every = np.ones((1, one.attack.shape[1]))
    use = [_number(float(_ratio(every, sums)[0])) for sums in one.utilities.values()]
    attack = _number(float(_ratio(every, one.attack)[0]))
    return (variant, one.epsilon, attack, _number(one.learned), *use, one.distinct)


def _point(corpus: Corpus, lexicon: Lexicon, variant: str, say: Say, epsilon: float) -> Point:
    say(f"utility_gain: {variant}, ε = {epsilon:g}")
    k = min(20, len(lexicon) // 2)
    mechanism = parse_mechanism({"name": "custext", "k": k, "epsilon": epsilon, **VARIANTS[variant]})
    (known,) = in_table_order(for_policy(mechanism, [lexicon], Policy()), Policy())
    return corpus.measured(mechanism.compile(known), epsilon)


def longer(texts: list[str], labels: list[str]) -> tuple[list[str], list[str]]:
    """Join sentences of one label to longer texts, in an order by chance: every fourth of them is tested."""
    made: list[tuple[str, str]] = []
    for label in sorted(set(labels)):
        mine = [text for text, its in zip(texts, labels, strict=True) if its == label]
        whole = range(0, len(mine) - TOGETHER + 1, TOGETHER)
        made += [(" ".join(mine[i : i + TOGETHER]), label) for i in whole]
    order = np.random.default_rng(2022).permutation(len(made))
    return [made[i][0] for i in order], [made[i][1] for i in order]


def _corpus(
    lexicon: Lexicon, records: tuple[list[str], list[str]], public: list[str], tweets: pa.Array | None
) -> Corpus:
    engine = Engine(WordTable.build(lexicon.vocabulary, Policy().stop_list()), Policy())

    def pairs(texts: pa.Array) -> Bigrams:
        known = read(engine, texts)
        return Bigrams.of(known.words, known.bounds, len(lexicon))

    known = pairs(pa.array(public))

    def text(texts: list[str]) -> Text:
        found: Reading = read(engine, pa.array(texts))
        return Text(found.words, found.drawn, found.bounds, drawn_words(engine), known, "token")

    return Corpus(
        text(records[0]), text(public), records[1], None if tweets is None else pairs(tweets), lexicon
    )
