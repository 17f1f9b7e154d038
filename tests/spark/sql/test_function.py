"""What a call of the SQL function takes, batch by batch: two arguments of the right types; errors tell nothing of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from dptext_spark.errors import DataError, DPTextError, RunError, SettingsError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import KeySource, RunKey
from dptext_spark.spark import sql_function
from dptext_spark.spark.column_function import UdfSpec
from dptext_spark.spark.ship import Shipped
from dptext_spark.spark.sql_function import Call, arguments, draw_batches, function_of

KEY = RunKey.insecure(1)
TEXTS = pa.array(["zanzibar the time", None, ""])
IDS = pa.array([7, 8, 9])


def call_of(key: object = KEY) -> Call:
    return Call("dptext", "the row's", UdfSpec(("body",), Shipped("", ""), key, "r", True, False))  # type: ignore[arg-type]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, privatizer: Privatizer) -> Privatizer:
    monkeypatch.setattr(sql_function, "open_shipped", lambda shipped: privatizer)
    return privatizer


@pytest.mark.parametrize(
    ("arrays", "said"), [((), "no argument"), ((TEXTS,), "one argument"), ((TEXTS, IDS, IDS), "3 arguments")]
)
def test_a_call_with_another_number_of_arguments(arrays: tuple[pa.Array, ...], said: str) -> None:
    with pytest.raises(SettingsError, match=rf"^dptext: {said} given\. Call dptext\(text, identity\)"):
        arguments(call_of(), arrays)


@pytest.mark.parametrize(
    "ids", [pa.array([7, None, 9]), pa.nulls(3), pa.array(["a", None, None]), pa.array([None, b"a", b"b"])]
)
def test_a_null_identity_is_counted_and_not_shown(ids: pa.Array) -> None:
    with pytest.raises(DataError) as error:
        arguments(call_of(), (TEXTS, ids))
    assert str(error.value).startswith(f"dptext: {ids.null_count} of 3 rows of a batch have a NULL identity.")
    assert "zanzibar" not in str(error.value)


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([1.5] * 3), pa.array([True] * 3), pa.array([Decimal("1.50")] * 3), pa.array([date(2024, 1, 1)] * 3),
        pa.array([datetime(2024, 1, 1, tzinfo=timezone.utc)] * 3), pa.array([[1]] * 3), pa.array([{"a": 1}] * 3),
        pa.array([1, 2, 3], pa.uint8()),
    ],
    ids=lambda one: str(one.type),
)  # fmt: skip
def test_an_identity_of_another_type_names_what_the_job_takes(ids: pa.Array) -> None:
    with pytest.raises(SettingsError, match=r"^dptext: an identity of type .* is not valid") as error:
        arguments(call_of(), (TEXTS, ids))
    assert str(ids.type) in str(error.value)
    assert "unix_micros" in str(error.value)


@pytest.mark.parametrize("texts", [pa.array([b"zanzibar"]), pa.array([["zanzibar"]]), pa.array([1])])
def test_a_first_argument_that_is_no_text(texts: pa.Array) -> None:
    with pytest.raises(SettingsError, match=r"^dptext: the first argument is of type") as error:
        arguments(call_of(), (texts, pa.array([1])))
    assert "zanzibar" not in str(error.value)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_integers_of_any_width_identify_alike(kind: pa.DataType) -> None:
    _, ids = arguments(call_of(), (TEXTS, pa.array([7, 8, 9], kind)))
    assert ids.equals(pa.array([7, 8, 9], pa.int64()))


def test_a_null_literal_is_a_column_of_nulls() -> None:
    texts, _ = arguments(call_of(), (pa.nulls(3), IDS))
    assert texts.equals(pa.nulls(3, pa.string()))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_batches_of_any_size_draw_what_the_core_draws(opened: Privatizer, size: int) -> None:
    def stream() -> Iterator[tuple[pa.Array, ...]]:
        for start in range(0, 3, size):
            yield TEXTS.slice(start, size), IDS.slice(start, size)

    found = [one for array in draw_batches(call_of(), stream()) for one in array.to_pylist()]
    expected, _ = opened.privatize(TEXTS, column="body", row_ids=IDS, key=KEY, run_id="r")
    assert found == expected.to_pylist()
    assert found[1:] == [None, ""]


def test_no_rows_are_no_error(opened: Privatizer) -> None:
    (found,) = draw_batches(call_of(), iter([(TEXTS.slice(0, 0), IDS.slice(0, 0))]))
    assert found.to_pylist() == []


def test_invalid_utf8_is_told_without_the_text(opened: Privatizer) -> None:
    broken = pa.array([b"zanzibar \xff"]).view(pa.string())
    with pytest.raises(DataError, match=r"^dptext: columns body: 1 rows hold invalid UTF-8") as error:
        list(draw_batches(call_of(), iter([(broken, pa.array([1]))])))
    assert "zanzibar" not in str(error.value)
    assert error.value.__suppress_context__


def test_a_key_that_is_not_here_says_what_to_do(opened: Privatizer, tmp_path) -> None:
    place = KeySource("file", str(tmp_path / "none"))
    reference = RunKey(hashlib.sha256(b"key").digest(), source=place).delivered()
    with pytest.raises(RunError, match=r"^dptext: key.deliver: .*KEY_MISSING"):
        list(draw_batches(call_of(reference), iter([(TEXTS, IDS)])))


def test_what_nobody_foresaw_leaves_as_its_class(opened: Privatizer) -> None:
    def broken() -> Iterator[tuple[pa.Array, ...]]:
        raise ValueError("zanzibar")
        yield

    with pytest.raises(DPTextError, match=r"^dptext: a worker failed with ValueError") as error:
        list(draw_batches(call_of(), broken()))
    assert "zanzibar" not in str(error.value)
    assert error.value.__suppress_context__


def test_a_spark_without_functions_over_arrow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sql_function.F, "arrow_udf", raising=False)
    with pytest.raises(SettingsError, match=r"^dptext: .*Spark 4\.1 or later"):
        function_of(call_of())
