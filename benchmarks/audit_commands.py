"""`dptext audit` and `dptext ledger`, whole commands beside the sum of what they cannot do without, measured apart.

The sum is Spark's start, one scan of each table in that session, and the attacks where the audit makes them:
`python -m benchmarks.audit_commands run|apart FOLDER` makes what is measured, and measures the parts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Figure, Goal, Spread, quotient, seconds_of
from benchmarks.sizes import Sizes
from benchmarks.sources import CHECKOUT, packaged, sst2, texts

ROWS = 5_690
GOALS = (Goal(2.0, 2.0, "ratio"),)
SETTINGS = """
input: {{path: {folder}/source, format: parquet}}
columns: [body]
row_key: id
record_key: customer
consistency: record
mechanism: {{name: custext, epsilon: 2.3, k: 20, calibration: exact, remap: bayes}}
policy: {{identifiers: {{date: mask}}, names: {{lists: true, person: pseudonym, location: pseudonym}}}}
output: {{path: {folder}/table}}
ledger: {{path: {folder}/ledger, limit: 13.3}}
"""


def figures(sizes: Sizes, say: Callable[[str], None]) -> list[Figure]:
    """Measure both commands in turn with their parts, each in a process of its own."""
    rows = min(ROWS, sizes.spark_rows)
    audits, ledgers, sums, ledger_sums = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
        folder = Path(work)
        say(f"audits: a run of {rows:,} short texts")
        write_source(folder, rows)
        ours("run", folder)
        place = [
            str(folder / "table"),
            "--against",
            str(folder / "source"),
            "--config",
            str(folder / "run.yaml"),
        ]
        for number in range(1 + sizes.long_rounds // 2):  # the first round warms the files up
            say(f"audits: whole commands, {number} of {sizes.long_rounds // 2} rounds done")
            apart = ours("apart", folder)
            took = [seconds_of(lambda: command("audit", *place, "--json"))]
            took.append(seconds_of(lambda: command("ledger", str(folder / "ledger"), "--json")))
            if number:
                audits.append(took[0])
                ledgers.append(took[1])
                sums.append(sum(apart[name] for name in ("start", "table", "source", "attacks")))
                ledger_sums.append(apart["start"] + apart["ledger"])
    shown = (
        (
            f"dptext audit, {rows:,} short texts",
            audits,
            sums,
            "Spark's start, a scan of each table, the attacks",
        ),
        ("dptext ledger", ledgers, ledger_sums, "Spark's start, a scan of a table"),
    )
    return [
        Figure(
            name, "s", Spread(tuple(took)), parts, Spread(tuple(apart)), quotient(Spread(tuple(took)), Spread(tuple(apart))),
            "x its time", GOALS, note="whole commands on warm caches, beside their parts in a process of their own",
        )
        for name, took, apart, parts in shown
    ]  # fmt: skip


def write_source(folder: Path, rows: int) -> None:
    """Write a table of short texts, two rows a record, and settings of a run over it."""
    found, _ = sst2()
    body = texts(packaged(), rows, 17) if found is None else found.slice(0, rows)
    number = range(len(body))
    table = pa.table({"id": list(number), "customer": [one // 2 for one in number], "body": body})
    (folder / "source").mkdir()
    pq.write_table(table, folder / "source" / "part.parquet")
    (folder / "run.yaml").write_text(SETTINGS.format(folder=folder), encoding="utf-8")


def ours(what: str, folder: Path) -> dict[str, float]:
    """Do something in a process of its own, and return what it measured."""
    done = _process("benchmarks.audit_commands", what, str(folder))
    found: dict[str, float] = json.loads(done.splitlines()[-1])
    return found


def command(*given: str) -> None:
    """Run a command of the package in a process of its own."""
    _process("dptext_spark.cli.app", *given)


def _process(module: str, *given: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *given], cwd=CHECKOUT, env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def apart(folder: Path) -> dict[str, float]:
    """Measure the parts in the order in which a command meets them: a later scan finds Spark warm."""
    from dptext_spark.audit.table.plan import AuditPlan
    from dptext_spark.spark.auditing import audit as auditing
    from dptext_spark.spark.session.session import spark_session

    began = time.perf_counter()
    session = spark_session()
    found = {"start": time.perf_counter() - began}
    attack = auditing.attack_sample

    def timed(*given: Any) -> Any:
        began = time.perf_counter()
        try:
            return attack(*given)
        finally:
            found["attacks"] = time.perf_counter() - began

    for name, form in (("table", "delta"), ("source", "parquet")):
        frame = session.read.format(form).load(str(folder / name))
        found[name] = seconds_of(frame.toArrow)
    # That of a ledger is the first of its session, too, in which Delta Lake loads its classes.
    found["ledger"] = found["table"]
    plan = AuditPlan.of(str(folder / "table"), str(folder / "source"), config=folder / "run.yaml")
    with patch.object(auditing, "attack_sample", timed):
        auditing.audit_table(plan, session)
    return found


def main(what: str, folder: Path) -> None:
    """Make the table, or measure the parts."""
    if what == "apart":
        print(json.dumps(apart(folder)))
        return
    from dptext_spark.config.load import load_config
    from dptext_spark.spark.runner import run

    run(load_config(folder / "run.yaml"))
    print("{}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
