"""The findings of `dptext doctor` for a person: a table, and one line that says how it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dptext_spark.doctor import CheckResult

if TYPE_CHECKING:
    from rich.table import Table

_STYLE = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def table_of(findings: Sequence[CheckResult]) -> Table:
    """Return the findings as a table: what was checked, how it stands, what was seen, and what to do."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what was seen, and what to do", overflow="fold")
    for found in findings:
        seen = Text(found.message)
        if found.hint:
            seen.append("\n→ ").append(found.hint, style="bold")
        table.add_row(Text(found.check), Text(found.status, style=_STYLE[found.status]), seen)
    return table


def verdict(findings: Sequence[CheckResult], seconds: float) -> str:
    """Return one line: whether a run will work."""
    counts = {status: sum(found.status == status for found in findings) for status in _STYLE}
    said = {
        "fail": "A run would not work here as it is: do what the failed checks say.",
        "warn": "A run works here; the warnings say what would make it better.",
        "ok": "All is well.",
    }[next(status for status in ("fail", "warn", "ok") if counts[status] or status == "ok")]
    told = ", ".join(f"{counts[status]} {status}" for status in _STYLE if counts[status])
    return f"{told} in {seconds:.0f} s. {said}"
