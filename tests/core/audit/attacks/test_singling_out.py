"""What a draw tells of its word, against the definition over the whole law."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dptext_spark.audit.attacks.linkage_scores import DrawBits
from dptext_spark.mechanisms import TEM, CusText, Mechanism
from tests.core.names import scattered

WORDS = 60
PRIOR = np.random.default_rng(4).dirichlet(np.ones(WORDS))


def told(mechanism: Mechanism) -> tuple[DrawBits, np.ndarray, np.ndarray | None]:
    sampler = mechanism.compile(scattered(WORDS, 5, 1))
    law = sampler.laws(np.arange(WORDS, dtype=np.int32)).dense(WORDS)
    return DrawBits.of(sampler, PRIOR), law, sampler.groups()


def information(joint: np.ndarray) -> float:
    """I of a joint distribution, in bits, term by term."""
    first, second = joint.sum(axis=1), joint.sum(axis=0)
    return sum(
        joint[i, j] * math.log2(joint[i, j] / (first[i] * second[j]))
        for i in range(len(first)) for j in range(len(second)) if joint[i, j] > 0
    )  # fmt: skip


MECHANISMS = {
    "custext": CusText(epsilon=2.0, k=6),
    "aggressive": CusText(epsilon=2.0, k=6, mapping="aggressive"),
    "remapped": CusText(epsilon=1.0, k=6, remap="bayes"),
    "tem": TEM(epsilon=4.0),
}


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_bits_are_the_mutual_information(mechanism: Mechanism) -> None:
    found, law, groups = told(mechanism)
    joint = PRIOR[:, None] * law
    assert found.bits == pytest.approx(information(joint), abs=1e-9)
    assert np.exp(found.marginal) == pytest.approx(joint.sum(axis=0), abs=1e-12)
    if groups is None:
        assert found.by_set is None
    else:
        of_sets = np.stack([joint[groups == group].sum(axis=0) for group in np.unique(groups)])
        assert found.by_set == pytest.approx(information(of_sets), abs=1e-9)
        assert 0 < found.by_set <= found.bits + 1e-9
    assert found.words(1_000_000) == math.ceil(math.log2(1_000_000) / found.bits)


def test_a_law_that_tells_nothing_singles_out_nobody() -> None:
    nothing = DrawBits(np.zeros(3), 0.0, None)
    assert nothing.words(10_000) is None
    assert nothing.as_dict()["words"] == {"10000": None, "1000000": None}
    assert "0.0 bits" in nothing.sentence
