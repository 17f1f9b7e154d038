"""What is released beside the replacements: a record's length, where punctuation stands, case patterns, kept words.

Two figures, in bits. For a record: an adversary who holds the n originals asks which of them a released record is; the
channels alone, without one replaced word being guessed, tell log2 n minus the mean of log2 of how many records look alike. For a
word: log2 of how much more likely the true word becomes by its case pattern, P(c|w)/P(c), by a public text that has case.

Used: how many words a record has; between which of them punctuation stands; whether a drawn word is lower, Capitalised (after
punctuation or at the record's beginning, or elsewhere) or UPPER; which words were kept, and where numbers and unknown words
stand. Not used: which mark it is, spacing, the case of kept words, how many digits, the order of records, other columns. So these
figures are below what is really told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dptext_spark.arrays import F64, I64, U8, U64, Bools, Ids
from dptext_spark.audit.attacks.posterior import MOST, candidates
from dptext_spark.audit.attacks.prior import of_drawn
from dptext_spark.audit.attacks.tokens import Tokens
from dptext_spark.audit.deniability.outcomes import DRAWS
from dptext_spark.audit.results import AuditResult, Figures, Group, WordAttack
from dptext_spark.errors import DataError
from dptext_spark.lexicon.characters import CAPITALISED, LOWER, MIXED, UPPER
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.text.tokens import EDGE, UNKNOWN

CHANNELS = ("length", "and punctuation", "and case", "and kept words", "and every word")
PATTERNS = ("lower", "Capitalised after a mark", "Capitalised elsewhere", "UPPER")
WEIGHT = 1.0  # of P(c) in P(c|w) = (n(w,c) + WEIGHT·P(c)) / (n(w) + WEIGHT)


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

    @property
    def reading(self) -> str:
        """What a long bar says."""
        return "A bar as long as the last one says that so much alone singles records out, whatever ε is."

    def groups(self) -> Iterator[Group]:
        """Yield bits, and who looks like nobody else."""
        yield Group("bits", self.bits, "bits that tell records apart")
        yield Group("unique", self.unique, "share of records that look like no other")

    def singles(self) -> Figures:
        """Return what there is to tell."""
        return {"most bits": self.most_bits, "records": self.records, "random": self.random}


@dataclass(frozen=True, kw_only=True)
class CaseChannel(WordAttack):
    """What the case pattern of a replaced word tells of it.

    Attributes:
        bits: mean of log2 P(c|w)/P(c) over the replaced words; below 0 where the public text has other habits.
        word_bits: the entropy of the prior: what there is to know of a replaced word.
        success: of the Bayes adversary that uses the case, too: argmax P(w)·P(u|w)·P(c|w) over the listed candidates.
        bayes: of the one that does not.
        shares: of the patterns among the replaced words.
        tokens: replaced words.
        covered: share of P(w)·P(u|w) that the candidates hold, mean over the tokens.
    """

    name: str = "case patterns"
    measures: str = (
        "How much the released case pattern of a replaced word narrows down what it was, "
        "and how much that helps to guess it."
    )
    knows: str | None = (
        "The adversary knows a word's replacement with its case, whether punctuation stands before it, the mechanism with all "
        "its settings, and how words are written in a public text; not the words around it, nor the key."
    )

    bits: float
    word_bits: float
    shares: Mapping[str, float]
    tokens: int
    covered: float


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


def case_channel(
    sampler: Sampler,
    tokens: Tokens,
    case: U8,
    public: Tokens,
    public_case: U8,
    prior: F64,
    drawn: Bools | None = None,
    *,
    most: int = MOST,
    draws: int = DRAWS,
    restricted: bool = True,
) -> CaseChannel:
    """Measure what case tells.

    Args:
        sampler: of any mechanism.
        tokens: the text beside what was released.
        case: uint8[n], its case.
        public: a public text; outputs are not looked at.
        public_case: uint8[m], its case.
        prior: float64[V], how frequent words are in public.
        drawn: bool[V], the words that the policy draws; None for all.
        most: candidates of an output.
        draws: of each word, where there is no law.
        restricted: whether the text is private.

    Raises:
        DataError: nothing in the text was drawn, or lengths differ.
    """
    at = np.flatnonzero(tokens.drawn)
    if not len(at):
        raise DataError("tokens: none of them was drawn; valid: at least one.")
    chosen = of_drawn(prior, drawn)
    written = patterns(tokens, case)[at]
    given = _given_word(public.words[public.drawn], patterns(public, public_case)[public.drawn], len(chosen))
    overall = chosen @ given
    truth, outputs = tokens.words[at], tokens.outputs[at]
    found = candidates(sampler, chosen, outputs, most, draws)
    # Each pair of output and pattern is guessed once.
    keys, where = np.unique(outputs.astype(np.int64) * len(PATTERNS) + written, return_inverse=True)
    plain, informed = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
    for i, key in enumerate(keys.tolist()):
        output, pattern = divmod(key, len(PATTERNS))
        ids, probability = found.row(output)
        score = chosen[ids] * probability
        plain[i] = ids[0] if len(ids) else output
        best = score * given[ids, pattern]
        informed[i] = ids[best == best.max()].min() if len(ids) else output
    where = where.reshape(-1)
    likely = chosen[chosen > 0]
    counts = np.bincount(written, minlength=len(PATTERNS))
    return CaseChannel(
        bits=float(np.log2(given[truth, written] / overall[written]).mean()),
        word_bits=float(-(likely * np.log2(likely)).sum()),
        success=float((informed[where] == truth).mean()), bayes=float((plain[where] == truth).mean()),
        shares={name: float(n / len(at)) for name, n in zip(PATTERNS, counts, strict=True)},
        tokens=len(at), covered=float(found.covered[found.slot[outputs]].mean()), restricted=restricted,
    )  # fmt: skip


def _given_word(words: Ids, written: I64, size: int) -> F64:
    """Return P(c|w), float64[V, 4], from a public text."""
    many = len(PATTERNS)
    counts = np.bincount(words.astype(np.int64) * many + written, minlength=size * many)
    by_word = counts.reshape(size, many).astype(np.float64)
    # No pattern is impossible: each is seen once more, over all.
    overall = (by_word.sum(axis=0) + 1.0) / (by_word.sum() + many)
    return np.asarray((by_word + WEIGHT * overall) / (by_word.sum(axis=1, keepdims=True) + WEIGHT))


def _mixed(values: U64) -> U64:
    """Spread 64-bit numbers, so that sums of different ones are hardly ever equal (the finaliser of SplitMix64)."""
    x = values + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
