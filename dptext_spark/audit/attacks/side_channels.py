"""What is released beside the replacements: a record's length, where punctuation stands, case patterns, kept words.

In bits: an adversary who holds the n originals asks which of them a released record is; the channels alone, without one
replaced word being guessed, tell log2 n minus the mean of log2 of how many records look alike.

Used: how many words a record has; between which of them punctuation stands; whether a drawn word is lower, Capitalised (after
punctuation or at the record's beginning, or elsewhere) or UPPER; which words were kept, and where numbers and unknown words
stand. Not used: which mark it is, spacing, the case of kept words, how many digits, the order of records, other columns. So these
figures are below what is really told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dptext_spark.arrays import I64, U8, U64
from dptext_spark.audit.attacks.tokens import Tokens
from dptext_spark.audit.results import AuditResult, Group, Shown
from dptext_spark.errors import DataError
from dptext_spark.lexicon.characters import CAPITALISED, LOWER, MIXED, UPPER
from dptext_spark.text.tokens import EDGE, UNKNOWN

CHANNELS = ("length", "and punctuation", "and case", "and kept words", "and every word")
PATTERNS = ("lower", "Capitalised after a mark", "Capitalised elsewhere", "UPPER")


@dataclass(frozen=True, kw_only=True)
class LinkedRecords(AuditResult):
    """How well released records can be told apart without guessing a replaced word.

    Attributes:
        bits: for each channel, with those before it, how many of `most_bits` it tells.
        unique: the share of records that no other record looks like.
        most_bits: log2 of the number of records.
        records: their number.
        random: the probability of naming the right record without any channel.
    """

    name: str = "linked records"
    measures: str = "How far a record's length, punctuation, case and kept words single it out among the records of the text."
    knows: str | None = (
        "The adversary holds the original records and asks which of them a released one is; it knows what the policy keeps, "
        "not the key; 'and every word' is the text without replacement."
    )

    bits: Mapping[str, float]
    unique: Mapping[str, float]
    most_bits: float
    records: int
    random: float

    def shown(self) -> Shown:
        """Show bits, and who looks like nobody else."""
        return Shown(
            (
                Group("bits", self.bits, "bits that tell records apart"),
                Group("unique", self.unique, "share of records that look like no other"),
            ),
            singles={"most bits": self.most_bits, "records": self.records, "random": self.random},
            read="A bar as long as the last one says that so much alone singles records out, whatever ε is.",
        )


def patterns(tokens: Tokens, case: U8) -> I64:
    """Return which of `PATTERNS` each token has as it is released: int64[n]; mixed case is released as lower.

    Args:
        tokens: the text.
        case: uint8[n], of :class:`Reading`.

    Raises:
        DataError: lengths that differ.
    """
    if len(case) != len(tokens.words):
        raise DataError(f"case: {len(case)} patterns given; valid: {len(tokens.words)}, one for each token.")
    before, _ = tokens.neighbours(tokens.words, EDGE)
    table = np.zeros((4, 2), np.int64)
    table[LOWER], table[MIXED], table[CAPITALISED], table[UPPER] = (0, 0), (0, 0), (2, 1), (3, 3)
    return np.asarray(table[case, (before == EDGE).astype(np.int64)], np.int64)


def linked_records(tokens: Tokens, case: U8 | None = None, restricted: bool = True) -> LinkedRecords:
    """Count records that look alike.

    Args:
        tokens: the text; outputs are not looked at.
        case: uint8[n], of :class:`Reading`; None where all words are released in lower case.
        restricted: whether the text is private.

    Raises:
        DataError: no records, or lengths that differ.
    """
    if not tokens.records:
        raise DataError("tokens: no records given; valid: at least one.")
    edge = tokens.words == EDGE
    shape = np.zeros(len(edge), np.int64) if case is None else patterns(tokens, case)
    drawn = tokens.drawn
    # A symbol for each token; 0 leaves it out.
    written = np.where(edge, 1, np.where(drawn, 2 + shape, 2))
    kept = np.where(drawn, written, 10 + tokens.words.astype(np.int64) - UNKNOWN)
    channels = (
        np.where(edge, 0, 1), np.where(edge, 1, 2), written, np.where(edge, 1, kept),
        np.where(drawn, 16 * (10 + tokens.words.astype(np.int64) - UNKNOWN) + shape, kept),
    )  # fmt: skip
    bits: dict[str, float] = {}
    unique: dict[str, float] = {}
    for name, symbols in zip(CHANNELS, channels, strict=True):
        place = np.cumsum(symbols > 0)  # edges that are left out take no place
        starts = np.append(0, place)[tokens.bounds[:-1]]
        place = place - np.repeat(starts, np.diff(tokens.bounds))
        marks = np.where(symbols > 0, _mixed(_mixed(symbols.astype(np.uint64)) + place.astype(np.uint64)), 0)
        sums = np.append(np.uint64(0), np.cumsum(marks.astype(np.uint64)))
        _, group, sizes = np.unique(
            sums[tokens.bounds[1:]] - sums[tokens.bounds[:-1]], return_inverse=True, return_counts=True
        )
        alike = sizes[group.reshape(-1)]
        bits[name] = math.log2(tokens.records) - float(np.log2(alike).mean())
        unique[name] = float((alike == 1).mean())
    return LinkedRecords(
        bits=bits, unique=unique, most_bits=math.log2(tokens.records), records=tokens.records, random=1.0 / tokens.records,
        exact=True, restricted=restricted,
    )  # fmt: skip


def _mixed(values: U64) -> U64:
    """Quantiles 64-bit numbers, so that sums of different ones are hardly ever equal (the finaliser of SplitMix64)."""
    x = values + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
