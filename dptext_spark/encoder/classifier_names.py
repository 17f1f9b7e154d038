"""The names that the policy's classifier finds, as its search by public lists gives them: whole names, or their parts.

Where names are masked, a name is one span. Where pseudonyms take their place, each of its words is a part by the label that the
classifier gave it: a given name, a surname, a town, a country or state. Of a person whose words have no such label the last of
several is the surname, and a single word a given name; a single letter is an initial. Streets and other places have no pseudonym:
they are masked. Organizations and other names are left to the rest of the policy.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8, read_only
from dptext_spark.encoder.candidates import candidates
from dptext_spark.encoder.classifier_files import LOCATION, PERSON
from dptext_spark.encoder.name_classifier import FIELD, Classifier
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.characters import APOSTROPHE, LETTER, cell, decode, tables
from dptext_spark.runtime.jit import compiled
from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.names.public_names import KINDS, spans_of_parts
from dptext_spark.text.names.search import KEEP, PSEUDONYM, NameSearch
from dptext_spark.text.word_table import WordTable

PLACES = (PERSON, LOCATION)
TYPES = (*PLACES, *KINDS)  # those of the search by public lists
PARTS: dict[str, tuple[str, ...]] = {
    "given_name": ("givenname", "given", "firstname", "first", "middlename", "middle"),
    "surname": ("surname", "lastname", "last", "familyname"),
    "city": ("city", "town", "loc", "location", "locations", "place", "gpe", "geo"),
    "region": ("state", "country", "region", "province"),
}


@compiled
def _look(data: Any, starts: Any, ends: Any, chars: Any, found: Any) -> None:
    """Fill where each word ends without a possessive 's, int64[n, 2], and whether it is a single letter that has a case."""
    stage, classes, lower, upper = chars
    for k in range(starts.shape[0]):
        start, end = starts[k], ends[k]
        last = data[end - 1] if end > start else 0
        if last == 0x73 or last == 0x53:
            p = end - 2
            while p > start and data[p] & 0xC0 == 0x80:
                p -= 1
            if p > start:
                code, _ = decode(data, p, end)
                if code >= 0 and classes[cell(code, stage)] == APOSTROPHE:
                    end = p
        found[k, 0], found[k, 1] = end, 0
        if start < end:
            code, length = decode(data, start, end)
            if code >= 0 and start + length == end:
                place = cell(code, stage)
                if classes[place] == LETTER and (lower[place] != 0 or upper[place] != 0):
                    found[k, 1] = 1


@dataclass(frozen=True, eq=False)
class ClassifierNames:
    """A classifier as the policy's search for names; it reads the texts that hold a candidate.

    Attributes:
        search: what becomes of which names.
        classifier: that finds them.
        table: the words that are known, of which none is a candidate for that alone.
        types: those of the search by public lists.
    """

    search: NameSearch
    classifier: Classifier
    table: WordTable
    types: tuple[str, ...] = TYPES
    _rules: tuple[I64, I64] | None = field(default=None, init=False, repr=False)

    @property
    def name(self) -> str:
        """As errors call it."""
        return self.classifier.name

    @cached_property
    def _types_of_labels(self) -> I64:
        """Return int64[labels], the type of a word with each where pseudonyms take its place; -1 of a person without more."""
        found = []
        for label, kind in zip(self.classifier.labels, self.classifier.kinds, strict=True):
            plain = re.sub("[^a-z0-9]", "", label.lower())
            part = next((name for name, labels in PARTS.items() if plain in labels), None)
            other = -1 if kind == PERSON else TYPES.index(LOCATION)
            found.append(other if part is None else TYPES.index(part))
        return np.array(found, np.int64)

    def beside(self, starts: I64, ends: I64) -> ClassifierNames:
        """Return it for a batch in which the rules found these stretches: an unknown word in one is no candidate."""
        made = copy(self)
        object.__setattr__(made, "_rules", (starts, ends))
        return made

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return the names of texts."""
        return self.find_in(*padded(texts))

    def find_in(self, data: U8, rows: I64) -> TypedSpans:
        """Return the names in the bytes of a batch, which are padded: whole ones where they are masked, else their parts."""
        wanted = candidates(data, rows, self.table, *(self._rules or ()))
        found = self.classifier.found_in(data, rows, wanted)
        kinds = np.array(
            [PLACES.index(one) if one in PLACES else -1 for one in self.classifier.types], np.int64
        )
        actions = np.array(
            [*(getattr(self.search, one) for one in PLACES), KEEP]
        )  # the last: of what is no such name
        sizes = np.diff(found.words)
        # From here on a row is a word of a name.
        name = np.repeat(np.arange(len(sizes)), sizes)
        kind = kinds[found.kinds][name]
        row = found.texts[name]
        shift = rows[row]
        starts, looks = found.word_starts, np.empty((len(name), 2), np.int64)
        chars = tables()
        letters = (chars.stage, chars.classes, chars.lower, chars.upper)
        _look(read_only(data), starts + shift, found.word_ends + shift, letters, looks)
        ends, single = looks[:, 0] - shift, looks[:, 1] == 1
        last = np.arange(len(name)) == found.words[1:][name] - 1
        part = self._types_of_labels[found.word_labels]
        unsaid = np.where(last & (sizes[name] > 1), TYPES.index("surname"), TYPES.index("given_name"))
        part = np.where(part < 0, unsaid, part)
        part = np.where(single & (kind == PLACES.index(PERSON)), TYPES.index("initial"), part)
        types = np.where(actions[kind] == PSEUDONYM, part, kind)
        keep = actions[kind] != KEEP
        name, row, starts, ends, types = (column[keep] for column in (name, row, starts, ends, types))
        return spans_of_parts(row, name, starts, ends, types)


def read_classifier(names: NameSearch) -> Classifier | None:
    """Read the classifier that a policy names; None where none looks for names.

    Raises:
        SettingsError: it cannot be used, or knows none of the names that are replaced.
    """
    if not names.classifies or names.model is None:
        return None
    found = Classifier.read(names.model, threshold=names.threshold)
    wanted = [kind for kind in PLACES if getattr(names, kind) != KEEP]
    if not set(wanted) & set(found.types):
        raise SettingsError(
            f"{FIELD}: its labels stand for {', '.join(found.types)}; valid: a classifier with labels of {' or '.join(wanted)}."
        )
    return found


def check_classifier(names: NameSearch, classifier: Classifier | None) -> None:
    """Refuse a policy without the classifier that it names, or with another.

    Raises:
        SettingsError: such a policy.
    """
    if names.classifies != (classifier is not None):
        raise SettingsError(
            f"{FIELD}: {'given' if names.classifies else 'none given'}, and the privatizer has "
            f"{'no' if classifier is None else 'a'} classifier; valid: a model that `compile` or `prepare` made of the policy."
        )
    if classifier is not None and classifier.threshold != names.threshold:
        raise SettingsError(
            f"policy.names.threshold: {names.threshold:g} given, and the classifier has "
            f"{classifier.threshold:g}; valid: the same."
        )


def searches_of(
    names: NameSearch, classifier: Classifier | None, table: WordTable
) -> tuple[ClassifierNames, ...]:
    """Return what the engine searches by beside public lists, in texts whose known words are those of a table."""
    return () if classifier is None else (ClassifierNames(names, classifier, table),)
