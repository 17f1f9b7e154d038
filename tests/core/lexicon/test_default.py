"""The packaged lexicon, how it is rebuilt, and how its vectors are made: WordNet, forms of words, counter-fitting."""

# ruff: noqa: SIM905
from __future__ import annotations

import cProfile
import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from safetensors import numpy as safetensors

from dptext_spark.errors import DataError
from dptext_spark.lexicon.characters import producible
from dptext_spark.lexicon.lexicon import Lexicon
from tests.core.lexicon.conftest import TABLE, write_forms
from tools import counter_fitting, word_forms, wordnet
from tools import lexicon as tool
from tools.counter_fitting import counter_fitted, forces, normalised
from tools.word_forms import CLASSES, read_forms, word_classes
from tools.wordnet import ADJECTIVE, ADVERB, NOUN, WordNet


def test_what_it_holds() -> None:
    lexicon = Lexicon.default()
    assert (len(lexicon), lexicon.dimensions, lexicon.metric) == (21_163, 113, "cosine")
    words = lexicon.vocabulary.strings().to_pylist()
    assert all(word.isascii() and word.isalpha() for word in words)
    assert {word for word in words if len(word) == 1} == {"a", "i"}
    assert producible(pa.array(words)).all()
    assert producible(pa.array(words), "whitespace").all()
    assert lexicon.vectors.dtype == np.float32
    np.testing.assert_array_equal(lexicon.vectors, lexicon.vectors.astype(np.float16))


def test_words_are_no_debris() -> None:
    words = set(Lexicon.default().vocabulary.strings().to_pylist())
    debris = "didn don doesn isn ll ve re ed td ain th nt em pre ing un doin".split()
    kept = "labor theater color tv mr dr dna usa mom ok can won haven cannot airplane".split()
    assert not words & set(debris)
    assert words >= set(kept)
    assert not [word for word in words if len(word) < tool.LONG and word in tool.REMAINDERS]


def test_it_is_what_was_built() -> None:
    folder, lexicon = tool.PACKAGED, Lexicon.default()
    assert json.loads((folder / "manifest.json").read_text())["fingerprint"] == lexicon.fingerprint
    words = lexicon.vocabulary
    digest = hashlib.sha256(f"dptext-lexicon\ncosine\n21163 113 {len(words.data)}\n".encode())
    for array in (words.offsets, words.data, lexicon.vectors):
        digest.update(array.tobytes())
    assert digest.hexdigest() == lexicon.fingerprint
    assert "Apache License" in (folder / "NOTICE").read_text()
    assert sum(file.stat().st_size for file in folder.iterdir()) < 7_500_000


def test_it_opens_without_a_loop_over_its_words() -> None:
    profile = cProfile.Profile()
    with profile:
        lexicon = Lexicon.default()
    assert sum(one.callcount for one in profile.getstats()) < len(lexicon.vocabulary) / 4


def test_principal_components_against_the_singular_value_decomposition() -> None:
    table = np.random.default_rng(0).normal(size=(60, 8)) * np.arange(1, 9) + 3
    reduced = tool.principal_components(table, 3)
    left, sizes, _ = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(reduced), np.abs(left[:, :3] * sizes[:3]), atol=1e-9)
    axes = np.linalg.lstsq(table - table.mean(axis=0), reduced, rcond=None)[0]
    assert (axes[np.abs(axes).argmax(axis=0), range(3)] > 0).all()
    np.testing.assert_array_equal(tool.principal_components(-table, 3), -reduced)


def test_too_few_columns() -> None:
    with pytest.raises(DataError, match="100 components"):
        tool.principal_components(np.zeros((500, 99)), 100)


TABLE_WORDS = [
    *"[PAD] ##ing a b i x1 naïve Hello don't 3 didn don won tv td labor cat Shit dick".split(),
    *(f"w{'ab' * i}" for i in range(1, 120)),
]
WHOLE = ["a", "i", "Hello", "won", "tv", "labor", "cat", *[f"w{'ab' * i}" for i in range(2, 120)]]
DICTIONARY = "a 100\ni 90\nwon 30\ndon 20\ncat 10\n"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with a model like the real one, of 120 dimensions, and a frequency dictionary."""
    folder = tmp_path / "sources"
    model = folder / "package" / "model"
    model.mkdir(parents=True)
    table = np.random.default_rng(1).normal(size=(len(TABLE_WORDS), 120)).astype(np.float32)
    safetensors.save_file({tool.TABLE: table}, model / tool.TABLE_FILE)
    (model / tool.WORDS_FILE).write_text("\n".join(TABLE_WORDS) + "\n", encoding="utf-8")
    (folder / tool.DICTIONARY_FILE).write_text(DICTIONARY, encoding="utf-8")
    (folder / tool.PAIRS_FILE).write_text("a cat 640\nwon a 1280\n", encoding="utf-8")
    return write_forms(folder)


def test_built_from_its_sources(
    sources: Path, dictionary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = tool.build(sources, dictionary, tmp_path / "out")
    opened = Lexicon.open(tmp_path / "out")
    assert opened.vocabulary.strings().to_pylist() == WHOLE
    everything = tool.build(sources, dictionary, tmp_path / "unfit", excluded=())
    assert set(everything.vocabulary.strings().to_pylist()) - set(WHOLE) == {"Shit", "dick"}
    assert opened.dimensions == tool.DIMENSIONS + len(word_forms.CLASSES)
    assert opened.fingerprint == built.fingerprint
    assert opened.prior.digest == built.prior.digest
    assert opened.prior.name == tool.PRIOR_NAME
    # The class of a word takes its share of a similarity: words of one class have it in common.
    unit = opened.vectors / np.linalg.norm(opened.vectors, axis=1, keepdims=True)
    of_class = unit[:, tool.DIMENSIONS :]
    np.testing.assert_allclose((of_class**2).sum(axis=1), tool.CLASS_SHARE, atol=2e-3)
    assert of_class[WHOLE.index("a")] @ of_class[WHOLE.index("labor")] == 0  # a function word and a noun
    assert (tmp_path / "out" / "NOTICE").exists()
    tool.main([str(sources), str(dictionary), str(tmp_path / "again")])
    assert Lexicon.open(tmp_path / "again").fingerprint == built.fingerprint
    assert built.fingerprint in capsys.readouterr().out


def test_sources_that_are_none(sources: Path, dictionary: Path, tmp_path: Path) -> None:
    model, counts, forms = (
        sources / name for name in ("package/model", tool.DICTIONARY_FILE, word_forms.TABLE_FILE)
    )
    other = safetensors.save({"other": np.zeros((2, 2), np.float32)})
    # Each change is made beside those before it: what is read first is told.
    for file, content, said in (
        (forms, TABLE[:-9], r"^forms: .* incomplete or of another version; .* lemminflect 0\.2\.3"),
        (forms, None, r"^forms: .* lemminflect 0\.2\.3"),
        (model / tool.WORDS_FILE, b"one\ntwo\n", "2 words, but a table"),
        (model / tool.TABLE_FILE, b"\x00" * 40, "damaged"),
        (model / tool.TABLE_FILE, other, tool.TABLE),
        (model / tool.TABLE_FILE, None, r"no model\.safetensors"),
        (counts, b"a hundred\n", r"^dictionary: .* damaged"),
        (counts, None, rf"^dictionary: .* holds no {tool.DICTIONARY_FILE}"),
    ):
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(DataError, match=said):
            tool.build(sources, dictionary, tmp_path / "out")
    assert not (tmp_path / "out").exists()


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
