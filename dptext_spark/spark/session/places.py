"""Whether a run may write where its settings say: a small Delta table is written there by Spark, and removed again."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from dptext_spark.config.model import RunConfig
from dptext_spark.config.sections import FIELDS, is_table_name, ledger_on_disk
from dptext_spark.doctor import CheckResult
from dptext_spark.spark.errors import reduced
from dptext_spark.spark.session.session import context_of
from dptext_spark.spark.tables.tables import Target, split_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CURE = (
    "Give the user that runs Spark the right to write and delete there, on every node, or name another place."
)
_UNSHARED = "Name a place that all nodes share: an object store, or a folder that is mounted on each of them."
_MOST_FILES = 64


def folders_of(config: RunConfig) -> dict[str, str]:
    """Return the folders that a run writes to, by the setting that names them."""
    ledger = ledger_on_disk(config.input, config.ledger)
    named = {
        "output.path": config.output.path,
        "audit.shareable": config.shareable,
        "audit.restricted": config.restricted,
        FIELDS: None if is_table_name(ledger) else ledger,
        "stream.checkpoint": config.checkpoint,
    }
    return {name: path for name, path in named.items() if path}


def check_folder(spark: SparkSession, check: str, path: str) -> CheckResult:
    """Write a small table into `path`, or into the nearest folder above that exists, and remove it again.

    Every task slot writes, and the driver looks for the files: a folder that each node has for itself would hold a part.
    """
    near = _nearest(spark, path)
    probe = f"{near.rstrip('/')}/_dptext_doctor_{secrets.token_hex(6)}"
    try:
        written, seen = _written(spark, probe)
    except Exception as error:
        _remove(spark, probe)
        return CheckResult(check, "fail", f"{near} cannot be written. {reduced(error, [])}", _CURE)
    if seen is not None and seen < written:
        _remove(spark, probe)
        return CheckResult(
            check, "fail", f"{near}: of {written} files that tasks wrote, the driver sees {seen}", _UNSHARED
        )
    if not _remove(spark, probe):
        return CheckResult(check, "warn", f"{probe} was written, but not removed", f"Remove it. {_CURE}")
    where = path if near.rstrip("/") == path.rstrip("/") else f"{path}, to be made in {near}"
    return CheckResult(check, "ok", f"{where}: a table was written and removed")


def _written(spark: SparkSession, probe: str) -> tuple[int, int | None]:
    """Write from every task slot; return the files of the table, and those that the driver sees (None: not asked)."""
    spark.range(_MOST_FILES).write.format("delta").save(probe)  # in as many parts as there are slots
    files = spark.read.format("delta").load(probe).inputFiles()
    found, context = _file_system(spark, probe), context_of(spark)
    if found is None or context is None:
        return len(files), None
    system, kind = found
    return len(files), sum(bool(system.exists(kind(context._jvm.java.net.URI(file)))) for file in files)


def check_name(spark: SparkSession, check: str, name: str) -> CheckResult:
    """Make a small table beside the one of that name in its schema, and drop it again."""
    parts = [*split_name(name)[:-1], f"_dptext_doctor_{secrets.token_hex(6)}"]
    probe = Target(name=".".join(f"`{part}`" for part in parts))
    try:
        spark.range(1).coalesce(1).writeTo(probe.sql).using("delta").create()
    except Exception as error:
        return CheckResult(
            check, "fail", f"no table can be made beside {name}. {reduced(error, [])}",
            "Create the schema, and give the job's user USE SCHEMA and CREATE TABLE on it.",
        )  # fmt: skip
    try:
        spark.sql(f"DROP TABLE {probe.sql}")
    except Exception as error:
        return CheckResult(
            check, "warn", f"{probe.name} was made, but not dropped. {reduced(error, [])}", "Drop it."
        )
    return CheckResult(check, "ok", f"{name}: a table was made beside it and dropped")


def _file_system(spark: SparkSession, path: str) -> tuple[Any, Any] | None:
    """Return Hadoop's file system of a path, and the class of paths; None on Spark Connect, which shows neither."""
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
        found = _file_system(spark, path)
        if found is None:
            return parent
        system, kind = found
        while not system.exists(kind(above)) and urlparse(above).path.strip("/"):
            above = above.rpartition("/")[0] or "/"
    except Exception:  # no such file system, or no access to it from here: the write will say
        return parent
    return above


def _remove(spark: SparkSession, probe: str) -> bool:
    """Remove the folder of a probe; return whether it is gone."""
    try:
        found = _file_system(spark, probe)
        if found is not None:
            system, kind = found
            system.delete(kind(probe), True)
            return not system.exists(kind(probe))
    except Exception:
        return False
    local = Path(urlparse(probe).path)
    shutil.rmtree(local, ignore_errors=True)
    return urlparse(probe).scheme in ("", "file") and not os.path.lexists(local)
