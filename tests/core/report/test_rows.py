"""Texts beside what they became: in any holder, escaped, and named in no `repr` and no message."""

from __future__ import annotations

import traceback
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from dptext_spark.errors import DataError
from dptext_spark.report.before_and_after import NOTE, RowComparison, compare_rows

NO_UTF8 = pa.array([b"secret\xff"]).view(pa.string())
BEFORE = ("send <script>secret</script> now", None, "same & same")
AFTER = ("send <script>letter</script> now", None, "same & same")


def test_changed_words_are_marked_and_all_is_escaped() -> None:
    found = compare_rows(BEFORE, AFTER)
    html = found._repr_html_()
    assert "<script" not in html
    assert ">send &lt;script&gt;<mark>secret</mark>&lt;/script&gt; now</td>" in html
    assert ">send &lt;script&gt;<mark>letter</mark>&lt;/script&gt; now</td>" in html
    for shown in ("<mark>", "<em>NULL</em>", ">same &amp; same</td>"):
        assert html.count(shown) == 2
    assert f"<p>{NOTE}</p>" in html
    assert [head in html for head in (">1</th>", ">3</th>", ">4</th>")] == [True, True, False]


def test_its_repr_tells_no_word_and_not_how_many_changed() -> None:
    assert repr(compare_rows(BEFORE, AFTER)) == "RowComparison(3 rows, not shown)"
    one = "RowComparison(1 row, not shown)"
    assert [str(compare_rows("secret", after)) for after in ("letter", "secret")] == [one, one]


@pytest.mark.parametrize(
    "held",
    [
        list,
        tuple,
        pa.array,
        lambda texts: pa.array(texts, pa.large_string()),
        lambda texts: pa.array(texts, pa.string()).dictionary_encode(),
        lambda texts: pa.chunked_array([pa.array(texts[:1]), pa.array(texts[1:], pa.string())]),
        pd.Series,
        lambda texts: pd.Series(texts, index=[7, 8, 9], dtype="string"),
    ],
)
def test_texts_are_taken_from_whatever_holds_them(held: Any) -> None:
    assert compare_rows(held(BEFORE), held(AFTER)) == RowComparison(BEFORE, AFTER)


def test_none_at_all_is_a_table_without_rows() -> None:
    assert compare_rows([], pa.array([], pa.string())) == RowComparison((), ())
    assert compare_rows([], [])._repr_html_().count('scope="row"') == 0


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (["secret"], ["a", "b"], "before, after: 1 and 2 texts given"),
        ("secret", ["a"], "before, after: one text and several given"),
        (["a"], "secret", "before, after: one text and several given"),
        ([41, 42], ["a", "b"], "before: values of type int64 given"),
        (["a"], [b"secret"], "after: values of type binary given"),
        (["secret", 7], ["a", "b"], "before: what was given holds no texts"),
        (["secret \ud800"], ["a"], "before: what was given holds no texts, or no valid Unicode"),
        (None, ["secret"], "before: what was given holds no texts"),
        (NO_UTF8, ["a"], "before: what was given holds no texts, or no"),
    ],
)
def test_what_does_not_fit_is_named_without_a_word_of_it(before: Any, after: Any, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        compare_rows(before, after)
    assert "valid:" in str(caught.value)
    shown = "".join(traceback.format_exception_only(caught.value))
    assert "secret" not in shown
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
