"""Rows of three papers: similarity (1-Diffractor), membership (MVC), accuracy (truncated Laplace)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.embeddings import encoder
from benchmarks.measure import Grid, Section
from benchmarks.sentiment import Say, Task, policy, shares
from benchmarks.sizes import Sizes
from benchmarks.sources import lexicons
from dptext_spark.audit.attacks.inference import membership_attack
from dptext_spark.audit.text_classifier import Pair, TextClassifier
from dptext_spark.audit.text_utility import Originals, vector_similarity
from dptext_spark.encoder.encoder import vectors
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import (
    MVC,
    TEM,
    Diffractor,
    Gaussian,
    Laplace,
    Mahalanobis,
    Mechanism,
    TruncatedGumbel,
    TruncatedLaplace,
    Vickrey,
)
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.tokens import read

# 1-Diffractor, Table 2: cosine of sentence embeddings at these ε; None: the figure is not at hand.
EPSILONS_2 = (0.1, 0.5, 1.0, 3.0, 5.0, 10.0, 25.0, 50.0)
N = None
TABLE_2: dict[str, tuple[float | None, ...]] = {
    "1-D geometric": (0.37, 0.57, 0.66, 0.80, 0.82, 0.82, 0.99, 0.99),
    "1-D tem": (0.31, 0.48, 0.57, 0.73, 0.79, 0.82, 1.0, 1.0),
    "MVC": (0.08, 0.08, 0.08, 0.09, 0.10, 0.15, 0.64, 0.77),
    "TEM": (0.10, 0.10, 0.11, 0.38, 0.45, 0.45, 0.83, 0.83),
    "truncated Gumbel": (0.33, 0.33, 0.33, 0.33, 0.33, 0.33, 0.59, 0.61),
    "Vickrey": (N, N, N, N, N, 0.14, 0.42, 0.49),
    "Mahalanobis": (N, N, N, N, N, 0.14, 0.56, 0.75),
}
MECHANISMS: dict[str, Mechanism] = {
    "1-D geometric": Diffractor(),
    "1-D tem": Diffractor(form="tem"),
    "MVC": MVC(),
    "TEM": TEM(),
    "truncated Gumbel": TruncatedGumbel(unsafe="published"),
    "Vickrey": Vickrey(),
    "Mahalanobis": Mahalanobis(),
}
KEPT = ("1-D geometric", "1-D tem")  # whose published rows kept stop words; the others did not
COMPARED = 200  # sentences

# MVC, Table 4: area under the curve and accuracy of the attack on membership at nine ε.
MEMBERSHIP = (0.06, 0.04, 0.11, 0.36, 0.61, 0.85, 0.88, 0.93, 0.98)
MEMBERSHIP_ACCURACY = (0.50, 0.50, 0.50, 0.50, 0.51, 0.55, 0.57, 0.65, 0.75)
EPSILONS_4 = (6.0, 12.0, 17.0, 23.0, 29.0, 35.0, 41.0, 47.0, 52.0)
USER = 5  # sentences that stand for a user's

# Truncated Laplace (Huang et al. 2024): its range of ε, and the accuracies that are at hand.
EPSILONS_TRL = (0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
TRL_ACCURACY, RANDOM_ACCURACY = 0.865, 0.5607
PUBLISHED = "truncated Laplace, published"
FEW = 600  # training sentences


def measure(sizes: Sizes, say: Say) -> Section:
    """Measure with GloVe where it is here, else with the packaged lexicon."""
    section = Section("paper_tables", "SST-2 with replaced words: tables of three papers")
    found, section.skipped = lexicons(sizes.lexicon_words, tokenizer="whitespace")
    name, lexicon = found[-1]
    task, reasons = Task.sst2(lexicon, None if sizes.lexicon_words is None else min(sizes.rows, 1_600))
    section.skipped += [reason for reason in reasons if reason not in section.skipped]
    section.facts = {"lexicon": name, "words": len(lexicon), "text": task.name}
    full = sizes.lexicon_words is None
    section.grids += [
        Grid(
            "1-Diffractor, Table 2: cosine of sentences and their replacements",
            ("mechanism", "stop words", "ε", "paper", "mean word vectors", "of another sentence", "encoder"),
            tuple(_similarity(section, lexicon, task, EPSILONS_2 if full else EPSILONS_2[2:6:3], say)),
        ),
        Grid(
            "MVC, Table 4: membership",
            ("ε", "paper's AUC", "AUC", "95 %", "paper's accuracy", "accuracy", "95 %"),
            tuple(_membership(lexicon, task, full, say)),
        ),
        Grid(
            "Truncated Laplace: accuracy by ε between any two words, C = 1",
            ("mechanism", "ε", "paper", "here", "95 %"),
            tuple(_truncated(lexicon, task, EPSILONS_TRL if full else EPSILONS_TRL[3:7:3], say)),
        ),
    ]
    section.notes += [
        f"Table 2 of 1-Diffractor: the first {COMPARED} test sentences, token level; by the mean of GloVe's vectors, and by a "
        "sentence encoder where one is at hand, for the paper's is another. The paper's figure stands in the row of the stop "
        "words that its run had. Mean word vectors of any two sentences are alike, which the column beside them shows; where "
        "no figure of the paper is at hand the cell is empty. Truncated Gumbel runs below its floor, without a guarantee.",
        f"Table 4 of MVC: the paper's nine ε are not at hand; these rise over the same range, from drawing every word anew to "
        f"hardly any. {USER} sentences stand for a user's; the model hardly has a penalty and learns its rows by heart. "
        f"The paper's AUC below .5 would find members by turning the guess round, which an adversary does here.",
        f"Truncated Laplace: {FEW} training sentences, because noise is searched for among all words for each token. The "
        f"paper's {TRL_ACCURACY} on SST-2 (BERT) is not given for one ε; below ε of some hundred the noise of a guarantee "
        f"between any two words hides every word in 300 dimensions, so that here accuracy is that of the commonest label, "
        f"as the paper's baseline of random vectors ({RANDOM_ACCURACY}). What its rows show beyond that cannot come from "
        f"the replaced words under the noise that it states.",
    ]
    return section


def _similarity(
    section: Section, lexicon: Lexicon, task: Task, epsilons: tuple[float, ...], say: Say
) -> Iterator[tuple[Any, ...]]:
    model, reader = encoder()
    if model is None:
        section.skipped.append(f"1-Diffractor, Table 2, {reader}")
    compare = model and Originals(partial(vectors, model), task.test[:COMPARED].to_pylist())
    sentences = task.test[:COMPARED]
    few = Task(sentences, task.test_labels[:COMPARED], sentences[:0], [], task.name)
    for name, mechanism in MECHANISMS.items():
        compiled = mechanism.over_epsilons(lexicon)
        for epsilon in epsilons:
            say(f"paper_tables: 1-Diffractor, Table 2, {name}, ε = {epsilon:g}")
            sampler = compiled(epsilon)
            for stop_words in ("keep", "draw"):
                engine = Privatizer(lexicon, sampler, policy(stop_words)).engine
                out, _ = few.privatized((lexicon, sampler), stop_words)
                found = vector_similarity(
                    lexicon.vectors, read(engine, sentences), read(engine, pa.array(out, pa.string()))
                )
                paper = (
                    TABLE_2[name][EPSILONS_2.index(epsilon)]
                    if (name in KEPT) == (stop_words == "keep")
                    else None
                )
                by_encoder = None if compare is None else compare.similarity(out).value
                stop = "kept" if stop_words == "keep" else "drawn"
                yield name, stop, epsilon, paper, found.mean.value, found.others, by_encoder


def _membership(lexicon: Lexicon, task: Task, full: bool, say: Say) -> Iterator[tuple[Any, ...]]:
    few = task.first(1_000)
    plain = few.train.to_pylist() + few.test.to_pylist()
    labels = few.train_labels + few.test_labels
    users = [i // USER for i in range(len(plain))]
    compiled = MVC().over_epsilons(lexicon)
    rows = list(zip(EPSILONS_4, MEMBERSHIP, MEMBERSHIP_ACCURACY, strict=True))
    for epsilon, auc, right in rows if full else rows[::4]:
        say(f"paper_tables: MVC, Table 4, ε = {epsilon:g}")
        train, test = few.privatized((lexicon, compiled(epsilon)), "draw")
        found = membership_attack(
            TextClassifier(strength=100.0), Pair(plain, train + test), labels, users
        ).private
        yield epsilon, auc, *shares(found.auc), right, *shares(found.accuracy)
    found = membership_attack(TextClassifier(strength=100.0), Pair(plain, plain), labels, users).unprotected
    yield None, None, *shares(found.auc), None, *shares(found.accuracy)


def _truncated(
    lexicon: Lexicon, task: Task, epsilons: tuple[float, ...], say: Say
) -> Iterator[tuple[Any, ...]]:
    few = task.first(FEW)
    for epsilon in epsilons:
        say(f"paper_tables: truncated Laplace, ε = {epsilon:g}")
        noise = {
            "truncated Laplace, verified": TruncatedLaplace(epsilon=epsilon),
            PUBLISHED: TruncatedLaplace(epsilon=epsilon, calibration="published"),
            "Laplace": Laplace(epsilon=epsilon),
            "Gaussian": Gaussian(epsilon=epsilon),
        }
        for name, mechanism in noise.items():
            found = few.accuracy(*few.privatized((lexicon, mechanism.compile(lexicon)), "draw"))
            paper = TRL_ACCURACY if name == PUBLISHED else None
            yield name, epsilon, paper, *shares(found)
    vectors = np.random.default_rng(1).normal(size=lexicon.vectors.shape).astype(np.float32)
    scattered = Lexicon(lexicon.vocabulary, vectors)
    sampler = TruncatedLaplace(epsilon=1.0).compile(scattered)
    found = few.accuracy(*few.privatized((scattered, sampler), "draw"))
    yield "truncated Laplace, random vectors", 1.0, RANDOM_ACCURACY, *shares(found)
    most = max(few.test_labels.count(one) for one in set(few.test_labels)) / len(few.test_labels)
    yield "the commonest label", None, None, most, ""
