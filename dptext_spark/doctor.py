"""Checks of `dptext doctor` on its observations: each is ok, warn or fail, with its cure. Plain facts in."""

from __future__ import annotations

import platform
import re
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from dptext_spark._version import __version__
from dptext_spark.runtime import jit
from dptext_spark.runtime.validation import Record

OLDEST_JAVA = 17
# Spark before 4.2 asks Java for what Java 24 took away (Subject.getSubject), and does not start.
NEWEST_JAVA_BEFORE_4_2 = 23
FIXED_IN_4_0_1 = "CVE-2025-54920"
# What the results, or their transport, depend on; the worker's pyspark is the cluster's.
LIBRARIES = ("pyspark", "pyarrow", "numpy", "numba", "cryptography", "faiss-cpu", "onnxruntime", "tokenizers")


@dataclass(frozen=True)
class CheckResult:
    """Result of a check.

    Attributes:
        check: what was checked.
        status: whether a run will work.
        message: what was seen.
        hint: what to do; empty where there is nothing to do.

    Examples:
        >>> {check.status for check in checks} <= {"ok", "warn", "fail"}
        True
    """

    check: str
    status: Literal["ok", "warn", "fail"]
    message: str
    hint: str = ""


@dataclass(frozen=True)
class ProcessFacts(Record):
    """Facts that a process reports of itself; one that lacks the package reports only the first three, and the `missing` part.

    Attributes:
        host: its name.
        python: version of the interpreter.
        executable: its path.
        missing: the module that could not be imported; empty where none is missing.
        package: version of this package.
        build: digest of its compiled loops.
        folder: where it is installed.
        versions: of `LIBRARIES`; None for one that is not there.
        drawn: digest of what the model draws of fixed texts under a key that is no secret.
        seal: of the model that it sees.
        model_error: kind of the error that opening the model ended in; empty where it opened.
    """

    host: str
    python: str
    executable: str
    missing: str = ""
    package: str = ""
    build: str = ""
    folder: str = ""
    versions: Mapping[str, str | None] = field(default_factory=dict)
    drawn: str = ""
    seal: str = ""
    model_error: str = ""


def process_facts() -> ProcessFacts:
    """Return the facts of this process, without the draws of a model here."""
    return ProcessFacts(
        host=socket.gethostname(),
        python=platform.python_version(),
        executable=sys.executable,
        package=__version__,
        build=jit.source(),
        folder=str(Path(jit.__file__).parents[1]),
        versions={name: _installed(name) for name in LIBRARIES},
    )


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return getattr(sys.modules.get(name), "__version__", None)


def newest_java(spark: str) -> int | None:
    """Return the newest feature version of Java that this version of Spark starts with; None: none is known."""
    return NEWEST_JAVA_BEFORE_4_2 if release_of(spark)[:2] < (4, 2) else None


def release_of(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with: (4, 0, 1) of `4.0.1`, and of `4.0.1.dev3` as well."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def check_java(driver: str | None, executors: Sequence[str], spark: str) -> CheckResult:
    """Judge the Java versions for a version of Spark; None: the driver's is not to be seen (Spark Connect)."""
    every = {*executors, *([driver] if driver else [])}
    versions = f"driver {driver or 'not seen'}, executors {', '.join(sorted(set(executors))) or 'not seen'}"
    features = {_feature(each) for each in every}
    newest = newest_java(spark)
    if features and min(features) < OLDEST_JAVA:
        hint = f"Spark 4 needs Java {OLDEST_JAVA} or newer on all machines. Set JAVA_HOME to one."
        return CheckResult("Java", "fail", versions, hint)
    if features and newest is not None and max(features) > newest:
        hint = (
            f"Spark {spark} does not start with Java {newest + 1} or newer. Set JAVA_HOME to Java 17 or 21."
        )
        return CheckResult("Java", "fail", versions, hint)
    if len(features) > 1:
        return CheckResult("Java", "warn", versions, "Install the same version everywhere.")
    return CheckResult("Java", "ok", versions)


def check_server_log(levels: Mapping[str, str] | None, *, travels: bool) -> CheckResult:
    """Judge whether a Spark Connect server writes the run key into its log, with the plan that holds it.

    Args:
        levels: of the loggers that write plans; None: not to be seen.
        travels: whether the key is in the plan.
    """
    check = "server's log"
    if not travels:
        return CheckResult(check, "ok", "no plan holds the run key, because each worker reads the key itself")
    hint = (
        "On the server, set org.apache.spark.sql.connect and org.sparkproject.connect.grpc to INFO or "
        "above. Or let each worker read the key (key.deliver: executors)."
    )
    if levels is None:
        return CheckResult(check, "warn", "a client cannot see at which level the server logs plans", hint)
    loud = sorted(name for name, level in levels.items() if level in ("DEBUG", "TRACE", "ALL"))
    if loud:
        return CheckResult(
            check, "fail", f"at DEBUG it holds plans with the run key: {', '.join(loud)}", hint
        )
    return CheckResult(
        check, "ok", f"holds no plan: {len(levels)} loggers that can write plans are above DEBUG"
    )


def _feature(release: str) -> int:
    """Return the feature version of a Java: 8 of `1.8.0`, 17 of `17.0.1`."""
    first, second, *_ = (*release_of(release), 0, 0)
    return second if first == 1 else first


def check_spark(server: str, client: str) -> CheckResult:
    """Judge the version of the session against that of the pyspark that was imported."""
    versions = f"Spark {server}, pyspark {client}"
    if server.split(".")[:2] != client.split(".")[:2]:
        return CheckResult(
            "Spark", "fail", versions, f"Install pyspark=={server} for the driver, and on every node."
        )
    if release_of(server) < (4, 0, 1):
        return CheckResult(
            "Spark",
            "warn",
            f"{versions}: it lacks the fixes of Spark 4.0.1, such as {FIXED_IN_4_0_1} (History Server)",
            "Runs work. Use 4.0.1 or newer if you can, and let nobody else write to the folder of event logs.",
        )
    return CheckResult("Spark", "ok", versions)


def check_executors(workers: Sequence[ProcessFacts], slots: int) -> CheckResult:
    """Judge whether the package can be imported where tasks run."""
    hosts = len({worker.host for worker in workers})
    missing = [worker for worker in workers if worker.missing]
    if missing:
        names = ", ".join(sorted({worker.missing for worker in missing}))
        return CheckResult(
            "executors", "fail", f"{names} cannot be imported{_where(missing)} ({missing[0].executable})",
            "Install the wheel and its requirements there. Or ship them: --py-files with the wheel under a name "
"that ends in .zip for the package alone, --archives for a packed environment.",
        )  # fmt: skip
    return CheckResult("executors", "ok", f"{slots} slots on {hosts} host{'s' * (hosts > 1)} answered")


def _where(facts: Iterable[ProcessFacts]) -> str:
    hosts = sorted({process.host for process in facts})
    return f" on {', '.join(hosts[:3])}{f' and {len(hosts) - 3} more' if len(hosts) > 3 else ''}"


# What executors must have in common with the driver: check, status where they have not, how a process tells it, what to do.
# But for ties of attention no result depends on the libraries, as the last row shows.
ALIKE: tuple[tuple[str, Literal["warn", "fail"], Callable[[ProcessFacts], str], str], ...] = (
    (
        "Python",
        "fail",
        lambda facts: ".".join(facts.python.split(".")[:2]),
        "Set PYSPARK_PYTHON (spark.pyspark.python) to the same version on all nodes.",
    ),
    (
        "dptext_spark",
        "fail",
        lambda facts: f"{facts.package} (build {facts.build[:8]})",
        "Install the same wheel everywhere. An old copy on a node comes before --py-files.",
    ),
    (
        "libraries",
        "warn",
        lambda facts: ", ".join(f"{name} {version}" for name, version in facts.versions.items() if version),
        "Install the same versions everywhere. constraints.txt lists versions that are tested together.",
    ),
    (
        "shared model",
        "fail",
        lambda facts: facts.model_error or f"model {facts.seal[:8]} draws {facts.drawn[:8]}",
        "All nodes must see one model. With run.ship: path, prepare run.artifact once on a volume of all "
        "nodes; with run.ship: artifact, Spark ships it. If only the draws differ, remove the cache folder "
        "there (dptext_spark in the user's cache) and install the same wheel.",
    ),
)


def check_workers(driver: ProcessFacts, workers: Sequence[ProcessFacts], slots: int) -> Iterator[CheckResult]:
    """Judge all that the executors told; where they lack the package, that is all there is to say.

    A driver without a model (`seal`) judges none.
    """
    reached = check_executors(workers, slots)
    yield reached
    if reached.status == "fail":
        return
    for check, status, spell, hint in ALIKE if driver.seal else ALIKE[:-1]:
        expected = spell(driver)
        differ = [facts for facts in workers if spell(facts) != expected]
        if differ:
            message = f"{expected} on the driver, {spell(differ[0])}{_where(differ)} (in {differ[0].folder})"
            yield CheckResult(check, status, message, hint)
        else:
            yield CheckResult(check, "ok", f"{expected} everywhere")
