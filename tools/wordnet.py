"""Read WordNet 3.0: which words mean the same, the contrary, or nearly the same, and how often each sense is meant.

The dictionary files are those of the Debian package `wordnet-base` 1:3.0-37. Each has its SHA-256 here, so that another
version or a file that was cut off is refused. Their formats: wndb(5WN), senseidx(5WN), cntlist(5WN).
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dptext_spark.errors import DataError

NOUN, VERB, ADJECTIVE, ADVERB = PARTS = "nvar"
FILES = {
    "cntlist.rev": "a198580b8f705fa02797bba8b13e5cbe4a9f9f40cb1697e774c7fc6a5865b035",
    "data.adj": "c89120dfc1f046ddff4a631bf9b7e9fa1a36b5e86565a23bf82dbe14f30b88a7",
    "data.adv": "444a63bf3955080ab7524f5079cfc07ff9bc682cb98bdb1db73b0fb9829f1139",
    "data.noun": "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2",
    "data.verb": "adcf43e35b581e8036d8b5a52d63d9cd3d3b4870b2720d3c03c799df44777bc2",
    "index.adj": "c9865d7b4d1f805bdef82ccdcea5282436e23083e6f6f1b33e716327c4eda810",
    "index.adv": "6f5465ed5758fe9c8a2f7ec17b1300f3aa875756c70ff7cba162f7e71bcf88ea",
    "index.noun": "a490d99d93d017bf4822fe2f0ffa51fd73911ce271dc7535fade21f8814b5a04",
    "index.verb": "e2ac24816c3a8289dcb72aaa9cf8db81fdf25ec34d792bfc96ac5b7a20c8b4ae",
}
SUFFIXES = {"noun": NOUN, "verb": VERB, "adj": ADJECTIVE, "adv": ADVERB}
# The kinds of a sense key: noun, verb, adjective, adverb, and the satellite of an adjective.
KINDS = {"1": NOUN, "2": VERB, "3": ADJECTIVE, "4": ADVERB, "5": ADJECTIVE}
ANTONYM, SIMILAR, HYPERNYM, FROM_ADJECTIVE, DERIVED = "!", "&", "@", "\\", "+"
UNSEEN = 0.5  # occurrences that every sense has beside those that were counted
FIRST_SENSES = 2  # of a word: a rarer one joins no pair
DERIVATION = 0.7  # weight of a pair of derived words, of that of the adjectives
SATELLITE_AND_HEAD, TWO_SATELLITES = 0.7, 0.5  # weight of an indirect contrast, of that of a direct one

Lemma = tuple[str, str]  # word, part of speech
Meant = tuple[Lemma, str]  # and the synset that is meant
Pairs = dict[tuple[Lemma, Lemma], float]


class Pointer(NamedTuple):
    """A relation of a synset, or of one word of it (`source` and `target` above 0), to another synset."""

    symbol: str
    synset: tuple[str, str]
    source: int
    target: int


class Synset(NamedTuple):
    """Words of one meaning, and where its pointers lead."""

    words: list[Lemma]
    pointers: list[Pointer]


@dataclass(frozen=True)
class WordNet:
    """The dictionary.

    Attributes:
        senses: of each lemma, the synsets it is in, the commonest first.
        synsets: by part of speech and offset.
        counts: how often a sense (lemma, number from 1) is meant in the tagged texts.
    """

    senses: Mapping[Lemma, list[str]]
    synsets: Mapping[tuple[str, str], Synset]
    counts: Mapping[tuple[Lemma, int], int]

    @classmethod
    def open(cls, folder: Path) -> WordNet:
        """Read the dictionary files of a folder.

        Raises:
            DataError: a file is missing, incomplete, or of another version.
        """
        lines = {name: _checked(folder, name).decode("latin-1").splitlines() for name in FILES}
        senses: dict[Lemma, list[str]] = {}
        synsets: dict[tuple[str, str], Synset] = {}
        for suffix, part in SUFFIXES.items():
            for line in lines[f"index.{suffix}"]:
                if not line.startswith(" "):  # the licence
                    fields = line.split()
                    senses[fields[0], part] = fields[-int(fields[2]) :]
            synsets.update(
                _synset(line, part) for line in lines[f"data.{suffix}"] if not line.startswith(" ")
            )
        counts: dict[tuple[Lemma, int], int] = {}
        for line in lines["cntlist.rev"]:
            key, number, count = line.split()
            lemma, _, lexical = key.partition("%")
            counts[(lemma, KINDS[lexical[0]]), int(number)] = int(count)
        return cls(senses, synsets, counts)

    def occurrences(self, lemma: Lemma, sense: int = 0) -> float:
        """Count how often a lemma is meant, or one sense of it (from 1), with `UNSEEN` for each sense."""
        numbers = [sense] if sense else range(1, len(self.senses.get(lemma, ())) + 1)
        return sum(self.counts.get((lemma, number), 0) + UNSEEN for number in numbers)

    def share(self, lemma: Lemma, offset: str, senses: int = FIRST_SENSES) -> float:
        """Return the share that a synset has of all occurrences of a word, as every part of speech; 0 for a later sense."""
        offsets = self.senses.get(lemma, [])
        number = offsets.index(offset) + 1 if offset in offsets else senses + 1
        if number > senses:
            return 0.0
        return self.occurrences(lemma, number) / sum(self.occurrences((lemma[0], part)) for part in PARTS)

    def synonyms(self) -> Pairs:
        """Weigh the pairs of words of one meaning: by the lesser share that it has of either word."""
        pairs: Pairs = {}
        for (_, offset), synset in self.synsets.items():
            for first in synset.words:
                _join(pairs, self, (first, offset), [(second, offset) for second in synset.words], 1.0)
        return pairs

    def similar(self) -> Pairs:
        """Weigh the pairs of an adjective and a satellite of its synset, which means nearly the same."""
        return self._related(SIMILAR)

    def kinds(self) -> Pairs:
        """Weigh the pairs of a noun or verb and what it is a kind of, by the first sense of both."""
        return self._related(HYPERNYM, senses=1)

    def _related(self, symbol: str, senses: int = FIRST_SENSES) -> Pairs:
        pairs: Pairs = {}
        for (_, offset), synset in self.synsets.items():
            for pointer in synset.pointers:
                if pointer.symbol == symbol:
                    others = [(word, pointer.synset[1]) for word in self.synsets[pointer.synset].words]
                    for word in synset.words:
                        _join(pairs, self, (word, offset), others, 1.0, senses)
        return pairs

    def antonyms(self) -> Pairs:
        """Weigh the pairs of contrary words, by the third sense at most, and of the satellites of contrary adjectives."""
        pairs: Pairs = {}
        for key, synset in self.synsets.items():
            for pointer in synset.pointers:
                if pointer.symbol != ANTONYM:
                    continue
                word = synset.words[pointer.source - 1]
                other = self.synsets[pointer.synset].words[pointer.target - 1]
                ours, theirs = self._satellites(key), self._satellites(pointer.synset)
                _join(pairs, self, (word, key[1]), [(other, pointer.synset[1])], 1.0, 3)
                for satellite in ours:
                    _join(pairs, self, satellite, [(other, pointer.synset[1])], SATELLITE_AND_HEAD, 3)
                    _join(pairs, self, satellite, theirs, TWO_SATELLITES)
        return pairs

    def with_derived(self, pairs: Pairs) -> Pairs:
        """Add to pairs of adjectives the pairs of adverbs or nouns derived from them, with `DERIVATION` of the weight."""
        derived: defaultdict[Lemma, set[Lemma]] = defaultdict(set)
        for (part, _), synset in self.synsets.items():
            for pointer in synset.pointers:
                if (part, pointer.symbol) in ((ADVERB, FROM_ADJECTIVE), (NOUN, DERIVED)) and pointer.source:
                    adjective = self.synsets[pointer.synset].words[pointer.target - 1]
                    if adjective[1] == ADJECTIVE:
                        derived[adjective].add(synset.words[pointer.source - 1])
        extended = dict(pairs)
        for (first, second), weight in pairs.items():
            for ours in derived.get(first, ()):
                for theirs in derived.get(second, ()):
                    pair = (min(ours, theirs), max(ours, theirs))
                    if ours[1] == theirs[1] and ours != theirs:
                        extended[pair] = max(extended.get(pair, 0.0), DERIVATION * weight)
        return extended

    def _satellites(self, key: tuple[str, str]) -> list[Meant]:
        near = [pointer.synset for pointer in self.synsets[key].pointers if pointer.symbol == SIMILAR]
        return [(word, synset[1]) for synset in near for word in self.synsets[synset].words]


def _join(
    pairs: Pairs, words: WordNet, first: Meant, others: list[Meant], weight: float, senses: int = FIRST_SENSES
) -> None:
    """Add the pairs of a word in one sense and others in theirs: each with the lesser share that its sense has of either word."""
    share = words.share(*first, senses)
    for lemma, offset in others if share else []:
        if lemma[0] != first[0][0]:
            key = (min(first[0], lemma), max(first[0], lemma))
            pairs[key] = max(pairs.get(key, 0.0), weight * min(share, words.share(lemma, offset, senses)))


def _synset(line: str, part: str) -> tuple[tuple[str, str], Synset]:
    fields = line.partition("|")[0].split()
    end = 4 + 2 * int(fields[3], 16)
    words = [(re.sub(r"\(.*\)", "", word).lower(), part) for word in fields[4:end:2]]
    return (part, fields[0]), Synset(words, [*_pointers(fields[end + 1 : end + 1 + 4 * int(fields[end])])])


def _pointers(fields: list[str]) -> Iterator[Pointer]:
    for symbol, offset, part, words in zip(*(fields[place::4] for place in range(4)), strict=True):
        source, target = bytes.fromhex(words)
        yield Pointer(symbol, (ADJECTIVE if part == "s" else part, offset), source, target)


def _checked(folder: Path, name: str) -> bytes:
    path = folder / name
    if not path.is_file():
        raise DataError(
            f"wordnet: {folder} holds no {name}; valid: the folder of the Debian package wordnet-base 3.0 (/usr/share/wordnet)."
        )
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != FILES[name]:
        raise DataError(
            f"wordnet: {path} is incomplete or of another version; valid: WordNet 3.0 of wordnet-base 1:3.0-37."
        )
    return content
