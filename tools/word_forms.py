"""Read which form of which lemma an English word is, and to which class of words it belongs.

Source: the table of forms of the Python distribution lemminflect 0.2.3 (MIT License), which its authors made from the SPECIALIST
Lexicon of the National Institutes of Health. Its SHA-256 is here, so that another table or a part of it is refused. A line is a
lemma, a part of speech and its forms: of a noun the plural, of a verb the past, the participles and the third person, of an
adjective or adverb the degrees. `/` separates alternatives.
"""

from __future__ import annotations

import gzip
import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from dptext_spark.arrays import F64
from dptext_spark.errors import DataError
from tools.wordnet import PARTS, Lemma, WordNet

TABLE_FILE = "infl_lu.csv.gz"
DIGEST = "8c44bd5bec62488bef043f98b0cab022a431d6cb03954864ea70334530908ba7"
# The classes of the forms of a part of speech: that of the lemma first, then those of its forms in the order of the table.
FORMS = {
    "noun": ("n", ("noun", "plural")),
    "verb": ("v", ("verb", "past", "past participle", "present participle", "third person")),
    "adj": ("a", ("adjective", "comparative", "superlative")),
    "adv": ("r", ("adverb", "adverb", "adverb")),
}
NAME, FUNCTION = "name", "function word"
CLASSES = tuple(dict.fromkeys([*(name for _, names in FORMS.values() for name in names), NAME, FUNCTION]))
BASE = {part: names[0] for part, names in FORMS.values()}

Forms = Mapping[str, Collection[tuple[Lemma, str]]]


def read_forms(sources: Path) -> Forms:
    """Return the lemmas that each word in lower case can be a form of, and as which class. A proper noun has the class `NAME`.

    Raises:
        DataError: `sources` does not hold the table, or one that is incomplete or of another version.
    """
    table = next(iter(sorted(sources.rglob(TABLE_FILE))), None)
    if table is None:
        raise DataError(f"forms: {sources} holds no {TABLE_FILE}; valid: a folder with lemminflect 0.2.3.")
    content = table.read_bytes()
    if hashlib.sha256(content).hexdigest() != DIGEST:
        raise DataError(
            f"forms: {table} is incomplete or of another version; valid: that of lemminflect 0.2.3."
        )
    forms: defaultdict[str, dict[tuple[Lemma, str], None]] = defaultdict(dict)
    for line in gzip.decompress(content).decode("utf-8").splitlines():
        lemma, kind, *slots = line.split(",")
        if kind not in FORMS or not lemma:
            continue
        part, classes = FORMS[kind]
        proper = kind == "noun" and lemma[0].isupper()
        for name, slot in zip(classes, [lemma, *slots], strict=False):
            for form in filter(None, slot.split("/")):
                if name == classes[0] or form != lemma:  # "film" is listed beside "films"
                    forms[form.lower()][(lemma.lower(), part), NAME if proper else name] = None
    return forms


def word_classes(words: Sequence[str], forms: Forms, wordnet: WordNet, stop_words: Collection[str]) -> F64:
    """Return the share of each class in the occurrences of each word, float64[V, len(CLASSES)].

    The occurrences of a lemma, counted in WordNet's tagged texts, are shared equally by its forms that look alike. A stop word
    is a function word. A word that no source knows counts as a name.
    """
    shares = np.zeros((len(words), len(CLASSES)))
    for row, word in zip(shares, words, strict=True):
        known = [] if word in stop_words else [*forms.get(word, ())]
        known = known or [((word, part), BASE[part]) for part in PARTS if (word, part) in wordnet.senses]
        alike = [sum(lemma == other for other, _ in known) for lemma, _ in known]
        for (lemma, name), count in zip(known, alike, strict=True):
            row[CLASSES.index(name)] += max(wordnet.occurrences(lemma), 0.5) / count
        if not known or word in stop_words:
            row[:] = np.eye(len(CLASSES))[CLASSES.index(FUNCTION if word in stop_words else NAME)]
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
