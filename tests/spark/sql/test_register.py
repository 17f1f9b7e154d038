"""`register` on a classic session: the model's bytes, one release a name, the ledger, and what is called or given wrongly."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.errors import DataError, RunError, SettingsError
from dptext_spark.ledger.entry import SPENT, VOID, Entry
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.compile import compile, load_lexicon
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.spark import sql_function as registering
from dptext_spark.spark.job.entries import entries_of
from dptext_spark.spark.runner import run
from tests.core.names import beginning

pytestmark = pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has none over Arrow")
KEY, OTHER = (RunKey(hashlib.sha256(name).digest()) for name in (b"one", b"another"))
WORD = "zorblax"  # that no lexicon has: an error that held a text would show it
TEXTS = (f"good news about the time {WORD}", "", None, "the people of the day said: what, NOW?")
ROWS = [(i, f"c{i % 3}", TEXTS[i % 4]) for i in range(24)]
Register = Callable[..., dps.Registration]


@pytest.fixture(scope="module")
def house(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sql")
    frame = session.createDataFrame(ROWS, "id long, customer string, body string")
    frame = frame.selectExpr("*", "'a' AS `the.note`").repartition(3)
    frame.write.format("delta").save(str(folder / "in"))
    beginning(Lexicon.default(), 600).save(folder / "lexicon")
    return folder


@pytest.fixture
def reviews(spark: Any, house: Path) -> str:
    spark.read.format("delta").load(str(house / "in")).createOrReplaceTempView("reviews")
    return "reviews"


@pytest.fixture(autouse=True)
def dropped(spark: Any) -> Iterator[None]:
    yield
    for name in ("dptext", "dptext_note"):
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")


def settings(house: Path, out: Path, level: str, **more: Any) -> dict[str, Any]:
    return {
        "input": {"path": str(house / "in")}, "columns": ["body"], "row_key": "id", "consistency": level,
        "lexicon": {"source": str(house / "lexicon")}, "mechanism": {"name": "custext", "epsilon": 2.0},
        "output": {"path": str(out), "other_columns": "keep"}, "run": {"id": "first"},
        **more,
    }  # fmt: skip


@cache
def model_of(house: Path, level: str, name: str = "custext", epsilon: float = 2.0) -> Privatizer:
    drawn_by = {"name": name, "epsilon": epsilon}
    config = parse_config(settings(house, house / "none", level, mechanism=drawn_by))
    return compile(config.mechanism, load_lexicon(config), config.policy, level)


@pytest.fixture
def counting(house: Path, tmp_path: Path) -> dict[str, Any]:
    return {
        "ledger": {"path": str(tmp_path / "ledger")}, "input": {"path": str(house / "in")}, "row_key": "id",
    }  # fmt: skip


@pytest.fixture
def register(spark: Any, house: Path) -> Register:
    def registered(name: str = "dptext", level: str = "record", **given: Any) -> dps.Registration:
        model = given.pop("model", None) or model_of(house, level)
        return dps.register(spark, name, model, **{"column": "body", "key": KEY, **given})

    return registered


def entries(spark: Any, folder: Path) -> list[Entry]:
    return entries_of(spark, str(folder / "ledger")).entries


class TestTheModelsBytes:
    @pytest.mark.long
    @pytest.mark.parametrize(
        ("level", "identity"),
        [
            ("token", "id"), ("token", "CAST(id AS SMALLINT)"), ("record", "id"), ("record", "customer"),
            ("dataset", "id"),
        ],
    )  # fmt: skip
    def test_a_select_has_them(self, spark, house: Path, reviews, register, level: str, identity) -> None:
        """The bytes of a run, which the table of tests/spark/pairs compares with a plain reference."""
        register(level=level, run_id="first")
        query = f"SELECT id, dptext(body, {identity}) AS body FROM {reviews} DISTRIBUTE BY id % 5"
        found = {row["id"]: row["body"] for row in spark.sql(query).collect()}
        ids, customers, texts = (pa.array(list(values)) for values in zip(*ROWS, strict=True))
        expected, _ = model_of(house, level).privatize(
            texts, column="body", row_ids=ids, key=KEY, run_id="first",
            record_ids=customers if identity == "customer" else None,
        )  # fmt: skip
        assert found == dict(enumerate(expected.to_pylist()))
        assert list(found[number] for number in range(24)) != texts.to_pylist()


class TestCalls:
    """Each wrong call is one of test_function.py; here it goes through Spark."""

    @pytest.mark.long
    def test_literals_are_taken(self, spark: Any, register: Register) -> None:
        register()
        query = "SELECT dptext(NULL, 1), dptext('', 'a'), dptext('?', X'01')"
        assert spark.sql(query).first()[:] == (None, "", "?")


class TestOneNameOneRelease:
    @pytest.mark.long
    def test_another_model_is_refused_unless_it_is_replaced(self, spark, house, reviews, register, counting):
        second = model_of(house, "record", epsilon=3.0)
        register()
        register("DPTEXT")
        query = f"SELECT id, dptext(body, id) AS body FROM {reviews} ORDER BY id"
        before = spark.sql(query).collect()
        for change in ({"model": second}, {"key": OTHER}):
            with pytest.raises(SettingsError, match=r"name: 'DPText' is another .*another model"):
                register("DPText", **change, **counting)
        with pytest.raises(SettingsError, match=r"^replace: 'other' .*'dptext'"):
            register(model=second, replace="other")
        assert spark.sql(query).collect() == before
        assert not Path(counting["ledger"]["path"]).exists()
        register(model=second, replace="dptext")
        assert spark.sql(query).collect() != before

    def test_a_name_of_sparks_own_is_refused_whatever_replace_says(self, spark, register, counting) -> None:
        names = ["concat", "nvl", "mask", "NVL", "coalesce", "cast", "if", "upper", "left", "case", "range"]
        for name, replaces in product([*names, "listagg"], (False, True)):
            with pytest.raises(SettingsError, match=f"name: '{name}' is a function of Spark"):
                register(name, replace=name if replaces else None, **counting)
        assert not Path(counting["ledger"]["path"]).exists()
        assert spark.sql("SELECT nvl('a', 'b'), upper('a')").first()[:] == ("a", "A")

    @pytest.mark.long
    def test_a_function_that_is_not_ours_is_not_replaced(self, spark: Any, register: Register) -> None:
        register()
        for name in ("dptext_note", "dptext"):  # the second was ours
            spark.udf.register(name, lambda text, key: text)
            for replace in (None, name):
                with pytest.raises(SettingsError, match=f"name: '{name}' is a function of Spark or of this"):
                    register(name, replace=replace)
            assert spark.sql(f"SELECT {name}('a', 1)").first()[0] == "a"

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("function", "said"),
        [
            (lambda text, key: text, r"name: 'dptext' was registered, but .* dropped"),
            (lambda text, key: text + 1, r"name: 'dptext' was registered, but .* dropped"),
            ("no function", "Spark failed with"),
        ],
        ids=["other", "failing", "none"],
    )
    def test_a_call_that_draws_otherwise(
        self, spark, tmp_path, register, counting, monkeypatch, function, said
    ):
        given = functions.udf(function) if callable(function) else function
        monkeypatch.setattr(registering, "function_of", lambda call: given)
        with pytest.raises(RunError, match=said):
            register(**counting)
        assert [entry.status for entry in entries(spark, tmp_path)] == [VOID]
        assert not spark.catalog.functionExists("dptext")

    def test_a_key_that_workers_do_not_find_is_told_at_registration(self, spark, tmp_path, register) -> None:
        path = tmp_path / "run.key"
        path.write_bytes(KEY.secret)
        path.chmod(0o600)
        key = RunKey.from_file(path, deliver="executors")
        path.unlink()
        with pytest.raises(RunError, match="KEY_MISSING"):
            register(key=key)
        assert not spark.catalog.functionExists("dptext")

    @pytest.mark.long
    def test_a_dropped_name_is_free(self, spark: Any, register: Register) -> None:
        register()
        spark.sql("DROP TEMPORARY FUNCTION dptext")
        assert register(level="dataset", key=OTHER).consistency == "dataset"

    @pytest.mark.long
    def test_at_token_level_a_run_id_that_was_made_is_another_release(self, register: Register) -> None:
        released = register(level="token")
        with pytest.raises(SettingsError, match="run id or column"):
            register(level="token")
        assert register(level="token", run_id=released.run_id).run_id == released.run_id


class TestTheLedger:
    @pytest.mark.long
    def test_it_is_charged_at_registration(self, spark, house, reviews, tmp_path, register, counting) -> None:
        guarantee = model_of(house, "token").guarantee()
        charged = register(level="token", run_id="first", **counting)
        (entry,) = entries(spark, tmp_path)
        assert (entry.status, entry.column, entry.run_id) == (SPENT, "body", "first")
        assert entry.output == "function dptext"
        assert (entry.epsilon, entry.unit, entry.holds) == (guarantee.epsilon, guarantee.unit, True)
        spark.sql(f"SELECT dptext(body, id) FROM {reviews}").collect()
        assert len(entries(spark, tmp_path)) == 1
        again = register(level="token", run_id="first", **counting)
        for registration, more in ((charged, guarantee.epsilon), (again, 0)):
            (column,) = registration.balance.columns  # type: ignore[union-attr]
            assert (column.total, column.more) == (guarantee.epsilon, more)

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("level", "name", "epsilon"), [("token", "custext", 2.0), ("record", "laplace", 9.0)]
    )
    def test_draws_of_a_run_add_nothing(
        self, spark, house, tmp_path, register, counting, level, name, epsilon
    ):
        more = {"mechanism": {"name": name, "epsilon": epsilon}, "ledger": counting["ledger"]}
        run(parse_config(settings(house, tmp_path / "out", level, **more)), spark, key=KEY)
        model = model_of(house, level, name, epsilon)
        same = register(model=model, run_id="first", **counting)
        (column,) = same.balance.columns  # type: ignore[union-attr]
        assert column.more == 0
        register("dptext_note", model=model, run_id="first", **counting, key=OTHER)
        of_a_run, of_the_same, of_another = entries(spark, tmp_path)
        assert of_a_run.spend == of_the_same.spend
        assert of_a_run.kind == of_the_same.kind
        assert of_a_run.bound == of_another.bound
        assert of_a_run.release != of_another.release

    def test_past_its_limit_nothing_is_registered(self, spark, tmp_path, register, counting) -> None:
        counting["ledger"]["limit"] = 3.0
        register(**counting)
        with pytest.raises(RunError, match=r"ledger\.limit: .* 3\. ε = 2 is spent"):
            register("dptext_note", key=OTHER, **counting)
        assert not spark.catalog.functionExists("dptext_note")
        assert len(entries(spark, tmp_path)) == 1
        counting["ledger"]["override"] = "for the trial"
        overridden = register("dptext_note", key=OTHER, **counting)
        assert overridden.balance.override == "for the trial"  # type: ignore[union-attr]

    @pytest.mark.long
    def test_a_key_that_is_no_secret_has_no_epsilon(self, spark, tmp_path, register, counting) -> None:
        registration = register(key=RunKey.insecure(1), **counting)
        assert [entry.holds for entry in entries(spark, tmp_path)] == [False]
        assert "No guarantee holds, because the key is not secret." in registration.notes

    @pytest.mark.parametrize(
        ("change", "error", "said"),
        [
            ({"input": None}, SettingsError, "input: none given"),
            ({"ledger": {"path": "/nowhere", "limits": 3.0}}, SettingsError, "ledger.limits: no such setting"),
            ({"input": {}}, SettingsError, "input"),
            ({"row_key": None}, SettingsError, "row_key: none given"),
            ({"row_key": "nr"}, DataError, "row_key: 'nr' is not in the input; columns there: id, customer, body, the.note"),
            ({"record_key": "customer"}, SettingsError, "row_key and record_key: both given"),
            ({"column": None}, SettingsError, "column: none given"),
            ({"column": "text"}, DataError, "'text'"),
            ({"column": "BODY"}, DataError, "'BODY'"),
            ({"column": "the.note"}, DataError, "column: 'the.note' is spelt '`the.note`' in the input"),
            ({"input": {"path": "/nowhere/at/all", "format": "parquet"}}, DataError, "is empty or does not exist"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_charged(self, spark, register, counting, change, error, said: str) -> None:
        with pytest.raises(error) as raised:
            register(**{**counting, **change})
        assert said in str(raised.value)
        assert not Path(counting["ledger"]["path"]).exists()
        assert not spark.catalog.functionExists("dptext")


def test_without_a_ledger_it_says_that_nothing_is_counted(register: Register) -> None:
    said: list[str] = []
    registration = register(level="token", run_id="r", progress=said.append)
    assert registration.balance is None
    assert said == [f"dptext: {note}" for note in registration.notes]
    for fact in ("No ledger counts", "The function cannot check that identities are unique"):
        assert any(note.startswith(fact) for note in registration.notes)
    assert "Connect" not in str(registration)


def test_on_connect_a_key_that_travels_is_warned_of() -> None:
    remote, file = SimpleNamespace(), RunKey(KEY.secret, source=SimpleNamespace(kind="file", place="/k"))  # type: ignore[arg-type]
    assert registering._key_travels(remote, KEY)  # type: ignore[arg-type]
    assert not registering._key_travels(remote, file)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "a.b"}, "name: 'a.b'"),
        ({"name": "1a"}, "name: '1a'"),
        ({"column": None}, "column: none given"),
        ({"column": "a..b"}, "column: 'a..b'"),
        ({"record_key": "customer"}, "record_key: 'customer'"),
        ({"run_id": "a b"}, "run.id"),
    ],
)
def test_what_is_given_wrongly(register: Register, change: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as error:
        register(**{"level": "token", **change})
    assert said in str(error.value)


def test_a_stopped_session_is_refused_and_nothing_starts(house: Path, counting: dict[str, Any]) -> None:
    for stopped in (SimpleNamespace(_sc=SimpleNamespace(_jsc=None)), SimpleNamespace(is_stopped=True)):
        with pytest.raises(SettingsError, match="spark: "):
            dps.register(stopped, "dptext", model_of(house, "record"), column="body", key=KEY, **counting)  # type: ignore[arg-type]
    assert not Path(counting["ledger"]["path"]).exists()
