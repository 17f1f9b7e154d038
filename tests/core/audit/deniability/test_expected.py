"""What a law alone lets expect to change, against its exact laws, read word by word."""

from __future__ import annotations

import pytest

from dptext_spark.audit.deniability.expected import ENDS, expected_change
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS, Laplace
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import drawn_words
from tests.core.names import beginning


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return beginning(Lexicon.default(), 120)


def by_hand(model: Privatizer) -> tuple[float, float]:
    """Sort words by how often they change, and walk up to 5 % and 95 % of their probability."""
    drawn, prior = drawn_words(model.engine), model.prior.words
    found = []
    for word in range(len(model.vocabulary)):
        if drawn[word]:
            law = model.sampler.law(word)
            assert law is not None
            weight = dict(zip(law.ids.tolist(), law.weight.tolist(), strict=True))
            found.append((1.0 - weight.get(word, 0) / sum(weight.values()), float(prior[word])))
    whole = sum(weight for _, weight in found)
    ends = []
    for end in ENDS:
        passed = 0.0
        for change, weight in sorted(found):
            passed += weight / whole
            if passed >= end:
                ends.append(change)
                break
    return ends[0], ends[1]


@pytest.mark.parametrize("stop_words", ["keep", "draw"])
@pytest.mark.parametrize("name", ["custext", "santext", "tem", "diffractor"])
def test_it_is_that_of_the_laws(lexicon: Lexicon, name: str, stop_words: str) -> None:
    mechanism = MECHANISMS[name](epsilon=3.0)
    model = Privatizer(lexicon, mechanism.compile(lexicon), Policy(stop_words=stop_words))  # type: ignore[arg-type]
    assert expected_change(model) == pytest.approx(by_hand(model), rel=1e-6)


def test_where_no_law_tells_there_is_none(lexicon: Lexicon) -> None:
    assert expected_change(Privatizer(lexicon, Laplace(epsilon=20.0).compile(lexicon))) is None
