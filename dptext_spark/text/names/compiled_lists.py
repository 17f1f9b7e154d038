"""The lists of a run, read and compiled: what is looked for, and what a row for sharing says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dptext_spark.errors import DataError
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.record import Json
from dptext_spark.text.chunks import padded
from dptext_spark.text.names.listed_parts import Names
from dptext_spark.text.names.matching import names_in
from dptext_spark.text.names.name_table import EntryError, compile_names, name_key
from dptext_spark.text.names.search import VERSION, ListSource, ListSources
from dptext_spark.text.names.word_list import WordList

MOST_STOP_WORDS = 0.5  # of a list's entries
MOST_OF_LEXICON = 0.5
LEAST_ENTRIES = 10  # from which a list can be said to be one of stop words
# What is shown of a list beside where it comes from, and what becomes of it.
SHOWN = ("entries", "digest", "version")


@dataclass(frozen=True, eq=False)
class CompiledLists:
    """The lists of a run.

    Attributes:
        sources: as the settings name them.
        lists: what was read, in the order of the sources; None for a column of the input.
        names: what is looked for in every row; None where all lists are columns of the input.
        scope: what the hashes are keyed for beside the key: a run, or a stream.
        digests: of what was read, bound by the key; None for a column of the input.
    """

    sources: ListSources
    lists: tuple[WordList | None, ...]
    names: Names | None
    scope: str
    digests: tuple[str | None, ...]

    @classmethod
    def of(
        cls, sources: ListSources, lists: Sequence[WordList | None], key: RunKey, scope: str
    ) -> CompiledLists:
        """Compile lists under a subkey of the key and the scope.

        Raises:
            SettingsError: too many lists.
            DataError: an entry that can be none, by its place.
        """
        held = [one for one in lists if one is not None]
        if not held:
            Names(compile_names([], name_key(key, scope)), 0).find(
                pa.array(["warm"])
            )  # workers find the loops compiled
            return cls(sources, tuple(lists), None, scope, (None,) * len(lists))
        table = compile_names(held, name_key(key, scope))
        masking = sum(one is not None for one in lists[: len(sources.mask)])
        bound = iter(key.commitment(f"list {scope} {digest}")[:32] for digest in table.digests)
        digests = tuple(None if one is None else next(bound) for one in lists)
        kinds = tuple(
            source.kind for source, one in zip(sources.mask, lists, strict=False) if one is not None
        )
        return cls(sources, tuple(lists), Names(table, masking, kinds=kinds), scope, digests)

    @classmethod
    def checked(
        cls, sources: ListSources, lists: Sequence[WordList | None], key: RunKey, scope: str, vocabulary: Vocabulary,
        stop_words: Sequence[str],
    ) -> CompiledLists:  # fmt: skip
        """Compile lists as :meth:`of` does, and refuse what :meth:`check_shares` does.

        What a list is as a whole says more than an entry of it: where one cannot be, the others are looked at first.

        Raises:
            SettingsError: too many lists.
            DataError: a list of stop words or of most of the lexicon, by its share; an entry that can be none, by its place.
        """
        try:
            made = cls.of(sources, lists, key, scope)
        except EntryError:
            some = tuple(None if one is None else _sound(one, key, scope) for one in lists)
            cls.of(sources, some, key, scope).check_shares(vocabulary, stop_words)
            raise
        made.check_shares(vocabulary, stop_words)
        return made

    @classmethod
    def of_files(
        cls, sources: ListSources, key: RunKey, vocabulary: Vocabulary, stop_words: Sequence[str]
    ) -> tuple[CompiledLists, tuple[str, ...]]:
        """Compile the lists that are files, for a preview.

        Args:
            sources: as the settings name them.
            key: of the hashes.
            vocabulary: of the lexicon.
            stop_words: that the policy keeps.

        Returns:
            (the lists; the settings of those that only a run can read: tables, and columns of its input).

        Raises:
            SettingsError, DataError: as :meth:`checked` and :meth:`WordList.read`.
        """
        files = ListSources(
            *(tuple(one for one in some if one.file) for some in (sources.mask, sources.keep))
        )
        lists = [
            WordList.read(field, source.file) for field, source in sources.named() if source.file is not None
        ]
        left = tuple(field for field, source in sources.named() if source.file is None)
        return cls.checked(files, lists, key, "preview", vocabulary, stop_words), left

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the input that are lists of their rows, those that mask first."""
        return tuple(source.column for _, source in self.sources.named() if source.of_rows and source.column)

    @property
    def masking_columns(self) -> int:
        """How many of them mask."""
        return sum(source.of_rows for source in self.sources.mask)

    @property
    def kinds_of_columns(self) -> tuple[str | None, ...]:
        """Of each of those that mask, of what its entries are names, where they have pseudonyms."""
        return tuple(source.kind for source in self.sources.mask if source.of_rows)

    def shown(self) -> dict[str, Json]:
        """Return `mask` and `keep` as a row for sharing holds them: where each comes from, its size, a keyed digest.

        A list whose entries have pseudonyms is shown with the version of the public lists that they come from.
        """
        read = iter(zip(self.lists, self.digests, strict=True))
        shown = {
            name: [_shown(source, *next(read)) for source in getattr(self.sources, name)]
            for name in self.sources.NAMES
        }
        return {name: some for name, some in shown.items() if some}

    def check_shares(self, vocabulary: Vocabulary, stop_words: Sequence[str]) -> None:
        """Refuse lists that would leave no text, or none that is protected.

        Args:
            vocabulary: of the lexicon.
            stop_words: that the policy keeps.

        Raises:
            DataError: a list that holds most of the lexicon, or stop words for the most part; with the share.
        """
        if self.names is None:
            return
        fields = [
            (field, len(one))
            for (field, _), one in zip(self.sources.named(), self.lists, strict=True)
            if one is not None
        ]
        stops = self._whole(pa.array(list(stop_words), pa.large_string()))
        words = self._whole(vocabulary.strings())
        for number, (field, entries) in enumerate(fields):
            among = int((stops == number).sum())
            if entries >= LEAST_ENTRIES and among > MOST_STOP_WORDS * entries:
                raise DataError(
                    f"{field}: {among / entries:.0%} of its {entries:,} entries are stop words; valid: names and other words of "
                    f"their own, at most {MOST_STOP_WORDS:.0%} of them stop words."
                )
            share = float((words == number).mean())
            if share > MOST_OF_LEXICON:
                raise DataError(
                    f"{field}: it holds {share:.0%} of the words of the lexicon, so that hardly any would be drawn; valid: at "
                    f"most {MOST_OF_LEXICON:.0%}."
                )

    def _whole(self, texts: pa.Array) -> np.ndarray:
        """Return int64[n], the list that holds each of some words; -1: none."""
        assert self.names is not None
        data, rows = padded(texts)
        starts, ends, number, row = names_in(data, rows, self.names.table, self.names.masking).T
        whole = (starts == rows[row]) & (ends == rows[row + 1])
        lists = np.full(len(texts), -1, np.int64)
        lists[row[whole]] = number[whole]
        return lists


def _sound(one: WordList, key: RunKey, scope: str) -> WordList:
    """Return a list without the entries that can be none."""
    try:
        compile_names([one], name_key(key, scope))
    except EntryError as error:
        return one.only(error.sound)
    return one


def _shown(source: ListSource, one: WordList | None, digest: str | None) -> dict[str, Json]:
    """Return what a row for sharing holds of one list."""
    read: dict[str, Json] = {} if one is None else {"entries": len(one), "digest": f"(by the key; {digest})"}
    version: dict[str, Json] = {"version": VERSION} if source.has_pseudonyms else {}
    return {**source.as_dict(), **read, **version}
