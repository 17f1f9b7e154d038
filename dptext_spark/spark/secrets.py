"""The run key of a job: from the source in the settings, including a platform's secrets through its session."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from pyspark.sql import SparkSession

from dptext_spark.config.sections import Key, Secret, drop_variable, taken
from dptext_spark.errors import SettingsError
from dptext_spark.randomness import RunKey, decoded
from dptext_spark.spark.session import context_of

_ELSEWHERE = "Use key.file or key.env, or leave key out for a key of this run only"


def key_of(spark: SparkSession, key: Key, given: RunKey | None = None) -> RunKey:
    """Return the key of a run.

    A key that was read before, or comes from the calling program, wins.

    Raises:
        SettingsError: it cannot be read or is no key, others may read its file, or it is a variable of a driver that runs
            in the cluster or of a Spark setting.
    """
    run_key = given or taken(key)
    if run_key is not None:
        if run_key.kind == "env":
            require_client_mode(spark)
        if run_key.source is not None and run_key.source.kind == "env":
            require_no_setting(spark, run_key.source.place)
            if not is_local(spark):
                drop_variable(key)  # executors have their own
        return run_key
    if key.secret is not None:
        return RunKey(_secret(spark, key.secret), kind="secret")
    return replace(RunKey.generate(), kind="os")


def key_given(spark: SparkSession, key: RunKey | None) -> RunKey:
    """Return the key that a calling program hands in, or a new one.

    Raises:
        SettingsError: each worker is to read it from a variable that is a Spark setting.
    """
    key = key or RunKey.generate()
    if key.source is not None and key.source.kind == "env":
        require_no_setting(spark, key.source.place)
    return key


def require_client_mode(spark: SparkSession) -> None:
    """Refuse a key from the environment where the driver runs in the cluster: its variables are Spark settings there.

    Raises:
        SettingsError: the session's driver was submitted in cluster mode.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return  # this process is a separate client; the server's mode does not matter
    if spark.conf.get("spark.submit.deployMode", "client") == "cluster":
        raise SettingsError(
            "key.env: with spark.submit.deployMode=cluster, the driver's variables are Spark settings, "
            "and the UI and event logs show them. Use key.file or key.secret."
        )


def require_no_setting(spark: SparkSession, name: str) -> None:
    """Refuse a variable of the workers that is a Spark setting: the UI and event logs show those.

    Raises:
        SettingsError: the session has one for it.
    """
    setting = f"spark.executorEnv.{name}"
    if spark.conf.get(setting, None) is not None:
        raise SettingsError(
            f"key.env: {setting} is set, and the UI and event logs show it. Make a new key. Set it in the executors' own "
            "environment (spark-env.sh on each node, a secret of the cluster's manager), or use key.file."
        )


def is_local(spark: SparkSession) -> bool:
    """Check whether workers are children of this process, and inherit its variables."""
    return context_of(spark) is not None and str(spark.conf.get("spark.master", "")).startswith("local")


def _secret(spark: SparkSession, secret: Secret) -> bytes:
    """Return the bytes of a platform's secret: unchanged, or decoded if they are printable text."""
    where = f"secret {secret.name!r} of scope {secret.scope!r}"
    secrets = _platform(spark)
    read: Callable[[str, str], bytes | str] = getattr(secrets, "getBytes", None) or secrets.get
    try:
        value = read(secret.scope, secret.name)
    except Exception as error:  # each platform has its own; their messages are not ours to repeat
        raise SettingsError(
            f"key.secret: {where} cannot be read ({type(error).__name__}). Give this job's user READ on "
            "the scope, or correct the names."
        ) from None
    content = value.encode() if isinstance(value, str) else bytes(value)
    is_text = all(32 <= byte < 127 or byte in b"\r\n" for byte in content)
    return decoded(content, "key.secret") if is_text else content


def _platform(spark: SparkSession) -> Any:
    """Return the platform's utility for secrets: a notebook's `dbutils`, or the one that its pyspark brings."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    utility = getattr(shell, "user_ns", {}).get("dbutils")
    if utility is None:
        try:
            utility = import_module("pyspark.dbutils").DBUtils(spark)
        except ImportError:
            raise SettingsError(
                f"key.secret: this platform has no dbutils to read a secret with. {_ELSEWHERE}."
            ) from None
    return utility.secrets
