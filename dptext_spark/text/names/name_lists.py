"""Read and hash the lists of names of a run: the table to search by, and a description that may be shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dptext_spark.errors import DataError
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.validation import Json
from dptext_spark.text.chunks import padded
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_table import NameTable, WordList
from dptext_spark.text.names.search import VERSION, ListSource, ListSources

MOST_STOP_WORDS = 0.5  # of a list's entries
MOST_OF_LEXICON = 0.5
LEAST_ENTRIES = 10  # from which a list can be said to be one of stop words
# Facts shown of a list beside its source and its use.
SHOWN = ("entries", "digest", "version")


@dataclass(frozen=True, eq=False)
class NameLists:
    """The lists of names of a run.

    Attributes:
        entries: how many each list has, in the order of the sources; None for a column of the input.
        table: the entries that are searched in every row; None if all lists are columns of the input.
    """

    sources: ListSources
    entries: tuple[int | None, ...]
    table: NameTable | None

    @classmethod
    def of(
        cls,
        sources: ListSources,
        lists: Sequence[WordList | None],
        vocabulary: Vocabulary,
        stop_words: Sequence[str],
    ) -> NameLists:
        """Hash lists, and refuse those that would leave no text, or none that is protected.

        Problems of a list as a whole are found first; they explain more than a problem of an entry.

        Args:
            sources: as the settings name them.
            lists: the entries, in the order of the sources; None for a column of the input.
            vocabulary: of the lexicon.
            stop_words: that the policy keeps.

        Raises:
            SettingsError: too many lists.
            DataError: a list of stop words or of most of the lexicon, by its share; an invalid entry, by its place.
        """
        entries = tuple(None if words is None else len(words) for words in lists)
        read = [words for words in lists if words is not None]
        if not read:
            return cls(sources, entries, None)
        fields = [
            (field, len(words))
            for (field, _), words in zip(sources.named(), lists, strict=True)
            if words is not None
        ]
        uses = [use for use, words in zip(sources.uses, lists, strict=True) if words is not None]
        table = NameTable.of(
            read, uses, check=lambda table: _check_shares(table, fields, vocabulary, stop_words)
        )
        return cls(sources, entries, table)

    @classmethod
    def of_files(
        cls, sources: ListSources, vocabulary: Vocabulary, stop_words: Sequence[str]
    ) -> tuple[NameLists, tuple[str, ...]]:
        """Read and hash the lists that are files, for a preview.

        Returns:
            (the lists; the settings of those that only a run can read: tables, and columns of its input).

        Raises:
            SettingsError, DataError: as :meth:`of` and :meth:`WordList.read`.
        """
        files = ListSources(
            *(tuple(source for source in some if source.file) for some in (sources.mask, sources.keep))
        )
        lists = [
            WordList.read(field, source.file) for field, source in sources.named() if source.file is not None
        ]
        left = tuple(field for field, source in sources.named() if source.file is None)
        return cls.of(files, lists, vocabulary, stop_words), left

    @property
    def matcher(self) -> NameMatcher | None:
        """Matcher for the lists of all rows; None if there are none."""
        return None if self.table is None else NameMatcher(self.table)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The columns of the input that are lists of their rows, masking ones first, and the treatment of their entries."""
        every = zip(self.sources.named(), self.sources.uses, strict=True)
        return tuple((str(source.column), use) for (_, source), use in every if source.of_rows)

    def shown(self, key: RunKey, scope: str) -> dict[str, Json]:
        """Return `mask` and `keep` as a row for sharing holds them: where each comes from, its size, a keyed digest.

        A list whose entries have pseudonyms is shown with the version of the public lists that they come from.

        Args:
            key: of the run. A plain digest would let readers of the row test guesses.
            scope: of the digests: the run, or the stream.
        """
        digests = iter(() if self.table is None else self.table.digests)
        rows = iter(
            [
                _description(
                    source,
                    entries,
                    None if entries is None else key.commitment(f"list {scope} {next(digests)}"),
                )
                for (_, source), entries in zip(self.sources.named(), self.entries, strict=True)
            ]
        )
        shown = {name: [next(rows) for _ in getattr(self.sources, name)] for name in self.sources.NAMES}
        return {name: some for name, some in shown.items() if some}


def _description(source: ListSource, entries: int | None, digest: str | None) -> dict[str, Json]:
    """Return the description of one list in a row for sharing."""
    read: dict[str, Json] = {}
    if entries is not None:
        read = {"entries": entries, "digest": f"(by the key; {str(digest)[:32]})"}
    version: dict[str, Json] = {"version": VERSION} if source.has_pseudonyms else {}
    return {**source.as_dict(), **read, **version}


def _check_shares(
    table: NameTable, fields: Sequence[tuple[str, int]], vocabulary: Vocabulary, stop_words: Sequence[str]
) -> None:
    """Refuse lists that would leave no text, or none that is protected; `fields` are the setting and the entries of each.

    Raises:
        DataError: a list that holds most of the lexicon, or stop words for the most part; with the share.
    """
    stops = _lists_of(table, pa.array(list(stop_words), pa.large_string()))
    words = _lists_of(table, vocabulary.strings())
    for number, (field, entries) in enumerate(fields):
        among = int((stops == number).sum())
        if entries >= LEAST_ENTRIES and among > MOST_STOP_WORDS * entries:
            raise DataError(
                f"{field}: {among / entries:.0%} of its {entries:,} entries are stop words. Choose names and other words of "
                f"your own, with at most {MOST_STOP_WORDS:.0%} stop words."
            )
        share = float((words == number).mean())
        if share > MOST_OF_LEXICON:
            raise DataError(
                f"{field}: it has {share:.0%} of the lexicon's words, so that a run would draw hardly any. Choose at most "
                f"{MOST_OF_LEXICON:.0%}."
            )


def _lists_of(table: NameTable, words: pa.Array) -> np.ndarray:
    """Return int64[n], the list that holds each of some words; -1: none."""
    data, rows = padded(words)
    starts, ends, number, row = NameMatcher(table).entries_in(data, rows).T
    whole = (starts == rows[row]) & (ends == rows[row + 1])
    lists = np.full(len(words), -1, np.int64)
    lists[row[whole]] = number[whole]
    return lists
