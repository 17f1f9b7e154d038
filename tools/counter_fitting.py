"""Counter-fitting: move word vectors so that synonyms come together and contrary words part, and all else stays.

After Mrkšić et al. 2016, "Counter-fitting Word Vectors to Linguistic Constraints". Theirs are unweighted pairs. Here the weight
of a pair is how often the sense that joins it is meant (:mod:`tools.wordnet`). A pair attracts less the farther apart the two
words are in use: a sense that nobody uses ("rum" for funny) joins words that are far apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array

from dptext_spark.arrays import F64, I64
from dptext_spark.lexicon.neighbors import nearest
from tools.word_forms import Forms
from tools.wordnet import Lemma, Pairs, WordNet

STEPS, RATE = 40, 0.05
NEIGHBOURS, KEEP, ANCHOR = 12, 0.1, 0.05  # of each word that stay as near as they were; and how strongly
# Strength of contrary words, and the cosine from which on they are far enough apart.
REPULSION, APART = 2.0, -0.2
FAR, NEAR = 0.1, 0.4  # cosines: a pair below the first is not drawn together, one above the second fully


class Force(NamedTuple):
    """Pairs of words, and the cosine that they are moved to: above it where they attract, below it where they repel.

    Attributes:
        first, second: int64[m].
        weight: float64[m], above 0 where the pair attracts and below 0 where it repels.
        target: the cosine from which on nothing moves.
    """

    first: I64
    second: I64
    weight: F64
    target: float


def forces(words: Mapping[str, int], forms: Forms, wordnet: WordNet, vectors: F64) -> list[Force]:
    """Return what moves the words: of two lemmas the forms of one class, such as the plurals of both.

    Args:
        words: their numbers, in lower case.
        forms: of each word.
        wordnet: which lemmas are alike or contrary.
        vectors: float64[V, d], of length 1.
    """
    of_lemma: defaultdict[Lemma, dict[str, int]] = defaultdict(dict)
    for word, number in words.items():
        for lemma, name in forms.get(word, ()):
            of_lemma[lemma].setdefault(name, number)
    same, contrary, similar = (
        _of_words(wordnet.with_derived(pairs), of_lemma)
        for pairs in (wordnet.synonyms(), wordnet.antonyms(), wordnet.similar())
    )
    both = same.keys() & contrary.keys()
    same = {pair: weight for pair, weight in same.items() if pair not in both or weight > contrary[pair]}
    contrary = {pair: weight for pair, weight in contrary.items() if pair not in same}
    attracting = (
        (same, 1.0, 0.9),
        (similar, 1.0, 0.6),
        (_of_words(wordnet.kinds(), of_lemma), 0.2, 0.5),
    )
    moving = [_force(contrary, -REPULSION, APART)]
    for pairs, strength, target in attracting:
        force = _force(pairs, strength, target)
        used = np.clip((_cosines(vectors, force.first, force.second) - FAR) / (NEAR - FAR), 0, 1)
        moving.append(force._replace(weight=force.weight * used))
    return moving


def _of_words(pairs: Pairs, of_lemma: Mapping[Lemma, Mapping[str, int]]) -> dict[tuple[int, int], float]:
    """Return the weights of pairs of words: the forms of one class of both lemmas."""
    weights: dict[tuple[int, int], float] = {}
    for (first, second), weight in pairs.items():
        ours, theirs = of_lemma.get(first, {}), of_lemma.get(second, {})
        for name in ours.keys() & theirs.keys():
            pair = (min(ours[name], theirs[name]), max(ours[name], theirs[name]))
            if weight > 0 and pair[0] != pair[1]:
                weights[pair] = max(weights.get(pair, 0.0), weight)
    return weights


def _force(pairs: Mapping[tuple[int, int], float], strength: float, target: float) -> Force:
    """Take the root of each weight: a share of a fifth still counts."""
    rows = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    weight = np.array([pairs[first, second] for first, second in rows.tolist()])
    return Force(rows[:, 0], rows[:, 1], strength * np.sqrt(weight), target)


def counter_fitted(vectors: F64, moving: list[Force]) -> F64:
    """Return vectors of length 1 that the forces have moved, float64[V, d].

    Args:
        vectors: float64[V, d], of length 1.
        moving: pairs that attract or repel.
    """
    words = len(vectors)
    near, _ = nearest(
        vectors.astype(np.float32), np.arange(words, dtype=np.int32), min(NEIGHBOURS + 1, words), "cosine"
    )
    first, second = np.repeat(np.arange(words), near.shape[1]), near.reshape(-1).astype(np.int64)
    first, second = first[first != second], second[first != second]
    before = _cosines(vectors, first, second)
    rows = np.concatenate([first, *(force.first for force in moving)])
    columns = np.concatenate([second, *(force.second for force in moving)])
    moved, momentum, size = vectors.copy(), np.zeros_like(vectors), np.zeros((words, 1))
    for step in range(1, STEPS + 1):
        pulls = [KEEP * (_cosines(moved, first, second) - before)]
        for force in moving:
            gap = force.target - _cosines(moved, force.first, force.second)
            pulls.append(-force.weight * np.maximum(0, gap * np.sign(force.weight)))
        matrix = coo_array((np.concatenate(pulls), (rows, columns)), (words, words)).tocsr()
        slope = matrix @ moved + matrix.T @ moved + ANCHOR * (moved - vectors)
        slope -= (slope * moved).sum(axis=1, keepdims=True) * moved
        # Adam, with one scale for all dimensions of a word.
        momentum = 0.9 * momentum + 0.1 * slope
        size = 0.99 * size + 0.01 * (slope**2).sum(axis=1, keepdims=True)
        moved = moved - RATE * (momentum / (1 - 0.9**step)) / (np.sqrt(size / (1 - 0.99**step)) + 1e-3)
        moved = normalised(moved)
    return moved


def normalised(vectors: F64) -> F64:
    """Return the rows with length 1; a row of zeros stays."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))


def _cosines(vectors: F64, first: I64, second: I64) -> F64:
    return np.einsum("ij,ij->i", vectors[first], vectors[second])
