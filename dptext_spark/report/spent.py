"""What a ledger says to a person: a block for each input, a line for each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dptext_spark.budget.balance import Balance
from dptext_spark.report.console import WIDTH, hanging


def spent_text(balances: Sequence[Balance], columns: int = WIDTH) -> str:
    """Write what was spent on each input, in lines of so many columns."""
    if not balances:
        return "The ledger is empty."
    return "\n".join(line for balance in balances for line in _lines(balance, columns)).rstrip()


def _lines(balance: Balance, columns: int) -> Iterator[str]:
    yield f"{balance.input}, since {balance.since:%Y-%m-%d}"
    wide = max(len(spent.column) for spent in balance.columns)
    for spent in balance.columns:
        yield hanging(f"  {spent.column:<{wide}}  ", str(spent), columns)
    if balance.unfinished:
        yield hanging("  ", f"counted with them: {balance.unfinished:,} that did not finish", columns)
    for passed in balance.overrides:
        yield hanging("  ", passed, columns)
    yield ""
