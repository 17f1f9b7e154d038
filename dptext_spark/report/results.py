"""Results of audits that were written to files as JSON, to be shown in a report.

The disclosure statement of a run can be asked for alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dptext_spark.disclosure.statement import Statement
from dptext_spark.errors import DataError

# What every result says of itself; an attack has `success`, too.
SAID = {"name": str, "measures": str, "restricted": bool, "exact": bool}


def read_results(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Read results: what audits return as dictionaries, one or a list of them in a file, or what `dptext audit --json` prints.

    Results of the last kind carry `audit`, the id of the audited run, and `table`.

    Raises:
        DataError: a file cannot be read, or holds something else.
    """
    return [one for file in files for one in _read(file)]


def _read(file: Path) -> Iterator[dict[str, Any]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"figures: {str(file)!r} cannot be read as JSON ({type(error).__name__}).") from None
    audit: dict[str, Any] = {}
    if isinstance(found, Mapping) and "audit_id" in found:
        if not isinstance(found.get("results"), list):
            raise DataError(
                f"figures: {str(file)!r} is an audit without results; valid: what dptext audit --json prints now."
            )
        audit, found = {"audit": found["audit_id"], "table": found.get("table")}, found["results"]
    for one in found if isinstance(found, list) else [found]:
        lacks = [
            name
            for name, kind in SAID.items()
            if not isinstance(one, Mapping) or not isinstance(one.get(name), kind)
        ]
        if lacks:
            raise DataError(
                f"figures: a result in {str(file)!r} lacks {', '.join(lacks)}; valid: what an audit returns as JSON."
            )
        yield {**one, **audit}


def require_run(results: Iterable[Mapping[str, Any]], run_id: str) -> None:
    """Refuse audits of tables that another run wrote.

    Raises:
        DataError: naming that run, or the table where none is known.
    """
    for one in results:
        if one.get("audit", run_id) != run_id:
            raise DataError(
                f"figures: {one['audit']!r} is the audit of {one['table']!r}, and not of a table that run {run_id} wrote; valid: "
                "an audit of the run's own table."
            )


def is_attack(result: Mapping[str, Any]) -> bool:
    """Whether a result says what an adversary finds, and not what the text is good for."""
    return "success" in result or "knows" in result


STATEMENTS = ("md", "html", "json")


def rendered(statement: Mapping[str, Any], form: str) -> str:
    """Return a statement, as :meth:`Statement.as_dict` wrote it, as `md`, `html` or `json`."""
    if form == "json":
        return json.dumps(dict(statement), indent=2, ensure_ascii=False)
    found = Statement.of(statement)
    return found.html() if form == "html" else found.markdown().rstrip()
