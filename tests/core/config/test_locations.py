"""Whether two places are the same, by their names alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dptext_spark.config.locations import TABLE, absolute, holds_credentials, inside, same_path, same_table


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/data/a", "/data/a/"),
        ("/data/a", "/data//x/../a/."),
        ("/data/a", "file:/data/a"),
        ("/data/a", "file:///data/a"),
        ("/data/a", "FILE:///data/a"),
        ("data/a", os.path.abspath("data/a")),
        ("s3://bucket/a", "s3a://bucket/a/"),
        ("s3://Bucket/a", "s3n://bucket//a"),
        ("dbfs:/mnt/a", "dbfs:///mnt/a"),
        ("abfss://c@account/a", "abfs://c@account/b/../a"),
    ],
)
def test_one_place_has_many_names(one: str, other: str) -> None:
    assert same_path(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/data/a", "/data/b"),
        ("/data/a", "/data/A"),
        ("s3://bucket/a", "s3://other/a"),
        ("s3://bucket/a", "/bucket/a"),
        ("/data/a", "/data/ab"),
    ],
)
def test_other_places_are_other_places(one: str, other: str) -> None:
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


def test_tables_are_compared_without_case_and_with_sparks_defaults() -> None:
    assert same_table("tickets", "spark_catalog.default.Tickets")
    assert same_table("`s`.`t`", "SPARK_CATALOG.s.T")
    assert not same_table("a.t", "b.t")
    assert not same_table("c.a.t", "a.t")


@pytest.mark.parametrize("name", ["t", "s.t", "c.s.t", "`odd name`.t"])
def test_a_catalog_name_has_up_to_three_parts(name: str) -> None:
    assert TABLE.fullmatch(name)


@pytest.mark.parametrize("name", ["", "a.b.c.d", "a b", "a;b", ".t", "t."])
def test_what_is_no_catalog_name(name: str) -> None:
    assert not TABLE.fullmatch(name)


def test_credentials_in_a_path_are_seen() -> None:
    assert holds_credentials("s3a://id:secret@bucket/a")
    assert holds_credentials("https://host/a?sv=1&sig=abc")
    assert not holds_credentials("abfss://container@account.host/a")
    assert not holds_credentials("/data/a:b@c")


@pytest.mark.parametrize("path", ["/data/in", "s3://bucket/in", "dbfs:/in", "file:/in", "~/in"])
def test_what_is_absolute_stays(path: str) -> None:
    assert absolute(path) == path


def test_a_relative_path_is_of_this_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert [absolute(path) for path in ("in", "./in", "a/../in")] == [str(tmp_path / "in")] * 3
