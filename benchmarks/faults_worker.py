"""A run in a process of its own: `python faults_worker.py SETTINGS.json [SIGNAL POINT]`.

It prints the process id of its JVM, then `point` lines as it passes the points of `dptext_spark.spark.job.effects`, and ends as
`dptext run` does. With SIGNAL (a number) and POINT, it sends itself the signal while the effect behind that point is under way.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dptext_spark.cli.app import ended
from dptext_spark.config.keys import taken
from dptext_spark.config.load import parse_config
from dptext_spark.spark.job import job
from dptext_spark.spark.job.prepare import prepare_run
from dptext_spark.spark.session.session import spark_session
from dptext_spark.spark.streaming.stream import stream

DELAY = 0.15  # seconds from the point to the signal


def main(given: dict[str, Any], at: Callable[[str], None]) -> int:
    """Run the job of some settings in a session of some settings, told of each point."""
    config = parse_config(given["run"])
    plain = {"spark.sql.shuffle.partitions": 1, "spark.ui.enabled": "false"}
    session = spark_session(master="local[1]", settings={**plain, **given["session"]})
    say(f"jvm {session.sparkContext._gateway.proc.pid}")

    def command() -> int:
        key = taken(config.key)
        if config.is_stream:
            status = job.RunResult(stream(session, config, key, _quiet, at)).status
        else:
            status = job.run_once(
                lambda: prepare_run(session, config, key, _quiet), config, _quiet, at
            ).status
        say(f"status {status}")
        return 0

    return ended(command)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def signalling(number: int, point: str) -> Callable[[str], None]:
    """Return an observer that prints each point, and sends this process a signal soon after one of them."""

    def at(passed: str) -> None:
        say(f"point {passed}")
        if passed == point:
            threading.Timer(DELAY, os.kill, (os.getpid(), number)).start()

    return at


def _quiet(step: str) -> None:
    """Say nothing of the steps."""


if __name__ == "__main__":
    chosen = (int(sys.argv[2]), sys.argv[3]) if len(sys.argv) > 3 else (0, "")
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text()), signalling(*chosen)))
