"""Values that are written as JSON and read again: every type there and back, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pytest

from dptext_spark.errors import DataError
from dptext_spark.runtime.validation import Record, Unbounded


@dataclass(frozen=True)
class Inner(Record):
    sparse: ClassVar[bool] = True

    low: float
    note: str | None = None


@dataclass(frozen=True)
class Most(Record):
    most: Unbounded
    known: Unbounded | None = None
    other: float = 0.0


@dataclass(frozen=True)
class Outer(Record):
    name: str
    count: int
    sure: bool
    kind: Literal["a", "b"]
    ends: tuple[int, int]
    inner: Inner | None
    every: tuple[Inner, ...] = ()
    shares: Mapping[str, float] | None = None
    by: Mapping[str, Inner] | None = None


SEVERAL = (Inner(1.0), Inner(2.0))
FULL = Outer("n", 3, True, "b", (1, 2), Inner(0.5, "x"), SEVERAL, {"p": 0.25}, {"q": Inner(4.0)})
LEAST = Outer("n", 3, False, "a", (1, 2), None)


@pytest.mark.parametrize("given", [FULL, LEAST])
def test_what_is_written_is_read_again(given: Outer) -> None:
    assert Outer.from_dict(json.loads(json.dumps(given.as_dict()))) == given


def test_a_field_is_left_out_only_where_its_class_says_so() -> None:
    assert Inner(1.0).as_dict() == {"low": 1.0}
    assert {name for name, value in LEAST.as_dict().items() if value is None} == {"inner", "shares", "by"}


def test_an_infinite_number_is_null_where_its_class_says_so() -> None:
    written = Most(math.inf, math.inf).as_dict()
    assert json.dumps(written, allow_nan=False) == '{"most": null, "known": null, "other": 0.0}'
    assert Most.from_dict(written) == Most(math.inf, None)  # a null that may be one stays null
    assert Most.from_dict({"most": 1.5, "known": 2.0}) == Most(1.5, 2.0)
    with pytest.raises(DataError, match=r"^Most.other: NoneType is not valid. Choose a number\.$"):
        Most.from_dict({"most": 1.0, "other": None})
    with pytest.raises(DataError, match=r"^Most.most: missing"):
        Most.from_dict({})


def test_fields_of_a_later_version_are_passed_over_and_missing_ones_have_their_default() -> None:
    assert Inner.from_dict({"low": 1, "later": [1]}) == Inner(1.0)
    assert isinstance(Inner.from_dict({"low": 1}).low, float)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([], "Outer: list is not valid. Choose a mapping."),
        ({"name": 1}, "Outer.name: int is not valid. Choose a text."),
        ({"count": True}, "Outer.count: bool is not valid. Choose an integer."),
        ({"sure": 0}, "Outer.sure: int is not valid. Choose true or false."),
        ({"kind": "private"}, "Outer.kind: str is not valid. Choose a or b."),
        ({"ends": [1]}, "Outer.ends[1]: missing."),
        ({"ends": [1, "private"]}, "Outer.ends[1]: str is not valid. Choose an integer."),
        ({"ends": [1, 2, "private"]}, "Outer.ends: list is not valid. Choose at most 2."),
        ({"inner": {}}, "Outer.inner.low: missing."),
        ({"every": [{"low": None}]}, "Outer.every[0].low: NoneType is not valid. Choose a number."),
        ({"shares": {"p": "private"}}, "Outer.shares.p: str is not valid. Choose a number."),
    ],
)
def test_what_is_of_another_type_is_refused_without_its_value(changes: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        Outer.from_dict(FULL.as_dict() | changes if changes else changes)
    assert str(caught.value) == message
