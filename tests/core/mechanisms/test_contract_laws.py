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
from tests.core.mechanisms.test_contract import PARAMETERS, WORDS, blocks, check_draws
from tests.core.names import lexicon_at

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
    return mechanism.compile(lexicon_at(vectors)).sample(ids, Draws(bytes(32), blocks(len(ids))))


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    return MECHANISMS[request.param](**PARAMETERS[request.param])


def test_words_stay_themselves_more_often_as_epsilon_grows(mechanism: Mechanism) -> None:
    if mechanism.name == "santext":  # SanText+ keeps most words that are not sensitive whatever ε is.
        mechanism = dataclasses.replace(mechanism, sensitive="none")
    kept = []
    for factor in (1.0, 4.0, 16.0):
        at = dataclasses.replace(mechanism, epsilon=mechanism.epsilon * factor)
        sampler = at.compile(lexicon_at(everyday()))
        laws = [sampler.law(word) for word in range(WORDS)]
        if laws[0] is None:
            kept.append((drawn(at, everyday()) == np.repeat(np.arange(WORDS), DRAWS)).mean())
        else:
            kept.append(np.mean([law.probability[law.ids == word].sum() for word, law in enumerate(laws)]))
    noise = 0.0 if laws[0] is not None else SIGMAS * math.sqrt(0.5 / (WORDS * DRAWS))
    assert kept[1] > kept[0] - noise
    assert kept[2] > kept[1] - noise
    assert kept[2] > kept[0] + noise


def test_epsilon_is_for_each_unit_of_distance(mechanism: Mechanism) -> None:
    """Twice the distances at half the ε is the same law: powers of two, so that every bit is the same."""
    vectors, replace = everyday(), dataclasses.replace
    if mechanism.name in ("santext", "tem", "mvc", "vickrey", "projection", "truncated_gumbel"):
        metric = mechanism.compile(lexicon_at(vectors)).guarantee
        assert metric.kind == "metric_dp"
        assert metric.metric
    if mechanism.name == "vickrey":
        mechanism = replace(mechanism, noise="mvc")
    if mechanism.name in ("laplace", "gaussian", "truncated_laplace"):  # between any two words: C is the unit
        other = replace(mechanism, clip=2 * mechanism.clip)
    elif mechanism.name in ("custext", "diffractor"):  # sets and places in a list have no unit
        other = mechanism
    else:  # of Mahalanobis noise M has trace d whatever the vectors' unit is, and the noise is in that unit
        other = replace(mechanism, epsilon=mechanism.epsilon / 2)
    assert (drawn(mechanism, vectors) == drawn(other, 2.0 * vectors)).all()
    assert other == mechanism or (drawn(mechanism, vectors) != drawn(mechanism, 4.0 * vectors)).any()


def test_the_certificate_is_as_good_as_the_claim(mechanism: Mechanism) -> None:
    sampler = mechanism.compile(lexicon_at(everyday()))
    found = certify(Privatizer(lexicon_at(everyday()), sampler))
    if sampler.guarantee.status == "refuted":
        assert found.verdict == "refuted"
        return
    # SanText+ releases words that are not sensitive: no bound covers those pairs.
    closed = sampler.law(0) is not None and mechanism.name not in ("truncated_gumbel", "santext")
    assert found.verdict == "confirmed" if closed else found.verdict != "refuted"
    assert found.loss.attained <= sampler.guarantee.epsilon * (1 + 1e-12)


@pytest.mark.parametrize("name", TINY)
def test_lexicons_of_few_words(mechanism: Mechanism, name: str) -> None:
    """Every word can be drawn, or the setting that does not fit is named."""
    fitting = {"custext": {"k": 2}, "projection": {"m": 1}}.get(mechanism.name, {})
    mechanism = dataclasses.replace(mechanism, **fitting)
    lexicon = lexicon_at(np.array(TINY[name]))
    if (mechanism.name, name) in REFUSED:
        with pytest.raises(SettingsError, match=r"mechanism\."):
            mechanism.compile(lexicon)
    else:
        check_draws(mechanism.compile(lexicon), len(lexicon), DRAWS)
