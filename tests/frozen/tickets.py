"""Support tickets that stay as they are: what was frozen was drawn from them, and the package's sample changes.

Nothing makes them anew.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent


def kept_tickets(name: str) -> pa.Table:
    """Return the tickets for `models` or for the `run`."""
    return pq.read_table(HERE / f"tickets_{name}.parquet")
