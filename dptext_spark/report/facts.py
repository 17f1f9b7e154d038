"""The facts that a report is written from: the account of a run, and what its model says when it is examined.

Figures of the model alone (certificate, deniability, attacks with a public prior) are computed here, from the artifact: they
depend on no private text. What cannot be had is left out, with a sentence that says why.

Results of other audits are read from JSON files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from dptext_spark._version import __version__
from dptext_spark.audit.attacks.bayes import BayesAttack
from dptext_spark.audit.attacks.context import ContextAttack
from dptext_spark.audit.attacks.frequency import FrequencyAttack
from dptext_spark.audit.attacks.inference import AttributeAttack, MaskedInference, MembershipAttack
from dptext_spark.audit.attacks.linkage import Linkage, told_by
from dptext_spark.audit.attacks.linkage_scores import DrawBits
from dptext_spark.audit.results import AuditResult, OtherResult, WordAttack
from dptext_spark.audit.table_audit import KeptWords
from dptext_spark.audit.text_classifier import DownstreamAccuracy
from dptext_spark.audit.text_utility import EncoderSimilarity, TextOverlap, VectorSimilarity
from dptext_spark.config.requirements import Requirement, Verdict
from dptext_spark.config.sections import Approval
from dptext_spark.disclosure.facts import Figures, Metrics, RunRecord
from dptext_spark.disclosure.statement import CLEAR, Statement, bits
from dptext_spark.errors import DataError
from dptext_spark.model.certificate import Certificate, certify
from dptext_spark.model.privatizer import Privatizer, public_example
from dptext_spark.report.audits_section import attacks_on
from dptext_spark.report.deniability_section import Deniability, Model, deniability_of
from dptext_spark.runtime.display import Progress, counted, silent
from dptext_spark.runtime.validation import Json
from dptext_spark.text.tokens import drawn_words


class Example(NamedTuple):
    """A text before and after; it makes a report private."""

    column: str
    before: str
    after: str


@dataclass(frozen=True)
class ReportFacts:
    """The facts that a report is written from.

    Attributes:
        run: its row.
        statement: of the run, with what was required since.
        outside: the same without figures of the private text.
        certificate: that the run kept, or that was made now; None, as the next, where the model cannot be had.
        worst_pair: the words that lose most.
        model_missing: why the model cannot be had.
        deniability: figures of the model alone.
        attacks: on the model, and those among the results of other audits; `attacks_missing` says what is left out, and why.
        utility: results of other audits; `utility_missing` likewise.
        metrics: of the whole run, by name; None in a report that may be shared.
        metrics_by_column: the same of each text column.
        examples: for a report that holds private text.
        verdict: the standing of the settings' requirements.
        approval: what the settings say of purpose and people.
        example: a public text, and the result of one draw under a fresh key; None without an example.
        told: information of a draw, by its law; None where there is no model, or no law.
    """

    run: RunRecord
    statement: Statement
    outside: Statement
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
    told: DrawBits | None = None

    @property
    def internal(self) -> bool:
        """True if it holds figures that depend on the private text."""
        return self.metrics is not None

    @property
    def word_attacks(self) -> list[WordAttack]:
        """The attacks on words, the strongest first."""
        attacks = [attack for attack in self.attacks if isinstance(attack, WordAttack)]
        return sorted(attacks, key=lambda attack: attack.at_most, reverse=True)

    @property
    def target(self) -> str:
        """The table that was written, with its version."""
        version = self.run.output_version
        return f"{self.run.output}{'' if version is None else f', version {version}'}"

    def as_dict(self) -> dict[str, Json]:
        """Return everything, JSON-able."""
        return {
            **vars(self),
            "version": __version__,
            "run": self.run.opened(),
            "internal": self.internal,
            "statement": self.statement.as_dict(),
            "outside": self.outside.as_dict(),
            "certificate": None if self.certificate is None else self.certificate.as_dict(),
            "worst_pair": None if self.worst_pair is None else list(self.worst_pair),
            "deniability": self.deniability.as_dict(),
            "attacks": [attack.as_dict() for attack in self.attacks],
            "utility": [result.as_dict() for result in self.utility],
            "examples": [example._asdict() for example in self.examples],
            "verdict": self.verdict.as_dict(),
            "approval": self.approval.model_dump(mode="json"),
            "example": None if self.example is None else list(self.example),
            "told": None if self.told is None else self.told.as_dict(),
        }


_NO_UTILITY = (
    "What the text is still good for depends on the text and on its use, and was not measured in this run; results of audits "
    "can be added by --figures."
)


def gathered(
    run: RunRecord,
    *,
    model: Model | str,
    metrics: Metrics | None = None,
    examples: Sequence[Example] = (),
    results: Sequence[AuditResult] = (),
    public: Sequence[str] = (),
    verdict: Verdict | None = None,
    approval: Approval | None = None,
    require: Sequence[Requirement[str]] = (),
    progress: Progress | None = None,
) -> ReportFacts:
    """Gather the facts.

    `model` may be why it cannot be had. `public` are lines of a public text, for the attacks that need one. `metrics` and
    `examples` make a report private.
    """
    say = progress or silent
    certificate = run.certified
    attacks: Sequence[AuditResult] = ()
    pair = example = told = None
    if isinstance(model, str):
        missing = unattacked = model
        deniable = Deniability(why_missing=missing)
    else:
        privatizer, missing = model.privatizer, ""
        if certificate is None:
            certificate = certify(privatizer, progress=counted("certifying", say))
        pair = _worst_pair(certificate, privatizer)
        attacks, unattacked = attacks_on(privatizer, public, say)
        deniable = deniability_of(run.promised.epsilon, model, say)
        example, told = public_example(privatizer), told_by(privatizer)
    whole = None if metrics is None else metrics.get(None, {})
    shown = [result for result in results if not result.restricted or metrics is not None]
    left_out = len(results) - len(shown)
    text = f"Results that depend on the private text were left out (they are on the restricted page): {left_out}."
    withheld = text if left_out else ""
    return ReportFacts(
        run=run,
        statement=_statement(run, whole, require),
        outside=_statement(run, None, require),
        certificate=certificate,
        worst_pair=pair,
        model_missing=missing,
        deniability=deniable,
        attacks=[*attacks, *(result for result in shown if result.is_attack)],
        attacks_missing=f"{unattacked} {withheld}".strip(),
        utility=[result for result in shown if not result.is_attack],
        utility_missing=f"{_NO_UTILITY} {withheld}".strip(),
        metrics=whole,
        metrics_by_column={column: named for column, named in (metrics or {}).items() if column is not None},
        examples=examples,
        verdict=verdict or Verdict(),
        approval=approval or Approval(),
        example=example,
        told=told,
    )


def _worst_pair(certificate: Certificate, privatizer: Privatizer) -> tuple[str, ...] | None:
    """Return the drawn words that lose most; None where the certificate names none."""
    worst = None if certificate.loss is None else certificate.loss.worst
    # What the policy keeps is never drawn, and so loses nothing.
    drawn = drawn_words(privatizer.engine)
    if worst is None or not all(drawn[int(word)] for word in worst):
        return None
    words = privatizer.vocabulary.strings()
    return tuple(words[int(word)].as_py() for word in worst)


def _statement(run: RunRecord, metrics: Figures | None, require: Sequence[Requirement[str]]) -> Statement:
    """Return the run's statement, with the requirements added since, and on a restricted page the measured ε."""
    statement = run.statement
    for sentence in bits(require, bounded=run.settings.budget is not None):
        if statement.sections and sentence not in statement.under(CLEAR):
            statement = statement.extended(CLEAR, sentence)
    composed = {name: (metrics or {}).get(f"record_epsilon_{name}") for name in ("mean", "p95", "max")}
    known = {name: value for name, value in composed.items() if value is not None}
    if len(known) == len(composed):
        bound = {name: (metrics or {}).get(f"record_bound_{name}") for name in ("p50", "max", "delta")}
        stated = {name: value for name, value in bound.items() if value is not None}
        statement = statement.with_composed(known, stated if len(stated) == len(bound) else None)
    return statement


# What every result says of itself.
SAID = {"name": str, "measures": str, "restricted": bool, "exact": bool}
KINDS: dict[str, type[AuditResult]] = {
    kind.name: kind
    for kind in (
        AttributeAttack, BayesAttack, ContextAttack, DownstreamAccuracy, EncoderSimilarity, FrequencyAttack,
        KeptWords, Linkage, MaskedInference, MembershipAttack, TextOverlap, VectorSimilarity,
    )
}  # fmt: skip
STATEMENTS = ("md", "html", "json")


def read_results(files: Iterable[Path]) -> list[AuditResult]:
    """Read results: dictionaries that audits return, single or as a list in a file, or the output of `dptext audit --json`.

    Results of the last kind carry `audit`, the id of the audited run, and `table`.

    Raises:
        DataError: a file cannot be read, or holds something else.
    """
    return [result for file in files for result in _read(file)]


def result_of(values: Mapping[str, JsonValue]) -> AuditResult:
    """Return a result from JSON: of its kind where it has the fields of that, else as an attack on words, or as it is."""
    for kind in (KINDS.get(str(values["name"]), WordAttack), WordAttack, OtherResult):
        try:
            return kind.from_dict(values)
        except ValueError:
            continue
    raise DataError(
        f"figures: a field of {values['name']!r} is of another type; valid: what an audit returns as JSON."
    )


def _read(file: Path) -> Iterator[AuditResult]:
    try:
        content: JsonValue = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"figures: {str(file)!r} cannot be read as JSON ({type(error).__name__}).") from None
    audit: dict[str, JsonValue] = {}
    if isinstance(content, dict) and "audit_id" in content:
        if not isinstance(content.get("results"), list):
            raise DataError(
                f"figures: {str(file)!r} is an audit without results; valid: what dptext audit --json prints now."
            )
        audit, content = {"audit": content["audit_id"], "table": content.get("table")}, content["results"]
    for entry in content if isinstance(content, list) else [content]:
        values = entry if isinstance(entry, dict) else {}
        lacks = [name for name, kind in SAID.items() if not isinstance(values.get(name), kind)]
        if lacks:
            raise DataError(
                f"figures: a result in {str(file)!r} lacks {', '.join(lacks)}; valid: what an audit returns as JSON."
            )
        yield result_of({**values, **audit})


def require_run(results: Iterable[AuditResult], run_id: str) -> None:
    """Refuse audits of tables that another run wrote.

    Raises:
        DataError: naming that run, or the table where none is known.
    """
    for result in results:
        if result.audit not in (None, run_id):
            raise DataError(
                f"figures: {result.audit!r} is the audit of {result.table!r}, and not of a table that run {run_id} wrote; valid: "
                "an audit of the run's own table."
            )


def rendered(statement: Statement, form: str) -> str:
    """Return a statement as `md`, `html` or `json`."""
    if form == "json":
        return json.dumps(statement.as_dict(), indent=2, ensure_ascii=False)
    return statement.html() if form == "html" else statement.markdown().rstrip()
