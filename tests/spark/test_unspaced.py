"""Scripts without spaces in rows: two columns, lists of texts, lists of names and identifiers, as a plain reading says."""

# Look-alikes of other scripts are what these texts are about.
# ruff: noqa: RUF001
from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark import spark as dps
from dptext_spark.config.load import parse_config
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.spark.runner import run
from dptext_spark.spark.udf.column import UdfSpec, sanitize
from dptext_spark.spark.udf.names import ShippedNames
from dptext_spark.spark.udf.ship import Shipped
from dptext_spark.text.policy import Policy
from tests.core.text.names.plain_names import find
from tests.core.text.plain_engine import Plain
from tests.core.text.samples import FirstLane

KEY = RunKey.insecure(3)
# The names are words of the lexicon in their parts.
WORDS = (
    "我",
    "你",
    "今天",
    "天气",
    "很好",
    "手机",
    "研究",
    "研究生",
    "生命",
    "起源",
    "王",
    "小明",
    "李",
    "雷",
    "ไป",
    "โรงเรียน",
    "มา",
    "นี",
)
STOP = ("的", "了", "ได้")
NAMES = ("王小明", "李雷", "小明手", "มานี", "天气很好", "起源")
PARTS = (
    *WORDS,
    *STOP,
    *NAMES,
    *NAMES,
    "王小",
    "命",
    "x",
    "。",
    "，",
    " ",
    "\n",
    "，a1@b.example，",
    " li@mail.example。",
)
EMAIL = re.compile(r"[a-z0-9]+@[a-z]+\.example")
TEXTS = st.lists(st.sampled_from(PARTS), max_size=10).map("".join)
POLICY = Policy(segment="lexicon", stop_word_list=STOP, oov="mask", case="lower")
Row = tuple[int, int, str | None, list[str | None] | None, str | None, list[str] | None]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([0, 1]), st.none() | TEXTS, st.none() | st.lists(st.none() | TEXTS, max_size=3),
        st.none() | st.sampled_from(NAMES), st.none() | st.lists(st.sampled_from(NAMES), max_size=2),
    ),
    min_size=1, max_size=4,
).map(lambda rows: [(number, *row) for number, row in enumerate(rows)])  # fmt: skip


@functools.cache
def model(level: Any) -> Privatizer:
    return Privatizer(Vocabulary.of(list(WORDS)), FirstLane(0, len(WORDS)), POLICY, level)


@functools.cache
def drawn(level: str, record: int, word: str) -> str:
    """What a word becomes in a record, asked for alone."""
    ids = pa.array([99])
    texts, counters = model(level).privatize(
        pa.array([word]), column="alone", row_ids=ids, record_ids=pa.array([record]), key=KEY, run_id="r"
    )
    assert counters.totals()["drawn"] == 1
    return str(texts[0].as_py())


def read_plainly(text: str, level: str, record: int, mask: list[str], keep: list[str]) -> str:
    """A text with emails replaced, then names, then each word that is left; what is not drawn follows from the rules."""
    spans = [(*match.span(), "[EMAIL]") for match in EMAIL.finditer(text)]
    for begin, end, number in find(text, [mask, keep]):
        if all(end <= a or b <= begin for a, b, _ in spans):
            spans.append((begin, end, text[begin:end] if number else "[NAME]"))
    plain, out, at = Plain(WORDS, lambda i: i, POLICY), "", 0
    for begin, end, mark in [*sorted(spans), (len(text), len(text), "")]:
        for piece in plain.pieces(text[at:begin]):
            out += drawn(level, record, piece.text) if piece.action == "drawn" else piece.text
        out, at = out + mark, end
    return out


def expected(row: Row, level: str) -> tuple[str | None, list[str | None] | None]:
    _, record, body, notes, mask, keep = row
    made = functools.partial(
        read_plainly, level=level, record=record, mask=[mask] if mask else [], keep=keep or []
    )
    return (
        None if body is None else made(body),
        None if notes is None else [None if one is None else made(one) for one in notes],
    )


def sanitized(rows: list[Row], level: str) -> list[tuple[Any, Any]]:
    names = ShippedNames("r", "", 0, ("mask", "keep"), 1)
    spec = UdfSpec(("body", "notes"), Shipped("", ""), KEY, "r", True, True, names=names)
    kinds = (pa.string(), pa.list_(pa.string()), pa.string(), pa.list_(pa.string()))
    arrays = [pa.array([row[i] for row in rows], kind) for i, kind in zip((2, 3, 4, 5), kinds, strict=True)]
    ids, records = (pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1))
    found = sanitize((*arrays, ids, records), spec, model(level), ids)
    return list(zip(*(found.field(name).to_pylist() for name in ("text_0", "text_1")), strict=True))


@pytest.mark.parametrize("level", ["record", "dataset"])
@settings(max_examples=300, deadline=None)
@given(rows=ROWS)
def test_rows_come_out_as_a_plain_reading_says(level: str, rows: list[Row]) -> None:
    assert sanitized(rows, level) == [expected(row, level) for row in rows]


def test_the_plain_reading_tells_records_apart_and_not_of_one_dataset() -> None:
    for level, equal in (("record", False), ("dataset", True)):
        both = [[drawn(level, record, word) for word in WORDS] for record in (0, 1)]
        assert (both[0] == both[1]) is equal
        assert both[0] != list(WORDS)


def test_by_hand() -> None:
    """Names whose parts are words of the lexicon, amid other letters, in both columns and in elements of a list."""
    rows: list[Row] = [
        (0, 0, "今天王小明的手机", ["了王小明", None, "我王小明，a1@b.example，的"], "王小明", ["手机"]),
        (1, 0, "王小明 มานีได้", [], "มานี", None),
    ]
    (first, notes), (second, _) = sanitized(rows, "record")
    assert first == drawn("record", 0, "今天") + "[NAME]的手机"
    assert notes == ["了[NAME]", None, drawn("record", 0, "我") + "[NAME]，[EMAIL]，的"]
    # The name of another row is drawn in its parts, as the lexicon has them.
    assert second == drawn("record", 0, "王") + drawn("record", 0, "小明") + " [NAME]ได้"


@pytest.mark.cluster
@pytest.mark.parametrize("level", ["record", "dataset"])
def test_a_run_reads_so(spark: Any, tmp_path: Path, level: str) -> None:
    """Lists from a file and a column, two columns, one of them a list; the run's own check pairs them, too."""
    vectors = np.random.default_rng(2).normal(size=(len(WORDS), 6)).astype(np.float32)
    Lexicon(Vocabulary.of(list(WORDS)), vectors).save(tmp_path / "lexicon")
    (tmp_path / "mask.txt").write_text("王小明\nมานี\n", encoding="utf-8")
    rows = [
        (
            n,
            f"c{n // 2}",
            "今天王小明的手机，王小明很好",
            ["มานีได้ไป", None, "李雷和a@b.example，起源"],
            "李雷",
        )
        for n in range(8)
    ]
    schema = "id long, customer string, body string, notes array<string>, agent string"
    spark.createDataFrame(rows, schema).repartition(3).write.format("delta").save(str(tmp_path / "in"))
    config = parse_config({
        "input": {"path": str(tmp_path / "in")}, "columns": ["body", "notes"], "row_key": "id", "record_key": "customer",
        "consistency": level, "lexicon": {"source": str(tmp_path / "lexicon")},
        "mechanism": {"name": "custext", "epsilon": 1.0, "k": 6},
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
        "policy": {
            "segment": "lexicon", "stop_word_list": list(STOP), "allow_unknown": True,
            "mask": [{"file": str(tmp_path / "mask.txt")}, {"column": "agent"}],
        },
    })  # fmt: skip
    facts = run(config, spark, key=KEY).facts
    assert facts["consistency_audit"]["passed"] is True
    restricted = facts["restricted"]
    assert restricted["names_masked"] == 4 * len(rows)
    assert restricted["identifiers_email"] == len(rows)
    # 今天 手机 很好, ไป, 起源 are drawn; 的 and ได้ are kept; 和 is unknown.
    assert [restricted[name] / len(rows) for name in ("drawn", "stop_kept", "oov")] == [5, 2, 1]
    written = {row["id"]: row for row in spark.read.format("delta").load(str(tmp_path / "out")).collect()}
    lexicon = "|".join(WORDS)
    seen = set()
    for row in written.values():
        body = re.fullmatch(rf"({lexicon})\[NAME\]的({lexicon})，\[NAME\]({lexicon})", row["body"])
        assert body is not None
        assert row["notes"][1] is None
        assert re.fullmatch(rf"\[NAME\]ได้({lexicon})", row["notes"][0])
        assert re.fullmatch(rf"\[NAME\]\[OOV\]\[EMAIL\]，({lexicon})", row["notes"][2])
        seen.add((row["customer"] if level == "record" else "", row["body"], *filter(None, row["notes"])))
    assert len(seen) == (len(rows) // 2 if level == "record" else 1)
    audited = dps.audit(str(tmp_path / "out"), against=str(tmp_path / "in"), config=config)
    figures = {one.name: one.value for one in audited.figures if one.column is None}
    assert figures[f"{level}_broken_groups"] == 0
    assert figures["rows_not_aligned"] == 0
