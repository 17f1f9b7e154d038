"""What became of the entries of a lexicon file; every dropped entry is counted under exactly one reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadCounts:
    """Counts of entries: `read` is the sum of `kept` and the four reasons that follow it.

    The reasons are tried in the order in which they stand here.

    Attributes:
        read: entries looked at.
        kept: entries that became words of the lexicon.
        unproducible: keys that the tokenizer can never produce, so neither inputs nor outputs; keys that are
            empty, hold an ASCII space or are no valid UTF-8 are among them.
        not_in_vocabulary: keys outside the given vocabulary.
        non_finite: vectors with a NaN or an infinity, or a number too large for float32.
        duplicates: keys that an earlier kept entry has: the first one wins.
        over_limit: entries that were not looked at because the limit was reached, where the file announces
            how many it holds (else 0); they are not part of `read`.
        limit_reached: as many words were kept as the limit allows, and reading stopped there.
    """

    read: int = 0
    kept: int = 0
    unproducible: int = 0
    not_in_vocabulary: int = 0
    non_finite: int = 0
    duplicates: int = 0
    over_limit: int = 0
    limit_reached: bool = False
