"""The verdict on a run: each requirement of its settings holds, is broken, or was not measured.

A figure that depends on the private text is compared here and not kept: a verdict holds the answer alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dptext_spark.audit.results import Metric
from dptext_spark.config.requirements import Requirement, is_restricted
from dptext_spark.rounding import exact, round_conservatively
from dptext_spark.runtime.validation import Json

Standing = Literal["holds", "broken", "not measured"]
HOLDS: Standing = "holds"
BROKEN: Standing = "broken"
NOT_MEASURED: Standing = "not measured"
UNDECIDED = "not decided"
AUDITED = "audit_"  # before the names of the figures of an audit, in the table of metrics


@dataclass(frozen=True)
class Judged:
    """A requirement with its standing.

    Attributes:
        requirement: as the settings name it.
        standing: holds, broken, or not measured.
        restricted: whether its figure depends on the private text; the standing then reveals one bit.
        shown: the figure, on its cautious side; empty where it may not be shown.
    """

    requirement: str
    standing: Standing
    restricted: bool
    shown: str = ""

    @property
    def loud(self) -> str:
        """The standing, a broken one in capitals."""
        return self.standing.upper() if self.standing == BROKEN else self.standing

    @property
    def measured(self) -> bool:
        """True if it holds or is broken."""
        return self.standing != NOT_MEASURED


@dataclass(frozen=True)
class Verdict:
    """The verdict on all requirements.

    Attributes:
        judged: the requirements, in the order of the settings.
        against: what breaks the run whatever was required: its counts do not agree, its guarantee is refuted.
        unfinished: whether it has not come to its account, so that nothing is decided.
    """

    judged: tuple[Judged, ...] = ()
    against: tuple[str, ...] = ()
    unfinished: bool = False

    @property
    def standing(self) -> str:
        """`broken` where one is, `holds` where all do, else `not decided`; without requirements nothing is."""
        if self.against or self.broken:
            return BROKEN
        if self.unfinished or not self.judged or self.not_measured:
            return UNDECIDED
        return HOLDS

    @property
    def broken(self) -> list[str]:
        """The requirements that are broken."""
        return self._of(BROKEN)

    @property
    def why(self) -> list[str]:
        """All that makes it broken."""
        return [*self.broken, *self.against]

    @property
    def not_measured(self) -> list[str]:
        """Those that nobody has measured yet."""
        return self._of(NOT_MEASURED)

    @property
    def bits(self) -> int:
        """Number of answers that depend on the private text."""
        return sum(entry.restricted and entry.measured for entry in self.judged)

    def _of(self, standing: Standing) -> list[str]:
        return [entry.requirement for entry in self.judged if entry.standing == standing]

    def as_dict(self) -> dict[str, Json]:
        """Return the verdict, JSON-able, without restricted figures."""
        return {
            "standing": self.standing,
            "requirements": [
                {"requirement": entry.requirement, "standing": entry.standing, "restricted": entry.restricted}
                for entry in self.judged
            ],
            "against": list(self.against),
        }


def bound(requirement: Requirement[str], metric: Metric) -> float | None:
    """Return a measurement on the side that is cautious for a limit; None where it has no value."""
    side = metric.upper if requirement.caps else metric.lower
    return metric.value if side is None else side


def judge(requirement: Requirement[str], figures: Iterable[Metric]) -> Standing:
    """Compare the measurements of a figure with its limit: one measurement breaks it, by its cautious bound.

    Args:
        requirement: the limit.
        figures: what was measured of the whole table, under whatever name; one without a value was not measured.
    """
    standing = NOT_MEASURED
    for figure in figures:
        if figure.name != requirement.subject or figure.column is not None or figure.value is None:
            continue
        if (value := bound(requirement, figure)) is not None and not requirement.holds(value):
            return BROKEN
        standing = HOLDS
    return standing


def verdict(
    require: Sequence[Requirement[str]],
    figures: Sequence[Metric],
    *,
    bounded: bool = False,
    against: Sequence[str] = (),
    unfinished: bool = False,
    internal: bool = False,
) -> Verdict:
    """Judge every requirement.

    Args:
        require: of the settings.
        figures: measured figures; a figure may have several measurements.
        bounded: whether a budget bounds ε of a record, which is then known without the text.
        against: see :class:`Verdict`.
        unfinished: likewise.
        internal: whether figures that depend on the private text are shown.
    """
    judged = []
    for limit in require:
        restricted = is_restricted(limit.subject, bounded=bounded)
        measured = [each for each in figures if each.name == limit.subject and each.column is None]
        values = [each.value for each in measured if each.value is not None]
        shown = exact(max(values)) if values and not restricted else ""
        if values and restricted and internal:
            bounds = [value for each in measured if (value := bound(limit, each)) is not None]
            shown = round_conservatively(max(bounds) if limit.caps else min(bounds), 4, up=limit.caps)
        judged.append(Judged(str(limit), judge(limit, figures), restricted, shown))
    return Verdict(tuple(judged), tuple(against), unfinished)


def of_metrics(figures: Mapping[str, float | None], counted: Sequence[str]) -> list[Metric]:
    """Read the restricted metrics of a run: figures of its own, and those of the newest audit of its table.

    Args:
        figures: of the whole run, by their names in the table of metrics.
        counted: names of the run's own figures that are taken.
    """
    own = [Metric(name, figures[name]) for name in counted if name in figures]
    audited = [name.removeprefix(AUDITED) for name in figures if name.startswith(AUDITED)]
    named = {name: figures[AUDITED + name] for name in audited}
    # A bound stands beside its figure: context_success, context_success_lower, context_success_upper.
    bounds = {f"{name}_{side}" for name in named for side in ("lower", "upper")}
    return own + [
        Metric(name, value, named.get(f"{name}_lower"), named.get(f"{name}_upper"))
        for name, value in named.items()
        if name not in bounds
    ]
