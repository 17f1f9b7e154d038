"""What a ledger says to a person: a block for each input, a line for each column."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dptext_spark.ledger.balance import UNDERSTATED, Balance
from dptext_spark.ledger.sums import left_of
from dptext_spark.report.terminal.console import WIDTH, hanging
from dptext_spark.rounding import exact


def spent_text(balances: Sequence[Balance], columns: int = WIDTH) -> str:
    """Write what was spent on each input, in lines of so many columns."""
    if not balances:
        return "The ledger is empty."
    return "\n".join(line for balance in balances for line in _lines(balance, columns)).rstrip()


def _lines(balance: Balance, columns: int) -> Iterator[str]:
    yield f"{balance.input}, since {balance.since:%Y-%m-%d}"
    wide = max((len(spent.column) for spent in balance.columns), default=0)
    for spent in balance.columns:
        yield hanging(f"  {spent.column:<{wide}}  ", str(spent), columns)
        if balance.limit is not None:
            said = "no ε stands for it" if math.isinf(spent.total) else f"spent ε = {exact(spent.total)}"
            left = exact(left_of(balance.limit, spent.total))
            yield hanging(
                f"  {'':<{wide}}  ", f"limit ε = {exact(balance.limit)}, {said}, left ε = {left}", columns
            )
    record = balance.record
    if record is not None and (record.times or record.without):
        yield hanging("  ", f"one record, all its drawn words: {record}.", columns)
    if balance.limit is None:
        yield hanging("  ", "no limit is kept", columns)
    if any(figure.understated for one in balance.columns for figure in one.figures):
        yield hanging("  ", UNDERSTATED, columns)
    if balance.unfinished:
        yield hanging("  ", f"counted with them: {balance.unfinished:,} that did not finish", columns)
    for said in (*balance.said, *balance.overrides):
        yield hanging("  ", said, columns)
    yield ""
