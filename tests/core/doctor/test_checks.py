"""What the doctor makes of what it saw: each check's good and bad end, from plain facts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import dptext_spark.doctor as on
from dptext_spark.doctor import ProcessFacts, process_facts

DRIVER = ProcessFacts(
    host="head", python="3.11.7", executable="/usr/bin/python3", package="0.1.0", build="a" * 16,
    folder="/site/dptext_spark", versions={"numpy": "2.0.0", "numba": "0.61"}, drawn="d", seal="s",
)  # fmt: skip


def workers(**changes: Any) -> list[ProcessFacts]:
    return [replace(DRIVER, host="node-1"), replace(DRIVER, host="node-2", **changes)]


def judged(driver: ProcessFacts = DRIVER, **changes: Any) -> dict[str, on.CheckResult]:
    return {result.check: result for result in on.check_workers(driver, workers(**changes), 2)}


def test_all_is_well_on_equal_machines() -> None:
    results = judged()
    assert [result.check for result in results.values() if result.status != "ok" or result.hint] == []
    assert list(results) == ["executors", "Python", "dptext_spark", "libraries", "shared model"]
    assert results["executors"].message == "2 slots on 2 hosts answered"
    assert judged(python="3.11.2") == results
    assert list(judged(replace(DRIVER, seal="")))[-1] == "libraries"  # the driver has no model


@pytest.mark.parametrize(
    ("changes", "check", "status", "differs", "hint"),
    [
        ({"python": "3.10.1"}, "Python", "fail", "3.11 on the driver, 3.10 on node-2", "PYSPARK_PYTHON"),
        ({"package": "0.0.9"}, "dptext_spark", "fail", "0.0.9 (build aaaaaaaa) on node-2", "same wheel everywhere"),
        ({"build": "b" * 16}, "dptext_spark", "fail", "0.1.0 (build bbbbbbbb) on node-2", "same wheel"),
        ({"versions": {"numpy": "2.1.0", "numba": None}}, "libraries", "warn", "numpy 2.1.0 on node-2", "constraints.txt"),
        ({"model_error": "DataError"}, "shared model", "fail", "DataError on node-2", "run.ship: path"),
        ({"seal": "other"}, "shared model", "fail", "model other draws d on node-2", "on a volume of all nodes"),
        ({"drawn": "other"}, "shared model", "fail", "model s draws other on node-2", "remove the cache folder"),
    ],
)  # fmt: skip
def test_a_machine_that_differs_is_named_with_what_to_do(
    changes: dict[str, Any], check: str, status: str, differs: str, hint: str
) -> None:
    results = judged(**changes)
    assert {result.check for result in results.values() if result.status != "ok"} == {check}
    assert results[check].status == status
    assert differs in results[check].message
    assert results[check].message.endswith("(in /site/dptext_spark)")
    assert hint in results[check].hint


def test_without_the_package_nothing_else_is_judged() -> None:
    bare = [ProcessFacts(f"node-{i}", "3.11.7", "/py", missing="dptext_spark") for i in range(5)]
    (result,) = on.check_workers(DRIVER, bare, 5)
    assert result.status == "fail"
    assert result.message == "dptext_spark cannot be imported on node-0, node-1, node-2 and 2 more (/py)"
    assert "--py-files" in result.hint


@pytest.mark.parametrize(
    ("driver", "executors", "spark", "status"),
    [
        (None, ["21"], "4.2.0", "ok"),
        ("21.0.1", [], "4.2.0", "ok"),
        ("25.0.2", ["25.0.2"], "4.2.0", "ok"),
        ("17.0.15", ["21.0.1"], "4.2.0", "warn"),
        ("17.0.15", ["11.0.2"], "4.2.0", "fail"),
        ("1.8.0_392", ["17"], "4.2.0", "fail"),
        # Spark before 4.2 does not start with Java 24 or newer.
        ("21.0.8", ["21.0.8"], "4.0.0", "ok"),
        ("21.0.8", ["25.0.2"], "4.0.0", "fail"),
        ("21.0.8", ["25.0.2"], "4.1.4", "fail"),
    ],
)
def test_java(driver: str | None, executors: list[str], spark: str, status: str) -> None:
    result = on.check_java(driver, executors, spark)
    assert result.status == status
    assert bool(result.hint) == (status != "ok")


@pytest.mark.parametrize(
    ("server", "client", "status", "hint"),
    [
        ("4.0.1", "4.0.1", "ok", ""),
        ("4.2.0", "4.2.1", "ok", ""),
        ("4.0.0", "4.0.0", "warn", "4.0.1"),  # which lacks security fixes
        ("4.0.1", "4.2.0", "fail", "pyspark==4.0.1"),
    ],
)
def test_spark(server: str, client: str, status: str, hint: str) -> None:
    result = on.check_spark(server, client)
    assert result.status == status
    assert hint in result.hint


def test_this_process_has_all_the_facts() -> None:
    facts = process_facts()
    absent = {name for name, value in facts.as_dict().items() if not value}
    assert absent == {"missing", "drawn", "seal", "model_error"}  # what a model adds
    assert facts.versions["numba"]
    assert ProcessFacts.from_dict(json.loads(json.dumps(facts.as_dict()))) == facts


@pytest.mark.parametrize(
    ("levels", "travels", "status"),
    [
        ({"a.SessionHolder": "ERROR", "b.NettyServerHandler": "INFO"}, True, "ok"),
        ({"a.SessionHolder": "DEBUG", "b.NettyServerHandler": "INFO"}, True, "fail"),
        ({"a.SessionHolder": "TRACE"}, True, "fail"),
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
