"""The check of a cluster for spark-submit: `spark-submit jobs/doctor.py [SETTINGS.yaml] [--json]`.

The same as `dptext doctor`, with the same options and exit codes: 4 where a check fails.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dptext_spark.cli.app import main as dptext


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks; return the exit code."""
    return dptext(["doctor", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
