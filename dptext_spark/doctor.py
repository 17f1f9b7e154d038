"""What `dptext doctor` makes of what it saw: each check ok, warn or fail, and what to do about it. Plain facts in."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dptext_spark.runtime.environment import ProcessFacts

OLDEST_JAVA = 17
# Spark before 4.2 asks Java for what Java 24 took away (Subject.getSubject), and does not start.
NEWEST_JAVA_BEFORE_4_2 = 23
FIXED_IN_4_0_1 = "CVE-2025-54920"
LITTLE_SPACE, NO_SPACE = 2 << 30, 64 << 20  # bytes
SKEW = 5.0  # seconds
MEBIBYTE = 1 << 20
# Where a session names Apache DataFusion Comet, and Comet's settings: whether it works, and whether for functions over Arrow.
COMET_PLACES = ("spark.plugins", "spark.sql.extensions")
COMET, COMET_ARROW = "spark.comet.enabled", "spark.comet.exec.pyarrowUDF.enabled"
# OpenBLAS's kernels that use AVX-512, by the name that it gives them.
AVX512_KERNELS = frozenset({"SkylakeX", "Cooperlake", "SapphireRapids"})


@dataclass(frozen=True)
class CheckResult:
    """What a check found.

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


def newest_java(spark: str) -> int | None:
    """Return the newest feature version of Java that this version of Spark starts with; None: none is known."""
    return NEWEST_JAVA_BEFORE_4_2 if release_of(spark)[:2] < (4, 2) else None


def release_of(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with: (4, 0, 1) of `4.0.1`, and of `4.0.1.dev3` as well."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def check_java(driver: str | None, executors: Sequence[str], spark: str) -> CheckResult:
    """Judge the Java versions for a version of Spark; None: the driver's is not to be seen (Spark Connect)."""
    every = sorted({*executors, *([driver] if driver else [])})
    seen = f"driver {driver or 'not seen'}, executors {', '.join(sorted(set(executors))) or 'not seen'}"
    if any(_feature(one) < OLDEST_JAVA for one in every):
        return CheckResult(
            "Java",
            "fail",
            seen,
            f"Spark 4 needs Java {OLDEST_JAVA} or newer on every machine: let JAVA_HOME name one.",
        )
    newest = newest_java(spark)
    if newest is not None and any(_feature(one) > newest for one in every):
        hint = (
            f"Spark {spark} does not start with Java {newest + 1} or newer: let JAVA_HOME name Java 17 or 21."
        )
        return CheckResult("Java", "fail", seen, hint)
    if len({_feature(one) for one in every}) > 1:
        return CheckResult("Java", "warn", seen, "Install the same version everywhere.")
    return CheckResult("Java", "ok", seen)


def is_comet(settings: Mapping[str, str]) -> bool:
    """Whether Apache DataFusion Comet is installed in a session, by the session's `COMET_PLACES`."""
    return any("Comet" in settings.get(name, "") for name in COMET_PLACES)


def check_comet(settings: Mapping[str, str]) -> CheckResult:
    """Say what Apache DataFusion Comet does with functions over Arrow, by the settings of a session that has it."""
    given = settings.get(COMET_ARROW, "false").lower() == "true"
    message = (
        f"Comet is installed; its setting for functions over Arrow, {COMET_ARROW}, is {str(given).lower()}"
    )
    if settings.get(COMET, "true").lower() == "false":
        message += f", and {COMET} is false"
    return CheckResult(
        "Comet", "ok", message,
        "It reaches mapInArrow and mapInPandas. A run draws by a scalar function of an iterator, which Spark goes on to execute: "
        "what is drawn does not depend on it.",
    )  # fmt: skip


def check_server_log(levels: Mapping[str, str] | None, *, travels: bool) -> CheckResult:
    """Judge whether a Spark Connect server writes the run key into its log, with the plan that holds it.

    Args:
        levels: of the loggers that write plans; None: not to be seen.
        travels: whether the key is in the plan.
    """
    check = "server's log"
    if not travels:
        return CheckResult(check, "ok", "the run key is in no plan: each worker reads it for itself")
    hint = (
        "Have the server log these at INFO or above: org.apache.spark.sql.connect and org.sparkproject.connect.grpc; or let each "
        "worker read the key (key.deliver: executors)."
    )
    if levels is None:
        return CheckResult(
            check, "warn", "at what level the server logs plans is not to be seen from a client", hint
        )
    loud = sorted(name for name, level in levels.items() if level in ("DEBUG", "TRACE", "ALL"))
    if loud:
        return CheckResult(
            check, "fail", f"at DEBUG it holds plans, and in them the run key: {', '.join(loud)}", hint
        )
    return CheckResult(
        check, "ok", f"holds no plan: {len(levels)} loggers that could write one are above DEBUG"
    )


def _feature(release: str) -> int:
    parts = release.split(".")
    return int(
        "".join(filter(str.isdigit, parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0])) or 0
    )


def check_spark(server: str, client: str) -> CheckResult:
    """Judge the version of the session against that of the pyspark that was imported."""
    seen = f"Spark {server}, pyspark {client}"
    if server.split(".")[:2] != client.split(".")[:2]:
        return CheckResult(
            "Spark", "fail", seen, f"Install pyspark=={server} for the driver, and on every node."
        )
    if release_of(server) < (4, 0, 1):
        return CheckResult(
            "Spark",
            "warn",
            f"{seen}: it lacks the fixes of Spark 4.0.1, of {FIXED_IN_4_0_1} (History Server) among others",
            "A run works. Take 4.0.1 or newer where the platform has it, and let nobody else write to the folder of event logs.",
        )
    return CheckResult("Spark", "ok", seen)


def check_executors(workers: Sequence[ProcessFacts], slots: int) -> CheckResult:
    """Judge whether the package can be imported where tasks run."""
    hosts = len({worker.host for worker in workers})
    missing = [worker for worker in workers if worker.missing]
    if missing:
        names = ", ".join(sorted({worker.missing for worker in missing}))
        return CheckResult(
            "executors", "fail", f"{names} cannot be imported{_where(missing)} ({missing[0].executable})",
            "Install the wheel and what it depends on there, or ship them: --py-files with the wheel copied to a name that "
            "ends in .zip (Spark takes no other) brings the package alone, --archives a packed environment.",
        )  # fmt: skip
    return CheckResult("executors", "ok", f"{slots} slots on {hosts} host{'s' * (hosts > 1)} answered")


def check_python(driver: ProcessFacts, workers: Sequence[ProcessFacts]) -> CheckResult:
    """Judge the interpreters."""
    wrong = [one for one in workers if one.python.split(".")[:2] != driver.python.split(".")[:2]]
    if wrong:
        return CheckResult(
            "Python", "fail", f"{driver.python} on the driver, {wrong[0].python}{_where(wrong)}",
            "Let PYSPARK_PYTHON (spark.pyspark.python) name the same version on every node.",
        )  # fmt: skip
    return CheckResult("Python", "ok", _both(driver, workers, lambda one: f"{one.python} ({one.executable})"))


def check_package(driver: ProcessFacts, workers: Sequence[ProcessFacts]) -> CheckResult:
    """Judge whether every process has the same build of this package."""
    wrong = [one for one in workers if (one.package, one.build) != (driver.package, driver.build)]
    if wrong:
        one = wrong[0]
        return CheckResult(
            "dptext_spark", "fail",
            f"{driver.package} (build {driver.build[:8]}) on the driver, {one.package} (build {one.build[:8]})"
            f"{_where(wrong)}, in {one.folder}",
            "Install the same wheel everywhere; an old copy on the nodes is found before what --py-files ships.",
        )  # fmt: skip
    return CheckResult("dptext_spark", "ok", f"{driver.package}, the same build everywhere")


def check_libraries(driver: ProcessFacts, workers: Sequence[ProcessFacts]) -> CheckResult:
    """Judge the libraries: but for ties of attention no result depends on their versions, as `text engine` checks."""
    differ = {}
    for worker in workers:
        for name, there in worker.versions.items():
            if there != driver.versions.get(name):
                differ[name] = f"{name} {driver.versions.get(name)} on the driver, {there} on {worker.host}"
    if differ:
        return CheckResult(
            "libraries", "warn", "; ".join(differ[name] for name in sorted(differ)),
            "Install the same versions everywhere; constraints.txt names those that are tested together.",
        )  # fmt: skip
    return CheckResult("libraries", "ok", ", ".join(f"{n} {v}" for n, v in driver.versions.items() if v))


def check_engine(driver: ProcessFacts, workers: Sequence[ProcessFacts]) -> CheckResult:
    """Judge whether each process opens the shipped model and draws the words that the driver draws."""
    broken = [one for one in workers if one.model_error]
    if broken:
        return CheckResult(
            "shared model", "fail", f"cannot be opened{_where(broken)}: {broken[0].model_error}",
            "With run.ship: path every node must see the folder of run.artifact; with run.ship: artifact Spark brings it.",
        )  # fmt: skip
    other = [one for one in workers if one.seal != driver.seal]
    if other:
        return CheckResult(
            "shared model", "fail", f"another one than the driver's{_where(other)}",
            "The folder of run.artifact holds different files on different nodes: prepare it once, on a volume that all see.",
        )  # fmt: skip
    differ = [one for one in workers if one.drawn != driver.drawn]
    if differ:
        return CheckResult(
            "text engine", "fail", f"the same key draws other words{_where(differ)} than on the driver",
            "Remove the cache folder there (dptext_spark in the user's cache) and install the same wheel.",
        )  # fmt: skip
    slow = max(one.seconds for one in workers)
    loops = sum(one.compiled for one in workers)
    how = f"compiled {loops} loops" if loops else "loaded from its cache"
    return CheckResult(
        "text engine",
        "ok",
        f"the shared model opens everywhere, and draws the same words; {how}, {slow:.1f} s at most",
    )


def check_cache(driver: ProcessFacts, workers: Sequence[ProcessFacts]) -> CheckResult:
    """Judge the folder for machine code."""
    closed = [one for one in (driver, *workers) if not one.cache_writable]
    if closed:
        return CheckResult(
            "code cache", "warn", f"{closed[0].cache} cannot be written{_where(closed)}: every worker compiles (3 s)",
            "Name a folder that can be written: spark.executorEnv.DPTEXT_CACHE, and DPTEXT_CACHE for the driver.",
        )  # fmt: skip
    temporary = [one for one in workers if not one.cache_lasting]
    if temporary:
        return CheckResult(
            "code cache",
            "ok",
            f"{temporary[0].cache}, a temporary folder{_where(temporary)}: compiled anew on new machines",
        )
    return CheckResult("code cache", "ok", f"{driver.cache}, writable everywhere")


def check_matrix(driver: ProcessFacts, workers: Sequence[ProcessFacts]) -> CheckResult:
    """Judge whether matrix products use what the processor has; only noise mechanisms and compiling a model need them."""
    slow = [one for one in (driver, *workers) if one.avx512 and one.blas and not AVX512_KERNELS & {*one.blas}]
    seen = _both(driver, workers, lambda one: ", ".join(one.blas) or "no OpenBLAS")
    if slow:
        return CheckResult(
            "matrix products", "warn", f"the processor has AVX-512, OpenBLAS took {', '.join(slow[0].blas)}{_where(slow)}",
            "For mechanisms with noise: set OPENBLAS_CORETYPE=SkylakeX for the driver, and "
            "spark.executorEnv.OPENBLAS_CORETYPE=SkylakeX where every executor has AVX-512. No result depends on it.",
        )  # fmt: skip
    return CheckResult("matrix products", "ok", seen)


def check_space(driver: ProcessFacts, workers: Sequence[ProcessFacts]) -> CheckResult:
    """Judge the free space of temporary, cache and Spark's own folders."""
    least = min(((free, folder, one.host) for one in (driver, *workers) for folder, free in one.free.items()))
    free, folder, host = least
    seen = f"{free / (1 << 30):,.1f} GiB at least ({folder} on {host})"
    hint = "Free some, or name other folders: spark.local.dir, TMPDIR, DPTEXT_CACHE."
    if free < NO_SPACE:
        return CheckResult("free space", "fail", seen, hint)
    return (
        CheckResult("free space", "warn", seen, hint)
        if free < LITTLE_SPACE
        else CheckResult("free space", "ok", seen)
    )


def check_memory(workers: Sequence[ProcessFacts], heap: int) -> CheckResult:
    """Judge whether the workers of a container, each with a classifier of names open, fit into its memory beside Java.

    Args:
        workers: one for each task slot; those of one host and control group are in one container.
        heap: bytes that Java may take there.
    """
    check = "memory"
    hint = (
        "Give containers more memory (spark.executor.memoryOverhead, spark.executor.pyspark.memory), let fewer tasks run in one "
        "(spark.executor.cores), or take a smaller classifier (policy.names.model)."
    )
    unseen = [one for one in workers if one.held is None or one.memory is None]
    if unseen:
        seen = f"what workers hold with the classifier of names is not to be seen{_where(unseen)}"
        return CheckResult(
            check, "warn", seen, "Leave each task slot room for the classifier, several times its file."
        )
    containers: dict[tuple[str, str], list[ProcessFacts]] = defaultdict(list)
    for worker in workers:
        containers[worker.host, worker.container].append(worker)
    found = []
    for (host, _), group in containers.items():
        each, room = max(one.held or 0 for one in group), min(one.memory or 0 for one in group)
        found.append((room - len(group) * each, len(group), each, room, host))
    left, count, each, room, host = min(found)
    seen = (
        f"{count} worker{'s' * (count > 1)} of {each / MEBIBYTE:,.0f} MiB with the classifier of names, "
        f"{heap / MEBIBYTE:,.0f} MiB for Java, in {room / MEBIBYTE:,.0f} MiB (on {host})"
    )
    if left < 0:
        return CheckResult(check, "fail", seen, hint)
    return CheckResult(check, "warn", seen, hint) if left < heap else CheckResult(check, "ok", seen)


def check_clocks(workers: Sequence[ProcessFacts], began: float, ended: float) -> CheckResult:
    """Judge the workers' clocks: a time that was taken between `began` and `ended` of the driver must lie there."""
    skews = {one.host: max(began - one.at, one.at - ended, 0.0) for one in workers}
    host = max(skews, key=lambda name: skews[name])
    if skews[host] > SKEW:
        return CheckResult(
            "clocks", "warn", f"{host} differs from the driver by {skews[host]:,.0f} s or more",
            "Synchronise the clocks (NTP): what a failed run left behind is found by the files' times.",
        )  # fmt: skip
    return CheckResult("clocks", "ok", f"within {SKEW:.0f} s of the driver's")


def _where(facts: Iterable[ProcessFacts]) -> str:
    hosts = sorted({str(one.host) for one in facts})
    return f" on {', '.join(hosts[:3])}{f' and {len(hosts) - 3} more' if len(hosts) > 3 else ''}"


def _both(driver: ProcessFacts, workers: Sequence[ProcessFacts], said: Callable[[ProcessFacts], str]) -> str:
    """Return what driver and executors say: once where they agree."""
    by: dict[str, list[ProcessFacts]] = defaultdict(list)
    for worker in workers:
        by[said(worker)].append(worker)
    if set(by) <= {said(driver)}:
        return f"{said(driver)} everywhere"
    return "; ".join([f"driver {said(driver)}", *(f"{text}{_where(found)}" for text, found in by.items())])


def check_workers(
    driver: ProcessFacts, workers: Sequence[ProcessFacts], slots: int, began: float, ended: float
) -> Iterator[CheckResult]:
    """Judge all that the executors told; where they lack the package, that is all there is to say."""
    reached = check_executors(workers, slots)
    yield reached
    if reached.status == "fail":
        return
    for judge in (
        check_python,
        check_package,
        check_libraries,
        check_engine,
        check_cache,
        check_matrix,
        check_space,
    ):
        yield judge(driver, workers)
    yield check_clocks(workers, began, ended)
