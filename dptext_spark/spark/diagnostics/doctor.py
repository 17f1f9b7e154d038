"""`dptext doctor`: look at a cluster before a run does. Nothing is read but the input's schema, nothing stays written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dptext_spark.config.keys import read_key
from dptext_spark.config.model import RunConfig
from dptext_spark.doctor import (
    CheckResult,
    check_java,
    check_server_log,
    check_spark,
    check_workers,
    process_facts,
)
from dptext_spark.encoder.classifier_names import read_classifier
from dptext_spark.errors import DPTextError, RunError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import CusText
from dptext_spark.model import artifact
from dptext_spark.model.privatizer import Privatizer, providers_of
from dptext_spark.randomness.draws import KeyReference
from dptext_spark.runtime.paths import user_cache
from dptext_spark.runtime.progress import Steps, by_default
from dptext_spark.spark.diagnostics.probe import (
    driver_facts,
    is_client,
    server_levels,
    slots_of,
    worker_facts,
    worker_keys,
)
from dptext_spark.spark.errors import key_error, reduced, suppress_sensitive_logs
from dptext_spark.spark.secrets import key_of, require_client_mode, require_no_setting
from dptext_spark.spark.session.places import check_folder, check_name, folders_of
from dptext_spark.spark.session.session import spark_session
from dptext_spark.spark.tables.tables import check_text_columns, read_input
from dptext_spark.spark.udf.ship import ship
from dptext_spark.text.names.search import NameSearch
from dptext_spark.text.policy import Policy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORDS = [
    "a",
    "brown",
    "else",
    "everything",
    "fox",
    "here",
    "it",
    "quick",
    "second",
    "stays",
    "text",
    "the",
    "was",
]
_SAID = {
    "os": "32 bytes of the operating system for each run",
    "file": "its file can be read, by its owner only",
    "env": "the variable holds a key; a run removes it when it has read it",
    "secret": "the platform's secret can be read",
}  # fmt: skip

_KEY_CURE = (
    "Give the setting what it names: a file of 32 bytes or more that its owner alone may read (mode 600), a variable of the "
    "driver in base64 or hex, or a secret that the job's user may read; or leave key out, for a key of each run."
)
_MODEL_CURE = (
    "Correct the setting that the message names. jobs/prepare.py makes a model and prints what run.artifact takes; without "
    "run.artifact the run makes its own."
)


def doctor(
    config: RunConfig | None = None,
    spark: SparkSession | None = None,
    *,
    progress: Steps | None = None,
) -> list[CheckResult]:
    """Check what a run needs, as `dptext doctor` does; no data is read, and nothing stays written.

    Args:
        config: the settings of a run; without, what they name is not checked.
        spark: a session; None takes the active one, or starts a local one.
        progress: progress callback, called with each step. None tells them on stderr in a notebook or terminal.

    Returns:
        What each check found. Without a session there is nothing more to check.

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
        hint = "Spark must start before anything else can be checked."
        return [CheckResult("Spark", "fail", str(error), hint)]
    with suppress_sensitive_logs(session):
        found = list(_machines(session, config, say))
        return found if config is None else [*found, *_settings(session, config, say)]


def _machines(spark: SparkSession, config: RunConfig | None, say: Steps) -> Iterator[CheckResult]:
    import pyspark

    yield check_spark(spark.version, pyspark.__version__)
    if is_client(spark):
        yield check_server_log(
            server_levels(spark), travels=config is None or config.key.deliver == "closure"
        )
    say("asking the executors")
    try:
        slots = slots_of(spark)
        yield _java(spark, slots)
        with tempfile.TemporaryDirectory(prefix="dptext-doctor-", dir=user_cache()) as folder:
            providers = config.policy.providers if config is not None else ()
            try:
                model = _model(config, folder)
                if config is not None:
                    artifact.require_expected(model, config.run.expected_seal)
                privatizer = artifact.open_model(model, providers=providers)
                driver = driver_facts(privatizer, artifact.read_manifest(model).seal)
                how, code = (
                    ("artifact", None) if config is None else (config.run.ship, config.run.expected_code)
                )
                shipped = ship(spark, model, how, providers, code)
            except DPTextError as error:
                yield CheckResult("shared model", "fail", str(error), _MODEL_CURE)
                driver, shipped = process_facts(), None
            yield from check_workers(driver, worker_facts(spark, shipped, slots), slots)
    except Exception as error:
        yield CheckResult("executors", "fail", f"the probe failed. {reduced(error, [])}", _why(str(error)))


def _why(message: str) -> str:
    """Return what to do about a probe that failed. Its message holds no data, but is long."""
    if "PYTHON_VERSION_MISMATCH" in message:
        return "The executors run another Python than the driver: let PYSPARK_PYTHON (spark.pyspark.python) name the same one."
    if "Cannot run program" in message:
        return "The executors lack the interpreter that PYSPARK_PYTHON (spark.pyspark.python) names."
    return "The executors' stderr says more: see the application's page on the cluster."


def _java(spark: SparkSession, slots: int) -> CheckResult:
    asked = "java_method('java.lang.System', 'getProperty', 'java.version') AS java"
    try:
        rows = spark.range(0, slots, 1, slots).selectExpr(asked).distinct().collect()
        executors = [str(row["java"]) for row in rows]
    except Exception:  # some platforms forbid the function
        executors = []
    context: Any = getattr(spark, "_jvm", None) if hasattr(spark, "_jsparkSession") else None
    driver = str(context.System.getProperty("java.version")) if context is not None else None
    return check_java(driver, executors, spark.version)


def _model(config: RunConfig | None, folder: str) -> Path:
    """Return the artifact that is shipped: the settings', else a tiny one, with the settings' classifier and providers."""
    if config is not None and config.run.artifact is not None:
        return Path(config.run.artifact)
    policy = Policy()
    if config is not None:
        names = config.policy.names if config.policy.names.classifies else NameSearch()
        policy = Policy(names=names, providers=config.policy.providers)
    angles = np.arange(len(_WORDS), dtype=np.float32)
    lexicon = Lexicon(Vocabulary.of(_WORDS), np.stack([np.cos(angles), np.sin(angles)], axis=1))
    law = CusText(epsilon=1.0, k=4).compile(lexicon)
    classifier = read_classifier(policy.names) if policy.names.classifies else None
    imported = providers_of(policy, tried=True)
    place = Path(folder) / "model"
    artifact.save_model(Privatizer(lexicon, law, policy, classifier=classifier, imported=imported), place)
    return place


def _settings(spark: SparkSession, config: RunConfig, say: Steps) -> Iterator[CheckResult]:
    say("looking at the key, the input and the places that are written")
    yield _checked("key", lambda: _key(spark, config), _KEY_CURE)
    yield _checked(
        "input", lambda: _input(spark, config), "Correct the settings, or the rights of the job's user."
    )
    if config.output.table:
        yield check_name(spark, "output.table", config.output.table)
    for check, path in folders_of(config).items():
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
    return f"it can be read on the driver, and the same key is read in {slots} task slots"


def _input(spark: SparkSession, config: RunConfig) -> str:
    df, version = read_input(spark, config.input, list(config.columns))
    check_text_columns(df, list(config.columns))
    return f"{config.input.table or config.input.path} ({version}) can be read, and has the columns"
