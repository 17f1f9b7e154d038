"""A prior of the user's own: how often words and pairs of words occur in a public text.

The text is cut by the engine's tokenizer, so counts match the engine's view: lexicon words and stop words. Punctuation between
two words, a number, an unknown word and the end of a document part them.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I32
from dptext_spark.errors import DataError, file_errors
from dptext_spark.importance.providers import numbers_of
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import PairModel, Prior, counted
from dptext_spark.text.engine import Engine
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import list_words
from dptext_spark.text.word_table import WordTable

LINES = 10_000  # of a corpus that are looked at together
MOST_BYTES = (
    4 << 30
)  # of a corpus: more teaches little, and is most often another file than the one that is meant
MOST_LINE = 1 << 24  # characters of a document
LEAST_WORDS = 2  # different ones: with fewer no word is likelier than another
FIELD = "lexicon.prior.corpus"


def read_prior(corpus: str | Path, lexicon: Lexicon, policy: Policy | None = None) -> Prior:
    r"""Count a public text: UTF-8, a document a line; blank lines are none.

    Words are completed by Zipf's law over the lexicon's order, so that none is impossible. Pairs are smoothed as
    in :class:`dptext_spark.lexicon.prior.PairModel`.

    Args:
        corpus: a text file. It is public by declaration: never the text that is sanitized.
        lexicon: whose words are counted; :meth:`Lexicon.with_prior` gives it the result.
        policy: whose tokenizer and stop words count; None for `Policy()`.

    Raises:
        DataError: it cannot be read, is no file or no UTF-8, is empty or too large, or holds fewer than two different words of
            the lexicon.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("public.txt").write_text("The parcel is late.\nPlease send the parcel again.\n")
        >>> lexicon.with_prior(dp.read_prior("public.txt", lexicon)).prior.name
        "counts of the public text 'public.txt' (9 words)"
    """
    policy = replace(policy or Policy(), identifiers="none")  # type: ignore[arg-type]  # Policy reads the word
    table = WordTable.build(lexicon.vocabulary, policy.stop_list())
    engine, words = Engine(table, policy), len(lexicon)
    check_corpus(corpus)
    counts, contexts = np.zeros(words, np.int64), len(table.flags)
    keys, often = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for lines in _documents(Path(corpus)):
        before, after = _followed(engine, lines)
        counts += np.bincount(after[(after >= 0) & (after < words)], minlength=words)
        pair = before[(before >= 0) & (after >= 0) & (after < words)].astype(np.int64) * words
        pair += after[(before >= 0) & (after >= 0) & (after < words)]
        keys, where = np.unique(np.concatenate([keys, pair]), return_inverse=True)
        summed = np.zeros(len(keys), np.int64)
        np.add.at(summed, where.reshape(-1), np.concatenate([often, np.ones(len(pair), np.int64)]))
        often = summed
    kinds = int(np.count_nonzero(counts))
    if kinds < LEAST_WORDS:
        raise DataError(
            f"{FIELD}: {str(corpus)!r} has {kinds} different words of the lexicon. Choose a text in its language with one "
            "document a line."
        )
    frequency = counted(counts)
    first, second = (keys // words).astype(np.int32), (keys % words).astype(np.int32)
    pairs = PairModel.of_counts(frequency, first, second, often, contexts)
    name = f"counts of the public text {Path(corpus).name!r} ({int(counts.sum()):,} words)"
    return Prior(name, frequency, pairs, table.beyond())


def check_corpus(corpus: str | Path) -> None:
    """Check that a file is a public text, before anything else is read.

    Raises:
        DataError: it is no file that can be read, is empty, or is larger than `MOST_BYTES`.
    """
    with file_errors(FIELD, corpus):
        status = Path(corpus).stat()
    if not stat.S_ISREG(status.st_mode):
        raise DataError(
            f"{FIELD}: {str(corpus)!r} is not a file. Choose a text file (UTF-8) with one document a line."
        )
    if not status.st_size:
        raise DataError(
            f"{FIELD}: {str(corpus)!r} is empty. Choose a text file (UTF-8) with one document a line."
        )
    if status.st_size > MOST_BYTES:
        raise DataError(
            f"{FIELD}: {str(corpus)!r} has {status.st_size:,} bytes. Choose at most {MOST_BYTES:,}."
        )


def _documents(file: Path) -> Iterator[list[str]]:
    """Yield the documents of a file, `LINES` at a time.

    Raises:
        DataError: it cannot be read, is no UTF-8, or has a line of more than `MOST_LINE` characters.
    """
    lines: list[str] = []
    with file_errors(FIELD, file), file.open(encoding="utf-8-sig", newline="\n") as stream:
        while line := stream.readline(MOST_LINE + 1):
            if len(line) > MOST_LINE:
                raise DataError(
                    f"{FIELD}: {str(file)!r} has a line of more than {MOST_LINE:,} characters. Write one document a line."
                )
            if line.strip():
                lines.append(line)
            if len(lines) == LINES:
                yield lines
                lines = []
    if lines:
        yield lines


def _followed(engine: Engine, lines: list[str]) -> tuple[I32, I32]:
    """Return the number before each word, and its own: int32[n] each, -1 or -2 for words outside the table."""
    words = list_words(engine, pa.array(lines, pa.large_string()), marks=True).words
    after = numbers_of(engine.table, words)
    before = np.append(np.int32(-1), after[:-1])[: len(after)]
    starts = words.bounds[:-1]
    before[starts[starts < len(after)]] = -1  # a document begins
    return before.astype(np.int32), after
