"""What a reservation in a long ledger takes."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults import Place
from benchmarks.measure import Figure, Goal, Section, Spread, quotient
from benchmarks.sizes import Sizes
from benchmarks.tables import local

ENTRIES = 100_000
RESERVATION = (Goal(5.0, 5.0, "value"), Goal(2.0, 2.0, "ratio"))


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Time a reservation in a ledger of many entries."""
    section = Section("ledger", "A reservation in a long ledger")
    entries = ENTRIES if sizes.lexicon_words is None else 1_000
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work, local(1, Path(work)) as session:
        section.figures.append(_reservation(Place(Path(work), session), entries, say))
    return section


def _reservation(place: Place, entries: int, say: Callable[[str], None]) -> Figure:
    """Time a reservation in a ledger of many entries, beside what Spark takes to give that table to the driver."""
    from dptext_spark.config.keys import taken
    from dptext_spark.config.ledger_place import ledger_on_disk
    from dptext_spark.config.load import parse_config
    from dptext_spark.runtime.progress import silent
    from dptext_spark.spark.job import ledger
    from dptext_spark.spark.job.prepare import prepare_run

    settings = place.settings("long-ledger", "first")
    place.run(settings)
    path = ledger_on_disk(settings.input, settings.ledger)
    table = place.session.read.format("delta").load(path).where("status = 'spent'").limit(1)
    others = {name: f"concat({name}, '-', n)" for name in ("entry", "attempt", "run_id", "release")}
    columns = [f"{others.get(name, name)} AS {name}" for name in table.columns]
    many = table.crossJoin(place.session.range(entries).withColumnRenamed("id", "n")).selectExpr(*columns)
    many.repartition(4).write.format("delta").mode("append").save(path)
    took, read = [], []
    for number in range(4):
        say(f"ledger: a reservation among {entries:,} entries, {number} of 3")
        shutil.rmtree(place.base / "elsewhere", ignore_errors=True)
        shutil.rmtree(place.base / "elsewhere_audit", ignore_errors=True)
        config = parse_config(place.settings("elsewhere", f"among-{number}", ledger={"path": path}))
        setup = prepare_run(place.session, config, taken(config.key), silent)
        began = time.perf_counter()
        ledger.reserve(setup)
        between = time.perf_counter()
        place.session.read.format("delta").load(path).collect()
        if number:  # the round before starts what both need
            took.append(between - began)
            read.append(time.perf_counter() - between)
    ours, peer = Spread(tuple(took)), Spread(tuple(read))
    return Figure(
        f"a reservation in a ledger of {entries:,} entries", "s", ours, "collect() of that table", peer,
        quotient(ours, peer), "x its time", RESERVATION if entries == ENTRIES else (),
    )  # fmt: skip
