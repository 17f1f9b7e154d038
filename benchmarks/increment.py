"""What an incremental run of a few new rows takes, ledger and account included, beside a plain stream."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.measure import Figure, Goal, Section, Spread, quotient, seconds_of
from benchmarks.plain_script import plain_stream
from benchmarks.sizes import Sizes
from benchmarks.spark import CORES, KEY, write_input
from benchmarks.tables import local
from dptext_spark.config.load import parse_config

NEW_ROWS = 1_000
GOALS = (Goal(2.0, 3.0, "ratio"),)


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Append rows to a source, and let the job and a plain stream take them, in turn."""
    from dptext_spark.spark.runner import run

    rows = min(NEW_ROWS, sizes.spark_rows)
    section = Section("increment", f"An incremental run of {rows:,} new rows, local[{CORES}]")
    ours, plain = [], []
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work, local(CORES, Path(work)) as session:
        folder = Path(work)
        source = folder / "input"
        write_input(session, folder, replace(sizes, spark_rows=rows))
        config = parse_config({
            "mode": "incremental", "input": {"path": str(source)}, "columns": ["body"], "row_key": "id",
            "output": {"path": str(folder / "sanitized"), "other_columns": "keep"},
        })  # fmt: skip
        added = session.read.format("delta").load(str(source)).drop("id").coalesce(1)
        for number in range(sizes.long_rounds + 2):
            say(f"increment: round {number} of {sizes.long_rounds + 1}")
            if number:  # the first one takes what is there
                first = number * rows
                more = added.selectExpr(f"{first} + monotonically_increasing_id() AS id", "*").limit(rows)
                more.write.format("delta").mode("append").save(str(source))
            took = seconds_of(lambda: run(config, session, key=KEY))
            bare = seconds_of(
                lambda: plain_stream(session, source, folder / "plain", folder / "plain_checkpoint")
            )
            if number > 1:  # the one before starts what both need
                ours.append(took)
                plain.append(bare)
    whole, peer = Spread(tuple(ours)), Spread(tuple(plain))
    section.figures.append(
        Figure(
            "new rows, with ledger and account", "s", whole, "a plain stream", peer, quotient(whole, peer), "x its time", GOALS,
            note="the plain stream reads Delta, passes through mapInArrow and writes Delta (availableNow)",
        )
    )  # fmt: skip
    section.facts = {"rows": rows, "words_a_row": sizes.words_a_row}
    return section
