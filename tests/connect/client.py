"""What a client of Spark Connect does, a process of its own: `python client.py REMOTE FOLDER`; results in FOLDER/results.json."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DPTextError
from dptext_spark.model.artifact import open_model
from dptext_spark.model.machine_code import make_code
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.spark.diagnostics import server_levels
from dptext_spark.spark.session import spark_session
from dptext_spark.spark.ship import open_shipped, ship

SECRET = hashlib.sha256(b"the key of these tests").digest()
KEY = RunKey(SECRET)
# Of the frame that the server logs at DEBUG on purpose, and of what each worker reads for itself.
LOGGED, UNSENT = (hashlib.sha256(name).digest() for name in (b"logged", b"unsent"))
# Models whose words are replaced after the draw, depend on the word before, or are masked beyond a budget.
RELEASING = ("remap", "fluent", "budget")
CLASSIFIED = "classified"  # a model with a classifier of names
PROVIDED = "provided"  # a model with a provider of a module that is sent along
FINDERS = "finders"  # the folder with the modules of providers, which are not installed
TOY, RAISING, UNSENT_MODULE = "toy_connected", "raising_connected", "unsent_connected"
COLUMNS = ["body", "tags", "comments.text", "attributes"]


def config_of(folder: Path, out: str, **changes: Any) -> RunConfig:
    """Settings that the classic session takes, too."""
    settings: dict[str, Any] = {
        "input": {"path": str(folder / "in")}, "columns": COLUMNS, "row_key": "id", "record_key": "customer",
        "consistency": "record", "output": {"path": str(folder / out), "other_columns": "keep"}, "run": {"id": "one"},
    }  # fmt: skip
    return parse_config(settings | changes)


def lists_of(spark: Any, folder: Path) -> dict[str, list[dict[str, str]]]:
    """Private lists of names: a file, a table and a column of the rows, and one whose names have pseudonyms."""
    (folder / "names.txt").write_text("Hello there\nday 7\n", encoding="utf-8")
    (folder / "persons.txt").write_text("friend\n", encoding="utf-8")
    persons = {"file": str(folder / "persons.txt"), "kind": "person", "replace": "pseudonym"}
    spark.createDataFrame([("time",), ("the house",)], "word string").createOrReplaceTempView("kept")
    return {
        "mask": [{"file": str(folder / "names.txt")}, {"column": "customer"}, persons],
        "keep": [{"table": "kept", "column": "word"}],
    }


def names_of(folder: Path) -> dict[str, dict[str, str]]:
    """A policy with the classifier of names in the folder."""
    return {"names": {"model": str(folder / "classifier"), "person": "pseudonym"}}


def provided_by(path: str) -> dict[str, Any]:
    """A policy with a provider by its import path."""
    return {"providers": [path], "allow_unknown": True}


def with_providers(
    spark: SparkSession, folder: Path, privatized: Callable[..., list[Any]]
) -> Iterator[tuple[str, Any]]:
    """What is done with classes of modules that this client has and sends along, and with one that it does not send."""
    sys.path.insert(0, str(folder / FINDERS))
    for module in (TOY, RAISING):
        spark.addArtifact(str(folder / FINDERS / f"{module}.py"), pyfile=True)
    path = f"{TOY}:Toy"
    yield "provided", privatized("auto", KEY, open_model(folder / PROVIDED, providers=(path,)))
    config = config_of(folder, "provided_there", policy=provided_by(path), run={"id": "provided"})
    yield "provided_facts", dps.run(config, spark, key=KEY).as_dict(internal=True)
    alone: dict[str, Any] = {"input": {"path": f"{folder}/secret"}, "columns": ["body"], "record_key": None}
    for name, wrong in (("raising", f"{RAISING}:Wrong"), ("unsent", f"{UNSENT_MODULE}:Toy")):
        config = config_of(
            folder,
            f"provided_{name}",
            policy=provided_by(wrong),
            consistency="token",
            run={"id": name},
            **alone,
        )
        yield f"provided_{name}", said(lambda config=config: dps.run(config, spark, key=KEY))  # type: ignore[misc]


def failing(folder: Path) -> Iterator[tuple[str, RunConfig]]:
    """Runs that fail where the data is looked at: in the worker, and at a constraint of the target."""

    def config(name: str, **changes: Any) -> RunConfig:
        base = {"columns": ["body"], "record_key": None, "consistency": "token", "run": {"id": name}}
        return config_of(folder, name, **(base | changes))

    marked = {"path": str(folder / "marked")}
    yield "utf8", config("utf8", input=marked)
    target = {"path": str(folder / "constrained"), "mode": "append"}
    yield "constraint", config("constraint", input={**marked, "where": {"id": {"lt": 3}}}, output=target)


def said(act: Callable[[], Any]) -> dict[str, str]:
    try:
        act()
    except DPTextError as error:
        shown = f"{error}|{error.__cause__}|{error.__context__ if not error.__suppress_context__ else ''}"
        return {"kind": type(error).__name__, "said": shown}
    return {"kind": "none", "said": ""}


def set_level(spark: SparkSession, level: str) -> None:
    """Let the server's loggers of plans and network frames say more or less: it runs in the process of its tasks."""
    set_to = "java_method('org.apache.logging.log4j.core.config.Configurator', 'setLevel', '{}', '{}')"
    for name in ("org.apache.spark.sql.connect", "org.sparkproject.connect.grpc"):
        spark.range(1).selectExpr(set_to.format(name, level)).collect()


def with_executors(
    spark: SparkSession, folder: Path, privatized: Callable[..., list[Any]]
) -> Iterator[tuple[str, Any]]:
    """What is done with a key that each worker reads for itself, the server's loggers at DEBUG."""
    key_file = folder / "unsent.key"
    key_file.write_bytes(UNSENT)
    key_file.chmod(0o600)
    key = RunKey.from_file(key_file, deliver="executors")
    yield "levels", server_levels(spark)
    set_level(spark, "DEBUG")
    yield "levels_debug", server_levels(spark)
    yield "executors", privatized("auto", key)
    unsent = {"key": {"file": str(key_file), "deliver": "executors"}, "run": {"id": "unsent"}}
    yield "executors_facts", dps.run(config_of(folder, "unsent", **unsent), spark).as_dict(internal=True)
    privatized("auto", RunKey(LOGGED))
    set_level(spark, "ERROR")
    key_file.chmod(0o640)
    yield "unsafe", said(lambda: dps.run(config_of(folder, "unsafe", **unsent), spark))
    key_file.chmod(0o600)


def given_to_a_worker(spark: SparkSession, folder: Path) -> int:
    """How many loops a worker has the machine code of, when it opened the model."""
    make_code(folder)
    shipped = ship(spark, folder)

    def work(frames: Iterator[Any]) -> Iterator[Any]:
        import pandas as pd

        from dptext_spark.runtime import jit

        for _ in frames:
            open_shipped(shipped)
            loops = [file for place in jit._state.attached for file in place.glob("*.nbi")]
            yield pd.DataFrame({"given": [len(loops)]})

    (row,) = spark.range(1).coalesce(1).mapInPandas(work, "given long").collect()
    return int(row["given"])


def main(remote: str, folder: Path) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    # All that a client can log about a request is switched on: we have to keep it back.
    logging.basicConfig(level=logging.DEBUG)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging"):
        logging.getLogger(name).disabled = False
        logging.getLogger(name).setLevel(logging.DEBUG)
    found: dict[str, Any] = {"same_session": spark_session() is spark}
    df = spark.read.format("delta").load(str(folder / "in"))
    model = open_model(folder / "model")

    def privatized(udf: str, key: RunKey, model: Privatizer = model, **lists: Any) -> list[Any]:
        record = "customer" if model.budget is None else None
        named = {"row_key": "id", "record_key": record, "key": key, "run_id": "r", "udf": udf, **lists}
        out = dps.privatize(df, COLUMNS, model, **named)
        return [json.loads(row[0]) for row in out.orderBy("id").selectExpr("to_json(struct(*))").collect()]

    for udf in ("auto", "pandas"):
        found[udf] = privatized(udf, KEY)
    found["given"] = given_to_a_worker(spark, folder / "model")
    for name in RELEASING:
        found[name] = privatized("auto", KEY, open_model(folder / name))
    found[CLASSIFIED] = privatized("auto", KEY, open_model(folder / CLASSIFIED))
    named_by = config_of(folder, "named", policy=names_of(folder), run={"id": "named"})
    found["named_facts"] = dps.run(named_by, spark, key=KEY).as_dict(internal=True)
    lists = lists_of(spark, folder)
    found["listed"] = privatized("auto", KEY, **lists)
    named_lists = config_of(folder, "listed", policy=lists, run={"id": "listed"})
    found["listed_facts"] = dps.run(named_lists, spark, key=KEY).as_dict(internal=True)
    found |= with_providers(spark, folder, privatized)
    found |= with_executors(spark, folder, privatized)
    audit = {"shareable": str(folder / "audit/shareable"), "restricted": str(folder / "audit/restricted")}
    named = config_of(folder, "", output={"table": "default.connected", "other_columns": "keep"}, audit=audit)
    found["facts"] = dps.run(named, spark, key=KEY).as_dict(internal=True)
    found["again"] = dps.run(named, spark, key=KEY).status
    found["place"] = spark.sql("DESCRIBE DETAIL default.connected").first()["location"]
    found["ordinal"] = said(lambda: dps.run(config_of(folder, "none", row_key=None), spark, key=KEY))
    counted = {"input": {"path": str(folder / "counted/in")}, "columns": ["body"], "record_key": None}
    found["counted"] = [
        dps.run(config_of(folder, f"counted_{name}", run={"id": name}, **counted), spark, key=key).facts[
            "ledger"
        ]
        for name, key in (("first", KEY), ("second", RunKey(hashlib.sha256(b"second").digest())))
    ]

    for name, config in failing(folder):
        found[name] = said(lambda config=config: dps.run(config, spark, key=KEY))  # type: ignore[misc]
    (folder / "results.json").write_text(json.dumps(found, default=str), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
