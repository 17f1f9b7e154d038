"""A few rows of a Spark DataFrame before and after, drawn on the driver."""

from __future__ import annotations

import pytest

from dptext_spark import spark as dps
from dptext_spark.errors import DPTextError

ROWS = [(1, "the time zanzibar", "of"), (2, None, "the day"), (3, "", None)]


def test_a_frame_is_previewed_and_an_error_of_it_holds_no_text(spark, privatizer) -> None:
    df = spark.createDataFrame(ROWS, "id long, `a.b` string, note string").coalesce(1)
    shown = dps.preview(df, ["a.b", "note"], privatizer, rows=2)
    assert shown.columns["a.b"].before == ("the time zanzibar", None)
    assert shown.columns["note"].before == ("of", "the day")
    first, second = shown.columns["a.b"].after
    assert first.endswith(" [OOV]")
    assert len(first.split()) == 3
    assert second is None
    failing = df.selectExpr("raise_error(`a.b`) AS body")
    with pytest.raises(DPTextError) as caught:
        dps.preview(failing.selectExpr("CAST(body AS string) AS body"), ["body"], privatizer)
    assert "zanzibar" not in str(caught.value)
