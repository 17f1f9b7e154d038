"""Results of audits that were written to files as JSON, to be shown in a report.

The disclosure statement of a run can be asked for alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue

from dptext_spark.audit.attacks.bayes import BayesAttack
from dptext_spark.audit.attacks.context import ContextAttack
from dptext_spark.audit.attacks.frequency import FrequencyAttack
from dptext_spark.audit.attacks.inference import AttributeAttack, MaskedInference, MembershipAttack
from dptext_spark.audit.attacks.linkage import Linkage
from dptext_spark.audit.results import AuditResult, OtherResult, WordAttack
from dptext_spark.audit.table_audit import KeptWords
from dptext_spark.audit.text_classifier import DownstreamAccuracy
from dptext_spark.audit.text_utility import EncoderSimilarity, TextOverlap, VectorSimilarity
from dptext_spark.disclosure.statement import Statement
from dptext_spark.errors import DataError

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
    """Read results: what audits return as dictionaries, one or a list of them in a file, or what `dptext audit --json` prints.

    Results of the last kind carry `audit`, the id of the audited run, and `table`.

    Raises:
        DataError: a file cannot be read, or holds something else.
    """
    return [one for file in files for one in _read(file)]


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
        found: JsonValue = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"figures: {str(file)!r} cannot be read as JSON ({type(error).__name__}).") from None
    audit: dict[str, JsonValue] = {}
    if isinstance(found, dict) and "audit_id" in found:
        if not isinstance(found.get("results"), list):
            raise DataError(
                f"figures: {str(file)!r} is an audit without results; valid: what dptext audit --json prints now."
            )
        audit, found = {"audit": found["audit_id"], "table": found.get("table")}, found["results"]
    for one in found if isinstance(found, list) else [found]:
        values = one if isinstance(one, dict) else {}
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
    for one in results:
        if one.audit not in (None, run_id):
            raise DataError(
                f"figures: {one.audit!r} is the audit of {one.table!r}, and not of a table that run {run_id} wrote; valid: "
                "an audit of the run's own table."
            )


def rendered(statement: Statement, form: str) -> str:
    """Return a statement as `md`, `html` or `json`."""
    if form == "json":
        return json.dumps(statement.as_dict(), indent=2, ensure_ascii=False)
    return statement.html() if form == "html" else statement.markdown().rstrip()
