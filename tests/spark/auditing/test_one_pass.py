"""An audit takes one pass over the keys of both tables and one over their texts: what it gathers is what plain Python gathers."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pytest

from dptext_spark.audit.table_audit import StayedWord
from dptext_spark.randomness import RunKey
from dptext_spark.spark.pair_tables import (
    COUNT_FIELDS,
    FINDINGS,
    LEVELS,
    MOST_STAYED,
    SCHEMA,
    SCOPES,
    WHOLE,
    Count,
    Finding,
    GroupRow,
    Groups,
    Tallies,
    TextRow,
    TokensRow,
    limit_of,
    places_of,
    sample_of,
    summed,
)


def row(finding: Finding) -> dict[str, Any]:
    return {name: asdict(finding) if isinstance(finding, kind) else None for name, kind in FINDINGS.items()}


@pytest.fixture
def gathered(spark) -> Callable[..., Tallies]:
    def gather(findings: list[Finding], stayed: bool = False) -> Tallies:
        frame = spark.createDataFrame([*map(row, findings)], SCHEMA).repartition(3)
        return Tallies(summed(frame, stayed).toArrow())

    return gather


def test_equal_rows_are_summed_and_groups_counted_as_plain_python_does(gathered) -> None:
    draw = random.Random(3)
    levels = (*LEVELS, SCOPES)
    groups = [
        GroupRow(
            draw.choice(levels),
            bytes([draw.randrange(30)]) * 16,
            int(draw.random() < 0.1),
            draw.randrange(1, 3),
        )
        for _ in range(150)
    ]
    places = (WHOLE, 0, 1)
    counts = [Count(draw.choice(places), draw.choice(COUNT_FIELDS), draw.randrange(1, 9)) for _ in range(60)]
    words = [StayedWord(f"word{draw.randrange(40)}", draw.randrange(1, 4)) for _ in range(200)]
    found = gathered([*groups, *counts, *words], stayed=True)
    sizes: Counter[tuple[str, bytes]] = Counter()
    replacements = defaultdict(set)
    for group in groups:
        sizes[group.level, group.words] += group.n
        replacements[group.level, group.words].add(group.replacement)
    for level in levels:
        of_level = [key for key in sizes if key[0] == level]
        several = [key for key in of_level if sizes[key] > 1]
        broken = [key for key in several if len(replacements[key]) > 1]
        assert found.groups[level] == Groups(level, len(of_level), len(several), len(broken))
        assert 0 < len(broken) < len(several) < len(of_level)
    counted: Counter[tuple[int, str]] = Counter()
    for count in counts:
        counted[count.column, count.name] += count.n
    for column in (WHOLE, 0, 1):
        assert found.counts(column) == {name: counted[column, name] for name in COUNT_FIELDS}
    often: Counter[str] = Counter()
    for word in words:
        often[word.word] += word.times
    most = sorted(often.items(), key=lambda one: (-one[1], one[0]))[:MOST_STAYED]
    assert found.stayed == tuple(StayedWord(*word) for word in most)


def test_what_was_not_found_is_zero(gathered) -> None:
    found = gathered([])
    assert found.groups == {level: Groups(level, 0, 0, 0) for level in (*LEVELS, SCOPES)}
    assert (set(found.counts(0).values()), found.stayed) == ({0}, ())
    assert len(found.tokens) == len(found.texts) == 0


@pytest.mark.parametrize("numbers", [True, False])
def test_texts_and_tokens_come_in_the_order_of_their_keys(gathered, numbers: bool) -> None:
    keys = [30, -2, 7, 100, 8]

    def key(number: int) -> tuple[int | None, bytes | None]:
        return (number, None) if numbers else (None, str(number).encode())

    order = sorted(keys) if numbers else sorted(keys, key=str)
    learnt = {30: False, -2: True, 7: True, 100: True, 8: False}
    rest = ("text", "same", b"r", None, "x")
    texts = [TextRow(*key(one), not learnt[one], learnt[one], bool(one % 2), *rest) for one in keys]
    places = [(column, one) for one in keys for column in (1, 0)]
    tokens = [TokensRow(b"r", column, *key(one), bytes([one % 5]), b"", b"") for column, one in places]
    found = gathered(texts + tokens)
    rows = found.texts.drop_columns(["number", "key"]).to_pylist()
    assert rows == [
        {"compared": not learnt[one], "learnt": learnt[one], "test": bool(one % 2), "plain": "text", "private": "same",
         "record": b"r", "label": None, "attribute": "x"}
        for one in order
    ]  # fmt: skip
    assert found.tokens["words"].tolist() == [bytes([one % 5]) for _ in (0, 1) for one in order]


@pytest.mark.long
def test_samples_of_one_key_are_those_that_spark_takes(spark) -> None:
    key, names = RunKey.insecure(4), [f"record {i}" for i in range(300)]
    frame = spark.createDataFrame([(one,) for one in names], "scope string")
    place = places_of(pa.array(names), key)
    for share in (0.0, 0.25, 1.0):
        taken = {one["scope"] for one in sample_of(frame, key, share).collect()}
        assert taken == {one for one, at in zip(names, place.tolist(), strict=True) if at < limit_of(share)}
