"""A small dictionary and a table of forms, for the tools that make the packaged lexicon; and files of word vectors."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from tools import word_forms, wordnet

LICENCE = "  1 This software is licensed\n"
# Good (with the satellite superb) against bad (with awful); funny is amusing, and seldom rum.
DATA = {
    "adj": (
        "00000001 00 a 01 good 0 002 ! 00000002 a 0101 & 00000003 s 0000 | of quality\n"
        "00000002 00 a 01 bad 0 002 ! 00000001 a 0101 & 00000004 s 0000 | not good\n"
        "00000003 00 s 01 superb 0 001 & 00000001 a 0000 | very good\n"
        "00000004 00 s 01 awful(p) 0 001 & 00000002 a 0000 | very bad\n"
        "00000005 00 a 02 funny 0 amusing 0 000 | that makes laugh\n"
        "00000006 00 a 02 funny 1 rum 0 000 | odd\n"
    ),
    "noun": (
        "00000011 03 n 02 film 0 movie 0 001 @ 00000012 n 0000 | a show\n"
        "00000012 03 n 01 show 0 000 | what is shown\n"
        "00000013 03 n 01 rum 0 000 | a drink\n"
    ),
    "adv": (
        "00000021 02 r 01 superbly 0 001 \\ 00000003 a 0101 | in a good way\n"
        "00000022 02 r 01 awfully 0 001 \\ 00000004 a 0101 | in a bad way\n"
    ),
    "verb": "",
}
COUNTS = "funny%3:00:00:: 1 9\nfunny%3:00:01:: 2 1\nrum%1:00:00:: 1 8\namusing%3:00:00:: 1 4\n"
FORMS = (
    "film,noun,films/film\nfilm,verb,filmed,filmed,filming,films\nmovie,noun,movies\ngood,adj,better,best\n"
)
FORMS += "Ross,noun,Rosses\nsuperb,adj\n,noun,x\nbe,aux,was\n"
TABLE = gzip.compress(FORMS.encode(), mtime=0)


@pytest.fixture
def dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dictionary of a dozen synsets, which passes for the one that is read, as does the table of forms."""
    folder = tmp_path / "wordnet"
    folder.mkdir()
    senses: dict[tuple[str, str], list[str]] = {}
    for suffix, lines in DATA.items():
        (folder / f"data.{suffix}").write_text(LICENCE + lines)
        for line in lines.splitlines():
            fields = line.split()
            for word in fields[4 : 4 + 2 * int(fields[3]) : 2]:
                senses.setdefault((word.removesuffix("(p)"), suffix), []).append(fields[0])
    for suffix in DATA:
        own = {word: offsets for (word, kind), offsets in senses.items() if kind == suffix}
        counts = ((word, len(each), " ".join(each)) for word, each in own.items())
        lines = "".join(f"{word} x {n} 0 {n} 0 {offsets}  \n" for word, n, offsets in counts)
        (folder / f"index.{suffix}").write_text(LICENCE + lines)
    (folder / "cntlist.rev").write_text(COUNTS)
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in wordnet.FILES}
    monkeypatch.setattr(wordnet, "FILES", digests)
    monkeypatch.setattr(word_forms, "DIGEST", hashlib.sha256(TABLE).hexdigest())
    return folder


def write_forms(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / word_forms.TABLE_FILE).write_bytes(TABLE)
    return folder


def put(folder: Path, content: bytes, name: str = "vectors.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def words(lexicon: Lexicon) -> list[str]:
    return lexicon.vocabulary.strings().to_pylist()
