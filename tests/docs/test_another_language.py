"""What the page on other languages says of words and case is what lexicon and engine do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dptext_spark.lexicon.characters import look_up_form
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.text.unknown import LEAST_ROWS, LEAST_WORDS, UnknownWords, refusal
from tests.docs.pages import DOCS, blocks

PAGE = DOCS / "guide" / "another-language.md"


def test_vectors_are_written_in_lower_case(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    (code,) = blocks(PAGE, "python")
    exec(code, names)
    cased = "Haus 1 0\nhaus 0 1\nSTRAẞE 2 1\nund 1 2\nTür 3 1\n"
    (tmp_path / "de.vec").write_text(f"5 2\n{cased}", encoding="utf-8")
    names["lowered"](str(tmp_path / "de.vec"), str(tmp_path / "lower.vec"))
    assert Lexicon.read(tmp_path / "de.vec").vocabulary.strings().to_pylist() == [
        "haus",
        "und",
    ]  # the others are dropped
    lexicon = Lexicon.read(tmp_path / "lower.vec")
    assert lexicon.vocabulary.strings().to_pylist() == ["haus", "straße", "und", "tür"]
    assert lexicon.vectors[0].tolist() == [1.0, 0.0]


def test_case_is_folded_as_the_table_says() -> None:
    rows = re.findall(
        r"^\| ((?:`[^`]+`(?:, )?)+) \| ((?:`[^`]+`(?:, )?)+) \|",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    found = [[re.findall("`([^`]+)`", cell) for cell in row] for row in rows]
    assert len(found) == 5
    for written, forms in found:
        wanted = forms * len(written) if len(forms) == 1 else forms
        assert [look_up_form(word) for word in written] == wanted
    assert look_up_form("\u0131") == "\u0131"
    assert look_up_form("λόγος") == "λόγος"
    assert look_up_form("STRAßE") == "straße"


def test_the_message_is_the_one_that_runs_end_with() -> None:
    (said,) = blocks(PAGE, "text")
    found = UnknownWords(1000, 1000, 900, 10_000, 7_500)
    assert " ".join(said.split()) == str(refusal(found, "German", can_tell=True))
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"Fewer than {LEAST_WORDS} words, or than {LEAST_ROWS} rows" in page
