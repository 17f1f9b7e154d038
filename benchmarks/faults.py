"""What happens when things go wrong, counted: races of processes, signals, kills, places that cannot be written, a huge text.

Each try either ends as an undisturbed run does, or is refused and then carried out by running it again. What differs is a
failure.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure import Grid, Section
from benchmarks.sizes import Sizes
from benchmarks.sources import CHECKOUT, packaged, texts
from benchmarks.tables import local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKER = Path(__file__).with_name("faults_worker.py")
ROWS, WORDS = 400, 8
AT_ONCE = 5
SIGNALS = (signal.SIGINT, signal.SIGTERM)
EFFECTS = ("reservation", "run row", "data commit", "settlement", "metrics", "account")
PATIENCE = 900.0  # seconds for one process
EPSILON = 1.0
# Without the right to pass over permissions, where the user of this machine has it.
BOUND = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
HEAP = "10g"  # of the JVM that a huge text is sanitized in


@dataclass
class Tally:
    """How often something was tried, and what did not hold.

    Attributes:
        name: what was tried.
        tries: how often.
        struck: how often it came while a process was at work.
        failures: a sentence each.
        refused: whether a run ended with an error and wrote nothing, as it may.
    """

    name: str
    tries: int = 0
    struck: int = 0
    failures: list[str] = field(default_factory=list)
    refused: bool = False

    def row(self) -> tuple[str, int, int, int, str]:
        """Return a row of the grid."""
        return self.name, self.tries, self.struck, len(self.failures), "; ".join(self.failures[:3])


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Try everything, and count."""
    section = Section("faults", "Races, signals, kills and places that cannot be written: what did not hold")
    full = sizes.lexicon_words is None
    seed = secrets.randbelow(1 << 31)
    section.facts = {"seed": seed, "rows": ROWS}
    tallies = []
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work, local(1, Path(work)) as session:
        place = Place(Path(work), session)
        tallies.append(_at_once(place, 3 if full else 1, say))
        tallies += [_signals(place, number, EFFECTS if full else EFFECTS[2:3], say) for number in SIGNALS]
        tallies.append(_killed_streams(place, 20 if full else 1, random.Random(seed), say))
        tallies.append(_read_only(place, say))
    section.grids.append(_grid(tallies))
    return section


def measure_huge(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Try huge texts, half as long each time until one passes: apart from the rest, for they need most of a machine's memory."""
    section = Section("huge", "A huge text")
    tallies: list[Tally] = []
    for divisor in (1, 2, 4, 8):
        with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
            tallies.append(_huge_text(Path(work), 10 * sizes.long_bytes // divisor, say))
        if not tallies[-1].refused:
            break
    section.grids.append(_grid(tallies))
    return section


def _grid(tallies: list[Tally]) -> Grid:
    return Grid(
        "Faults", ("what", "tries", "struck", "failures", "which"), tuple(tally.row() for tally in tallies)
    )


def _new_key(base: Path) -> Path:
    """Make a key in a folder."""
    key = base / "key"
    key.write_bytes(secrets.token_bytes(32))
    key.chmod(stat.S_IRUSR)
    return key


class Place:
    """A folder with a source, a key and a session, in which tries are made beside each other."""

    def __init__(self, base: Path, session: SparkSession) -> None:
        """Make the key and the source."""
        self.base, self.session = base, session
        self.number = 0
        _new_key(base)
        self.add("in", 0)

    def add(self, name: str, first: int) -> None:
        """Append rows to a Delta table of texts."""
        body = texts(packaged(), ROWS, WORDS, seed=first)
        rows = pa.table({"id": pa.array(range(first, first + ROWS), pa.int64()), "body": body})
        pq.write_table(rows, self.base / "rows.parquet")
        source = self.session.read.parquet(str(self.base / "rows.parquet"))
        source.coalesce(1).write.format("delta").mode("append").save(str(self.base / name))

    def settings(
        self, output: str, run_id: str, source: str = "in", write: dict[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return the settings of a run."""
        return {
            "input": {"path": str(self.base / source)},
            "columns": ["body"],
            "row_key": "id",
            "mechanism": {"name": "custext", "epsilon": EPSILON},
            "key": {"file": str(self.base / "key")},
            "output": {"path": str(self.base / output), "other_columns": "keep", **(write or {})},
            "run": {"id": run_id},
            **more,
        }

    def start(self, settings: dict[str, Any], *signalled: str, bound: tuple[str, ...] = ()) -> Process:
        """Start a run in a process of its own."""
        self.number += 1
        return Process(self.base / f"process-{self.number}", settings, signalled, bound)

    def run(self, settings: dict[str, Any]) -> str:
        """Run in this process; return its status."""
        from dptext_spark.config.load import parse_config
        from dptext_spark.spark.runner import run

        return run(parse_config(settings), self.session).status

    def rows(self, output: str) -> list[tuple[int, str]]:
        """Return the rows of a target, in order of their keys."""
        table = self.session.read.format("delta").load(str(self.base / output))
        return sorted((row["id"], row["body"]) for row in table.collect())

    def account(self, output: str, run_id: str) -> dict[str, Any]:
        """Return what stands of a run: its rows of `runs`, of `metrics` and of the ledger that are spent, and commits."""
        from dptext_spark.spark.job.entries import entries_of
        from dptext_spark.spark.tables.tables import Target, history

        audit = self.base / f"{output}_audit"

        def table(name: str) -> Any:
            return self.session.read.format("delta").load(str(audit / name)).where(f"run_id = '{run_id}'")

        entries = entries_of(self.session, str(self.base / "_dptext_ledger"))[1]
        commits = [one.metadata or "" for one in history(self.session, Target(path=str(self.base / output)))]
        metrics = table("restricted/metrics")
        return {
            "statuses": sorted(row["status"] for row in table("shareable/runs").select("status").collect()),
            "metrics": metrics.count() - metrics.select("column", "metric").distinct().count(),
            "spent": len({one.release for one in entries if one.run_id == run_id and one.status == "spent"}),
            "open": sum(1 for one in entries if one.run_id == run_id and one.status == "reserved"),
            "commits": sum(1 for one in commits if f'"{run_id}"' in one),
        }

    def differences(self, output: str, run_id: str, expected: list[tuple[int, str]]) -> Iterator[str]:
        """Yield what of a finished run is not as it should be."""
        if self.rows(output) != expected:
            yield "rows or bytes differ"
        found = self.account(output, run_id)
        if found["statuses"] not in (["succeeded"], ["recovered"]):
            yield f"its status is {found['statuses']}"
        wanted = {"metrics": 0, "spent": 1, "open": 0, "commits": 1}
        yield from (
            f"{name} is {found[name]}, not {value}" for name, value in wanted.items() if found[name] != value
        )


class Process:
    """A run in a process of its own, with its JVM."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, Any],
        signalled: tuple[str, ...],
        bound: tuple[str, ...],
        session: dict[str, str] | None = None,
    ) -> None:
        """Start it."""
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps({"run": settings, "session": session or {}}))
        self.out = folder / "out"
        with self.out.open("wb") as out, (folder / "err").open("wb") as err:
            self.process = subprocess.Popen(
                [*bound, sys.executable, str(WORKER), str(folder / "settings.json"), *signalled],
                cwd=folder, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, stdout=out, stderr=err,
            )  # fmt: skip
        self.err = folder / "err"
        self.began = time.monotonic()

    def printed(self, word: str) -> list[str]:
        """Return what it printed behind a word."""
        lines = self.out.read_text(errors="replace").splitlines()
        return [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]

    def wait(self) -> int:
        """Wait for the process and then for its JVM, whose work may go on a little; return the exit code."""
        code = self.process.wait(PATIENCE)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and any(_alive(int(jvm)) for jvm in self.printed("jvm")):
            time.sleep(0.05)
        return code

    def kill(self) -> bool:
        """End it and its JVM without a word; say whether it was at work."""
        alive = self.process.poll() is None
        for number in (*map(int, self.printed("jvm")), self.process.pid):
            if _alive(number):
                os.kill(number, signal.SIGKILL)
        self.wait()
        return alive and bool(self.printed("jvm"))


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return False
    return state != "Z"


def _calm(place: Place, output: str, run_id: str) -> list[tuple[int, str]]:
    """Return the rows of an undisturbed run; at token level the draws hang on its run id."""
    place.run(place.settings(output, run_id))
    return place.rows(output)


def _at_once(place: Place, rounds: int, say: Callable[[str], None]) -> Tally:
    """Let five processes append to one target, with one ledger and one account."""
    tally = Tally(f"{AT_ONCE} processes at once on one target, ledger and account")
    for number in range(rounds):
        say(f"faults: {AT_ONCE} at once, round {number + 1} of {rounds}")
        output = f"at-once-{number}"
        runs = [f"run-{number}-{one}" for one in range(AT_ONCE)]
        more = {"mode": "append", "fresh_noise": "accept"}
        settings = [place.settings(output, run_id, write=more) for run_id in runs]
        processes = [place.start(one) for one in settings]
        codes = [process.wait() for process in processes]
        tally.tries += AT_ONCE
        tally.struck += AT_ONCE
        for run_id, code, process, one in zip(runs, codes, processes, settings, strict=True):
            # One that lost the race for the table's first commit is refused, and goes through when it is run again.
            if code not in (0, 4):
                tally.failures.append(f"{run_id} ended with {code}: {process.err.read_text()[-200:]}")
            elif code == 4:
                place.run(one)
        ids = [row[0] for row in place.rows(output)]
        if sorted(ids) != sorted([*range(ROWS)] * AT_ONCE):
            tally.failures.append(f"{len(ids)} rows, not {AT_ONCE * ROWS}")
        for run_id in runs:
            found = place.account(output, run_id)
            wanted = {"statuses": ["succeeded"], "metrics": 0, "spent": 1, "open": 0, "commits": 1}
            tally.failures += [
                f"{run_id}: {name} is {found[name]}" for name in wanted if found[name] != wanted[name]
            ]
    return tally


def _signals(
    place: Place, number: signal.Signals, effects: tuple[str, ...], say: Callable[[str], None]
) -> Tally:
    """Send a run a signal while each of its effects is under way, and run it again."""
    tally = Tally(f"{number.name} in each phase of a run, and the run again")
    for effect in effects:
        say(f"faults: {number.name}, {effect}")
        run_id = f"{number.name}-{effect.replace(' ', '-')}"
        settings = place.settings(run_id, run_id)
        process = place.start(settings, str(int(number)), f"before {effect}")
        code = process.wait()
        tally.tries += 1
        tally.struck += code != 0
        if f"before {effect}" not in process.printed("point"):
            tally.failures.append(f"{effect}: never passed; {process.err.read_text()[-200:]}")
            continue
        place.run(settings)
        expected = _calm(place, f"{run_id}-calm", run_id)
        tally.failures += [f"{effect}: {what}" for what in place.differences(run_id, run_id, expected)]
    return tally


def _killed_streams(place: Place, tries: int, chance: random.Random, say: Callable[[str], None]) -> Tally:
    """Kill a stream and its JVM at any time, again and again, while its source grows; then let it end."""
    tally = Tally("a stream killed at any time, and begun again")
    place.add("stream-in", 0)
    settings = place.settings(
        "stream", "stream", "stream-in", mode="incremental", stream={"starting_version": 0}
    )
    began = time.monotonic()
    code = place.start(settings).wait()
    calm = time.monotonic() - began
    if code != 0:
        tally.failures.append(f"the undisturbed start ended with {code}")
    for number in range(tries):
        say(f"faults: stream killed, {number + 1} of {tries}")
        place.add("stream-in", (number + 1) * ROWS)
        process = place.start(settings)
        time.sleep(chance.uniform(0.3, 1.0) * calm)
        tally.tries += 1
        tally.struck += process.kill()
    place.run(settings)
    rows = place.rows("stream")
    if [row[0] for row in rows] != list(range((tries + 1) * ROWS)):
        tally.failures.append(f"{len(rows)} rows, not {(tries + 1) * ROWS} keys once each")
    versions = place.account("stream", "stream")
    if versions["statuses"] != ["succeeded"]:
        tally.failures.append(f"its status is {versions['statuses']}")
    return tally


def _read_only(place: Place, say: Callable[[str], None]) -> Tally:
    """Run against a target, and against an account, that may not be written; then let it be written."""
    tally = Tally("a target or account that may not be written, and the run again when it may")
    for name in ("target", "account"):
        say(f"faults: read-only {name}")
        run_id = f"read-only-{name}"
        settings = place.settings(run_id, run_id)
        folder = place.base / (run_id if name == "target" else f"{run_id}_audit")
        folder.mkdir()
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
        process = place.start(settings, bound=BOUND)
        code = process.wait()
        folder.chmod(stat.S_IRWXU)
        tally.tries += 1
        tally.struck += code != 0
        if code not in (2, 3, 4):
            tally.failures.append(f"{name}: ended with {code}: {process.err.read_text()[-200:]}")
        if (place.base / run_id / "_delta_log").exists():
            tally.failures.append(f"{name}: something was committed")
        place.run(settings)
        expected = _calm(place, f"{run_id}-calm", run_id)
        tally.failures += [f"{name}: {what}" for what in place.differences(run_id, run_id, expected)]
    return tally


def _huge_text(base: Path, size: int, say: Callable[[str], None]) -> Tally:
    """Sanitize a table in which one text is huge: it comes out whole, or the run says why not and nothing is written."""
    tally = Tally(f"one text of {size / 1e6:,.0f} MB", tries=1, struck=1)
    say(f"faults: {tally.name}")
    line = " ".join(texts(packaged(), 1_000, WORDS).to_pylist()) + " "
    times = size // len(line) + 1
    long = pa.array(["a short text", line * times])
    (base / "in").mkdir()
    pq.write_table(pa.table({"id": pa.array([0, 1], pa.int64()), "body": long}), base / "in" / "part.parquet")
    settings = {
        "input": {"path": str(base / "in"), "format": "parquet"},
        "columns": ["body"],
        "row_key": "id",
        "output": {"path": str(base / "out"), "other_columns": "keep"},
        "key": {"file": str(_new_key(base))},
        "run": {"id": "huge"},
        "audit": {"consistency_scopes": 0},
    }
    # A JVM of its own: one that runs already has the heap that it was begun with.
    process = Process(base / "process", settings, (), (), {"spark.driver.memory": HEAP})
    code = process.wait()
    if code:
        lines = process.err.read_text(errors="replace").splitlines()
        said = next((line for line in lines if line.startswith("dptext: ")), "without a word of its own")
        tally.name += f": refused ({said[:400]})"
        if not any((base / "out" / "_delta_log").glob("*.json")):
            tally.refused = True
            return tally
        # A machine without memory may end the JVM at any moment, after the commit, too: then the run again has to find it.
        again = Process(base / "again", settings, (), (), {"spark.driver.memory": HEAP})
        if again.wait():
            tally.failures.append(
                f"it ended with exit code {code} after its commit, and the run again failed"
            )
            return tally
    tally.name += f": sanitized, with a heap of {HEAP}"
    written = pq.read_table(sorted((base / "out").glob("*.parquet")), columns=["id", "body"])
    text = written.filter(pc.equal(written["id"], 1))["body"]
    if pc.count_substring(text, " ").to_pylist() != [line.count(" ") * times]:
        tally.failures.append("the text did not come out with every space")
    return tally
