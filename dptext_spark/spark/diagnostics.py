"""`dptext doctor`: look at a cluster before a run does. Nothing is read but the input's schema, nothing stays written.

A tiny job over all slots asks the executors. It holds no data, and no key but one that is no secret. Where a run would write,
Spark writes a small Delta table and removes it.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession, functions

from dptext_spark.config.model import RunConfig
from dptext_spark.config.sections import read_key
from dptext_spark.doctor import (
    CheckResult,
    ProcessFacts,
    check_java,
    check_server_log,
    check_spark,
    check_workers,
    process_facts,
)
from dptext_spark.encoder.name_classifier import read_classifier
from dptext_spark.errors import DPTextError, RunError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import CusText
from dptext_spark.model import artifact
from dptext_spark.model.artifact import MANIFEST, read_manifest
from dptext_spark.model.privatizer import Privatizer, providers_of
from dptext_spark.model.table_checks import check_texts
from dptext_spark.model.target_checks import places_written
from dptext_spark.randomness import KeyReference, KeyUnavailableError, RunKey, key_at_hand
from dptext_spark.runtime.display import Steps, by_default
from dptext_spark.runtime.paths import user_cache
from dptext_spark.spark.nested_columns import schema_of
from dptext_spark.spark.secrets import key_of, require_client_mode, require_no_setting
from dptext_spark.spark.session import context_of, spark_session
from dptext_spark.spark.ship import Shipped, open_shipped, ship, ship_for
from dptext_spark.spark.spark_errors import key_error, reduced, suppress_sensitive_logs
from dptext_spark.spark.tables import Target, read_input, split_name
from dptext_spark.text.names.search import NameSearch
from dptext_spark.text.policy import Policy

_SAID = {
    "os": "32 bytes of the operating system for each run",
    "file": "its file is readable, and only its owner may read it",
    "env": "the variable holds a key; a run removes the variable after reading it",
    "secret": "the platform's secret is readable",
}  # fmt: skip

_KEY_CURE = (
    "Give a file of at least 32 bytes with mode 600, a variable of the driver in base64 or hex, "
    "or a secret that the job's user may read. Without `key`, each run makes its own."
)
_MODEL_CURE = (
    "Correct the setting that the message names. jobs/prepare.py compiles a model and prints the "
    "value for run.artifact. Without run.artifact, the run compiles its own model."
)
TEXTS = ("The quick brown fox, No. 42, isn't here.", "A second text: EVERYTHING else stays as it was!")
F: Any = functions  # its stubs leave out what Spark adds at run time
_MOST_SLOTS = 1_000
# At DEBUG the first logs each plan that it finds in its cache, as the text of protobuf; the second the first 64 bytes of each
# network frame; the third, where the server's settings name it as an interceptor, each request as JSON.
PLAN_LOGGERS = (
    "org.apache.spark.sql.connect.service.SessionHolder",
    "org.sparkproject.connect.grpc.netty.NettyServerHandler",
    "org.apache.spark.sql.connect.service.LoggingInterceptor",
)
_ROWS = 1 << 20
_CURE = "Let the user that runs Spark write and delete there on every node, or name another place."
_UNSHARED = "Name a place that all nodes share: an object store, or a folder that is mounted on each node."
_MOST_FILES = 64


def doctor(
    config: RunConfig | None = None, spark: SparkSession | None = None, *, progress: Steps | None = None
) -> list[CheckResult]:
    """Check the requirements of a run, as `dptext doctor` does; no data is read, and no written file remains.

    Args:
        config: the settings of a run; without them, their places and model are not checked.
        spark: a session; None takes the active one, or starts a local one.
        progress: progress callback, called with each step. None prints them on stderr in a notebook or terminal.

    Returns:
        The result of each check. Without a session the others are left out.

    Examples:
        >>> checks = dps.doctor(dp.load_config("reviews.yaml"))
        >>> [check.check for check in checks if check.status == "fail"]
        []
    """
    say = progress or by_default()
    say("starting Spark")
    try:
        session = spark or spark_session()
    except DPTextError as error:
        hint = "All other checks need a running Spark."
        return [CheckResult("Spark", "fail", str(error), hint)]
    with suppress_sensitive_logs(session):
        results = list(_machines(session, config, say))
        return results if config is None else [*results, *_settings(session, config, say)]


def _machines(spark: SparkSession, config: RunConfig | None, say: Steps) -> Iterator[CheckResult]:
    import pyspark

    yield check_spark(spark.version, pyspark.__version__)
    if context_of(spark) is None:
        yield check_server_log(
            server_levels(spark), travels=config is None or config.key.deliver == "closure"
        )
    say("asking the executors")
    try:
        slots = slots_of(spark)
        yield _java(spark, slots)
        yield from _workers(spark, config, slots)
    except Exception as error:
        yield CheckResult("executors", "fail", f"the probe failed. {reduced(error, [])}", _why(str(error)))


def _workers(spark: SparkSession, config: RunConfig | None, slots: int) -> Iterator[CheckResult]:
    """Judge the facts of the executors, with those of the model if one can be shipped."""
    driver, shipped = process_facts(), None
    with tempfile.TemporaryDirectory(prefix="dptext-doctor-", dir=user_cache()) as folder:
        try:
            driver, shipped = _sent(spark, config, folder)
        except DPTextError as error:
            yield CheckResult("shared model", "fail", str(error), _MODEL_CURE)
        yield from check_workers(driver, worker_facts(spark, shipped, slots), slots)


def _sent(spark: SparkSession, config: RunConfig | None, folder: str) -> tuple[ProcessFacts, Shipped]:
    """Ship the model; return the facts and draws of this process, and the model's place for workers."""
    model = _model(config, folder)
    if config is None:
        return _drawn(artifact.open_model(model), read_manifest(model).seal), ship(spark, model)
    artifact.require_expected(model, config.run.expected_seal)
    privatizer = artifact.open_model(model, providers=config.policy.providers)
    return _drawn(privatizer, read_manifest(model).seal), ship_for(spark, model, config)


def _why(message: str) -> str:
    """Return the remedy for a failed probe. Its message holds no data, but is long."""
    if "PYTHON_VERSION_MISMATCH" in message:
        return "The executors run another Python. Set PYSPARK_PYTHON (spark.pyspark.python) to the driver's version."
    if "Cannot run program" in message:
        return "The executors lack the interpreter of PYSPARK_PYTHON (spark.pyspark.python). Install it, or name another."
    return "Read the executors' stderr on the application's page of the cluster."


def _java(spark: SparkSession, slots: int) -> CheckResult:
    asked = "java_method('java.lang.System', 'getProperty', 'java.version') AS java"
    try:
        rows = spark.range(0, slots, 1, slots).selectExpr(asked).distinct().collect()
        executors = [str(row["java"]) for row in rows]
    except Exception:  # some platforms forbid the function
        executors = []
    context = context_of(spark)
    driver = None if context is None else str(context._jvm.System.getProperty("java.version"))
    return check_java(driver, executors, spark.version)


def _model(config: RunConfig | None, folder: str) -> Path:
    """Return the artifact to ship: the settings' own, else a tiny one, with the settings' classifier and providers."""
    if config is not None and config.run.artifact is not None:
        return Path(config.run.artifact)
    policy = Policy()
    if config is not None:
        names = config.policy.names if config.policy.names.classifies else NameSearch()
        policy = Policy(names=names, providers=config.policy.providers)
    words = sorted({*re.findall("[a-z]+", " ".join(TEXTS).lower())})
    angles = np.arange(len(words), dtype=np.float32)
    lexicon = Lexicon(Vocabulary.of(words), np.stack([np.cos(angles), np.sin(angles)], axis=1))
    law = CusText(epsilon=1.0, k=4).compile(lexicon)
    classifier = read_classifier(policy.names)
    imported = providers_of(policy, tried=True)
    place = Path(folder) / "model"
    artifact.save_model(Privatizer(lexicon, law, policy, classifier=classifier, imported=imported), place)
    return place


def _settings(spark: SparkSession, config: RunConfig, say: Steps) -> Iterator[CheckResult]:
    say("checking the key, the input and the places to write")
    yield _checked("key", lambda: _key(spark, config), _KEY_CURE)
    yield _checked(
        "input", lambda: _input(spark, config), "Correct the settings, or the rights of the job's user."
    )
    if config.output.table:
        yield check_name(spark, "output.table", config.output.table)
    for check, path in places_written(config).items():
        say(f"writing to {check}")
        yield check_folder(spark, check, path)


def _checked(check: str, look: Callable[[], str], hint: str) -> CheckResult:
    try:
        return CheckResult(check, "ok", look())
    except Exception as error:
        return CheckResult(check, "fail", str(reduced(error, [])), hint)


def _key(spark: SparkSession, config: RunConfig) -> str:
    """Read the key and drop it again; a variable stays where it is."""
    key = read_key(config.key)
    if config.key.env is not None:
        require_client_mode(spark)
    elif config.key.secret is not None:
        key_of(spark, config.key)
    delivered = None if key is None else key.delivered()
    if not isinstance(delivered, KeyReference):
        return _SAID[config.key.kind]
    if config.key.env is not None:
        require_no_setting(spark, config.key.env)
    slots = slots_of(spark)
    wrong = worker_keys(spark, delivered, slots)
    if wrong:
        raise RunError(key_error(wrong[0], f"{len(wrong)} of {slots} task slots"))
    return f"the driver and {slots} task slots read the same key"


def _input(spark: SparkSession, config: RunConfig) -> str:
    df, version = read_input(spark, config.input, list(config.columns))
    check_texts(schema_of(df.schema), config.columns)
    return f"{config.input.table or config.input.path} ({version}) is readable and has the columns"


def slots_of(spark: SparkSession) -> int:
    """Count the tasks that run at a time, by the parallelism of a range."""
    slots = spark.range(_ROWS).select(F.spark_partition_id().alias("slot")).distinct().count()
    return max(1, min(_MOST_SLOTS, slots))


def worker_facts(spark: SparkSession, shipped: Shipped | None, slots: int) -> list[ProcessFacts]:
    """Return the facts of each process that runs tasks, with the shipped model's draws there.

    A process that lacks the package says so: `missing` names the module that could not be imported.
    """
    told = _in_every_slot(spark, slots, _asker(pickle.dumps(shipped)))
    return [ProcessFacts.from_dict(json.loads(facts)) for facts in told]


def worker_keys(spark: SparkSession, key: KeyReference, slots: int) -> list[str]:
    """Let a task in every slot read the run key; return a code for each slot with a missing or wrong key."""

    def look(_: int) -> str:
        time.sleep(0.2)  # so that no slot takes the task of another
        try:
            key_at_hand(key)
        except KeyUnavailableError as error:
            return error.code
        return ""

    return list(filter(None, _in_every_slot(spark, slots, look)))


def _in_every_slot(spark: SparkSession, slots: int, ask: Callable[[int], str]) -> list[str]:
    """Run a task in every slot, and return the answers."""
    asked = F.udf(ask, "string", useArrow=False).asNondeterministic()
    rows = spark.range(0, slots, 1, slots).select(asked("id").alias("answer")).collect()
    return [row["answer"] for row in rows]


def server_levels(spark: SparkSession) -> dict[str, str] | None:
    """Return the levels of those loggers of a Spark Connect server that write plans down.

    None where they cannot be seen: tasks report them, and only on a local master do tasks run in the server's own process.
    """
    if not str(spark.conf.get("spark.master", "")).startswith("local"):
        return None
    asked = "java_method('org.apache.logging.log4j.LogManager', 'getLogger', '{0}') AS `{0}`"
    try:
        row = spark.range(1).selectExpr(*[asked.format(name) for name in PLAN_LOGGERS]).first()
    except Exception:  # some platforms forbid the function
        return None
    assert row is not None
    levels = {name: re.search(r":([A-Z]+) in ", str(row[name])) for name in PLAN_LOGGERS}
    return {name: level[1] for name, level in levels.items() if level} or None


def _asker(shipped: bytes) -> Callable[[int], str]:
    """Return the function of the tasks. It is sent whole, since its module may be missing on a worker."""

    def ask(_: int) -> str:
        import json
        import pickle
        import platform
        import socket
        import sys
        import time

        plain = {
            "host": socket.gethostname(),
            "python": platform.python_version(),
            "executable": sys.executable,
        }
        time.sleep(0.2)  # so that no slot takes the task of another
        try:
            from dptext_spark.spark.diagnostics import answer

            return json.dumps(answer(pickle.loads(shipped)).as_dict())
        except ImportError as error:
            return json.dumps({**plain, "missing": error.name or type(error).__name__})

    return ask


def answer(shipped: Shipped | None) -> ProcessFacts:
    """Return the facts of a worker, with the draws of the shipped model."""
    if shipped is None:
        return process_facts()
    try:
        return _drawn(open_shipped(shipped), _seal(shipped))
    except Exception as error:  # its message may be long, and is another check's business
        return replace(process_facts(), model_error=type(error).__name__)


def _seal(shipped: Shipped) -> str:
    """Return the seal of the model that this worker sees."""
    if shipped.folder:
        return read_manifest(shipped.folder).seal
    from pyspark import SparkFiles

    with open(SparkFiles.get(f"{shipped.prefix}{MANIFEST}"), encoding="utf-8") as file:
        return str(json.load(file)["seal"])


def _drawn(model: Privatizer, seal: str) -> ProcessFacts:
    """Return the facts of this process, with a model's draws for fixed texts under a key that is no secret.

    The draws must be equal on all processes.
    """
    ids = pa.array(range(len(TEXTS)), pa.int64())
    if model.selector is not None and model.selector.reads_weights:
        model = replace(model, selector=None)  # these texts have no weights
    drawn, _ = model.privatize(
        pa.array(TEXTS), column="doctor", row_ids=ids, record_ids=ids, key=RunKey.insecure(0), run_id="doctor"
    )
    digest = hashlib.sha256("\n".join(drawn.to_pylist()).encode()).hexdigest()
    return replace(process_facts(), drawn=digest, seal=seal)


def check_folder(spark: SparkSession, check: str, path: str) -> CheckResult:
    """Write a small table into `path`, or into the nearest folder above that exists, and remove it again.

    Every task slot writes, and the driver looks for the files: a folder that each node has for itself would hold a part.
    """
    near = _nearest(spark, path)
    probe = f"{near.rstrip('/')}/_dptext_doctor_{secrets.token_hex(6)}"
    try:
        written, visible = _written(spark, probe)
    except Exception as error:
        _remove(spark, probe)
        return CheckResult(check, "fail", f"{near}: writing failed. {reduced(error, [])}", _CURE)
    if visible is not None and visible < written:
        _remove(spark, probe)
        return CheckResult(
            check, "fail", f"{near}: tasks wrote {written} files, and the driver sees {visible}", _UNSHARED
        )
    if not _remove(spark, probe):
        return CheckResult(check, "warn", f"{probe} was written, but not removed", f"Remove it. {_CURE}")
    where = path if near.rstrip("/") == path.rstrip("/") else f"{path}, a new folder in {near}"
    return CheckResult(check, "ok", f"{where}: a table was written and removed")


def _written(spark: SparkSession, probe: str) -> tuple[int, int | None]:
    """Write from every task slot; return the files of the table, and those that the driver sees (None: not asked)."""
    spark.range(_MOST_FILES).write.format("delta").save(probe)  # in as many parts as there are slots
    files = spark.read.format("delta").load(probe).inputFiles()
    file_system, context = _file_system(spark, probe), context_of(spark)
    if file_system is None or context is None:
        return len(files), None
    system, kind = file_system
    return len(files), sum(bool(system.exists(kind(context._jvm.java.net.URI(file)))) for file in files)


def check_name(spark: SparkSession, check: str, name: str) -> CheckResult:
    """Make a small table in the schema of a name, and drop it again."""
    parts = [*split_name(name)[:-1], f"_dptext_doctor_{secrets.token_hex(6)}"]
    probe = Target(name=".".join(f"`{part}`" for part in parts))
    try:
        spark.range(1).coalesce(1).writeTo(probe.sql).using("delta").create()
    except Exception as error:
        return CheckResult(
            check, "fail", f"{name}: creating a table in its schema failed. {reduced(error, [])}",
            "Create the schema, and give the job's user USE SCHEMA and CREATE TABLE on it.",
        )  # fmt: skip
    try:
        spark.sql(f"DROP TABLE {probe.sql}")
    except Exception as error:
        return CheckResult(
            check, "warn", f"{probe.name} was made, but not dropped. {reduced(error, [])}", "Drop it."
        )
    return CheckResult(check, "ok", f"{name}: a table was created in its schema and dropped")


def _file_system(spark: SparkSession, path: str) -> tuple[Any, Any] | None:
    """Return Hadoop's file system of a path, and the class of paths; None on Spark Connect, where neither is visible."""
    context = context_of(spark)
    if context is None:
        return None
    kind = context._jvm.org.apache.hadoop.fs.Path
    return kind(path).getFileSystem(context._jsc.hadoopConfiguration()), kind


def _nearest(spark: SparkSession, path: str) -> str:
    """Return `path` where it exists, else the nearest folder above that does; the one above where that cannot be asked."""
    above = path.rstrip("/")
    parent = above.rpartition("/")[0] or "/"
    try:
        file_system = _file_system(spark, path)
        if file_system is None:
            return parent
        system, kind = file_system
        while not system.exists(kind(above)) and urlparse(above).path.strip("/"):
            above = above.rpartition("/")[0] or "/"
    except Exception:  # no such file system, or no access from here: the write will fail with the reason
        return parent
    return above


def _remove(spark: SparkSession, probe: str) -> bool:
    """Remove the folder of a probe; return whether it is gone."""
    try:
        file_system = _file_system(spark, probe)
        if file_system is not None:
            system, kind = file_system
            system.delete(kind(probe), True)
            return not system.exists(kind(probe))
    except Exception:
        return False
    local = Path(urlparse(probe).path)
    shutil.rmtree(local, ignore_errors=True)
    return urlparse(probe).scheme in ("", "file") and not os.path.lexists(local)
