"""Tables of awkward shapes: one very long text, one partition that holds everything, and many columns that are no text."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure import Figure, Goal, Section, Spread, quotient
from benchmarks.sizes import Sizes
from benchmarks.sources import packaged, texts
from benchmarks.tables import local, sanitized, write_files
from dptext_spark.errors import SettingsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
OTHERS = 198  # columns beside the key and the text
MEGABYTE = 1e6
# A long text is in memory as Spark sent it, padded, sanitized, and on its way back.
LONG = (Goal(8.0, 10.0, "ratio"),)
PARTITION = (Goal(1.2, 1.4, "ratio"),)
SKEW = (Goal(0.75, 0.9, "ratio"),)
WIDE = (Goal(1.25, 1.5, "ratio"),)


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure each shape against its plain counterpart."""
    section = Section("shapes", f"Tables of awkward shapes, local[{CORES}]")
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
        folder = Path(work)
        try:
            _long_text(section, folder, sizes, say)
            _one_partition(section, folder, sizes, say)
            _dealt_out(section, folder, sizes, say)
            _wide_table(section, folder, sizes, say)
        except SettingsError as error:
            section.skipped.append(f"shapes: {error}")
    return section


def _long_text(section: Section, folder: Path, sizes: Sizes, say: Callable[[str], None]) -> None:
    """What a worker holds for one text of 50 MB, against one that has seen short texts only."""
    say("shapes: one long text")
    short = texts(packaged(), sizes.scale_rows // 40, sizes.words_a_row)
    line = " ".join(short.slice(0, 1000).to_pylist()) + " "
    long = pa.array([line * (sizes.long_bytes // len(line.encode()) + 1)])
    found = []
    for name, body in (("short", short), ("long", pa.chunked_array([short, long]).combine_chunks())):
        source = folder / name
        source.mkdir()
        pq.write_table(pa.table({"body": body}), source / "part.parquet")
        with local(CORES, folder) as session:
            found.append(sanitized(session, source, folder / "output").worker_bytes)
    size = int(pc.binary_length(long)[0].as_py())
    added = Spread(((found[1] - found[0]) / MEGABYTE,))
    itself = Spread((size / MEGABYTE,))
    section.figures.append(
        Figure(
            "memory that one long text adds to a worker", "MB", added, "the text", itself, quotient(added, itself),
            "x its size", LONG,
        )
    )  # fmt: skip


def _one_partition(section: Section, folder: Path, sizes: Sizes, say: Callable[[str], None]) -> None:
    """One file of one row group with ten million words: a worker's memory, against a tenth of it."""
    rows, words = sizes.scale_rows, sizes.words_a_row
    held = {}
    for name, part in (("tenth", rows // 10), ("whole", rows)):
        say(f"shapes: one partition, {name}")
        write_files(folder / name, 1, part, words, row_group=rows)
        with local(CORES, folder) as session:
            for source in (folder / "tenth", folder / name):
                done = sanitized(session, source, folder / "output", run={"partitions": "keep"})
            held[name] = Spread((done.worker_bytes / MEGABYTE,))
    section.figures.append(
        Figure(
            f"memory of a worker, one partition of {rows * words:,} words", "MB", held["whole"], "a tenth of it",
            held["tenth"], quotient(held["whole"], held["tenth"]), "x", PARTITION,
        )
    )  # fmt: skip


def _dealt_out(section: Section, folder: Path, sizes: Sizes, say: Callable[[str], None]) -> None:
    """What dealing one partition out gains, where the drawing is what takes the time."""
    rows = sizes.scale_rows // 200
    write_files(folder / "skewed", 1, rows, sizes.words_a_row, row_group=rows)
    took: dict[str, list[float]] = {"keep": [], "auto": []}
    with local(CORES, folder) as session:
        for number in range(sizes.long_rounds + 1):
            for how, seconds in took.items():
                say(f"shapes: one partition, {how}, round {number} of {sizes.long_rounds}")
                done = sanitized(
                    session, folder / "skewed", folder / "output", run={"partitions": how}, mechanism={"name": "mvc"}
                )  # fmt: skip
                if number:  # the round before starts the workers
                    seconds.append(done.seconds)
    kept, dealt = (Spread(tuple(took[how])) for how in ("keep", "auto"))
    section.figures.append(
        Figure(
            f"one partition of {rows * sizes.words_a_row:,} words, `calibrated`, {CORES} cores, run.partitions: auto", "s",
            dealt, "run.partitions: keep", kept, quotient(dealt, kept), "x its time", SKEW,
            note="a partition that is too small to pay for the shuffle is kept",
        )
    )  # fmt: skip


def _wide_table(section: Section, folder: Path, sizes: Sizes, say: Callable[[str], None]) -> None:
    """What sanitizing costs for a table of 2 columns and one of 200, over a plain copy and over a job that changes nothing."""
    from benchmarks.identity_job import identity_job

    rows = sizes.scale_rows
    widths = (2, 2 + OTHERS)
    took: dict[tuple[str, int], list[float]] = {}
    with local(CORES, folder) as session:
        for columns in widths:
            _write_wide(folder / f"wide-{columns}", rows, columns, sizes.words_a_row)
        for number in range(sizes.long_rounds + 1):
            for columns in widths:
                say(f"shapes: {columns} columns, round {number} of {sizes.long_rounds}")
                source = folder / f"wide-{columns}"
                seconds = {"ours": sanitized(session, source, folder / "output", row_key="id").seconds}
                seconds["identity"] = identity_job(session, source, folder / "identity", "parquet")[0]
                shutil.rmtree(folder / "identity")
                seconds["copy"] = _copied(session, source, folder / "copy")
                for name, value in seconds.items():
                    if number:  # the round before starts the workers
                        took.setdefault((name, columns), []).append(value)
    for columns in widths:
        ours, bare = (Spread(tuple(took[name, columns])) for name in ("ours", "identity"))
        section.figures.append(
            Figure(
                f"a table of {columns} columns, one of them text", "s", ours, "a job that changes nothing", bare,
                quotient(ours, bare), "x its time", WIDE if columns > 2 else (),
            )
        )  # fmt: skip
    passed = [_difference(took["identity", columns], took["copy", columns]) for columns in widths]
    cells = rows * OTHERS
    section.figures.append(
        Figure(
            "a value of another column that passes Python by", "core-ns",
            _difference(passed[1].runs, passed[0].runs, 1e9 * CORES / cells), "a plain copy of it",
            _difference(took["copy", widths[1]], took["copy", widths[0]], 1e9 * CORES / cells),
            note="Spark puts the rows that wait for Python together again; a job that changes nothing pays it, too",
        )
    )  # fmt: skip


def _write_wide(source: Path, rows: int, columns: int, words: int) -> None:
    """Write one file: a key, a text, and integers."""
    source.mkdir()
    fields = {"id": pa.array(range(rows), pa.int64()), "body": texts(packaged(), rows, words)}
    fields |= {f"c{i}": pa.array([i + n % 7 for n in range(rows)], pa.int32()) for i in range(columns - 2)}
    pq.write_table(pa.table(fields), source / "part.parquet", row_group_size=max(1, rows // 8))


def _difference(more: Sequence[float], less: Sequence[float], scale: float = 1.0) -> Spread:
    """Return the differences of what was measured in turn."""
    return Spread(tuple(scale * (a - b) for a, b in zip(more, less, strict=True)))


def _copied(session: SparkSession, source: Path, target: Path) -> float:
    """Return the seconds in which Spark reads a table and writes it as it is."""
    began = time.perf_counter()
    session.read.parquet(str(source)).write.format("delta").save(str(target))
    took = time.perf_counter() - began
    shutil.rmtree(target)
    return took
