"""The audit of a written table for spark-submit: `spark-submit jobs/audit.py FILE [options]`, or `TABLE --against SOURCE`.

The same as `dptext audit`, with the same options and exit codes: 7 where a requirement is broken.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dptext_spark.cli.app import main as dptext


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the audit; return its exit code."""
    return dptext(["audit", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
