"""Plausible deniability over a lexicon: how often words stay, and among how many outputs they hide.

The figures are those of :mod:`dptext_spark.audit.word_figures`. -ln N_w and ln S_w approximate the min- and the
max-entropy of a word's law (Feyisetan et al. 2020).

The share of words that a law alone lets expect to change is a public figure: no text is read for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dptext_spark.arrays import F64, Ids
from dptext_spark.audit import word_figures
from dptext_spark.audit.results import PERCENTILES, Distribution, percentile, statistic
from dptext_spark.audit.word_figures import DistinctOutputs, Intervals, SmallestSet, StayRate, WordFigure
from dptext_spark.errors import SettingsError
from dptext_spark.importance.budget import BudgetSelector
from dptext_spark.importance.levels import WHOLE
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.parameters import is_number
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.runtime.display import Counted
from dptext_spark.runtime.validation import Json
from dptext_spark.text.tokens import drawn_words

STANDARD: tuple[WordFigure, ...] = (StayRate(), SmallestSet(), DistinctOutputs(100), DistinctOutputs(1000))
ENTROPIES = {"N_w": "min_entropy", "S_w": "max_entropy"}
CONFIDENCE = 0.99  # that the bounds of all words hold, for each figure
WORST = 10
EVERY, NAMED = "every word of the lexicon", "the named words"


@dataclass(frozen=True, eq=False)
class WordValues:
    """A figure of some words.

    Attributes:
        words: int32[n], the words' ids.
        of: its values, float64[n], with their bounds.
        total: V.
        draws: of each word; None where the values are exact.
        confidence: that the bounds of all these words hold; None where the values are exact.
        chosen: how the words were chosen, as a phrase.
        pool: of how many words they were chosen; None for all of the lexicon.
    """

    figure: WordFigure
    words: Ids
    of: Intervals
    total: int
    draws: int | None
    confidence: float | None
    chosen: str
    pool: int | None = None

    @property
    def exact(self) -> bool:
        """True if the values are read off laws."""
        return self.draws is None

    def statistic(self, side: str, name: str) -> tuple[float, int | None]:
        """Return (a statistic of `values`, `lower` or `upper`, the id of a word that has it; None for the mean)."""
        value, place = statistic(getattr(self.of, side), name)
        return value, None if place is None else int(self.words[place])

    @property
    def is_whole(self) -> bool:
        """True if these are all words of the lexicon, or all drawn ones."""
        return len(self.words) == (self.pool or self.total)

    def distribution(self, side: str = "values") -> Distribution:
        """Compute the distribution of `values`, `lower` or `upper` over the words."""
        return Distribution.of(getattr(self.of, side), self.figure.edges(self.total))

    def worst(self, count: int = WORST) -> list[tuple[int, float]]:
        """Return (id, value) of the worst words, the worst first, ties by id."""
        sign = -1.0 if self.figure.worst_is_largest else 1.0
        order = np.lexsort((self.words, sign * self.of.values))[:count]
        return [(int(self.words[i]), float(self.of.values[i])) for i in order]

    def as_dict(self) -> dict[str, Json]:
        """Return percentiles, mean, histogram and the worst words, JSON-able; where estimated, those of the bounds, too."""
        values: dict[str, Json] = {
            "name": self.figure.name,
            "meaning": self.figure.meaning,
            "exact": self.exact,
            "draws": self.draws,
            "confidence": self.confidence,
            "estimate": None if self.exact else self.figure.estimate,
            "words_in_lexicon": self.total,
            "words_chosen": self.chosen,
            "restricted": False,  # laws and public draws, no private text
            **self.distribution().as_dict(),
            "worst": [{"word": word, "value": value} for word, value in self.worst()],
        }
        if not self.exact:
            values["lower"] = self.distribution("lower").as_dict()
            values["upper"] = self.distribution("upper").as_dict()
        if self.figure.name in ENTROPIES:
            values[ENTROPIES[self.figure.name]] = self._entropy()
        return values

    def _entropy(self) -> dict[str, Json]:
        """Return percentiles of |ln figure|, named as the approximation that it is; null where a figure is 0."""
        formula = "-ln N_w" if self.figure.worst_is_largest else "ln S_w"
        with np.errstate(divide="ignore"):
            ascending = np.sort(np.abs(np.log(self.of.values)))
        named = {"min": 0.0, **{f"p{rank}": float(rank) for rank in PERCENTILES}, "max": 100.0}
        shares = {name: percentile(ascending, rank) for name, rank in named.items()}
        return {
            "approximation": formula,
            "unit": "nats",
            **{name: value if math.isfinite(value) else None for name, value in shares.items()},
        }


def measure(
    sampler: Sampler,
    words: Ids,
    total: int,
    figures: Sequence[WordFigure] = STANDARD,
    draws: int = word_figures.DRAWS,
    confidence: float = CONFIDENCE,
    progress: Counted | None = None,
) -> list[WordValues]:
    """Return figures of some words, in one pass over their laws or draws; a figure with a short cut needs none.

    Args:
        sampler: of any mechanism.
        words: int32[n], at least one.
        total: V.
        figures: which.
        draws: of each word, where there is no law.
        confidence: that all bounds of a figure hold at once, where there is no law.
        progress: receives the number of words done.

    Raises:
        SettingsError: no words, or fewer draws than a figure needs.
    """
    if not len(words):
        raise SettingsError("words: none given. Give at least one.")
    chosen = EVERY if len(np.unique(words)) == total else NAMED
    shortcuts = {figure: figure.shortcut(sampler, words) for figure in figures}
    long = [figure for figure, short in shortcuts.items() if short is None]
    least = max([1, *(figure.n for figure in long if isinstance(figure, DistinctOutputs))])
    each = 1.0 - (1.0 - confidence) / len(words)
    parts: dict[WordFigure, list[Intervals]] = {figure: [] for figure in long}
    drawn: int | None = None
    done = 0
    for block in word_figures.blocks(sampler, words, draws) if long else ():
        drawn = block.draws
        if drawn is not None and drawn < least:
            raise SettingsError(f"draws: {drawn} are too few for a figure. Use {least:,} or more.")
        for figure, part in parts.items():
            part.append(figure.of(block, total, each))
        done += len(block.words)
        if progress:
            progress(done, len(words))
    sure = None if drawn is None else confidence
    measured = []
    for figure in figures:
        short = shortcuts[figure]
        if short is not None:
            measured.append(WordValues(figure, words, short, total, None, None, chosen))
            continue
        of = Intervals(*map(np.concatenate, zip(*parts[figure], strict=True)))
        measured.append(WordValues(figure, words, of, total, drawn, sure, chosen))
    return measured


def check_epsilons(field: str, epsilons: Iterable[float]) -> list[float]:
    """Return a grid of ε as a list; refuse one that is empty or does not ascend, or a value that is no finite number."""
    grid = list(epsilons)
    fits = all(is_number(epsilon) and math.isfinite(epsilon) and epsilon >= 0 for epsilon in grid)
    if not grid or not fits or any(a >= b for a, b in pairwise(grid)):
        raise SettingsError(
            f"{field}: {grid} is not valid. Give finite numbers of 0 or more in ascending order."
        )
    return [float(epsilon) for epsilon in grid]


ENDS = (0.05, 0.95)  # of the probability of words
WORDS_FOR_ALL = 64  # words that are looked at where not all can be
MOST_DRAWS, LEAST_DRAWS = 64, 16  # of each of them
WORK = 1 << 33  # numbers that all these draws may read: about a second
SURE = 0.98  # that both bounds of one word hold; each of them alone with 0.99
_SEED = 5

OF_CONTEXT = "a draw also depends on the word before"
OF_RECORD = "the number of words of a record chooses the law"
NOT_DRAWN = "the policy draws no word of the lexicon"
NOT_QUICK = "with a lexicon of this size, reading the law of a word takes longer than a second"
NOT_ALL = (
    "importance chooses the words by the table, and reading the laws of all words takes longer than a second"
)


def expected_change(privatizer: Privatizer) -> tuple[float, float] | str:
    """Compute the band of 1 - P(w|w) over the drawn words; without a law give the reason as part of a sentence.

    - Its 5 % and 95 % quantiles, words being as common as they are in public, and the mean of all where that lies beyond them.
      The expected share of a text is the mean of 1 - P(w|w) over its words. It lies in this band unless the text leans on the
      words at its ends.
    - With several levels of importance, the ends are a word's least and greatest 1 - P(w|w) at any level. The table decides the
      level of each word. Where importance leaves words in clear, the ends are those of all words, because the drawn ones are then
      no public sample. Places that do not depend on words (`random`, at token level) are the exception.
    - Where the figure takes searches or sums over whole rows, `WORDS_FOR_ALL` words represent all. They are drawn by how common
      they are in public, one of each equal part of the probability, under a fixed seed. The band runs from their least lower
      bound to their greatest upper bound. Bounds are exact where there is a law, else from draws under a public key. An end is
      wrong with a probability below 5 %: no sampled word is beyond the quantile (0.95^64), or the bound of such a word fails
      (0.01).
    """
    samplers, selector = privatizer.samplers, privatizer.selector
    if isinstance(selector, BudgetSelector):
        return OF_RECORD
    if any(sampler.reads_context for sampler in samplers):
        return OF_CONTEXT
    total = len(privatizer.vocabulary)
    drawn = drawn_words(privatizer.engine)[:total]
    words = np.flatnonzero(drawn).astype(np.int32)
    if not len(words):
        return NOT_DRAWN
    leans = selector is not None and (
        selector.selection.cumulative[-1] < WHOLE
        and (selector.selection.provider != "random" or privatizer.consistency != "token")
    )
    share = of_drawn(privatizer.prior.words, drawn)[words]
    if all(_is_quick(sampler, words) for sampler in samplers):
        return _of_all(samplers, words, share, total, leans=leans)
    return NOT_ALL if leans else _of_some(samplers, words, share, total)


def _is_quick(sampler: Sampler, words: Ids) -> bool:
    """Check that P(w|w) of all words is read at once: a remap over a lexicon must take each word's law."""
    return sampler.has_short_laws or (sampler.before is None and sampler.unchanged(words[:1]) is not None)


def _of_all(
    samplers: Sequence[Sampler], words: Ids, share: F64, total: int, *, leans: bool
) -> tuple[float, float]:
    """Return the band of the figures of every word."""
    stays = [measure(sampler, words, total, (StayRate(),))[0].of.values for sampler in samplers]
    changes = 1.0 - np.array(stays)
    least, most = changes.min(axis=0), changes.max(axis=0)
    if leans:
        return float(least.min()), float(most.max())
    low = min(_quantile(least, share, ENDS[0]), float(least @ share))
    return low, max(_quantile(most, share, ENDS[1]), float(most @ share))


def _quantile(values: F64, share: F64, at: float) -> float:
    order = np.argsort(values, kind="stable")
    return float(values[order[min(int(np.searchsorted(np.cumsum(share[order]), at)), len(order) - 1)]])


def _of_some(samplers: Sequence[Sampler], words: Ids, share: F64, total: int) -> tuple[float, float] | str:
    """Return the band of bounds of a sample."""
    at = (np.arange(WORDS_FOR_ALL) + np.random.default_rng(_SEED).random(WORDS_FOR_ALL)) / WORDS_FOR_ALL
    some = np.unique(words[np.minimum(np.searchsorted(np.cumsum(share), at), len(words) - 1)])
    low, high = 1.0, 0.0
    for sampler in samplers:
        size = sum(array.size for array in sampler.arrays().values())
        draws = min(WORK // (WORDS_FOR_ALL * len(samplers) * max(size, 1)), MOST_DRAWS)
        if draws < (1 if sampler.law(int(some[0])) is not None else LEAST_DRAWS):
            return NOT_QUICK
        for block in word_figures.blocks(sampler, some, draws):
            stays = StayRate().of(block, total, SURE)
            low, high = min(low, float(1.0 - stays.upper.max())), max(high, float(1.0 - stays.lower.min()))
    return low, high
