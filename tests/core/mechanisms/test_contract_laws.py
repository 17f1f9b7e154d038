"""What the law of every mechanism of the registry obeys: ε, the unit of distance, the certificate, lexicons of few words."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import MECHANISMS, Mechanism
from dptext_spark.model.certificate import certify
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import Draws
from tests.core.mechanisms.plain_noise import lexicon_of
from tests.core.mechanisms.test_contract import PARAMETERS, WORDS, blocks

DRAWS = 200  # of each word
SIGMAS = 5.0  # a fall of a share by more standard deviations: a false alarm has probability 3e-7
TINY = {
    "two words": [[0.0, 1.0, 2.0], [1.0, 0.0, 2.0]],
    "three equal vectors": [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]],
    "three equal vectors and another": [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [3.0, 1.0]],
    "a zero vector": [[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]],
    "one dimension": [[-1.0], [0.5], [2.0], [7.0]],
    "zero, huge and tiny": [[0.0, 0.0], [1e30, 0.0], [-1e-30, 0.0], [0.0, 0.0]],
}
# No distance of two words to speak of, or one whose square float32 does not hold; half of two words, where one alone could
# become nothing else.
REFUSED = {
    ("truncated_gumbel", "three equal vectors"),
    ("truncated_gumbel", "zero, huge and tiny"),
    ("santext", "two words"),
}


def everyday() -> np.ndarray:
    return np.random.default_rng(5).normal(size=(WORDS, 4))


def drawn(mechanism: Mechanism, vectors: np.ndarray) -> np.ndarray:
    ids = np.repeat(np.arange(len(vectors), dtype=np.int32), DRAWS)
    return mechanism.compile(lexicon_of(vectors)).sample(ids, Draws(bytes(32), blocks(len(ids))))


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    return MECHANISMS[request.param](**PARAMETERS[request.param])


def test_words_stay_themselves_more_often_as_epsilon_grows(mechanism: Mechanism) -> None:
    # SanText+ keeps most words that are not sensitive whatever ε is.
    mechanism = dataclasses.replace(
        mechanism, **({"sensitive": "none"} if mechanism.name == "santext" else {})
    )
    lexicon = lexicon_of(everyday())
    kept = []
    for factor in (1.0, 4.0, 16.0):
        sampler = dataclasses.replace(mechanism, epsilon=mechanism.epsilon * factor).compile(lexicon)
        laws = [sampler.law(word) for word in range(WORDS)]
        if laws[0] is None:
            words = np.repeat(np.arange(WORDS, dtype=np.int32), DRAWS)
            kept.append(float((sampler.sample(words, Draws(bytes(32), blocks(len(words)))) == words).mean()))
        else:
            kept.append(np.mean([law.probability[law.ids == word].sum() for word, law in enumerate(laws)]))
    noise = 0.0 if laws[0] is not None else SIGMAS * math.sqrt(0.5 / (WORDS * DRAWS))
    assert kept[1] > kept[0] - noise
    assert kept[2] > kept[1] - noise
    assert kept[2] > kept[0] + noise


def test_epsilon_is_for_each_unit_of_distance(mechanism: Mechanism) -> None:
    """Twice the distances at half the ε is the same law: powers of two, so that every bit is the same."""
    vectors = everyday()
    if mechanism.name in ("santext", "tem", "mvc", "vickrey", "projection", "truncated_gumbel"):
        other = dataclasses.replace(mechanism, epsilon=mechanism.epsilon / 2)
        metric = mechanism.compile(lexicon_of(vectors)).guarantee
        assert metric.kind == "metric_dp"
        assert metric.metric
    elif mechanism.name in ("laplace", "gaussian", "truncated_laplace"):
        other = dataclasses.replace(
            mechanism, clip=2 * mechanism.clip
        )  # between any two words: C is the unit
    else:
        other = mechanism  # sets, places in a list and a covariance of trace d have no unit
    if mechanism.name == "vickrey":
        mechanism, other = (dataclasses.replace(one, noise="mvc") for one in (mechanism, other))
    if mechanism.name == "mahalanobis":
        # M has trace d whatever the vectors' unit is; the noise is in the unit of the vectors.
        other = dataclasses.replace(mechanism, epsilon=mechanism.epsilon / 2)
    assert (drawn(mechanism, vectors) == drawn(other, 2.0 * vectors)).all()
    different = drawn(mechanism, 4.0 * vectors)
    if other != mechanism:
        assert (drawn(mechanism, vectors) != different).any()


def test_the_certificate_is_as_good_as_the_claim(mechanism: Mechanism) -> None:
    sampler = mechanism.compile(lexicon_of(everyday()))
    found = certify(Privatizer(lexicon_of(everyday()), sampler))
    if sampler.guarantee.status == "refuted":
        assert found.verdict == "refuted"
        return
    closed = sampler.law(0) is not None and mechanism.name != "truncated_gumbel"
    # SanText+ releases words that are not sensitive: no bound covers those pairs.
    wanted = "confirmed" if closed and mechanism.name != "santext" else found.verdict
    assert found.verdict == wanted
    assert found.verdict != "refuted"
    assert found.loss is not None
    assert found.loss.attained <= sampler.guarantee.epsilon * (1 + 1e-12)


@pytest.mark.parametrize("name", TINY)
def test_lexicons_of_few_words(mechanism: Mechanism, name: str) -> None:
    """Every word can be drawn, or the setting that does not fit is named."""
    vectors = np.array(TINY[name])
    fitting = {
        "custext": {"k": 2},
        "projection": {"m": 1},
    }.get(mechanism.name, {})
    mechanism = dataclasses.replace(mechanism, **fitting)
    try:
        sampler = mechanism.compile(lexicon_of(vectors))
    except SettingsError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert (mechanism.name, name) in REFUSED
        assert "mechanism." in refused
        return
    assert (mechanism.name, name) not in REFUSED
    ids = np.repeat(np.arange(len(vectors), dtype=np.int32), DRAWS)
    out = sampler.sample(ids, Draws(bytes(32), blocks(len(ids))))
    assert out.min() >= 0
    assert out.max() < len(vectors)
    for word in range(len(vectors)):
        law = sampler.law(word)
        if law is not None:
            assert sum(map(int, law.weight)) == 2**63
            assert (law.weight > 0).all()
            assert set(out[ids == word].tolist()) <= set(law.ids.tolist())
