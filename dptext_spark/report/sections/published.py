"""A restricted count, published with discrete Laplace noise.

Unit: a record of at most N words. Each count here counts words, so that a record of n words, whatever is put in its place or
whether it is there at all, changes it by the greater of the two numbers of words at most. With noise of scale N/ε the
published figure is ε-differentially private for records of at most N words; one of n > N words is protected by ε·n/N only. No
count is clipped for that. The noise is fresh from the library's own generator, so each publication spends its ε anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dptext_spark.errors import SettingsError, require_extra, unknown
from dptext_spark.rounding import digits_up, exact
from dptext_spark.runtime.record import Json

# What can be published, by the metric that holds it and what it counts.
PUBLISHABLE = {
    "drawn_words": ("drawn", "words that were drawn"),
    "changed_words": ("changed", "words that are not as before"),
    "same_words": ("same", "drawn words that came out as they were"),
    "unknown_words": ("oov", "words that the lexicon lacks"),
    "stop_words": ("stop_kept", "stop words that were kept"),
    "numbers": ("numbers", "numbers"),
}
MOST_WORDS = 200
BESIDE = 0.05  # probability that a figure lies farther from the truth than its stated accuracy


@dataclass(frozen=True)
class Published:
    """A figure with noise.

    Attributes:
        metric: a name of `PUBLISHABLE`.
        value: the count with noise; may be below 0.
        epsilon: what it costs a record of at most `most_words` words, as the library accounts for it.
        most_words: N, the sensitivity.
        accuracy: 95 % of such figures are no farther from the true count.
        at: when, in UTC.
    """

    metric: str
    value: int
    epsilon: float
    most_words: int
    accuracy: float
    at: str

    def as_dict(self) -> dict[str, Json]:
        """Return the fields."""
        return asdict(self)


def wanted(options: Iterable[str]) -> dict[str, float]:
    """Read `metric=epsilon` options.

    Raises:
        SettingsError: another form, an unknown metric, a metric named twice, or no finite ε above 0.
    """
    found: dict[str, float] = {}
    for option in options:
        name, given, value = option.partition("=")
        if not given:
            raise SettingsError(
                f"publish: {option!r} given; valid: metric=epsilon, such as changed_words=0.5."
            )
        if name not in PUBLISHABLE:
            raise unknown("publish", name, PUBLISHABLE)
        try:
            epsilon = float(value)
        except ValueError:
            epsilon = math.nan
        if not 0 < epsilon < math.inf:
            raise SettingsError(f"publish: {option!r} given; valid: an ε above 0 behind {name}=.")
        if name in found:
            raise SettingsError(f"publish: {name} is named twice; valid: once, for each time spends its ε.")
        found[name] = epsilon
    return found


def publish(metric: str, count: int, epsilon: float, most_words: int, at: str) -> Published:
    """Add noise to a count: fresh each time.

    Args:
        metric: a name of `PUBLISHABLE`.
        count: the true one.
        epsilon: for a record of at most `most_words` words.
        most_words: N, 1 or more.
        at: when.

    Raises:
        SettingsError: the library is not installed, or N is no number of words.
    """
    if most_words < 1:
        raise SettingsError(f"most_words: {most_words} given; valid: 1 or more.")
    require_extra("audit", "opendp")
    import opendp.prelude as dp

    dp.enable_features("contrib")
    measurement: Any = dp.m.make_laplace(
        dp.atom_domain(T=dp.i64), dp.absolute_distance(T=dp.i64), scale=most_words / epsilon
    )
    value, spent = int(measurement(int(count))), float(measurement.map(most_words))
    accuracy = dp.discrete_laplacian_scale_to_accuracy(scale=most_words / epsilon, alpha=BESIDE)
    return Published(metric, value, spent, most_words, float(accuracy), at)


def unit_of(most_words: int) -> str:
    """Return what ε of a published figure is for, as the ledger names it."""
    return f"a record of at most {most_words:,} words"


def published_section(published: Sequence[Published]) -> tuple[str, ...]:
    """Return the heading and the sentences of the disclosure statement about published figures."""
    total, least = sum(one.epsilon for one in published), min(one.most_words for one in published)
    return (
        "What was published with noise",
        *(
            f"About {one.value:,} {PUBLISHABLE[one.metric][1]} ({one.metric}), with discrete Laplace noise: within "
            f"{one.accuracy:,.0f} of the true count with a probability of {1 - BESIDE:.0%}. It costs ε = {exact(one.epsilon)} "
            f"for a record of at most {one.most_words:,} words (sensitivity {one.most_words:,}; nothing was clipped: a record "
            f"of more, n words, pays n/{one.most_words:,} times as much)."
            for one in published
        ),
        f"Together ε = {digits_up(total, 6)} for {unit_of(least)}, on top of what the table itself costs it. The ledger counts "
        "them by themselves, for their unit is a record and not a word. The noise is fresh: publishing a figure again spends "
        "its ε again. Without --publish, none of it.",
    )
