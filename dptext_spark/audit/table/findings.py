"""What an audit of a written table found: part by part while it runs, and as a whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.results import AuditResult
from dptext_spark.audit.table.metrics import NAMED, described, holds
from dptext_spark.audit.verdict import HOLDS, Verdict, verdict
from dptext_spark.config.requirements import Requirement
from dptext_spark.runtime.display import cut, line
from dptext_spark.runtime.validation import Json


@dataclass(frozen=True)
class Findings:
    """What a part of an audit found.

    Attributes:
        figures: of the whole table.
        results: the same in full, as a report shows them.
        left_out: what was not measured, and why.
    """

    figures: list[Metric] = field(default_factory=list)
    results: list[AuditResult] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def __add__(self, other: Findings) -> Findings:
        """Put two parts together."""
        return Findings(
            [*self.figures, *other.figures],
            [*self.results, *other.results],
            [*self.left_out, *other.left_out],
        )


@dataclass(frozen=True)
class StayedWord:
    """A word that stands in a table as it did in the source, and how often."""

    word: str
    times: int


@dataclass(frozen=True)
class TableAudit:
    """What an audit of a table found.

    Attributes:
        audit_id: under which the metrics stand: the run that wrote the table, or a new one.
        table: that was audited; and the `version` of it.
        source: that it was compared with; and the `source_version`.
        metrics: the table of metrics.
        figures: of the whole table, then of each column.
        results: what the figures are of, in full, as `dptext report --figures` shows it.
        limits: what was required.
        left_out: what was not measured, and why.
        seconds: wall time.
        restricted: the figures depend on the private text.
        internal: whether what is shown may hold figures of names, see `NAMED`.
        stayed: words of names that stayed most, with how often each did: private text;
            None where nobody asked for them.
        required: what the settings of the run require; such a figure may not have been measured.
        has_account: whether a run of ours wrote the table, so that its metrics keep each answered question.

    Examples:
        >>> found.broken
        []
        >>> sorted(found.as_dict()["figures"][0])
        ['column', 'lower', 'meaning', 'name', 'upper', 'value']
    """

    audit_id: str
    table: str
    version: str
    source: str
    source_version: str
    metrics: str
    figures: tuple[Metric, ...]
    results: tuple[AuditResult, ...]
    limits: tuple[Requirement[str], ...]
    left_out: tuple[str, ...]
    seconds: float
    restricted: bool = True
    internal: bool = False
    stayed: tuple[StayedWord, ...] | None = None
    required: tuple[Requirement[str], ...] = ()
    has_account: bool = True

    def __repr__(self) -> str:
        """Return what was audited; the figures depend on the private text."""
        return line("TableAudit", cut(repr(self.audit_id), 80), f"{len(self.figures):,} figures, not shown")

    @property
    def requirements(self) -> list[tuple[str, bool]]:
        """What was required, and whether it holds."""
        return [(str(limit), holds(limit, self.figures)) for limit in self.limits]

    @property
    def answers(self) -> dict[str, bool]:
        """Whether each requirement holds that was measured: an exact answer on a figure of the private text, each time."""
        judged = {
            one.requirement: one.standing == HOLDS
            for one in self.verdict.judged
            if one.restricted and one.measured
        }
        return {**judged, **dict(self.requirements)}

    @property
    def broken(self) -> list[str]:
        """The requirements that do not hold; of those of the settings, what was not measured is not among them."""
        return [*(one for one, held in self.requirements if not held), *self.verdict.broken]

    @property
    def verdict(self) -> Verdict:
        """How the requirements of the settings stand by this audit."""
        return verdict(self.required, self.figures)

    @property
    def shown(self) -> tuple[Metric, ...]:
        """The figures that may be shown: without `internal` none of names."""
        return tuple(one for one in self.figures if self.internal or one.name not in NAMED)

    @property
    def withheld(self) -> list[str]:
        """The names of the figures that are not shown."""
        shown = {one.name for one in self.shown}
        return list(dict.fromkeys(one.name for one in self.figures if one.name not in shown))

    @property
    def released(self) -> list[str]:
        """The requirements on figures that are not shown: whether each holds tells something of the private text."""
        withheld = self.withheld
        judged = (*self.limits, *self.required)
        return list(dict.fromkeys(str(limit) for limit in judged if limit.subject in withheld))

    def _shown_results(self) -> list[AuditResult]:
        """Return the results without what is said of names, where that may not be shown."""
        if self.internal:
            return list(self.results)
        return [shown for one in self.results if (shown := one.without_names()) is not None]

    def as_dict(self) -> dict[str, Json]:
        """Return what may be shown, JSON-able: without `internal` no figure of names."""
        return {
            **{
                name: getattr(self, name)
                for name in ("audit_id", "table", "version", "source", "source_version")
            },
            **{name: getattr(self, name) for name in ("metrics", "seconds", "restricted")},
            "figures": [described(figure) for figure in self.shown],
            "results": [one.as_dict() for one in self._shown_results()],
            "requirements": [{"requirement": one, "holds": held} for one, held in self.requirements],
            "left_out": list(self.left_out),
            **({"verdict": self.verdict.as_dict()} if self.required else {}),
            **({"withheld": list(self.withheld), "released": list(self.released)} if self.withheld else {}),
            **({} if self.stayed is None else {"stayed": [asdict(word) for word in self.stayed]}),
        }
