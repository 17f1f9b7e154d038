"""What the doctor makes of what it saw: each check's good and bad end, from plain facts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dptext_spark.doctor as on
from dptext_spark.runtime.environment import ProcessFacts, container_memory, held_bytes, process_facts

GIB, MIB = 1 << 30, 1 << 20
DRIVER = ProcessFacts(
    host="head", at=100.0, python="3.11.7", executable="/usr/bin/python3", package="0.1.0", build="a" * 16,
    folder="/site/dptext_spark", versions={"numpy": "2.0.0", "numba": "0.61"}, cache="/home/me/.cache/code",
    cache_writable=True, cache_lasting=True, blas=("SkylakeX",), avx512=True, free={"/tmp": 9 * GIB},
    drawn="d", seal="s", seconds=0.2, compiled=0,
)  # fmt: skip


def workers(**changes: Any) -> list[ProcessFacts]:
    """Two workers on two hosts; the second differs."""
    return [replace(DRIVER, host="node-1"), replace(DRIVER, host="node-2", **changes)]


def judged(**changes: Any) -> dict[str, on.CheckResult]:
    found = on.check_workers(DRIVER, workers(**changes), 2, 99.0, 101.0)
    return {one.check: one for one in found}


def test_all_is_well_on_equal_machines() -> None:
    found = judged()
    assert [one.check for one in found.values() if one.status != "ok" or one.hint] == []
    assert list(found) == [
        "executors", "Python", "dptext_spark", "libraries", "text engine", "code cache", "matrix products", "free space",
        "clocks",
    ]  # fmt: skip
    assert found["executors"].message == "2 slots on 2 hosts answered"
    assert found["Python"].message == "3.11.7 (/usr/bin/python3) everywhere"


@pytest.mark.parametrize(
    ("changes", "check", "status", "said", "hint"),
    [
        ({"python": "3.10.1"}, "Python", "fail", "3.11.7 on the driver, 3.10.1 on node-2", "PYSPARK_PYTHON"),
        ({"package": "0.0.9"}, "dptext_spark", "fail", "0.0.9 (build aaaaaaaa) on node-2", "same wheel everywhere"),
        ({"build": "b" * 16}, "dptext_spark", "fail", "0.1.0 (build bbbbbbbb) on node-2", "same wheel"),
        ({"versions": {"numpy": "2.1.0", "numba": None}}, "libraries", "warn", "numpy 2.0.0 on the driver, 2.1.0 on node-2",
         "constraints.txt"),
        ({"model_error": "DataError"}, "shared model", "fail", "cannot be opened on node-2: DataError", "run.ship: path"),
        ({"seal": "other"}, "shared model", "fail", "another one than the driver's on node-2", "prepare it once"),
        ({"drawn": "other"}, "text engine", "fail", "draws other words on node-2", "Remove the cache folder"),
        ({"cache_writable": False}, "code cache", "warn", "cannot be written on node-2", "spark.executorEnv.DPTEXT_CACHE"),
        ({"blas": ("Haswell",)}, "matrix products", "warn", "OpenBLAS took Haswell on node-2", "OPENBLAS_CORETYPE=SkylakeX"),
        ({"free": {"/tmp": GIB, "/x": 9 * GIB}}, "free space", "warn", "1.0 GiB at least (/tmp on node-2)", "TMPDIR"),
        ({"free": {"/tmp": 5}}, "free space", "fail", "0.0 GiB", "spark.local.dir"),
        ({"at": 41.0}, "clocks", "warn", "node-2 differs from the driver by 58 s", "NTP"),
        ({"at": 161.0}, "clocks", "warn", "node-2 differs from the driver by 60 s", "NTP"),
    ],
)  # fmt: skip
def test_a_machine_that_differs_is_named_with_what_to_do(
    changes: dict[str, Any], check: str, status: str, said: str, hint: str
) -> None:
    found = judged(**changes)
    assert {one.check for one in found.values() if one.status != "ok"} == {check}
    assert found[check].status == status
    assert said in found[check].message
    assert hint in found[check].hint


def test_what_is_no_mismatch_is_none() -> None:
    assert judged(blas=("Haswell",), avx512=False)["matrix products"].status == "ok"
    assert judged(blas=())["matrix products"].status == "ok"
    assert "compiled 7 loops" in judged(compiled=7)["text engine"].message
    assert "compiled anew on new machines" in judged(cache_lasting=False)["code cache"].message
    assert judged(at=103.0)["clocks"].status == "ok"


def test_without_the_package_nothing_else_is_judged() -> None:
    bare = [ProcessFacts(f"node-{i}", "3.11.7", "/py", missing="dptext_spark") for i in range(5)]
    (found,) = on.check_workers(DRIVER, bare, 5, 99.0, 101.0)
    assert found.status == "fail"
    assert found.message == "dptext_spark cannot be imported on node-0, node-1, node-2 and 2 more (/py)"
    assert "--py-files" in found.hint
    assert ".zip" in found.hint
    assert "--archives" in found.hint


@pytest.mark.parametrize(
    ("driver", "executors", "status"),
    [
        ("17.0.15", ["17.0.2"], "ok"),
        (None, ["21"], "ok"),
        ("21.0.1", [], "ok"),
        ("25.0.2", ["25.0.2"], "ok"),
        ("17.0.15", ["21.0.1"], "warn"),
        ("17.0.15", ["11.0.2"], "fail"),
        ("1.8.0_392", ["17"], "fail"),
    ],
)
def test_java(driver: str | None, executors: list[str], status: str) -> None:
    found = on.check_java(driver, executors, "4.2.0")
    assert found.status == status
    assert bool(found.hint) == (status != "ok")


@pytest.mark.parametrize("spark", ["4.0.0", "4.0.1", "4.1.4"])
def test_spark_before_4_2_does_not_start_with_java_24_or_newer(spark: str) -> None:
    assert on.check_java("21.0.8", ["21.0.8"], spark).status == "ok"
    found = on.check_java("21.0.8", ["25.0.2"], spark)
    assert found.status == "fail"
    assert f"Spark {spark} does not start with Java 24" in found.hint


def test_spark_4_0_0_runs_and_the_doctor_says_what_it_lacks() -> None:
    found = on.check_spark("4.0.0", "4.0.0")
    assert found.status == "warn"
    assert "fixes of Spark 4.0.1" in found.message
    assert "4.0.1" in found.hint
    assert on.check_spark("4.0.1", "4.0.1").status == "ok"


def test_spark_and_pyspark_are_of_one_release() -> None:
    assert on.check_spark("4.2.0", "4.2.1").status == "ok"
    found = on.check_spark("4.0.1", "4.2.0")
    assert found.status == "fail"
    assert "pyspark==4.0.1" in found.hint


def test_this_process_has_all_the_facts() -> None:
    facts = process_facts(["/none/such/folder"])
    absent = {name for name, value in facts.as_dict().items() if not value}
    ours = {"avx512", "blas", "cache_lasting", "container", "memory"}  # as the machine is
    assert absent - ours == {
        "missing",
        "drawn",
        "seal",
        "seconds",
        "compiled",
        "model_error",
        "held",
    }  # what a model adds
    assert facts.cache_writable
    assert facts.versions["numba"]
    assert facts.free["/none/such/folder"] > 0
    assert ProcessFacts.from_dict(json.loads(json.dumps(facts.as_dict()))) == facts


@pytest.mark.parametrize(
    ("held", "memory", "heap", "status"),
    [
        (200, 3000, 1024, "ok"),  # three workers take 600, and 2,400 are left for Java
        (200, 1624, 1024, "ok"),  # to the byte
        (200, 1623, 1024, "warn"),
        (200, 600, 1024, "warn"),
        (200, 599, 1024, "fail"),
    ],
)
def test_workers_with_a_classifier_are_compared_with_their_container(
    held: int, memory: int, heap: int, status: str
) -> None:
    """Three workers share a container on node-1; one of them takes most. On node-2 each container has one."""
    small, large = (replace(DRIVER, held=one * MIB, memory=memory * MIB) for one in (150, held))
    shared = [replace(one, host="node-1", container="/a") for one in (small, large, small)]
    apart = [replace(large, host="node-2", container=f"/{name}") for name in "bcd"]
    found = on.check_memory([*apart, *shared], heap * MIB)
    assert (found.check, found.status) == ("memory", status)
    assert found.message == (
        f"3 workers of {held} MiB with the classifier of names, {heap:,} MiB for Java, in {memory:,} MiB (on node-1)"
    )
    assert bool(found.hint) == (status != "ok")
    assert status == "ok" or "spark.executor.memoryOverhead" in found.hint
    alone = on.check_memory(apart, 0)
    assert alone.message.startswith(f"1 worker of {held} MiB")
    assert alone.status == "ok"


@pytest.mark.parametrize("unseen", [{"held": None}, {"memory": None}])
def test_memory_that_is_not_to_be_seen_is_said(unseen: dict[str, Any]) -> None:
    seen = replace(DRIVER, host="node-1", held=MIB, memory=GIB)
    found = on.check_memory([seen, replace(seen, host="node-2", **unseen)], GIB)
    assert found.status == "warn"
    assert found.message == "what workers hold with the classifier of names is not to be seen on node-2"
    assert found.hint


def made(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


V1, V2 = "sys/fs/cgroup/memory/", "sys/fs/cgroup/"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ("", None)),
        ({"proc/meminfo": "MemTotal:  2048 kB\nMemFree: 1 kB\n"}, ("", 2 * MIB)),
        ({"proc/self/cgroup": "0::/pod/one\n", f"{V2}pod/one/memory.max": "max\n", f"{V2}pod/memory.max": "77\n"},
         ("/pod/one", 77)),
        ({"proc/self/cgroup": "0::/\n", f"{V2}memory.max": "99\n", "proc/meminfo": "MemTotal: 1 kB"}, ("/", 99)),
        # Seen from within a container, whose own group stands for the root.
        ({"proc/self/cgroup": "4:memory:/pod/one\n0::/\n", f"{V1}memory.limit_in_bytes": "55\n"}, ("/pod/one", 55)),
        (
            {
                "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/pod/one\n0::/other\n",
                f"{V1}pod/one/memory.limit_in_bytes": "44\n", f"{V1}memory.limit_in_bytes": "9223372036854771712\n",
                "proc/meminfo": "MemTotal: 1 kB",
            },
            ("/pod/one", 44),
        ),
        ({"proc/self/cgroup": "0::/a\n", "proc/meminfo": "MemTotal: 3 kB"}, ("/a", 3072)),
    ],
)  # fmt: skip
def test_what_a_container_may_hold(
    tmp_path: Path, files: dict[str, str], expected: tuple[str, int | None]
) -> None:
    assert container_memory(made(tmp_path, files)) == expected


def test_what_a_process_holds(tmp_path: Path) -> None:
    assert held_bytes(tmp_path) is None
    rollup = "00 ---p [rollup]\nRss: 9 kB\nPrivate_Clean: 5 kB\nPrivate_Dirty:  7 kB\n"
    assert held_bytes(made(tmp_path, {"proc/self/smaps_rollup": rollup})) == 7 * 1024
    before = held_bytes()
    if before is not None:
        filled = bytearray(b"x" * (64 * MIB))
        assert (held_bytes() or 0) - before > 32 * MIB
        assert len(filled) == 64 * MIB


@pytest.mark.parametrize(
    ("levels", "travels", "status"),
    [
        ({"a.SessionHolder": "ERROR", "b.NettyServerHandler": "INFO"}, True, "ok"),
        ({"a.SessionHolder": "DEBUG", "b.NettyServerHandler": "INFO"}, True, "fail"),
        ({"a.SessionHolder": "ALL"}, True, "fail"),
        ({"a.SessionHolder": "TRACE"}, False, "ok"),
        (None, True, "warn"),
        (None, False, "ok"),
    ],
)
def test_a_server_that_logs_plans(levels: dict[str, str] | None, travels: bool, status: str) -> None:
    """The key is in a plan where it travels, and in a log where a logger of plans is at DEBUG."""
    found = on.check_server_log(levels, travels=travels)
    assert found.status == status
    assert bool(found.hint) == (status != "ok")
    if status == "fail":
        assert "a.SessionHolder" in found.message
        assert "Netty" not in found.message
        assert "executors" in found.hint


@pytest.mark.parametrize(
    ("settings", "there"),
    [
        ({}, False),
        ({"spark.plugins": "org.example.OtherPlugin"}, False),
        ({"spark.comet.exec.pyarrowUDF.enabled": "true"}, False),
        ({"spark.plugins": "org.example.OtherPlugin,org.apache.spark.CometPlugin"}, True),
        ({"spark.sql.extensions": "org.apache.comet.CometSparkSessionExtensions"}, True),
    ],
)
def test_comet_is_known_by_its_plugin_or_extension(settings: dict[str, str], there: bool) -> None:
    assert on.is_comet(settings) is there


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "spark.comet.exec.pyarrowUDF.enabled, is false"),
        ({"spark.comet.exec.pyarrowUDF.enabled": "TRUE"}, "spark.comet.exec.pyarrowUDF.enabled, is true"),
        ({"spark.comet.enabled": "false"}, "is false, and spark.comet.enabled is false"),
    ],
)
def test_comet_s_setting_for_functions_over_arrow_is_named(settings: dict[str, str], said: str) -> None:
    found = on.check_comet(settings)
    assert (found.check, found.status) == ("Comet", "ok")
    assert found.message.endswith(said)
    assert "does not depend on it" in found.hint
