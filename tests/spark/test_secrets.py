"""The key of a job: from the environment of a driver in client mode, and from a platform's secrets."""

from __future__ import annotations

import hashlib
import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.config.sections import Key, Secret
from dptext_spark.errors import RunError, SettingsError
from dptext_spark.spark import runner
from dptext_spark.spark.runner import run
from dptext_spark.spark.secrets import key_of

RAW = hashlib.sha256(b"the key of these tests").digest()
SESSION: Any = SimpleNamespace(conf={})
ASKED = Key(secret=Secret(scope="text", name="run-key"))


def utility(held: bytes | str, method: str = "getBytes") -> Any:
    def read(scope: str, name: str) -> bytes | str:
        if (scope, name) != ("text", "run-key"):
            raise PermissionError(f"MARKER {held!r}")
        return held

    return SimpleNamespace(secrets=SimpleNamespace(**{method: read}))


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    names: dict[str, Any] = {}
    shell = ModuleType("IPython")
    shell.get_ipython = lambda: SimpleNamespace(user_ns=names)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    return names


@pytest.mark.parametrize("held", [RAW, RAW.hex().encode(), RAW.hex() + "\n"])
def test_a_notebooks_utility_is_asked(notebook: dict[str, Any], held: bytes | str) -> None:
    notebook["dbutils"] = utility(held, "getBytes" if isinstance(held, bytes) else "get")
    found = key_of(SESSION, ASKED)
    assert found.secret == RAW
    assert found.kind == "secret"


def test_a_jobs_utility_comes_with_the_platforms_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    brought = ModuleType("pyspark.dbutils")
    brought.DBUtils = lambda spark: utility(RAW) if spark is SESSION else None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspark.dbutils", brought)
    assert key_of(SESSION, ASKED).secret == RAW


def test_a_secret_that_cannot_be_had_is_said_without_it(notebook: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"^key\.secret: .*dbutils"):
        key_of(SESSION, ASKED)
    notebook["dbutils"] = utility("MARKER")
    wrong = Key(secret=Secret(scope="text", name="other"))
    with pytest.raises(SettingsError, match=r"'other' of scope 'text' .* \(PermissionError\)") as one:
        key_of(SESSION, wrong)
    with pytest.raises(SettingsError, match=r"key\.secret: 4 bytes are too few") as two:
        key_of(SESSION, ASKED)
    assert one.value.__suppress_context__
    assert not any("MARKER" in str(caught.value) for caught in (one, two))


def test_a_variable_is_refused_where_the_driver_runs_in_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN_KEY", RAW.hex())
    submitted: Any = SimpleNamespace(conf={"spark.submit.deployMode": "cluster"})
    with pytest.raises(SettingsError, match=r"^key\.env: .*deployMode=cluster"):
        key_of(submitted, Key(env="RUN_KEY"))
    assert "RUN_KEY" not in os.environ


def test_without_a_source_each_run_has_a_key_of_its_own() -> None:
    one, two = key_of(SESSION, Key()), key_of(SESSION, Key())
    assert one.secret != two.secret
    assert one.kind == "os"


def test_a_variable_is_gone_before_spark_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that is started afterwards, and the workers that it starts, do not inherit it."""
    monkeypatch.setenv("RUN_KEY", RAW.hex())

    def starts() -> None:
        raise RunError(f"started with {sorted({'RUN_KEY'} & set(os.environ))}")

    monkeypatch.setattr(runner, "spark_session", starts)
    settings = {"input": {"path": "/a"}, "columns": ["body"], "output": {"path": "/b"}}
    settings["key"] = {"env": "RUN_KEY"}
    with pytest.raises(RunError, match=r"started with \[\]"):
        run(parse_config(settings))
