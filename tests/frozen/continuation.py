"""What older code left, newer code goes on with.

In the checkout of the older code, and then in that of the newer one:

    python -m tests.frozen.continuation write FOLDER
    python -m tests.frozen.continuation go_on FOLDER

The folder holds runs and streams, finished or ended halfway, with their tables, ledgers and checkpoints. It stays where it is,
because the tables name their places. `go_on` changes it: it needs a folder that `write` has just made, and the same Spark.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.spark.job.beside import Effect
from dptext_spark.spark.session.session import spark_session
from tests.cluster.faults import write_key
from tests.core.names import beginning
from tests.core.unstyled import UNSTYLED
from tests.frozen.behaviour import DPTEXT
from tests.frozen.tickets import kept_tickets
from tests.spark.crash_job import ENDED, RUN, settings
from tests.spark.test_crashes import CHECKOUT, Left

ROWS = 40  # of each version of the source
# name: (kind, where it ended and how many times it had come there; None: at its end)
LEFT: dict[str, tuple[str, tuple[str, int] | None]] = {
    "run": ("run", None),
    "stream": ("stream", None),
    "run-reserved": ("run", (Effect.RUN_ROW.before, 1)),
    "run-bound": ("run", (Effect.DATA_COMMIT.before, 1)),
    "run-committed": ("run", (Effect.DATA_COMMIT.after, 1)),
    "stream-bound": ("stream", (Effect.DATA_COMMIT.before, 1)),
    "stream-committed": ("stream", (Effect.DATA_COMMIT.after, 1)),
    "stream-halfway": ("stream", (Effect.CHECKPOINT.after, 2)),
}


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _append(base: Path, versions: range) -> None:
    """Append versions to the source."""
    spark = spark_session(master="local[2]", warehouse=base / "warehouse")
    source = kept_tickets("continuation").select(["ticket_id", "body"]).rename_columns(["id", "body"])
    for version in versions:
        frame = spark.createDataFrame(source.slice(ROWS * version, ROWS).to_pandas()).coalesce(1)
        frame.write.format("delta").mode("append").save(str(base / "in"))
    spark.stop()


def _dptext(*arguments: str) -> str:
    """Call a command of this checkout; return what it printed."""
    done = subprocess.run([*DPTEXT, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (
        f"dptext {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    )
    return done.stdout


def _run(base: Path, name: str) -> dict[str, Any]:
    """Run a run or a stream to its end; return its facts."""
    file = base / f"{name}.yaml"
    file.write_text(json.dumps(UNSTYLED | settings(base, name, LEFT[name][0])), encoding="utf-8")
    facts: dict[str, Any] = json.loads(_dptext("run", str(file), "--json"))
    return facts


def _ledger(base: Path, name: str) -> list[dict[str, Any]]:
    """Return what the ledger says was spent."""
    found = json.loads(_dptext("ledger", str(base / name / "shareable" / "ledger"), "--json"))
    return [{"figures": one["columns"], "unfinished": one["unfinished"]} for one in found["inputs"]]


def _left(base: Path, name: str) -> dict[str, Any]:
    """Return what lies there, comparable."""
    left = Left.of(base / name)
    return {
        "versions": left.versions, "loose": left.loose, "rows": {str(key): row for key, row in sorted(left.rows.items())},
        "metrics": sorted([*(part or "" for part in key), value] for key, value in left.metrics.items()),
        "runs": sorted(left.status), "planned": left.planned, "noted": left.noted, "ledger": _ledger(base, name),
    }  # fmt: skip


def write(base: Path) -> None:
    """Let this checkout leave everything."""
    base.mkdir(parents=True)
    beginning(Lexicon.default(), 2000).save(base / "lexicon")
    write_key(base)
    _append(base, range(2))
    for name, (kind, end) in LEFT.items():
        (base / name).mkdir()
        if end is None:
            assert _run(base, name)["status"] == "succeeded"
            continue
        plan = {
            "base": str(base), "name": name, "kind": kind, "point": end[0], "times": end[1], "fails": None
        }  # fmt: skip
        (base / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.crash_job", str(base / "plan.json")], cwd=CHECKOUT, capture_output=True,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, check=False,
        )  # fmt: skip
        assert done.returncode == ENDED, done.stderr.decode()[-3000:]
        _say(f"{name}: ended {end[0]}")
    expected = {name: _left(base, name) for name in ("run", "stream")}
    # What the source's next version comes to is known by doing it, and undoing it.
    shutil.copytree(base, base.with_name(base.name + ".kept"))
    _append(base, range(2, 3))
    _run(base, "stream")
    expected["stream, one version more"] = _left(base, "stream")
    shutil.rmtree(base)
    base.with_name(base.name + ".kept").rename(base)
    (base / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
    _say(f"written: {base}")


def go_on(base: Path) -> None:
    """Let this checkout go on with everything, and compare."""
    expected = json.loads((base / "expected.json").read_text(encoding="utf-8"))
    assert _left(base, "run") == expected["run"]
    assert _left(base, "stream") == expected["stream"]
    facts = _run(base, "run")
    assert (facts["status"], facts["run_id"]) == ("unchanged", RUN)
    assert _left(base, "run") == expected["run"]
    _say("run: unchanged")
    for name, (kind, end) in LEFT.items():
        if end is not None:
            status = _run(base, name)["status"]
            assert status in ("succeeded", "recovered"), status
            assert _left(base, name) == expected[kind], name
            _say(f"{name}: {status}, and what is there is what an undisturbed one left")
    page = base / "report.html"
    _dptext("report", RUN, "--config", str(base / "run.yaml"), "--out", str(page))
    assert page.stat().st_size > 10_000
    _dptext(
        "audit",
        str(base / "run" / "out"),
        "--against",
        str(base / "in"),
        "--columns",
        "body",
        "--row-key",
        "id",
    )
    _say("report, audit: made")
    _append(base, range(2, 3))
    _run(base, "stream")
    assert _left(base, "stream") == expected["stream, one version more"]
    _say("stream: continued")


if __name__ == "__main__":
    {"write": write, "go_on": go_on}[sys.argv[1]](Path(sys.argv[2]).resolve())
