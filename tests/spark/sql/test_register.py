"""`register` on a classic session: the job's bytes, one release a name, the ledger, and what is called or given wrongly."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from pyspark.errors import PySparkException
from pyspark.sql import functions

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DataError, RunError, SettingsError
from dptext_spark.ledger.entry import SPENT, VOID, Entry
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.compile import compile, load_lexicon
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.spark.job.entries import entries_of
from dptext_spark.spark.runner import run
from dptext_spark.spark.sql import register as registering
from tests.core.names import beginning

pytestmark = pytest.mark.skipif(
    not hasattr(functions, "arrow_udf"), reason="this Spark has no functions over Arrow"
)
KEY, OTHER = (RunKey(hashlib.sha256(name).digest()) for name in (b"one", b"another"))
WORD = "zorblax"  # that no lexicon has: an error that held a text would show it
TEXTS = (f"good news about the time {WORD}", "", None, "the people of the day said: what, NOW?")
ROWS = [(i, f"c{i % 3}", TEXTS[i % 4]) for i in range(24)]


@pytest.fixture(scope="module")
def house(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An input, and a lexicon of 600 words."""
    folder = tmp_path_factory.mktemp("sql")
    frame = session.createDataFrame(ROWS, "id long, customer string, body string").selectExpr(
        "*", "'a' AS `the.note`"
    )
    frame.repartition(3).write.format("delta").save(str(folder / "in"))
    beginning(Lexicon.default(), 600).save(folder / "lexicon")
    return folder


@pytest.fixture
def reviews(spark: Any, house: Path) -> str:
    """The input as a view."""
    spark.read.format("delta").load(str(house / "in")).createOrReplaceTempView("reviews")
    return "reviews"


@pytest.fixture(autouse=True)
def dropped(spark: Any) -> Iterator[None]:
    """No function is left behind, nor found there."""
    for name in ("dptext", "dptext_note"):
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
    yield
    for name in ("dptext", "dptext_note"):
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")


def settings(house: Path, out: Path, level: str, **more: Any) -> dict[str, Any]:
    return {
        "input": {"path": str(house / "in")}, "columns": ["body"], "row_key": "id", "consistency": level,
        "lexicon": {"source": str(house / "lexicon")},
        "output": {"path": str(out), "other_columns": "keep"}, "run": {"id": "first"},
        "audit": {"consistency_scopes": 0}, **more,
    }  # fmt: skip


def compile_model(config: RunConfig) -> Privatizer:
    return compile(config.mechanism, load_lexicon(config), config.policy, config.consistency)


def model_of(house: Path, level: str, epsilon: float = 2.0) -> Privatizer:
    """The model that the settings make."""
    config = parse_config(
        settings(house, house / "none", level, mechanism={"name": "custext", "epsilon": epsilon})
    )
    return compile_model(config)


def counting(house: Path, folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "ledger": {"path": str(folder / "ledger"), **more},
        "input": {"path": str(house / "in")},
        "row_key": "id",
    }


def entries(spark: Any, folder: Path) -> list[Entry]:
    return entries_of(spark, str(folder / "ledger")).entries


class TestTheJobsBytes:
    @pytest.mark.long
    @pytest.mark.parametrize(
        ("level", "record_key", "identity"),
        [
            ("token", None, "id"),
            ("record", None, "id"),
            ("record", "customer", "customer"),
            ("dataset", None, "id"),
        ],
    )
    def test_a_select_has_the_bytes_of_a_run(
        self,
        spark: Any,
        house: Path,
        reviews: str,
        tmp_path: Path,
        level: str,
        record_key: str | None,
        identity: str,
    ) -> None:
        config = settings(house, tmp_path / "out", level, mechanism={"name": "custext", "epsilon": 2.0})
        run(parse_config({**config, "record_key": record_key}), spark, key=KEY)
        written = {
            row["id"]: row["body"] for row in spark.read.format("delta").load(str(tmp_path / "out")).collect()
        }
        dps.register(spark, "dptext", model_of(house, level), column="body", key=KEY, run_id="first")
        found = spark.sql(f"SELECT id, dptext(body, {identity}) AS body FROM {reviews}").collect()
        assert {row["id"]: row["body"] for row in found} == written
        raw = {row[0]: row[2] for row in ROWS}
        assert {key for key, text in written.items() if text is None} == {
            key for key, text in raw.items() if text is None
        }
        assert {key for key, text in written.items() if text == ""} == {
            key for key, text in raw.items() if text == ""
        }
        assert any(written[key] != raw[key] for key in raw)

    def test_the_identity_may_be_of_another_width_and_the_rows_in_other_batches(
        self, spark: Any, house: Path, reviews: str
    ) -> None:
        dps.register(spark, "dptext", model_of(house, "token"), column="body", key=KEY, run_id="first")
        by = {
            cast: spark.sql(
                f"SELECT id, dptext(body, {cast}) AS body FROM {reviews} DISTRIBUTE BY id % {parts}"
            ).collect()
            for cast, parts in (("id", 1), ("CAST(id AS SMALLINT)", 5))
        }
        first, second = ({row["id"]: row["body"] for row in rows} for rows in by.values())
        assert first == second

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("change", "same"),
        [({"run_id": "second"}, False), ({"column": "note"}, False), ({"key": OTHER}, False), ({}, True)],
        ids=["run id", "column", "key", "nothing"],
    )
    def test_token_level_draws_hang_on_the_column_and_the_run_id(
        self, spark: Any, house: Path, reviews: str, change: dict[str, Any], same: bool
    ) -> None:
        given = {"column": "body", "key": KEY, "run_id": "first"}
        model = model_of(house, "token")
        dps.register(spark, "dptext", model, **given)
        dps.register(spark, "dptext_note", model, **{**given, **change})
        sums = spark.sql(
            f"SELECT count_if(dptext(body, id) <=> dptext_note(body, id)) = count(*) FROM {reviews}"
        )
        assert sums.first()[0] is same


class TestCalls:
    @pytest.mark.parametrize(
        ("call", "said"),
        [
            ("dptext()", r"dptext: no argument given; valid: dptext(text, identity)"),
            ("dptext(body)", "dptext: one argument given; valid: dptext(text, identity)"),
            ("dptext(body, id, 'x')", "dptext: 3 arguments given; valid: dptext(text, identity)"),
            ("dptext(body, NULL)", "with a NULL identity"),
            ("dptext(body, IF(id = 3, NULL, id))", "dptext: 1 of"),
            ("dptext(body, CAST(id AS DOUBLE))", "dptext: an identity of type double"),
            ("dptext(id, id)", "dptext: a first argument of type int64"),
        ],
    )
    def test_a_wrong_call_ends_in_a_clear_error(
        self, spark: Any, house: Path, reviews: str, call: str, said: str
    ) -> None:
        dps.register(spark, "dptext", model_of(house, "record"), key=KEY)
        with pytest.raises(PySparkException) as error:
            spark.sql(f"SELECT {call} FROM {reviews}").collect()
        assert said in str(error.value)
        assert WORD not in str(error.value)

    @pytest.mark.long
    def test_literals_are_taken(self, spark: Any, house: Path) -> None:
        dps.register(spark, "dptext", model_of(house, "record"), key=KEY)
        assert spark.sql("SELECT dptext(NULL, 1), dptext('', 'a'), dptext('?', X'01')").first()[:] == (
            None,
            "",
            "?",
        )


class TestOneNameOneRelease:
    def test_another_model_is_refused_unless_it_is_replaced_by_name(
        self, spark: Any, house: Path, reviews: str, tmp_path: Path
    ) -> None:
        first, second = model_of(house, "record"), model_of(house, "record", epsilon=3.0)
        dps.register(spark, "dptext", first, key=KEY)
        dps.register(spark, "DPTEXT", first, key=KEY)
        query = f"SELECT id, dptext(body, id) AS body FROM {reviews} ORDER BY id"
        before = spark.sql(query).collect()
        for change in ({"model": second}, {"key": OTHER}):
            with pytest.raises(SettingsError, match=r"name: 'DPText' stands for another .*another model"):
                dps.register(
                    spark,
                    "DPText",
                    **{"model": first, "key": KEY, **change},
                    column="body",
                    **counting(house, tmp_path),
                )
        with pytest.raises(SettingsError, match=r"replace: 'other' given; valid: 'dptext'"):
            dps.register(spark, "dptext", second, key=KEY, replace="other")
        assert spark.sql(query).collect() == before
        assert not (tmp_path / "ledger").exists()
        dps.register(spark, "dptext", second, key=KEY, replace="dptext")
        assert spark.sql(query).collect() != before

    @pytest.mark.parametrize("replaces", [False, True], ids=["plain", "replace"])
    def test_a_name_of_sparks_own_is_refused_whatever_replace_says(
        self, spark: Any, house: Path, tmp_path: Path, replaces: bool
    ) -> None:
        model = model_of(house, "record")
        names = (
            "concat",
            "nvl",
            "mask",
            "NVL",
            "coalesce",
            "cast",
            "if",
            "upper",
            "left",
            "case",
            "range",
            "listagg",
        )
        for name in names:
            with pytest.raises(SettingsError, match=f"name: '{name}' is a function of Spark"):
                dps.register(
                    spark, name, model, column="body", key=KEY, replace=name if replaces else None,
                    **counting(house, tmp_path),
                )  # fmt: skip
        assert not (tmp_path / "ledger").exists()
        assert spark.sql("SELECT nvl('a', 'b'), upper('a')").first()[:] == ("a", "A")

    @pytest.mark.parametrize("replaces", [False, True], ids=["plain", "replace"])
    def test_a_function_that_is_not_ours_is_not_replaced(
        self, spark: Any, house: Path, replaces: bool
    ) -> None:
        dps.register(spark, "dptext", model_of(house, "record"), key=KEY)
        for name in ("dptext_note", "dptext"):  # the second was ours
            spark.udf.register(name, lambda text, key: text)
            with pytest.raises(
                SettingsError, match=f"name: '{name}' is a function of Spark or of this session"
            ):
                dps.register(
                    spark, name, model_of(house, "record"), key=KEY, replace=name if replaces else None
                )
            assert spark.sql(f"SELECT {name}('a', 1)").first()[0] == "a"

    @pytest.mark.parametrize("fails", [False, True], ids=["other", "failing"])
    def test_a_call_that_does_not_draw_what_the_model_draws_is_void_and_dropped(
        self, spark: Any, house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
    ) -> None:
        function = functions.udf(lambda text, key: text + 1 if fails else text)
        monkeypatch.setattr(registering, "function_of", lambda call: function)
        with pytest.raises(RunError, match=r"name: 'dptext' was registered, but .* dropped"):
            dps.register(
                spark,
                "dptext",
                model_of(house, "record"),
                column="body",
                key=KEY,
                **counting(house, tmp_path),
            )
        assert [entry.status for entry in entries(spark, tmp_path)] == [VOID]
        assert not spark.catalog.functionExists("dptext")

    def test_a_key_that_workers_do_not_find_is_told_at_registration(
        self, spark: Any, house: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "run.key"
        path.write_bytes(KEY.secret)
        path.chmod(0o600)
        key = RunKey.from_file(path, deliver="executors")
        path.unlink()
        with pytest.raises(RunError, match="KEY_MISSING"):
            dps.register(spark, "dptext", model_of(house, "record"), key=key)
        assert not spark.catalog.functionExists("dptext")

    def test_a_dropped_name_is_free(self, spark: Any, house: Path) -> None:
        dps.register(spark, "dptext", model_of(house, "record"), key=KEY)
        spark.sql("DROP TEMPORARY FUNCTION dptext")
        made = dps.register(spark, "dptext", model_of(house, "dataset"), key=OTHER)
        assert made.consistency == "dataset"

    def test_at_token_level_a_run_id_that_was_made_is_another_release(self, spark: Any, house: Path) -> None:
        made = dps.register(spark, "dptext", model_of(house, "token"), column="body", key=KEY)
        with pytest.raises(SettingsError, match="run id or column"):
            dps.register(spark, "dptext", model_of(house, "token"), column="body", key=KEY)
        again = dps.register(
            spark, "dptext", model_of(house, "token"), column="body", key=KEY, run_id=made.run_id
        )
        assert again.run_id == made.run_id


class TestTheLedger:
    @pytest.mark.long
    def test_it_is_charged_at_registration_and_once(
        self, spark: Any, house: Path, reviews: str, tmp_path: Path
    ) -> None:
        model = model_of(house, "token", epsilon=2.0)
        given = {"column": "body", "key": KEY, "run_id": "first", **counting(house, tmp_path)}
        made = dps.register(spark, "dptext", model, **given)
        (one,) = entries(spark, tmp_path)
        assert (one.status, one.column, one.run_id, one.output) == (SPENT, "body", "first", "function dptext")
        assert (one.epsilon, one.unit, one.holds) == (model.guarantee().epsilon, model.guarantee().unit, True)
        spark.sql(f"SELECT dptext(body, id) FROM {reviews}").collect()
        assert len(entries(spark, tmp_path)) == 1
        again = dps.register(spark, "dptext", model, **given)
        (column,) = again.balance.columns  # type: ignore[union-attr]
        assert (column.total, column.more) == (model.guarantee().epsilon, 0)
        (column,) = made.balance.columns  # type: ignore[union-attr]
        assert (column.total, column.more) == (model.guarantee().epsilon, model.guarantee().epsilon)

    @pytest.mark.long
    @pytest.mark.parametrize("level", ["token", "record"])
    def test_a_run_with_the_same_draws_adds_nothing(
        self, spark: Any, house: Path, tmp_path: Path, level: str
    ) -> None:
        config = settings(
            house,
            tmp_path / "out",
            level,
            mechanism={"name": "custext", "epsilon": 2.0},
            ledger={"path": str(tmp_path / "ledger")},
        )
        run(parse_config(config), spark, key=KEY)
        made = dps.register(
            spark,
            "dptext",
            model_of(house, level),
            column="body",
            key=KEY,
            run_id="first",
            **counting(house, tmp_path),
        )
        (column,) = made.balance.columns  # type: ignore[union-attr]
        assert column.more == 0
        first, second = entries(spark, tmp_path)
        assert first.spend == second.spend
        assert first.kind == second.kind

    def test_past_its_limit_nothing_is_registered(self, spark: Any, house: Path, tmp_path: Path) -> None:
        model, given = model_of(house, "record"), counting(house, tmp_path, limit=3.0)
        dps.register(spark, "dptext", model, column="body", key=KEY, **given)
        with pytest.raises(RunError, match=r"ledger\.limit: 3 given; ε = 2 was spent"):
            dps.register(spark, "dptext_note", model, column="body", key=OTHER, **given)
        assert not spark.catalog.functionExists("dptext_note")
        assert len(entries(spark, tmp_path)) == 1
        reason = {**given, "ledger": {**given["ledger"], "override": "for the trial"}}
        made = dps.register(spark, "dptext_note", model, column="body", key=OTHER, **reason)
        assert made.balance.override == "for the trial"  # type: ignore[union-attr]

    def test_what_spark_refuses_is_void(
        self, spark: Any, house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(registering, "function_of", lambda call: "no function")
        with pytest.raises(RunError, match="Spark failed with"):
            dps.register(
                spark,
                "dptext",
                model_of(house, "record"),
                column="body",
                key=KEY,
                **counting(house, tmp_path),
            )
        assert [one.status for one in entries(spark, tmp_path)] == [VOID]
        assert not spark.catalog.functionExists("dptext")

    def test_a_key_that_is_no_secret_has_no_epsilon(self, spark: Any, house: Path, tmp_path: Path) -> None:
        made = dps.register(
            spark,
            "dptext",
            model_of(house, "record"),
            column="body",
            key=RunKey.insecure(1),
            **counting(house, tmp_path),
        )
        assert [one.holds for one in entries(spark, tmp_path)] == [False]
        assert "The key is no secret, so that no guarantee holds." in made.notes

    @pytest.mark.long
    def test_a_euclidean_distance_is_that_of_a_run(self, spark: Any, house: Path, tmp_path: Path) -> None:
        ledger = {"path": str(tmp_path / "ledger")}
        config = parse_config(
            settings(
                house,
                tmp_path / "out",
                "record",
                mechanism={"name": "laplace", "epsilon": 9.0},
                ledger=ledger,
            )
        )
        run(config, spark, key=KEY)
        dps.register(
            spark, "dptext", compile_model(config), column="body", key=OTHER, **counting(house, tmp_path)
        )
        first, second = entries(spark, tmp_path)
        assert first.bound == second.bound
        assert first.release != second.release

    @pytest.mark.parametrize(
        ("change", "error", "said"),
        [
            ({"input": None}, SettingsError, "input: none given beside ledger"),
            (
                {"ledger": {"path": "/nowhere", "limit_record": 3.0}},
                SettingsError,
                "ledger.limit_record: no such setting",
            ),
            (
                {"ledger": {"path": "/nowhere", "limits": 3.0}},
                SettingsError,
                "ledger.limits: no such setting",
            ),
            ({"input": {}}, SettingsError, "input"),
            ({"row_key": None}, SettingsError, "row_key: none given, and the ledger"),
            (
                {"row_key": "nr"},
                DataError,
                "row_key: 'nr' is not in the input; columns there: id, customer, body, the.note",
            ),
            ({"record_key": "customer"}, SettingsError, "row_key and record_key: both given"),
            ({"column": None}, SettingsError, "column: none given, and the ledger"),
            ({"column": "text"}, DataError, "'text'"),
            ({"column": "BODY"}, DataError, "'BODY'"),
            (
                {"column": "the.note"},
                DataError,
                "column: 'the.note' given, but the input spells it '`the.note`'",
            ),
            ({"input": {"path": "/nowhere/at/all", "format": "parquet"}}, DataError, "there is nothing in"),
        ],
    )
    def test_what_cannot_be_charged(
        self,
        spark: Any,
        house: Path,
        tmp_path: Path,
        change: dict[str, Any],
        error: type[Exception],
        said: str,
    ) -> None:
        given = {"column": "body", "key": KEY, **counting(house, tmp_path), **change}
        with pytest.raises(error) as raised:
            dps.register(spark, "dptext", model_of(house, "record"), **given)
        assert said in str(raised.value)
        assert not (tmp_path / "ledger").exists()
        assert not spark.catalog.functionExists("dptext")


class TestWhatIsSaid:
    def test_nothing_is_counted_and_nothing_is_seen(self, spark: Any, house: Path) -> None:
        said: list[str] = []
        made = dps.register(
            spark,
            "dptext",
            model_of(house, "token"),
            column="body",
            key=KEY,
            run_id="r",
            progress=said.append,
        )
        assert made.balance is None
        assert said == [f"dptext: {note}" for note in made.notes]
        assert any(note.startswith("Nothing is counted") for note in made.notes)
        assert any(note.startswith("Whether identities are unique cannot be seen") for note in made.notes)
        assert (
            repr(made)
            == "Registration(dptext(text, identity), token, column 'body', run id 'r', not counted)"
        )
        assert all(note in str(made) for note in made.notes)
        assert "Connect" not in str(made)

    def test_on_connect_a_key_that_travels_is_warned_of(self) -> None:
        remote, file = SimpleNamespace(), RunKey(KEY.secret, source=SimpleNamespace(kind="file", place="/k"))  # type: ignore[arg-type]
        assert registering._key_travels(remote, KEY)  # type: ignore[arg-type]
        assert not registering._key_travels(remote, file)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "a.b"}, "name: 'a.b' given; valid: 1 to 64 letters"),
        ({"name": "1a"}, "name: '1a' given"),
        ({"column": None}, "column: none given, and at token level"),
        ({"column": "a..b"}, "column: 'a..b' is no path"),
        ({"record_key": "customer"}, "record_key: 'customer' given, but at token level"),
        ({"run_id": "a b"}, "run.id"),
    ],
)
def test_what_is_given_wrongly(spark: Any, house: Path, change: dict[str, Any], said: str) -> None:
    given = {"name": "dptext", "column": "body", "key": KEY, **change}
    with pytest.raises(SettingsError) as error:
        dps.register(spark, model=model_of(house, "token"), **given)
    assert said in str(error.value)


def test_a_stopped_session_is_refused_and_nothing_starts(house: Path, tmp_path: Path) -> None:
    for stopped in (SimpleNamespace(_sc=SimpleNamespace(_jsc=None)), SimpleNamespace(is_stopped=True)):
        with pytest.raises(SettingsError, match="a session that was stopped; valid: one that runs"):
            dps.register(
                stopped,
                "dptext",
                model_of(house, "record"),
                column="body",
                key=KEY,
                **counting(house, tmp_path),
            )  # type: ignore[arg-type]
    assert not (tmp_path / "ledger").exists()
