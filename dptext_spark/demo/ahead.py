"""What the demo needs beside Spark, made in a process of its own while Spark starts.

First the model of the demo's run, and the machine code of the loops that its workers call: on this machine they find both in the
user's cache. Then one ticket by each of the files of settings, which asks for a model more each. Nothing of it depends on Spark.
"""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO

import pyarrow as pa

from dptext_spark.demo.tickets import RECORD, ROW, TEXTS, Released, demo_config, side_by_side, tickets
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.paths import python_path
from dptext_spark.runtime.progress import Progress

_COMMAND = "from dptext_spark.demo.ahead import main; main()"
_TRIED = 64  # tickets that a process draws so that it calls every loop
_READY = "ready"


@dataclass
class Ahead:
    """The process, as the demo sees it.

    Attributes:
        child: the process; None where none could be started.
        text: the text that it was told to release.
        printed: what it writes to standard error.
    """

    child: subprocess.Popen[str] | None = None
    text: str = ""
    printed: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    def wait_for_loops(self, say: Progress) -> None:
        """Wait until the process has made the model and the loops of the run, or has ended; workers compile what is missing.

        Args:
            say: progress callback, called where the first demo of a machine has to wait.
        """
        if self.child is not None and self.child.stdout is not None:
            if not select.select([self.child.stdout], [], [], 0)[0]:
                say("waiting for the loops, which are being compiled (the first time only)", None)
            self.child.stdout.readline()

    def release(self, text: str) -> None:
        """Let the process release a text by each of the files of settings.

        Args:
            text: public, such as one of a sample.
        """
        self.text = text
        if self.child is not None and self.child.stdin is not None:
            with suppress(BrokenPipeError):  # it has ended, and is told of when its answer is wanted
                self.child.stdin.write(json.dumps(text) + "\n")
                self.child.stdin.flush()

    def released(self, say: Progress) -> list[Released]:
        """Return the text by each of the files of settings: from the process, or made here where it failed.

        Args:
            say: progress callback, called with each step.

        Raises:
            DataError: conf/ is not installed with the package.
        """
        answer = self._answer(say)
        return side_by_side(self.text, RunKey.generate(), say) if answer is None else answer

    def _answer(self, say: Progress) -> list[Released] | None:
        """Return what the process made of the text; None where it failed."""
        if self.child is None or self.child.stdout is None:
            return None
        say("releasing a ticket by the files of settings", None)
        line = self.child.stdout.readline()
        if self.child.wait() or not line:
            self.printed.seek(0)
            said = self.printed.read().decode("utf-8", "replace").strip().splitlines()
            say(f"doing it here, since a process failed: {(said or ['it said nothing'])[-1]}", None)
            return None
        return [Released(*one) for one in json.loads(line)]


@contextmanager
def ahead() -> Iterator[Ahead]:
    """Start the process; it ends with the block, whatever it is at."""
    running = Ahead()
    with running.printed:
        try:
            running.child = subprocess.Popen(
                [sys.executable, "-c", _COMMAND],
                env=os.environ | {"PYTHONPATH": python_path(), "PYTHONIOENCODING": "utf-8"},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=running.printed, text=True, encoding="utf-8",
            )  # fmt: skip
        except OSError:  # no process can be had: everything is done here
            running.child = None
        try:
            yield running
        finally:
            if running.child is not None:
                running.child.kill()
                running.child.communicate()


def call_loops(privatizer: Privatizer, rows: int = _TRIED) -> None:
    """Draw a few tickets as the workers of the demo's run do, so that the loops that they call are compiled, and cached.

    Args:
        privatizer: the model of the run.
        rows: tickets.
    """
    table = tickets(rows).select([*TEXTS, ROW, RECORD])
    for kind in (pa.string(), pa.binary()):
        columns = [table.column(name).cast(kind) for name in TEXTS]
        batch = _as_sent(
            pa.table([*columns, table.column(ROW), table.column(RECORD)], names=table.column_names)
        )
        for name in TEXTS:
            privatizer.privatize(
                batch.column(name), column=name, row_ids=batch.column(ROW), record_ids=batch.column(RECORD),
                key=RunKey.insecure(0), run_id="demo",
            )  # fmt: skip


def _as_sent(table: pa.Table) -> pa.RecordBatch:
    """Return rows as a worker has them from Spark: in memory that may not be written, which is another type to loops."""
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    return next(iter(pa.ipc.open_stream(io.BytesIO(buffer.getvalue()))))


def main() -> None:
    """Make what the demo needs; standard input has the text that is released, as JSON. For a process of its own."""
    privatizer, _ = prepare(demo_config("/tickets", "/sanitized"))
    privatizer.warm_up()
    call_loops(privatizer)
    _tell(_READY)
    text = sys.stdin.readline()
    if text:
        _tell(json.dumps(side_by_side(json.loads(text), RunKey.generate())))


def _tell(line: str) -> None:
    """Write a line to the demo."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
