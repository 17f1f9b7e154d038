"""A key that each worker reads for itself: the same draws as one that travels, nothing of it in a closure, and what fails."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.config.sections import Key
from dptext_spark.errors import RunError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.randomness import RunKey
from dptext_spark.spark import diagnostics
from dptext_spark.spark.frame import privatize
from dptext_spark.spark.runner import run
from dptext_spark.spark.secrets import key_of
from tests.core.names import beginning
from tests.spark.udf.test_column import python_functions

pytestmark = pytest.mark.cluster

SECRET = hashlib.sha256(b"the key of these tests").digest()
TEXTS = (
    "please call my good friend about the money",
    "good news about my friend and the call",
    "zanzibar 12",
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A key of this test alone: what a living worker has read, it keeps."""
    path = tmp_path / "run.key"
    path.write_bytes(secrets.token_bytes(32))
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("words") / "lexicon"
    beginning(Lexicon.default(), 600).save(folder)
    return str(folder)


def _source(spark: Any, n: int = 12) -> Any:
    rows = [(i, f"c{i % 4}", TEXTS[i % 3]) for i in range(n)]
    return spark.createDataFrame(rows, "id long, customer string, body string")


@pytest.fixture
def job(spark: Any, tmp_path: Path, file: Path, lexicon: str) -> Callable[..., dict[str, Any]]:
    """Run the job `name`, its key delivered as `deliver` says, and return its facts."""
    _source(spark).write.format("delta").save(str(tmp_path / "in"))

    def ran(name: str, deliver: str, say: Callable[[str], None] | None = None, **more: Any) -> dict[str, Any]:
        settings = {
            "input": {"path": str(tmp_path / "in")}, "columns": ["body"], "row_key": "id", "record_key": "customer",
            "consistency": "record", "lexicon": {"source": lexicon},
            "output": {"path": str(tmp_path / name), "other_columns": "keep"},
            "key": {"file": str(file), "deliver": deliver}, "run": {"id": "one"}, **more,
        }  # fmt: skip
        return run(parse_config(settings), spark, progress=say).facts

    return ran


class TestTheLazyFunction:
    @pytest.mark.parametrize(("level", "udf"), [("token", "auto"), ("record", "pandas")])
    def test_its_closure_holds_the_key_or_where_it_lies(self, spark, file, privatizer_at, level, udf) -> None:
        """Both draw the same: the plain reference of tests/spark/pairs judges rows of either."""
        for deliver in ("closure", "executors"):
            out = privatize(
                _source(spark), ["body"], privatizer_at(level), row_key="id", key=RunKey.from_file(file, deliver), udf=udf
            )  # fmt: skip
            (command,) = python_functions(out)
            assert (file.read_bytes() in command) == (deliver == "closure")
            assert str(file).encode() in command or deliver == "closure"

    def test_a_worker_that_finds_another_key_fails_by_a_code(self, spark, file: Path, privatizer) -> None:
        key = RunKey.from_file(file, "executors")
        out = privatize(_source(spark), ["body"], privatizer, row_key="id", key=key)
        other = secrets.token_bytes(32)
        for change, code in (
            (lambda: file.write_bytes(other), "KEY_DIFFERS"),
            (lambda: file.chmod(0o640), "KEY_INVALID"),
            (file.unlink, "KEY_MISSING"),
        ):
            change()
            with pytest.raises(Exception, match=rf"DPTEXT\[{code}\] partition=\d+") as caught:
                out.collect()
            assert other.hex() not in str(caught.value)
            assert repr(other)[2:-1] not in str(caught.value)


class TestTheJob:
    @pytest.mark.parametrize("mode", ["batch", "incremental"])
    def test_how_it_is_delivered_binds_nothing(self, spark, tmp_path, job, mode: str) -> None:
        """What was begun one way is the same run, or goes on as the same stream, the other way."""
        more = {"mode": mode}
        assert job("out", "closure", **more)["status"] == "succeeded"
        if mode == "batch":
            assert job("out", "executors", **more)["status"] == "unchanged"
            return
        _source(spark, 15).where("id >= 12").write.format("delta").mode("append").save(str(tmp_path / "in"))
        assert job("out", "executors", **more)["rows"] == 3

    def test_a_key_that_is_gone_when_workers_look_is_said(self, tmp_path, file: Path, job) -> None:
        def say(step: str) -> None:
            if step.startswith("preparing"):
                file.unlink(missing_ok=True)

        with pytest.raises(RunError, match=r"key\.deliver: .*\(KEY_MISSING\)") as caught:
            job("out", "executors", say)
        assert "the same file at the same path" in str(caught.value)
        assert "before its commit" in str(caught.value)
        assert not list((tmp_path / "out" / "_delta_log").glob("*.json"))

    def test_a_key_of_the_calling_program_is_refused_before_anything_is_read(self, tmp_path, spark) -> None:
        settings = {
            "input": {"path": str(tmp_path / "none")}, "columns": ["body"], "output": {"path": str(tmp_path / "out")},
            "key": {"file": str(tmp_path / "none.key"), "deliver": "executors"},
        }  # fmt: skip
        with pytest.raises(SettingsError, match=r"key\.deliver: executors needs a key that workers can read"):
            run(parse_config(settings), spark, key=RunKey(SECRET))


class TestAVariable:
    SESSION: Any = SimpleNamespace(conf={"spark.master": "spark://one:7077"})

    def test_one_of_a_spark_setting_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RUN_KEY", SECRET.hex())
        shown: Any = SimpleNamespace(conf={"spark.executorEnv.RUN_KEY": SECRET.hex()})
        with pytest.raises(SettingsError, match=r"key\.env: spark\.executorEnv\.RUN_KEY is set") as caught:
            key_of(shown, Key(env="RUN_KEY", deliver="executors"))
        assert SECRET.hex() not in str(caught.value)

    def test_it_stays_on_a_local_master_and_nowhere_else(self, spark: Any, monkeypatch) -> None:
        monkeypatch.setenv("RUN_KEY", base64.b64encode(SECRET).decode())
        key = Key(env="RUN_KEY", deliver="executors")
        assert key_of(spark, key).secret == SECRET
        assert "RUN_KEY" in os.environ
        assert key_of(self.SESSION, key).secret == SECRET
        assert "RUN_KEY" not in os.environ


class TestTheDoctor:
    def test_it_looks_for_the_key_in_every_slot(self, spark, file: Path, tmp_path: Path, monkeypatch) -> None:
        def config(**key: Any) -> RunConfig:
            base = {"input": {"path": "/a"}, "columns": ["body"], "output": {"path": str(tmp_path / "out")}}
            return parse_config({**base, "key": {**key, "deliver": "executors"}})

        assert diagnostics._key(spark, config(file=str(file))).endswith("2 task slots read the same key")
        name = f"RUN_KEY_{secrets.token_hex(4)}"
        monkeypatch.setenv(name, SECRET.hex())
        with pytest.raises(RunError, match=r"in 2 of 2 task slots .* finds no such .*\(KEY_MISSING\)"):
            diagnostics._key(spark, config(env=name))
        assert os.environ[name] == SECRET.hex()
