"""Ask the executors what they work with, by a tiny job over all slots. It holds no data and no key but one that is no secret."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions

from dptext_spark.doctor import ProcessFacts, process_facts
from dptext_spark.model.artifact import MANIFEST, read_manifest
from dptext_spark.randomness.draws import KeyReference, RunKey, key_at_hand
from dptext_spark.randomness.key_sources import KeyUnavailableError
from dptext_spark.spark.session.session import context_of
from dptext_spark.spark.udf.ship import Shipped, open_shipped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dptext_spark.model.privatizer import Privatizer

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


def driver_facts(privatizer: Privatizer, seal: str) -> ProcessFacts:
    """Return the facts of this process, with what the model draws here."""
    return _drawn(process_facts(), lambda: privatizer, seal)


def slots_of(spark: SparkSession) -> int:
    """Return how many tasks run at a time, as the parallelism of a range says."""
    found = spark.range(_ROWS).select(F.spark_partition_id().alias("slot")).distinct().count()
    return max(1, min(_MOST_SLOTS, found))


def worker_facts(spark: SparkSession, shipped: Shipped | None, slots: int) -> list[ProcessFacts]:
    """Run a task in every slot and return what each process says of itself, with what the shipped model draws there.

    A process that lacks the package says so: `missing` names the module that could not be imported.
    """
    asked = F.udf(_asker(pickle.dumps(shipped)), "string", useArrow=False).asNondeterministic()
    rows = spark.range(0, slots, 1, slots).select(asked("id").alias("facts")).collect()
    return [ProcessFacts.from_dict(json.loads(row["facts"])) for row in rows]


def worker_keys(spark: SparkSession, key: KeyReference, slots: int) -> list[str]:
    """Let a task in every slot read the run key; return a code for each slot in which it is not what it should be."""

    def look(_: int) -> str:
        time.sleep(0.2)  # so that no slot takes the task of another
        try:
            key_at_hand(key)
        except KeyUnavailableError as error:
            return error.code
        return ""

    asked = F.udf(look, "string", useArrow=False).asNondeterministic()
    rows = spark.range(0, slots, 1, slots).select(asked("id").alias("code")).collect()
    return [row["code"] for row in rows if row["code"]]


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


def is_client(spark: SparkSession) -> bool:
    """Whether the session is a client of Spark Connect."""
    return context_of(spark) is None


def _asker(shipped: bytes) -> Callable[[int], str]:
    """Return the function of the tasks: sent whole, since what it would be imported from may be missing there."""

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
            from dptext_spark.spark.diagnostics.probe import answer

            return json.dumps(answer(pickle.loads(shipped)).as_dict())
        except ImportError as error:
            return json.dumps({**plain, "missing": error.name or type(error).__name__})

    return ask


def answer(shipped: Shipped | None) -> ProcessFacts:
    """Return the facts of a worker, with what the shipped model draws there."""
    facts = process_facts()
    if shipped is None:
        return facts
    try:
        return _drawn(facts, lambda: open_shipped(shipped), _seal(shipped))
    except Exception as error:  # its message may be long, and is another check's business
        return replace(facts, model_error=type(error).__name__)


def _seal(shipped: Shipped) -> str:
    """Return the seal of the model that this worker sees."""
    if shipped.folder:
        return read_manifest(shipped.folder).seal
    from pyspark import SparkFiles

    with open(SparkFiles.get(f"{shipped.prefix}{MANIFEST}"), encoding="utf-8") as file:
        return str(json.load(file)["seal"])


def _drawn(facts: ProcessFacts, opened: Callable[[], Privatizer], seal: str) -> ProcessFacts:
    """Open a model and let it draw fixed texts under a key that is no secret: equal everywhere, or something is wrong."""
    ids = pa.array(range(len(TEXTS)), pa.int64())
    model = opened()
    if model.selector is not None and model.selector.reads_weights:
        model = replace(model, selector=None)  # these texts have no weights
    drawn, _ = model.privatize(
        pa.array(TEXTS), column="doctor", row_ids=ids, record_ids=ids, key=RunKey.insecure(0), run_id="doctor"
    )
    return replace(facts, drawn=hashlib.sha256("\n".join(drawn.to_pylist()).encode()).hexdigest(), seal=seal)
