"""Whether two places are the same, by their names alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.locations import TABLE, absolute, holds_credentials, inside, same_path, same_table

SAME = {
    "/data/a": ("/data/a/", "/data//x/../a/.", "file:/data/a", "file:///data/a", "FILE:///data/a"),
    "data/a": (os.path.abspath("data/a"),),
    "s3://bucket/a": ("s3a://bucket/a/",),
    "s3://Bucket/a": ("s3n://bucket//a",),
    "dbfs:/mnt/a": ("dbfs:///mnt/a",),
    "abfss://c@account/a": ("abfs://c@account/b/../a",),
}
OTHER = {"/data/a": ("/data/b", "/data/A", "/data/ab"), "s3://bucket/a": ("s3://other/a", "/bucket/a")}


@pytest.mark.parametrize("one", SAME)
def test_one_place_has_many_names(one: str) -> None:
    assert all(same_path(one, other) for other in SAME[one])


@pytest.mark.parametrize("one", OTHER)
def test_other_places_are_other_places(one: str) -> None:
    for other in OTHER[one]:
        assert not same_path(one, other)
        assert not inside(one, other)
        assert not inside(other, one)


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert same_path(str(tmp_path / "real"), str(tmp_path / "link"))
    assert inside(str(tmp_path / "link" / "deep"), str(tmp_path / "real"))


def test_inside_is_below_and_not_beside() -> None:
    assert inside("/data/a/b", "/data/a")
    assert inside("s3a://bucket/a", "s3://bucket")
    assert inside("/a", "/")
    assert not inside("/data/a", "/data/a")
    assert not inside("/data/ab", "/data/a")


@pytest.mark.parametrize("path", ["/data/in", "s3://bucket/in", "dbfs:/in", "file:/in", "~/in"])
def test_what_is_absolute_stays(path: str) -> None:
    assert absolute(path) == path


def test_a_relative_path_is_of_this_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert [absolute(path) for path in ("in", "./in", "a/../in")] == [str(tmp_path / "in")] * 3


SAME_TABLES = [("tickets", "spark_catalog.default.Tickets"), ("`s`.`t`", "SPARK_CATALOG.s.T")]
CREDENTIALS = ["s3a://id:secret@bucket/a", "https://host/a?sv=1&sig=abc"]


@pytest.mark.parametrize(
    ("asked", "true", "false"),
    [
        (TABLE.fullmatch, ["t", "s.t", "c.s.t", "`odd name`.t"], ["", "a.b.c.d", "a b", "a;b", ".t", "t."]),
        (lambda pair: same_table(*pair), SAME_TABLES, [("a.t", "b.t"), ("c.a.t", "a.t")]),
        (holds_credentials, CREDENTIALS, ["abfss://container@account.host/a", "/data/a:b@c"]),
    ],
    ids=["catalog names", "tables without case, with Spark's defaults", "credentials"],
)
def test_names_are_told(asked: Callable[[Any], object], true: list[Any], false: list[Any]) -> None:
    assert all(asked(given) for given in true)
    assert not any(asked(given) for given in false)
