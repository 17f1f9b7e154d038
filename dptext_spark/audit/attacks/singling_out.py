"""How much a draw tells of its word, and how many drawn words single out a row: from the law and the public prior alone.

A draw tells I(X; Y) = H(Y) - H(Y|X) bits of its word X on average, X as frequent as the prior says. The output set alone tells
I(G; Y) of them, G the set that the word is in. One of N rows is singled out by about log2(N) / I(X; Y) words, if they are
independent and rows are alike (Shannon 1948); dependent words single out later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dptext_spark.arrays import F64, Ids
from dptext_spark.audit.deniability.word_figures import blocks
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.runtime.validation import Json

AMONG = (10_000, 1_000_000)  # rows


@dataclass(frozen=True, eq=False)
class Told:
    """What a draw tells.

    Attributes:
        marginal: float64[V], log P(u) of every output under the prior; -inf where no word leads to it.
        bits: that a draw tells of its word on average.
        by_set: of which the output set tells; None where words have none in common.
    """

    marginal: F64
    bits: float
    by_set: float | None

    @classmethod
    def of(cls, sampler: Sampler, prior: F64) -> Told:
        """Read every law once.

        Args:
            sampler: with a law.
            prior: float64[V], of the words that are drawn; sums to 1.
        """
        total, groups = np.zeros(len(prior)), sampler.groups()
        spread, joint = 0.0, dict[int, float]()
        for part in blocks(sampler, np.flatnonzero(prior).astype(np.int32)):
            weight = part.probability * prior[part.words][part.rows]
            np.add.at(total, part.ids, weight)
            some = part.probability > 0
            spread -= float((weight[some] * np.log2(part.probability[some])).sum())
            if groups is not None:
                _add(joint, groups[part.words][part.rows], part.ids, weight)
        by_set = None
        if groups is not None:
            of_group = np.bincount(groups, weights=prior)
            place = np.array([pair >> 32 for pair in joint], np.int64)
            shares = np.array([*joint.values()])
            by_set = _entropy(total) + float((shares * np.log2(shares / of_group[place])).sum())
        with np.errstate(divide="ignore"):
            return cls(np.log(total), max(0.0, _entropy(total) - spread), by_set)

    def words(self, rows: int) -> int | None:
        """Return how many drawn words single out one of so many rows; None where a draw tells nothing."""
        return math.ceil(math.log2(rows) / self.bits) if self.bits > 1e-9 else None

    @property
    def sentence(self) -> str:
        """What it comes to, for a person."""
        by_set = "" if self.by_set is None else f", {self.by_set:.1f} of them by the output set"
        sentence = f"A draw tells {self.bits:.1f} bits of its word on average{by_set}, words as frequent as in public text."
        counts = [self.words(rows) for rows in AMONG]
        if None in counts:
            return sentence
        among = " and ".join(
            f"{count} to single out one of {rows:,} rows" for count, rows in zip(counts, AMONG, strict=True)
        )
        return f"{sentence} About so many drawn words are enough: {among}."

    def as_dict(self) -> dict[str, Json]:
        """Return the figures, JSON-able."""
        return {
            "bits": self.bits,
            "by_set": self.by_set,
            "words": {str(rows): self.words(rows) for rows in AMONG},
        }


def _entropy(shares: F64) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log2(some)).sum())


def _add(joint: dict[int, float], groups: Ids, outputs: Ids, weight: F64) -> None:
    """Add the weight of each (group, output) of some laws."""
    pairs, place = np.unique((groups.astype(np.int64) << 32) + outputs, return_inverse=True)
    for pair, share in zip(
        pairs.tolist(), np.bincount(place.reshape(-1), weights=weight).tolist(), strict=True
    ):
        if share > 0:
            joint[pair] = joint.get(pair, 0.0) + share
