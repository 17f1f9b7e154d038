"""How the vectors of the packaged lexicon are made: WordNet, forms of words, counter-fitting."""

# ruff: noqa: SIM905
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from tests.core.lexicon.conftest import write_forms
from tools import counter_fitting, word_forms, wordnet
from tools.counter_fitting import counter_fitted, forces, normalised
from tools.word_forms import CLASSES, read_forms, word_classes
from tools.wordnet import ADJECTIVE, ADVERB, NOUN, WordNet


@pytest.fixture
def word_table(tmp_path: Path) -> Path:
    return write_forms(tmp_path / "sources")


@pytest.mark.parametrize("content", [None, b"", b"another version\n"], ids=["none", "cut", "another"])
def test_other_dictionary_files_are_refused(dictionary: Path, content: bytes | None) -> None:
    file = dictionary / "data.adj"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DataError, match=r"^wordnet: .*data\.adj.* valid: .*wordnet-base"):
        WordNet.open(dictionary)


def test_a_rare_sense_joins_no_words(dictionary: Path) -> None:
    words = WordNet.open(dictionary)
    assert words.share(("funny", ADJECTIVE), "00000005") == 9.5 / 11
    assert words.share(("rum", ADJECTIVE), "00000006") == 0.5 / 9
    pairs = words.synonyms()
    assert pairs[("amusing", ADJECTIVE), ("funny", ADJECTIVE)] == 9.5 / 11
    assert pairs[("funny", ADJECTIVE), ("rum", ADJECTIVE)] == 0.5 / 9
    assert pairs[("film", NOUN), ("movie", NOUN)] == 1.0
    assert words.kinds()[("film", NOUN), ("show", NOUN)] == 1.0


def test_contrary_words_and_their_satellites(dictionary: Path) -> None:
    words = WordNet.open(dictionary)
    adjectives = {(first[0], second[0]): weight for (first, second), weight in words.antonyms().items()}
    with_head = dict.fromkeys([("bad", "superb"), ("awful", "good")], wordnet.SATELLITE_AND_HEAD)
    two: dict[tuple[str, str], float] = {("awful", "superb"): wordnet.TWO_SATELLITES}
    assert adjectives == {("bad", "good"): 1.0, **with_head, **two}
    adverbs = words.with_derived(words.antonyms())[("awfully", ADVERB), ("superbly", ADVERB)]
    assert adverbs == wordnet.DERIVATION * wordnet.TWO_SATELLITES


def test_forms_and_classes(dictionary: Path, word_table: Path) -> None:
    forms = read_forms(word_table)
    assert forms["films"] == {(("film", "n"), "plural"): None, (("film", "v"), "third person"): None}
    assert forms["film"] == {(("film", "n"), "noun"): None, (("film", "v"), "verb"): None}
    assert forms["ross"] == {(("ross", "n"), "name"): None}
    words = "film superbly ross the qwx".split()
    shares = word_classes(words, forms, WordNet.open(dictionary), {"the"})
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    found = [CLASSES[place] for place in shares[1:].argmax(axis=1)]
    assert found == ["adverb", "name", "function word", "name"]
    assert shares[0, CLASSES.index("noun")] == 0.5
    (word_table / word_forms.TABLE_FILE).unlink()
    with pytest.raises(DataError, match=r"^forms: .* lemminflect"):
        read_forms(word_table)


def test_counter_fitting_joins_synonyms_and_parts_antonyms(dictionary: Path, word_table: Path) -> None:
    words = "good bad superb film movie films movies funny rum".split() + [f"w{i}" for i in range(40)]
    numbers = {word: number for number, word in enumerate(words)}
    adjectives = {word: {((word, "a"), "adjective"): None} for word in ("bad", "superb", "funny", "rum")}
    forms = {**read_forms(word_table), **adjectives}
    start = normalised(np.random.default_rng(0).normal(size=(len(words), 24)) + 0.7)
    moving = forces(numbers, forms, WordNet.open(dictionary), start)
    pairs = {(words[i], words[j]) for force in moving for i, j in zip(force.first, force.second, strict=True)}
    assert ("films", "movies") in pairs
    assert ("good", "bad") in pairs
    end = counter_fitted(start, moving)
    before, after = start @ start.T, end @ end.T
    np.testing.assert_allclose(np.linalg.norm(end, axis=1), 1.0)
    for first, second in (("film", "movie"), ("films", "movies"), ("good", "superb")):
        assert after[numbers[first], numbers[second]] > before[numbers[first], numbers[second]] + 0.1
    for word in ("good", "superb"):
        assert after[numbers[word], numbers["bad"]] < before[numbers[word], numbers["bad"]] - 0.1
    others = slice(words.index("w0"), None)
    assert np.abs(after[others, others] - before[others, others]).mean() < 0.03


def test_a_force_that_is_satisfied_moves_nothing() -> None:
    start = normalised(np.random.default_rng(1).normal(size=(30, 8)))
    one, two = np.array([0]), np.array([1])
    cosine = float(start[0] @ start[1])
    still = [counter_fitting.Force(one, two, np.array([weight]), cosine - weight) for weight in (0.1, -0.1)]
    np.testing.assert_allclose(counter_fitted(start, still), start, atol=2e-3)


def test_the_packaged_vectors_part_contrary_words_and_keep_the_class() -> None:
    lexicon = Lexicon.default()
    words = lexicon.vocabulary.strings().to_pylist()
    unit = normalised(lexicon.vectors.astype(np.float64))
    numbers = {word: number for number, word in enumerate(words)}

    def nearest(word: str, count: int) -> set[str]:
        return {words[other] for other in np.argsort(-(unit @ unit[numbers[word]]))[1 : count + 1]}

    contraries = "good bad rich poor funny rum boring drilling best worst".split()
    for word, contrary in zip(contraries[::2], contraries[1::2], strict=True):
        assert contrary not in nearest(word, 19)
    for word, alike in (("movie", "film"), ("rich", "wealthy"), ("funny", "amusing"), ("quickly", "rapidly")):
        assert alike in nearest(word, 7)
