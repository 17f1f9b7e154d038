"""The demo's sample of support tickets."""

from __future__ import annotations

import pyarrow as pa


def tickets(rows: int, seed: int) -> pa.Table:
    """Make a table of support tickets, by the grammar in tools/."""
    from tools.tickets import tickets as make

    table: pa.Table = make(rows, seed)
    return table
