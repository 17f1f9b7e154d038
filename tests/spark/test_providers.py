"""Providers by import path in Spark: runs, frames and audits mask what they find, and end by a code where one fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib import invalidate_caches
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.errors import DataError, RunError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.compile import compile, prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.spark.runner import run
from dptext_spark.text.identifiers.provider import _imported
from dptext_spark.text.policy import Policy
from tests.core.names import beginning
from tests.core.presidio import installed_model, people
from tests.core.toy_providers import FAILS, WRONG_TEXT, plain, write, write_wrong

pytestmark = pytest.mark.usefixtures("small_batches")
KEY = RunKey.generate()
SCHEMA = "id long, body string, notes array<string>, customer string"
Row = tuple[int, str | None, list[str | None] | None, str]
ROWS: list[Row] = [
    (0, "it is T-12 and the zebras, not T-1.", ["T-3 is", None, "the zebraé"], "c1"),
    (1, "xyzzy it zebras-T-77\nT-1", [], "c1"),
    (2, "é T-9 of", ["zebras", "it is not"], "c2"),
    (3, None, None, "c2"),
    (4, "", ["", "T-4"], "c3"),
]
TEXTS = ["body", "notes"]
# Words that are kept, and words that no lexicon holds: what is released of them is known without a draw.
CLEAR = {"oov": "keep", "numbers": "keep", "identifiers": "none"}
_numbers = count()


@pytest.fixture
def module(tmp_path: Path, spark: SparkSession) -> Iterator[Callable[..., str]]:
    """Write a module of a name of its own, and bring it to driver and workers as a user would."""

    def made(make: Callable[..., str] = write, *given: Any, ship: bool = True, **more: Any) -> str:
        name = f"toy_provider_{next(_numbers)}"
        path = make(tmp_path, name, *given, **more)
        if ship:
            spark.addArtifact(str(tmp_path / f"{name}.py"), pyfile=True)
        return path

    sys.path.insert(0, str(tmp_path))
    invalidate_caches()
    yield made
    sys.path.remove(str(tmp_path))


def settings(tmp_path: Path, path: str, **more: Any) -> dict[str, Any]:
    if not (tmp_path / "lexicon").exists():
        beginning(Lexicon.default(), 300).save(tmp_path / "lexicon")
    return {
        "input": {"path": str(tmp_path / "in")}, "columns": TEXTS, "row_key": "id",
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "mechanism": {"name": "custext", "epsilon": 2.0, "k": 5},
        "policy": {"providers": [path], **CLEAR},
        "output": {"path": str(tmp_path / "out"), "other_columns": ["id", "customer"]},
        "run": {"id": "one"},
        **more,
    }  # fmt: skip


def model_of(path: str) -> Privatizer:
    policy = Policy(providers=(path,), **CLEAR)  # type: ignore[arg-type]
    return compile(CusText(epsilon=2.0, k=5), beginning(Lexicon.default(), 300), policy)


def expected(rows: list[Row]) -> dict[int, tuple[Any, Any]]:
    """The rows with what a plain reading finds replaced: none of their other words is drawn."""
    return {
        number: (
            None if body is None else plain(body),
            None if notes is None else [None if one is None else plain(one) for one in notes],
        )
        for number, body, notes, _ in rows
    }


def read(df: Any) -> dict[int, tuple[Any, Any]]:
    return {row["id"]: (row["body"], row["notes"]) for row in df.collect()}


def give(spark: SparkSession, tmp_path: Path, rows: list[Row]) -> None:
    spark.createDataFrame(rows, SCHEMA).repartition(3).write.format("delta").save(str(tmp_path / "in"))


def test_a_frame_is_masked_as_a_plain_reading_says(spark: SparkSession, module: Callable[..., str]) -> None:
    model = model_of(module())
    frame = spark.createDataFrame(ROWS, SCHEMA)
    for parts, udf in ((1, "auto"), (3, "pandas")):
        made = dps.privatize(frame.repartition(parts), TEXTS, model, row_key="id", key=KEY, udf=udf)
        assert read(made) == expected(ROWS)


@pytest.mark.long
def test_a_run_masks_and_says_who_looked(spark, module: Callable[..., str], tmp_path: Path) -> None:
    give(spark, tmp_path, ROWS)
    path = module()
    given = settings(tmp_path, path, consistency="record", record_key="customer")
    config = parse_config({**given, "run": {**given["run"], "ship": "path"}})
    facts = run(config, spark, key=KEY).facts
    assert facts["status"] == "succeeded"
    out = spark.read.format("delta").load(str(tmp_path / "out"))
    assert read(out) == expected(ROWS)
    assert facts["consistency_audit"]["passed"] is True
    masked = sum(str(texts).count("T-") + str(texts).count("zebra") for _, *texts, _ in ROWS)
    assert facts["restricted"]["identifiers_provided"] == facts["restricted"]["identifiers"] == masked
    assert f"toy, version 1 ({path}) for ticket, animal" in str(facts["disclosure"])
    (table,) = [one for one in tmp_path.rglob("runs") if one.is_dir()]
    row: Any = spark.read.format("delta").load(str(table)).first()
    assert json.loads(row["config"])["policy"]["providers"] == [path]
    assert json.loads(row["versions"])[path] == "toy, version 1"
    audited = dps.audit(str(tmp_path / "out"), against=str(tmp_path / "in"), config=config)
    figures = {one.name: one.value for one in audited.figures if one.column is None}
    assert figures["rows_not_aligned"] == 0
    assert figures["words"] == facts["restricted"]["words"]  # what it finds is none, on either side
    assert run(config, spark, key=KEY).status == "unchanged"
    other = {**given, "policy": {**CLEAR, "providers": [path.replace("Toy", "Second")]}}
    with pytest.raises(RunError, match="committed with another policy"):
        run(parse_config(other), spark, key=KEY)


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("how", "allow"), [("raises", True), ("type", False), ("says", False), ("overlaps", True)]
)
def test_one_that_is_wrong_ends_the_run_by_a_code_without_a_word(spark, module, tmp_path, how, allow, capfd):
    """On workers, or on the driver where it looks at a sample before it writes."""
    give(spark, tmp_path, [*ROWS, (7, WRONG_TEXT, None, "c9")])
    path = module(write_wrong, how)
    policy = {"providers": [path], "allow_unknown": allow, **CLEAR}
    config = parse_config(settings(tmp_path, path, policy=policy))
    where = "partition .*" if allow else "the driver's sample of 1,000 rows, .*"
    code = "PROVIDER_FAILED" if how in FAILS else "PROVIDER_SPANS"
    with pytest.raises(RunError, match=rf"policy\.providers\[0\]: in {where} \({code}\)") as caught:
        run(config, spark, key=KEY)
    assert "secret" not in str(caught.value)
    assert not list((tmp_path / "out").rglob("_delta_log/*.json"))
    frame = spark.createDataFrame([(7, WRONG_TEXT)], "id long, body string")
    with pytest.raises(Exception, match=rf"DPTEXT\[{code}_0\]") as told:
        dps.privatize(frame, ["body"], prepare(config)[0], row_key="id", key=KEY).collect()
    assert "secret" not in str(told.value)
    written = capfd.readouterr()
    assert "secret" not in written.out + written.err


@pytest.mark.cluster
def test_workers_that_lack_it_say_so_by_a_code(spark, module: Callable[..., str], tmp_path: Path) -> None:
    give(spark, tmp_path, ROWS)
    config = parse_config(settings(tmp_path, module(ship=False)))
    for input_ in (config.input, config.input.model_copy(update={"path": str(tmp_path / "none")})):
        with pytest.raises(
            RunError,
            match=r"policy\.providers\[0\]: in a worker, before anything was read or written, the provider "
            r"cannot be imported .* --py-files FILE, .* \(PROVIDER_MISSING\)",
        ):
            run(config.model_copy(update={"input": input_}), spark, key=KEY)
    assert {one.name for one in tmp_path.iterdir() if one.is_dir()} <= {"in", "lexicon", "__pycache__"}
    frame = spark.createDataFrame(ROWS, SCHEMA)
    with pytest.raises(Exception, match=r"DPTEXT\[PROVIDER_MISSING_0\]"):
        dps.privatize(frame, TEXTS, prepare(config)[0], row_key="id", key=KEY).collect()
    checks = {one.check: one for one in dps.doctor(config, spark)}
    assert checks["shared model"].status == "fail"
    assert "ProviderImportError" in checks["shared model"].message


def test_what_cannot_work_is_refused_before_anything_is_read(spark, module, tmp_path) -> None:
    """There is no input: reading it would be another error."""
    with pytest.raises(SettingsError, match=r"policy\.providers\[0\]: 'no_such_module:A' cannot be imported"):
        run(parse_config(settings(tmp_path, "no_such_module:A")), spark, key=KEY)
    failing = module(write_wrong, "raises", ship=False)  # Spark takes no file that is changed afterwards
    file = tmp_path / f"{failing.split(':', maxsplit=1)[0]}.py"
    file.write_text(file.read_text().replace("'secret' in", "'Ada' in"))
    with pytest.raises(SettingsError, match=r"policy\.providers\[0\]: on dptext's own test texts"):
        run(parse_config(settings(tmp_path, failing)), spark, key=KEY)
    with pytest.raises(DataError, match=r"input\.path"):
        run(parse_config(settings(tmp_path, module())), spark, key=KEY)


@pytest.mark.cluster
def test_a_report_imports_what_its_own_settings_name_and_nothing_else(spark, module, tmp_path) -> None:
    give(spark, tmp_path, ROWS)
    path = module()
    config = parse_config(settings(tmp_path, path))
    run(config, spark, key=KEY)
    name = path.split(":", maxsplit=1)[0]
    sys.modules.pop(name)
    _imported.cache_clear()
    found = dps.report("one", audit=f"{config.output.path}_audit", spark=spark)
    assert name not in sys.modules
    assert "policy.providers" in found.save(tmp_path / "page.html").read_text()


@pytest.mark.filterwarnings("ignore")
def test_presidio_looks_for_names_in_a_run(spark, module: Callable[..., str], tmp_path: Path) -> None:
    """By the class of the guide; what it finds is what it finds on the driver."""
    path = module(people, installed_model())
    bodies = ["it is Mary Robinson of Paris", "not me", None, "été Barack Obama", ""]
    rows: list[Row] = [(n, body, [body, "Angela Merkel is it"], f"c{n}") for n, body in enumerate(bodies)]
    give(spark, tmp_path, rows)
    given = settings(tmp_path, path)
    config = parse_config({**given, "policy": {**given["policy"], "allow_unknown": True}})
    facts = run(config, spark, key=KEY).facts
    out = read(spark.read.format("delta").load(str(tmp_path / "out")))
    assert out[0][0] == "it is [PERSON] of [LOCATION]"
    assert out[1] == ("not me", ["not me", "[PERSON] is it"])
    assert out[2] == (None, [None, "[PERSON] is it"])
    assert out[3][0] == "été [PERSON]"
    assert facts["restricted"]["identifiers_provided"] == 2 * 3 + 5
    assert "presidio 2." in str(facts["disclosure"])
