"""A few rows are drawn as a run would draw them, under a key of their own, and nothing of the draw stays."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dptext_spark as dp
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.model.first_look import THROWN_AWAY, draw_rows
from dptext_spark.model.privatizer import Privatizer

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from dptext_spark import spark as dps

WORDS = ["<script>", "a&b", "parcel", "letter", "sister", "brother", "send", "give"]
POLICY = dp.Policy(oov="mask", tokenizer="whitespace", identifiers="none")
BODIES = ["send parcel secret", None, "", "send parcel secret", "give letter"]
NOTES = ["sister", "brother", None, "parcel parcel", "<script> <script>"]
TABLE = pa.table({"id": [1, 2, 3, 4, 5], "body": BODIES, "note": NOTES})
KEY = dp.RunKey.insecure(5)


@cache
def lexicon() -> dp.Lexicon:
    vectors = np.random.default_rng(5).standard_normal((len(WORDS), 4)).astype(np.float32)
    return dp.Lexicon(Vocabulary.of(WORDS), vectors, "euclidean")


def model_at(level: str, importance: dp.Importance | None = None) -> Privatizer:
    return dp.compile(
        dp.CusText(epsilon=1.0, k=8), lexicon(), POLICY, consistency=level, importance=importance
    )


@pytest.mark.parametrize("level", ["token", "record", "dataset"])
def test_rows_are_drawn_as_by_the_model(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dptext_spark.model.first_look.RunKey.generate", lambda: KEY)
    model, columns = model_at(level), {"body": pa.array(BODIES), "note": pa.array(NOTES)}
    ids = pa.array(range(5))
    drawn = draw_rows(model, columns)
    for name, texts in columns.items():
        assert drawn[name].equals(model.privatize(texts, column=name, row_ids=ids, key=KEY)[0])
    first, *rest = drawn["body"].to_pylist()
    assert rest[:2] == [None, ""]
    assert first.endswith(" [OOV]")


def test_each_has_a_key_of_its_own_and_leaves_nothing() -> None:
    model, words = model_at("dataset"), {"body": pa.array([" ".join(WORDS)])}
    # 8 words to 8 outputs each: that ten substitutions are one has a probability below 1e-9.
    assert len({draw_rows(model, words)["body"][0].as_py() for _ in range(10)}) > 1
    assert model._draws == {}


def test_importance_chooses_in_all_texts_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_at("record", dp.Importance(provider="random", percent=50))
    asked: list[int] = []
    choose = Privatizer.choose
    monkeypatch.setattr(
        Privatizer, "choose", lambda self, texts: asked.append(len(texts)) or choose(self, texts)
    )
    drawn = draw_rows(model, {"body": pa.array(["send parcel"]), "note": pa.array(["give letter"])})
    assert asked == [2]
    # Two of four words are drawn; a drawn word may come out as itself.
    words = " ".join(texts[0].as_py() for texts in drawn.values()).split()
    assert sum(a == b for a, b in zip(["send", "parcel", "give", "letter"], words, strict=True)) >= 2
    weighed = model_at("token", dp.Importance(provider="column", percent=50, weights=("w",)))
    with pytest.raises(SettingsError, match="model: a few rows cannot show its draws"):
        draw_rows(weighed, {"body": pa.array(["send"])})


@pytest.mark.parametrize("kind", ["arrow", "pandas", "chunks", "dictionary", "large"])
def test_a_table_is_previewed_whatever_holds_it(kind: str) -> None:
    held = {
        "arrow": lambda: TABLE,
        "pandas": TABLE.to_pandas,
        "chunks": lambda: pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
        "dictionary": lambda: TABLE.set_column(1, "body", TABLE["body"].dictionary_encode()),
        "large": lambda: TABLE.set_column(1, "body", TABLE["body"].cast(pa.large_string())),
    }[kind]()
    shown = dps.preview(held, ["body", "note"], model_at("record"), rows=4)
    assert list(shown.columns) == ["body", "note"]
    assert shown.columns["body"].before == tuple(BODIES[:4])
    assert shown.columns["note"].before == tuple(NOTES[:4])
    for before, after in zip(NOTES[:4], shown.columns["note"].after, strict=True):
        assert (before is None) == (after is None)
        assert set((after or "").split()) <= set(WORDS)
    body = shown.columns["body"].after
    assert body[1:3] == (None, "")
    assert repr(shown).startswith("TablePreview(4 rows, 2 columns, not shown")
    for rows, texts in ((TABLE.slice(0, 0), ()), (TABLE.slice(0, 1), (BODIES[0],))):
        assert dps.preview(rows, ["body"], model_at("record")).columns["body"].before == texts
    assert shown.guarantee == model_at("record").guarantee(of_rows=True)


def test_a_notebook_shows_rows_escaped_and_says_why_nothing_is_spent() -> None:
    model = model_at("record")
    shown = dps.preview(TABLE, ["body", "note"], model)
    html = shown._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert re.findall(r'<th scope="row"[^>]*>(.*?)</th>', html) == [
        f"row {number}, {name}" for number in range(1, 6) for name in ("body", "note")
    ]
    assert re.search(
        r"<mark>[^<]*\[OOV\][^<]*</mark>", html
    )  # with changed words beside it, as they were drawn
    assert THROWN_AWAY in html
    assert "Do not share" in THROWN_AWAY


# A text that is no valid UTF-8, which Arrow does not check.
OFFSETS = pa.py_buffer(b"\0\0\0\0\x07\0\0\0")
INVALID = pa.Array.from_buffers(pa.string(), 1, [None, OFFSETS, pa.py_buffer(b"secret\xff")])


@pytest.mark.parametrize(
    ("table", "columns", "said"),
    [
        (TABLE, ["boddy"], "columns: 'boddy' is not exactly once .* id, body or note"),
        (TABLE, ["body", "body"], "columns: 'body' is not exactly once"),
        (TABLE.append_column("body", TABLE["note"]), ["body"], "columns: 'body' is not exactly once"),
        (TABLE, ["id"], "id: a column of type int64"),
        (pa.table({"b": [b"secret"]}), ["b"], "b: a column of type binary"),
        (pd.DataFrame({"b": ["secret", 7]}), ["b"], "columns b: the input is no table of texts"),
        ({"b": ["secret"]}, ["b"], "columns: 'b' is not exactly once"),
        (pa.table({"b": INVALID}), ["b"], "b: a text is not valid Unicode"),
    ],
)
def test_what_does_not_fit_is_named_without_a_word_of_it(
    table: object, columns: list[str], said: str
) -> None:
    with pytest.raises(DataError, match=said) as caught:
        dps.preview(table, columns, model_at("record"))  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "rows", "said"),
    [
        *((["body"], rows, f"rows: {rows} is not valid") for rows in (0, 21, True)),
        *((columns, 5, "columns: no list of text columns") for columns in ([], "body")),
    ],
)
def test_what_is_asked_is_checked(columns: list[str], rows: int, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        dps.preview(TABLE, columns, model_at("record"), rows=rows)
