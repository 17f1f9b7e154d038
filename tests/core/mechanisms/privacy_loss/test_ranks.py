"""The rank bound of truncated Gumbel noise: a word that is last in another's neighbourhood tells the two apart."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import TruncatedGumbel
from dptext_spark.mechanisms.privacy_loss import worst_loss
from dptext_spark.model.certificate import certify
from dptext_spark.model.privatizer import Privatizer
from tests.core.mechanisms.plain_noise import lexicon_of


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """400 words that lie together, and one whose nearest word has all the others nearer."""
    cluster = np.random.default_rng(2).normal(size=(400, 60))
    return lexicon_of([*cluster, *(cluster[:4] * 3)])


def rank_bound(vectors: np.ndarray) -> float:
    """max over words w and their nearest w' of (ln P(k = 1) - ln P(k >= rank of w from w')) / d, from all distances."""
    wide = vectors.astype(np.float64)
    words = len(wide)
    mass = stats.poisson.logpmf(np.arange(1, words + 1), math.log(words))
    table = np.sqrt(((wide[:, None] - wide) ** 2).sum(axis=2))
    worst = 0.0
    for w in range(words):
        other = int(np.argmin(np.where(np.arange(words) == w, np.inf, table[w])))
        rank = int((table[other] < table[other, w]).sum()) + 1
        worst = max(worst, (mass[0] - logsumexp(mass[rank - 1 :])) / table[w, other])
    return worst


def test_it_is_refuted_by_the_worst_pair(lexicon: Lexicon) -> None:
    turn = rank_bound(lexicon.vectors)
    made = TruncatedGumbel(epsilon=0.9 * turn).compile(lexicon)
    claimed = replace(made, guarantee=replace(made.guarantee, status="claimed"))
    found = certify(Privatizer(lexicon, claimed))
    assert found.verdict == "refuted"
    assert found.loss is not None
    assert turn * (1 - 1e-6) < found.loss.attained <= turn * (1 + 1e-9)
    assert found.loss.pairs == 404 < found.loss.total
    assert found.loss.confidence is None
    assert "a pair of words loses at least" in found.sentence
    assert "for the worst pair rank" in found.sentence
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["loss"]["value"] is None


def test_above_the_figure_it_is_not_refuted_and_never_confirmed(lexicon: Lexicon) -> None:
    made = TruncatedGumbel(epsilon=1.1 * rank_bound(lexicon.vectors)).compile(lexicon)
    assert certify(Privatizer(lexicon, made)).verdict == "not refuted"


def test_equal_words_count_once() -> None:
    lexicon = lexicon_of([[5.0, 0], [1.0, 1], [1.0, 1], [1.0, 1], [0.0, 0]])
    found = worst_loss(TruncatedGumbel(epsilon=40.0).compile(lexicon), 5)
    assert found is not None
    assert (found.pairs, found.total) == (3, 10)
