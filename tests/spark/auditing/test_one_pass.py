"""An audit takes one pass over the keys of both tables and one over their texts: what it gathers is what plain Python gathers."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dptext_spark.randomness.draws import RunKey, identify
from dptext_spark.spark.auditing import pair_tables
from dptext_spark.spark.auditing.pair_tables import (
    COMPARED,
    COUNT,
    COUNT_FIELDS,
    GROUP,
    LEARNT,
    LEVELS,
    MOST_STAYED,
    SCHEMA,
    STAYED,
    TEXT,
    TOKENS,
    WHOLE,
    Tallies,
    summed,
)
from dptext_spark.spark.job.consistency import sample_of

FIELDS = [field.split()[0] for field in SCHEMA.split(", ")]


def row(what: int, n: int = 1, **held: Any) -> tuple[Any, ...]:
    values = {"what": what, "number": 0, "field": 0, "n": n, **held}
    return tuple(values.get(name) for name in FIELDS)


@pytest.fixture
def gathered(spark: SparkSession) -> Callable[..., Tallies]:
    def gather(rows: list[tuple[Any, ...]], stayed: bool = False) -> Tallies:
        frame = spark.createDataFrame(rows, SCHEMA).repartition(3)
        return Tallies(summed(frame, stayed).toArrow())

    return gather


def test_equal_rows_are_summed_and_groups_counted_as_plain_python_does(gathered) -> None:
    draw = random.Random(3)
    pairs = [
        (draw.randrange(2), bytes([draw.randrange(30)]) * 16, *(int(draw.random() < 0.1) for _ in range(2)))
        for _ in range(150)
    ]
    places = [(draw.choice((WHOLE, 0, 1)), draw.randrange(5), draw.randrange(1, 9)) for _ in range(60)]
    words = [(f"word{draw.randrange(40)}".encode(), draw.randrange(1, 4)) for _ in range(200)]
    found = gathered(
        [
            *(row(GROUP, number=level, a=group, low=low, high=high) for level, group, low, high in pairs),
            *(row(COUNT, n, number=column, field=field) for column, field, n in places),
            *(row(STAYED, n, a=word) for word, n in words),
        ],
        stayed=True,
    )  # fmt: skip
    sizes: Counter[tuple[int, bytes]] = Counter()
    replacements = defaultdict(set)
    for level, group, low, high in pairs:
        sizes[level, group] += 1
        replacements[level, group].add((low, high))
    for number, level in enumerate(LEVELS):
        several = [one for one, n in sizes.items() if one[0] == number and n > 1]
        broken = [one for one in several if len(replacements[one]) > 1]
        assert found.groups[level] == (len(several), len(broken))
        assert 0 < len(broken) < len(several)
    counts: Counter[tuple[int, int]] = Counter()
    for column, field, n in places:
        counts[column, field] += n
    for column in (WHOLE, 0, 1):
        expected = {name: counts[column, field] for field, name in enumerate(COUNT_FIELDS)}
        assert found.counts(column) == expected
    often: Counter[bytes] = Counter()
    for word, n in words:
        often[word] += n
    most = sorted(often.items(), key=lambda one: (-one[1], one[0]))[:MOST_STAYED]
    assert [(one.word.encode(), one.times) for one in found.stayed] == most


@pytest.mark.parametrize("numbers", [True, False])
def test_texts_and_tokens_come_in_the_order_of_their_keys(gathered, numbers: bool) -> None:
    keys = [30, -2, 7, 100, 8]

    def key(number: int) -> dict[str, Any]:
        return {"key": number} if numbers else {"e": str(number).encode()}

    order = sorted(keys) if numbers else sorted(keys, key=str)
    uses = {30: COMPARED, -2: LEARNT, 7: COMPARED | LEARNT, 100: LEARNT, 8: COMPARED}
    held = {"b": b"same", "c": b"r", "f": b"x"}
    texts = [row(TEXT, number=uses[one], field=one % 2, a=b"text", **held, **key(one)) for one in keys]
    tokens = [
        row(TOKENS, number=column, a=b"r", b=bytes([one % 5]), **key(one))
        for one in keys
        for column in (1, 0)
    ]
    found = gathered(texts + tokens)
    for use in (COMPARED, LEARNT):
        rows = found.texts(use).to_pylist()
        assert [one["test"] for one in rows] == [bool(one % 2) for one in order if uses[one] & use]
        seen = {(one["plain"], one["private"], one["record"], one["label"], one["attribute"]) for one in rows}
        assert seen == {("text", "same", b"r", None, "x")}
    assert found.tokens["words"].tolist() == [bytes([one % 5]) for _ in (0, 1) for one in order]


@pytest.mark.long
def test_samples_of_one_key_are_those_that_spark_takes(spark: SparkSession) -> None:
    key, names = RunKey.insecure(4), [f"record {i}" for i in range(300)]
    frame = spark.createDataFrame([(one,) for one in names], "scope string")
    place = identify(pa.array(names), key, "audit sample")[:, 0] >> 1
    for share in (0.0, 0.25, 1.0):
        taken = {one["scope"] for one in sample_of(frame, key, share).collect()}
        ours = {
            one for one, at in zip(names, place.tolist(), strict=True) if at < pair_tables.limit_of(share)
        }
        assert taken == ours
