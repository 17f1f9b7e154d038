"""The demo's tickets: the same for one seed, and as varied as real ones."""

from __future__ import annotations

import cProfile
import hashlib
import re

import pyarrow as pa
import pytest

from dptext_spark.demo.tickets import SCHEMA, tickets
from dptext_spark.errors import SettingsError

ROWS = 5_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return tickets(ROWS, seed=20250106)


def share(texts: list[str], pattern: str) -> float:
    return sum(bool(re.search(pattern, text)) for text in texts) / len(texts)


def test_equal_seeds_give_equal_tables(table: pa.Table) -> None:
    assert tickets(ROWS, seed=20250106).equals(table)
    assert not tickets(ROWS, seed=20250107).equals(table)


def test_every_python_makes_the_same_table() -> None:
    made = tickets(50, seed=1)
    plain = made.set_column(2, "created_at", made["created_at"].cast(pa.int64()))
    # Changes with the templates, and with nothing else.
    digest = hashlib.sha256(repr(plain.to_pylist()).encode()).hexdigest()
    assert digest == "bb0ba634a4b16bfb005664c46915fa5752449b7e5c812cea8657d4950b41b6fc"


def test_columns(table: pa.Table) -> None:
    assert table.schema.equals(SCHEMA)
    assert table.num_rows == ROWS
    assert len(set(table["ticket_id"].to_pylist())) == ROWS
    assert ROWS / 10 < len(set(table["customer_id"].to_pylist())) < ROWS / 2
    created = table["created_at"].to_pylist()
    assert created == sorted(created)
    assert all(table[field.name].null_count == 0 for field in SCHEMA if not field.nullable)


def test_some_replies_are_null_and_some_empty(table: pa.Table) -> None:
    replies = table["agent_reply"].to_pylist()
    assert 0.1 < replies.count(None) / ROWS < 0.15
    assert 0.02 < replies.count("") / ROWS < 0.06


@pytest.mark.parametrize(
    ("what", "pattern", "least"),
    [
        ("an e-mail address", r"[a-z0-9._]+@[a-z.]*example\.(com|org|net)", 0.1),
        ("a phone number", r"555[ .-]01\d\d|7946 0\d\d\d|23125 \d\d\d|99 00 \d\d", 0.1),
        ("a price", r"[$€£]\d|\d (euros|dollars|€)", 0.1),
        ("a digit", r"\d", 0.6),
        ("a contraction", r"[a-z]['\u2019](s|t|m|ve|d|ll|re)\b", 0.5),
        ("a hyphenated word", r"[a-z]-[a-z]", 0.05),
        ("several lines", r"\n", 0.7),
        ("a shouted sentence", r"[A-Z]{4,} [A-Z]{2,}", 0.03),
        ("an emoji", r"[\U0001F300-\U0001FAFF]", 0.05),
        ("an accented letter", r"[à-ÿ]", 0.1),
        ("another script", r"[\u0400-\u04FF\u0600-\u06FF\u3040-\u30FF]", 0.01),
    ],
)
def test_bodies_hold(table: pa.Table, what: str, pattern: str, least: float) -> None:
    assert share(table["body"].to_pylist(), pattern) >= least, what


def test_texts_are_varied(table: pa.Table) -> None:
    bodies = table["body"].to_pylist()
    words = {word for text in bodies for word in re.findall(r"[^\W\d_]+", text.lower())}
    assert len(words) > 2_000
    assert len(set(bodies)) == ROWS
    assert 200 < sum(map(len, bodies)) / ROWS < 500


def test_a_topic_is_what_the_subject_is_about(table: pa.Table) -> None:
    about = dict(zip(table["subject"].to_pylist(), table["topic"].to_pylist(), strict=True))
    assert len(set(about.values())) == 10
    assert (about["Can't log in"], about["Sync broken"]) == ("account", "application")


def test_no_template_mark_is_left(table: pa.Table) -> None:
    for name in ("subject", "body", "agent_reply"):
        assert share([text or "" for text in table[name].to_pylist()], r"[{}]") == 0


def test_a_customer_keeps_the_address(table: pa.Table) -> None:
    replies = list(zip(table["customer_id"].to_pylist(), table["body"].to_pylist(), strict=True))
    often = max({customer for customer, _ in replies}, key=[customer for customer, _ in replies].count)
    own = re.compile(r"(?:reach me at|reply to|write to) ([a-z0-9._]+@[a-z.]+[a-z])")
    found = {address for customer, text in replies if customer == often for address in own.findall(text)}
    assert len(found) == 1


def test_a_ticket_takes_a_thousand_calls_at_most_however_many_there_are() -> None:
    for rows in (1_000, 4_000):
        profile = cProfile.Profile()
        with profile:
            tickets(rows, seed=1)
        assert sum(one.callcount for one in profile.getstats()) < rows * 1_000


def test_no_rows_and_fewer() -> None:
    assert tickets(0, seed=1).num_rows == 0
    with pytest.raises(SettingsError, match="rows: -1 is negative"):
        tickets(-1, seed=1)
