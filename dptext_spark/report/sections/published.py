"""A restricted count, published with discrete Laplace noise: of words as they are, of names with a cap for each record.

Unit of a count of words: a record of at most N words. Each count here counts words, so that a record of n words, whatever is
put in its place or whether it is there at all, changes it by the greater of the two numbers of words at most. With noise of
scale N/ε the published figure is ε-differentially private for records of at most N words; one of n > N words is protected by
ε·n/N only. No count is clipped for that. The noise is fresh from the library's own generator, so each publication spends its ε
anew.

Unit of a count of names: a record, whatever it holds. What is counted is S = Σ min(n, N) over the records, where n is how many
words of names one has. Beside a released table n is a function of the texts of its record alone, which are paired with the rows
that the table has for it. To add, remove or replace a record so changes one term, within 0..N, and S by at most N; with noise
of scale N/ε the figure is ε-differentially private, on top of what the table costs (adaptive composition). The figure is kept
with its charge in the ledger: a run publishes it once, and whoever asks again sees the same, so that its noise cannot be
averaged away.
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
# What is counted with a cap, and published once.
NAMES = {
    "names_found": "words of names that public lists and rules find in the source",
    "names_kept": "words of names that public lists find, and that are in the table as they were",
}
MOST_WORDS = 200
MOST_NAMES = 10
BESIDE = 0.05  # probability that a figure lies farther from the truth than its stated accuracy


@dataclass(frozen=True)
class Published:
    """A figure with noise.

    Attributes:
        metric: a name of `PUBLISHABLE`, or of `NAMES`.
        value: the count with noise; may be below 0.
        epsilon: what it costs a record of at most `most_words` words, of names any record, as the library accounts for it.
        most_words: N, the sensitivity; of names how many words of a record count.
        accuracy: 95 % of such figures are no farther from the true count.
        at: when, in UTC.
    """

    metric: str
    value: int
    epsilon: float
    most_words: int
    accuracy: float
    at: str

    @property
    def is_capped(self) -> bool:
        """Whether it counts at most N of each record, and is published once."""
        return self.metric in NAMES

    @property
    def unit(self) -> str:
        """What its ε is for, as the ledger names it."""
        return "a record" if self.is_capped else f"a record of at most {self.most_words:,} words"

    @property
    def counts(self) -> str:
        """What it counts."""
        return NAMES[self.metric] if self.is_capped else PUBLISHABLE[self.metric][1]

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
        if name not in PUBLISHABLE and name not in NAMES:
            raise unknown("publish", name, (*PUBLISHABLE, *NAMES))
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
        metric: a name of `PUBLISHABLE`, or of `NAMES`.
        count: the true one; of names S, capped.
        epsilon: for a record of at most `most_words` words, of names for any record.
        most_words: N, 1 or more.
        at: when.

    Raises:
        SettingsError: the library is not installed, or N is no number of words.
    """
    if most_words < 1:
        field = "most_names" if metric in NAMES else "most_words"
        raise SettingsError(f"{field}: {most_words} given; valid: 1 or more.")
    require_extra("audit", "opendp")
    import opendp.prelude as dp

    dp.enable_features("contrib")
    measurement: Any = dp.m.make_laplace(
        dp.atom_domain(T=dp.i64), dp.absolute_distance(T=dp.i64), scale=most_words / epsilon
    )
    value, spent = int(measurement(int(count))), float(measurement.map(most_words))
    accuracy = dp.discrete_laplacian_scale_to_accuracy(scale=most_words / epsilon, alpha=BESIDE)
    return Published(metric, value, spent, most_words, float(accuracy), at)


def published_section(published: Sequence[Published]) -> tuple[str, ...]:
    """Return the heading and the sentences of the disclosure statement about published figures."""
    total, least = (
        sum(one.epsilon for one in published),
        min(published, key=lambda one: (one.is_capped, one.most_words)),
    )
    again = []
    if any(not one.is_capped for one in published):
        again.append("The noise is fresh: publishing a figure again spends its ε again.")
    if any(one.is_capped for one in published):
        again.append("A count of names is published once: asking again shows the same figure.")
    return (
        "What was published with noise",
        *(
            f"About {one.value:,} {one.counts} ({one.metric}), with discrete Laplace noise: within "
            f"{one.accuracy:,.0f} of the true count with a probability of {1 - BESIDE:.0%}. It costs ε = {exact(one.epsilon)} "
            f"for {one.unit} ({_sensitivity(one)})."
            for one in published
        ),
        f"Together ε = {digits_up(total, 6)} for {least.unit}, on top of what the table itself costs it. The ledger counts "
        f"them by themselves, for their unit is a record and not a word. {' '.join(again)} Without --publish, none of it.",
    )


def _sensitivity(one: Published) -> str:
    most = f"{one.most_words:,}"
    if one.is_capped:
        return f"sensitivity {most}: at most {most} words of names of each record count, so that the true count may be larger"
    return f"sensitivity {most}; nothing was clipped: a record of more, n words, pays n/{most} times as much"
