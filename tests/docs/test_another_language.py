"""What the page on other languages says of words and case is what lexicon and engine do."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from dptext_spark.lexicon.characters import look_up_form
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.text.unknown_words import LEAST_ROWS, LEAST_WORDS, UnknownWords, refusal
from tests.docs.pages import DOCS, blocks

PAGE = DOCS / "guide" / "another-language.md"
VECTORS = DOCS / "examples" / "word_vectors.py"


def test_vectors_are_written_in_lower_case(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")
    lower_case = runpy.run_path(str(VECTORS))["lower_case"]
    cased = "Haus 1 0\nhaus 0 1\nSTRAẞE 2 1\nund 1 2\nTür 3 1\n"
    (tmp_path / "de.vec").write_text(f"5 2\n{cased}", encoding="utf-8")
    lower_case(str(tmp_path / "de.vec"), str(tmp_path / "lower.vec"))
    read = Lexicon.read(tmp_path / "de.vec").vocabulary.strings().to_pylist()
    assert read == ["haus", "und"]  # the others are dropped
    lexicon = Lexicon.read(tmp_path / "lower.vec")
    assert lexicon.vocabulary.strings().to_pylist() == ["haus", "straße", "und", "tür"]
    assert lexicon.vectors[0].tolist() == [1.0, 0.0]


def test_vectors_of_a_small_text_put_together_what_stands_together(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")
    vectors_of_text = runpy.run_path(str(VECTORS))["vectors_of_text"]
    lines = ("zug bahnhof gleis", "konto zinsen überweisung", "paket lieferung zusteller")
    fields = [tuple(line.split()) for line in lines]
    lines = [f"Der {a} und {b} heute" for three in fields for a in three for b in three if a != b]
    (tmp_path / "public.txt").write_text("\n".join(lines * 2) + "\n", encoding="utf-8")
    vectors_of_text(str(tmp_path / "public.txt"), str(tmp_path / "de.vec"), dimensions=6, least=3)
    lexicon = Lexicon.read(tmp_path / "de.vec")
    words = lexicon.vocabulary.strings().to_pylist()
    assert set(words[:3]) == {"der", "und", "heute"}  # commonest first
    assert set(words[3:]) == {word for three in fields for word in three}
    lengths = np.linalg.norm(lexicon.vectors, axis=1, keepdims=True)
    unit = lexicon.vectors / np.maximum(lengths, 1e-9)  # a word of all documents is beside all alike
    for three in fields:
        at = [words.index(word) for word in three]
        others = [i for i in range(3, len(words)) if i not in at]
        assert (unit[at] @ unit[at].T).min() > (unit[at] @ unit[others].T).max()


def test_case_is_folded_as_the_page_says() -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for written, form in {"STRAẞE": "straße", "STRASSE": "strasse", "İ": "i", "ΛΟΓΟΣ": "λογοσ"}.items():
        assert f"`{written}`" in page
        assert f"`{form}`" in page
        assert look_up_form(written) == form


def test_the_message_is_the_one_that_runs_end_with() -> None:
    (said,) = blocks(PAGE, "text")
    found = UnknownWords(1000, 1000, 900, 10_000, 7_500)
    assert " ".join(said.split()) == str(refusal(found, "German", can_tell=True))
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"Fewer than {LEAST_WORDS} words, or than {LEAST_ROWS} rows" in page
