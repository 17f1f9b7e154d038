"""The attack on a sample of a written table: whom it attacks, what it finds, and when it does not run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dptext_spark.audit.attacks.frequency import FrequencyAttack
from dptext_spark.audit.attacks.tokens import Level
from dptext_spark.audit.table.utility import NOT_THE_BEST, TOO_FEW, attack_sample
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC, CusText, Mahalanobis, TruncatedGumbel
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import Draws
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import EDGE
from tests.core.names import beginning

V = 60
RECORDS, LENGTH = 40, 12


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return beginning(Lexicon.default(), V)


def model(lexicon: Lexicon, epsilon: float) -> Privatizer:
    return Privatizer(lexicon, CusText(epsilon=epsilon, k=6).compile(lexicon), Policy(stop_words="draw"))


def sample(outputs_of) -> pd.DataFrame:
    """Two texts a record; their words go round the lexicon, so that each follows the one before it."""
    rows = []
    for number in range(2 * RECORDS):
        words = np.append(EDGE, (number * 7 + np.arange(LENGTH)) % V).astype(np.int32)
        outputs = np.append(EDGE, outputs_of(words[1:])).astype(np.int32)
        drawn = np.append(False, np.ones(LENGTH, np.bool_))
        rows.append((b"%04d" % (number // 2), words.tobytes(), outputs.tobytes(), drawn.tobytes()))
    return pd.DataFrame(rows, columns=["record", "words", "outputs", "drawn"])


def test_what_stays_itself_is_guessed_by_the_law_that_keeps_it(lexicon: Lexicon) -> None:
    attacked = attack_sample(model(lexicon, 200.0), sample(lambda words: words), "token")
    found = {figure.name: figure.value for figure in attacked.figures}
    assert attacked.left_out == []
    assert found["attacked_words"] == RECORDS * LENGTH
    assert min(found["bayes_success"], found["context_success"]) > 0.9


def test_the_context_finds_what_the_word_alone_does_not(lexicon: Lexicon) -> None:
    privatizer = model(lexicon, 0.0)
    law = [privatizer.sampler.law(word) for word in range(V)]
    random = np.random.default_rng(3)
    attacked = attack_sample(
        privatizer,
        sample(lambda words: [random.choice(law[w].ids, p=law[w].probability) for w in words]),
        "token",
    )
    found = {figure.name: figure for figure in attacked.figures}
    # At ε = 0 an output tells no more than its set of six words; each word follows the one before it without exception.
    assert found["bayes_success"].value == pytest.approx(1 / 6, abs=0.1)  # six standard deviations
    assert found["context_success"].value > 0.5
    # The same in full, as a report shows it.
    assert [one.name for one in attacked.results] == ["each word alone", "contextual adversary"]
    for one, name in zip(attacked.results, ("bayes_success", "context_success"), strict=True):
        figure = found[name]
        assert figure.lower <= figure.value <= figure.upper
        assert (one.success, one.lower, one.upper) == (figure.value, figure.lower, figure.upper)
        assert (one.restricted, one.exact, one.unprotected) == (True, False, 1.0)
        assert one.random < 0.2


@pytest.mark.parametrize("level", ["token", "record", "dataset"])
def test_at_dataset_level_alone_frequencies_are_matched(lexicon: Lexicon, level: Level) -> None:
    # A cipher that takes each word for another: what occurs as often, beside the same words, is found without the law.
    cipher = np.random.default_rng(5).permutation(V)
    attacked = attack_sample(model(lexicon, 1.0), sample(lambda words: cipher[words]), level)
    figures = {figure.name: figure for figure in attacked.figures}
    named = [one.name for one in attacked.results]
    if level != "dataset":
        assert "frequency_success" not in figures
        assert FrequencyAttack.name not in named
        return
    figure, result = figures["frequency_success"], attacked.results[2]
    assert named == ["each word alone", "contextual adversary", "frequency matching"]
    assert isinstance(result, FrequencyAttack)
    assert (result.success, result.lower, result.upper) == (figure.value, figure.lower, figure.upper)
    assert result.restricted
    assert result.open
    assert result.bayes == attacked.results[1].bayes
    assert result.random == pytest.approx(1 / V)


def test_one_record_teaches_and_none_is_attacked(lexicon: Lexicon) -> None:
    one = sample(lambda words: words).assign(record=b"same")
    assert attack_sample(model(lexicon, 1.0), one, "token").left_out == [TOO_FEW]
    assert attack_sample(model(lexicon, 1.0), one.iloc[:0], "token").left_out == [TOO_FEW]


@pytest.mark.parametrize(
    ("mechanism", "kind"),
    [
        (MVC(epsilon=60.0), "noise"),
        (Mahalanobis(epsilon=60.0), "noise"),
        (TruncatedGumbel(epsilon=200.0, unsafe="published"), "draws"),
    ],
)
def test_without_a_law_it_is_attacked_too_and_says_by_whom(
    lexicon: Lexicon, mechanism: Any, kind: str
) -> None:
    sampler = mechanism.compile(lexicon)
    privatizer = Privatizer(lexicon, sampler, Policy(stop_words="draw"))
    released = [0]

    def outputs_of(words: np.ndarray) -> np.ndarray:
        numbers = np.array([[i, released[0]] for i in range(len(words))], np.uint64)
        released[0] += 1
        return sampler.sample(words, Draws(bytes(32), numbers))

    table = sample(outputs_of)
    attacked = attack_sample(privatizer, table, "token")
    found = {figure.name: figure for figure in attacked.figures}
    drawn, words, outputs = (
        np.concatenate([np.frombuffer(one, kind) for one in table[name][np.arange(len(table)) // 2 % 2 == 1]])
        for name, kind in (("drawn", np.bool_), ("words", np.int32), ("outputs", np.int32))
    )
    assert attacked.left_out == [NOT_THE_BEST[kind]]
    assert all(one.open and NOT_THE_BEST[kind] in one.how for one in attacked.results)
    assert found["attacked_words"].value == RECORDS * LENGTH
    # Naming the output itself is a ranking that the adversary could have chosen.
    assert found["bayes_success"].value > (words == outputs)[drawn].mean() - 0.1
    assert found["context_success"].value > max(0.5, found["bayes_success"].value)
