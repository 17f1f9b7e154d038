"""What the text of a written table is still good for, and what an attack on a sample of it finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dptext_spark.audit import table_utility
from dptext_spark.audit.attacks.attacked_text import Level
from dptext_spark.audit.attacks.frequency import FrequencyAttack
from dptext_spark.audit.table_audit import ATTRIBUTE, LABEL, SIMILARITY, Findings
from dptext_spark.audit.table_utility import (
    MOST_CLASSES,
    NOT_THE_BEST,
    TOO_FEW,
    RowPairs,
    attack_sample,
    attribute,
    labels,
    membership,
    require_labels,
    similarity,
)
from dptext_spark.audit.text_classifier import Pair
from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MVC, CusText, Mahalanobis, TruncatedGumbel
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import Draws
from dptext_spark.text.engine import Engine
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import EDGE
from dptext_spark.text.word_table import WordTable
from tests.core.audit.labelled_texts import labelled, replaced
from tests.core.names import beginning

RECORDS = 150


def values(found: Findings) -> dict[str, float]:
    return {figure.name: figure.value for figure in found.figures}


@pytest.fixture(scope="module")
def rows() -> RowPairs:
    """Two rows a record, every tenth row without a label; half of the words of the table are others."""
    texts, moods = labelled(2 * RECORDS, 1)
    return RowPairs(
        Pair(texts, replaced(texts, 0.5, 2)),
        [f"customer{i // 2}" for i in range(2 * RECORDS)],
        [None if i % 10 == 0 else mood for i, mood in enumerate(moods)],
    )


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon.default()


@pytest.fixture(scope="module")
def engine(lexicon: Lexicon) -> Engine:
    policy = Policy(stop_words="draw")
    return Engine(WordTable.build(lexicon.vocabulary, policy.stop_list()), policy)


@pytest.fixture
def with_sklearn() -> None:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")


@pytest.mark.usefixtures("with_sklearn")
class TestClassifiers:
    def test_labels_are_learnt_from_records_and_tried_on_others_once(self, rows: RowPairs) -> None:
        test = np.repeat(np.arange(RECORDS) % 5 == 0, 2)  # the first row of each of them has no label
        found = labels(rows, test, "column 'mood'")
        figures = values(found)
        assert set(figures) == {name for name in LABEL if not name.startswith("membership_")}
        # 30 records are tried, by their other row; all 240 rows of the rest have a label.
        assert (figures["label_rows"], figures["label_missing"]) == (30 + 240, 30)
        assert figures["accuracy_plain_plain"] > 0.9 > figures["accuracy_private_private"]
        (result,) = found.results
        assert (result.name, result.train_rows, result.test_rows) == ("downstream accuracy", 240, 30)
        assert all(one.lower <= one.value <= one.upper for one in found.figures if one.lower is not None)

    def test_both_attacks(self, rows: RowPairs) -> None:
        figures = values(attribute(rows, "column 'mood'"))
        assert set(figures) == set(ATTRIBUTE)
        assert (figures["attribute_rows"], figures["attribute_missing"]) == (270, 30)
        assert figures["attribute_unprotected"] > figures["attribute_majority"]
        found = membership(rows, "column 'mood'")
        assert set(values(found)) == {"membership_auc", "membership_unprotected"}
        assert found.results[0].users == RECORDS // 2
        assert "membership in the table is not secret" in found.results[0].measures

    def test_too_few_to_learn_from(self, rows: RowPairs) -> None:
        for test in (np.zeros(len(rows), np.bool_), np.ones(len(rows), np.bool_)):
            with pytest.raises(DataError, match="column 'mood': 270 rows with a label are too few"):
                labels(rows, test, "column 'mood'")
        few = rows.where(np.arange(len(rows)) < 12)
        with pytest.raises(DataError, match="users: 6 "):
            attribute(few, "column 'mood'")


class TestSimilarity:
    def test_the_same_text_is_as_like_as_can_be(self, engine: Engine, lexicon: Lexicon) -> None:
        pytest.importorskip("rouge_score", reason="the extra [audit] is not installed")
        texts = ["the dog likes the river bank", "money in the bank", "a letter for the doctor"]
        same = values(similarity(engine, lexicon.vectors, Pair(texts, texts)))
        assert set(same) == set(SIMILARITY)
        assert same["bleu"] == pytest.approx(100.0)
        assert same["cosine"] == pytest.approx(1.0)
        assert same["rouge_1"] == same["rouge_2"] == same["rouge_l"] == 1.0
        assert same["distinct_words_share"] == 1.0
        poorer = Pair(texts[:2], ["the dog likes the dog dog", "dog in the dog"])
        poor = values(similarity(engine, lexicon.vectors, poorer))
        known = set(lexicon.vocabulary.strings().to_pylist())
        after = {"the", "dog", "likes", "in"} & known
        before = after | {"river", "bank", "money"} & known
        assert poor["distinct_words_share"] == len(after) / len(before) < 1

    def test_what_cannot_be_compared_is_left_out(
        self, engine: Engine, lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = similarity(engine, None, Pair(["qqzx", ""], ["qqzx", ""]))
        assert found.left_out[0].startswith("cosine: the settings do not give the vectors")
        found = similarity(engine, lexicon.vectors, Pair(["qqzx"], ["qqzx"]))
        assert found.left_out[0].startswith("cosine: records: none of them holds a word")
        monkeypatch.setattr("dptext_spark.errors.find_spec", lambda name: None)
        found = similarity(engine, lexicon.vectors, Pair(["a dog"], ["a cat"]))
        assert set(values(found)) == {"cosine", "distinct_words_share"}
        assert "rouge_score, sacrebleu: not installed" in found.left_out[0]

    def test_long_texts_are_not_compared_word_by_word(
        self, engine: Engine, lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("rouge_score", reason="the extra [audit] is not installed")
        monkeypatch.setattr(table_utility, "MOST_PAIRS", 100)
        # (9 + 1)² pairs are too many; (2 + 1)² are not.
        texts = ["dog " * 9, "a dog", "a cat", *["the bank"] * 20]
        found = similarity(engine, lexicon.vectors, Pair(texts, texts))
        overlap = next(one for one in found.results if one.name == "text overlap")
        assert overlap.records == 11


@pytest.mark.parametrize(
    ("missing", "classes", "said"),
    [
        (0, 1, "label: column 'mood' has one class in 10 rows"),
        (3, 1, "has one class in 7 rows"),
        (10, 0, "is NULL in all of 10 rows"),
        (0, MOST_CLASSES + 1, "has more than 100 classes"),
    ],
)
def test_columns_that_are_no_labels(missing: int, classes: int, said: str) -> None:
    with pytest.raises(DataError) as caught:
        require_labels("label", "mood", 10, missing, classes)
    assert said in str(caught.value)
    require_labels("label", "mood", 10, 8, 2)


V = 60
ATTACKED, LENGTH = 40, 12


@pytest.fixture(scope="module")
def few() -> Lexicon:
    return beginning(Lexicon.default(), V)


def model(few: Lexicon, epsilon: float) -> Privatizer:
    return Privatizer(few, CusText(epsilon=epsilon, k=6).compile(few), Policy(stop_words="draw"))


def sample(outputs_of) -> pd.DataFrame:
    """Two texts a record; their words go round the lexicon, so that each follows the one before it."""
    rows = []
    for number in range(2 * ATTACKED):
        words = np.append(EDGE, (number * 7 + np.arange(LENGTH)) % V).astype(np.int32)
        outputs = np.append(EDGE, outputs_of(words[1:])).astype(np.int32)
        drawn = np.append(False, np.ones(LENGTH, np.bool_))
        rows.append((b"%04d" % (number // 2), words.tobytes(), outputs.tobytes(), drawn.tobytes()))
    return pd.DataFrame(rows, columns=["record", "words", "outputs", "drawn"])


def test_what_stays_itself_is_guessed_by_the_law_that_keeps_it(few: Lexicon) -> None:
    attacked = attack_sample(model(few, 200.0), sample(lambda words: words), "token")
    found = {figure.name: figure.value for figure in attacked.figures}
    assert attacked.left_out == []
    assert found["attacked_words"] == ATTACKED * LENGTH
    assert min(found["bayes_success"], found["context_success"]) > 0.9


def test_the_context_finds_what_the_word_alone_does_not(few: Lexicon) -> None:
    privatizer = model(few, 0.0)
    law = [privatizer.sampler.law(word) for word in range(V)]
    random = np.random.default_rng(3)
    drawn = sample(lambda words: [random.choice(law[w].ids, p=law[w].probability) for w in words])
    attacked = attack_sample(privatizer, drawn, "token")
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
def test_at_dataset_level_alone_frequencies_are_matched(few: Lexicon, level: Level) -> None:
    # A cipher that takes each word for another: what occurs as often, beside the same words, is found without the law.
    cipher = np.random.default_rng(5).permutation(V)
    attacked = attack_sample(model(few, 1.0), sample(lambda words: cipher[words]), level)
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


def test_one_record_teaches_and_none_is_attacked(few: Lexicon) -> None:
    one = sample(lambda words: words).assign(record=b"same")
    assert attack_sample(model(few, 1.0), one, "token").left_out == [TOO_FEW]
    assert attack_sample(model(few, 1.0), one.iloc[:0], "token").left_out == [TOO_FEW]


@pytest.mark.parametrize(
    ("mechanism", "kind"),
    [
        (MVC(epsilon=60.0), "noise"),
        (Mahalanobis(epsilon=60.0), "noise"),
        (TruncatedGumbel(epsilon=200.0, unsafe="published"), "draws"),
    ],
)
def test_without_a_law_it_is_attacked_too_and_says_by_whom(few: Lexicon, mechanism: Any, kind: str) -> None:
    sampler = mechanism.compile(few)
    privatizer = Privatizer(few, sampler, Policy(stop_words="draw"))
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
    assert found["attacked_words"].value == ATTACKED * LENGTH
    # Naming the output itself is a ranking that the adversary could have chosen.
    assert found["bayes_success"].value > (words == outputs)[drawn].mean() - 0.1
    assert found["context_success"].value > max(0.5, found["bayes_success"].value)
