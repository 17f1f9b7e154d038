"""What a report is written from, as a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dptext_spark._version import __version__
from dptext_spark.audit.results import AuditResult
from dptext_spark.audit.verdict import Verdict
from dptext_spark.config.sections import Approval
from dptext_spark.disclosure.facts import Figures, RunRecord
from dptext_spark.disclosure.statement import Statement
from dptext_spark.model.certificate import Certificate
from dptext_spark.report.sections.model_figures import Deniability
from dptext_spark.runtime.record import Json


class Example(NamedTuple):
    """A text before and after, which makes a report private."""

    column: str
    before: str
    after: str


@dataclass(frozen=True)
class ReportFacts:
    """What a report is written from.

    Attributes:
        run: its row.
        statement: of the run, with what was required since.
        certificate: that the run kept, or that was made now; None, as the next, where the model cannot be had.
        worst_pair: the words that lose most.
        model_missing: why the model cannot be had.
        deniability: figures of the model alone.
        attacks: on the model, and those among the results of other audits; `attacks_missing` says what is left out, and why.
        utility: results of other audits; `utility_missing` likewise.
        metrics: of the whole run, by name; None in a report that may be shared.
        metrics_by_column: the same of each text column.
        examples: for a report that holds private text.
        verdict: how the requirements of the settings stand.
        approval: what the settings say of purpose and people.
        example: a public text, and what one draw under a fresh key made of it; None where there is none.
    """

    run: RunRecord
    statement: Statement
    certificate: Certificate | None
    worst_pair: tuple[str, ...] | None
    model_missing: str
    deniability: Deniability
    attacks: Sequence[AuditResult]
    attacks_missing: str
    utility: Sequence[AuditResult]
    utility_missing: str
    metrics: Figures | None
    metrics_by_column: Mapping[str, Figures]
    examples: Sequence[Example]
    verdict: Verdict = field(default_factory=Verdict)
    approval: Approval = field(default_factory=Approval)
    example: tuple[str, str] | None = None

    @property
    def internal(self) -> bool:
        """Whether it holds figures that depend on the private text."""
        return self.metrics is not None

    def as_dict(self) -> dict[str, Json]:
        """Return everything, JSON-able."""
        return {
            **vars(self),
            "version": __version__,
            "run": self.run.opened(),
            "internal": self.internal,
            "statement": self.statement.as_dict(),
            "certificate": None if self.certificate is None else self.certificate.as_dict(),
            "worst_pair": None if self.worst_pair is None else list(self.worst_pair),
            "deniability": self.deniability.as_dict(),
            "attacks": [one.as_dict() for one in self.attacks],
            "utility": [one.as_dict() for one in self.utility],
            "examples": [one._asdict() for one in self.examples],
            "verdict": self.verdict.as_dict(),
            "approval": self.approval.model_dump(mode="json"),
            "example": None if self.example is None else list(self.example),
        }
