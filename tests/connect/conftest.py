"""A Spark Connect server with Delta Lake, a process of its own, on a free port of this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.spark.conftest import NO_CODE

CHECKOUT = Path(__file__).resolve().parents[2]
START_SECONDS = 240


@dataclass(frozen=True)
class Server:
    remote: str
    log: Path
    events: Path

    def printed(self) -> str:
        return self.log.read_text("utf-8", "replace")


def environment() -> dict[str, str]:
    """The package is importable in workers and clients even where it is not installed."""
    path = [str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYSPARK_PYTHON": sys.executable}


def run_client(module: str, server: Server, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a client of the server, a process of its own."""
    command = [sys.executable, "-m", module, server.remote, str(folder)]
    return subprocess.run(
        command, cwd=CHECKOUT, env=environment(), capture_output=True, text=True, timeout=900
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
    pytest.importorskip("grpc", reason="the extra [connect] is not installed")
    try:
        import pyspark.sql.connect.proto
    except Exception as error:  # generated code that is too old for this protobuf
        pytest.skip(f"the Connect client of this pyspark does not load here ({type(error).__name__})")
    import pyspark

    from dptext_spark.spark.session import (
        DELTA_CATALOG,
        DELTA_EXTENSION,
        delta_jars,
        find_java,
        local_settings,
    )

    folder = tmp_path_factory.mktemp("connect")
    home = Path(pyspark.__file__).parent
    events = folder / "events"
    events.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = local_settings("local[2]") | NO_CODE | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.memory": "1g",
        "spark.jars": delta_jars(local_settings("local[2]")),
        "spark.local.dir": str(folder / "local"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }  # fmt: skip
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    log = folder / "server.log"
    java = {"SPARK_HOME": str(home), "JAVA_HOME": str(find_java().home)}
    with log.open("wb") as file:
        started = subprocess.Popen(
            command, cwd=folder, env=environment() | java, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            start_new_session=True,
        )  # fmt: skip
        try:
            _wait(started, port, log)
        except BaseException:
            _stop(started)
            raise
    try:
        yield Server(f"sc://127.0.0.1:{port}", log, events)
    finally:
        _stop(started)


def _wait(started: subprocess.Popen[bytes], port: int, log: Path) -> None:
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit:
        if started.poll() is not None:
            break
        with socket.socket() as client:
            client.settimeout(1)
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail(f"the Connect server did not start:\n{log.read_text('utf-8', 'replace')[-3000:]}")


def _stop(started: subprocess.Popen[bytes]) -> None:
    """End the server with its Python workers: they are of its process group."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(started.pid, sign)
        except ProcessLookupError:
            return
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            continue
