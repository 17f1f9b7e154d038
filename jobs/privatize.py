"""The whole job for spark-submit: `spark-submit jobs/privatize.py SETTINGS.yaml [--set A.B=VALUE]...`.

The same as `dptext run`, with the same options and exit codes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dptext_spark.cli.app import main as dptext


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; return its exit code."""
    return dptext(["run", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
