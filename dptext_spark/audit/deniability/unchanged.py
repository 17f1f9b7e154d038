"""N_w = P(w|w), how often a word comes out as itself (Feyisetan et al. 2020), without its whole law where that can be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dptext_spark.audit.deniability.outcomes import Outcomes, interval, read_rows
from dptext_spark.audit.deniability.word_figures import Bounded
from dptext_spark.mechanisms.base import TOTAL, Ids, Sampler
from dptext_spark.mechanisms.samplers import WholeSampler
from dptext_spark.mechanisms.samplers.ordering import LineSampler


@dataclass(frozen=True)
class Unchanged:
    """N_w = P(w|w)."""

    name = "N_w"
    meaning = "the probability that a word comes out as itself"
    estimate = "the share of the draws; bounds by Clopper and Pearson"
    worst_is_largest = True

    def edges(self, words: int) -> tuple[float, ...]:
        """Return 20 equal bins."""
        return tuple(i / 20 for i in range(21))

    def shortcut(self, sampler: Sampler, words: Ids) -> Bounded | None:
        """Read N_w off lists, or off the sums of laws over a lexicon: those within the slack that such a sampler states."""
        if isinstance(sampler, LineSampler):
            values = sampler.unchanged(words)
            return Bounded(values, values, values)
        if not isinstance(sampler, WholeSampler):
            return None
        values, slack = np.exp(-np.asarray(sampler.log_normaliser)[words]), np.full(len(words), sampler.slack)
        # A word that is no output comes out as itself where it is kept: an entry of its row.
        kept = np.flatnonzero(~np.isin(words, sampler.outputs))
        row, ids, weight = read_rows(sampler.cells[sampler.rows_of(words[kept])])
        itself = ids == words[kept][row]
        values[kept], slack[kept] = 0.0, 0.0
        values[kept[row[itself]]] = weight[itself] / TOTAL
        return Bounded(values, values * np.exp(-slack), np.minimum(values * np.exp(slack), 1.0))

    def of(self, found: Outcomes, words: int, confidence: float) -> Bounded:
        """Return N_w of each word."""
        row = found.rows
        itself = found.ids == found.words[row]
        values = np.zeros(len(found.words))
        values[row[itself]] = found.probability[itself]
        if found.draws is None:
            return Bounded(values, values, values)
        return Bounded(values, *interval(np.rint(values * found.draws), found.draws, confidence))
