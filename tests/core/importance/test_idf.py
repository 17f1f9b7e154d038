"""Rare words are important: counts of documents, and the weights that follow from them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.importance.levels import Importance
from dptext_spark.importance.providers import Frequencies, Idf
from dptext_spark.model.record import made_from, with_importance
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import list_words
from tests.core.text.plain_engine import form
from tests.core.text.samples import POLICIES, TEXTS, WORDS, plain, privatizer

MODEL = privatizer(Policy(stop_words="draw"))
TEXT = ["cat dog, cat!", "CAT a frob", None, "", "a a 12"]


def counted(texts: list[str | None], policy: Policy = MODEL.policy) -> Frequencies:
    return Frequencies.of(privatizer(policy).engine, pa.array(texts, pa.string()))


def weights(idf: Idf, text: str) -> list[float]:
    return idf.weights(list_words(MODEL.engine, pa.array([text]), marks=True).words).tolist()


def test_documents_are_counted_once_a_word() -> None:
    found = counted(TEXT)
    assert found.documents == 4
    by_word = {WORDS[i]: int(found.counts[i]) for i in np.flatnonzero(found.counts)}
    assert by_word == {"cat": 2, "a": 2, "dog": 1}
    both = counted(TEXT) + counted(TEXT)
    assert both.documents == 8
    assert both.counts.tolist() == (2 * found.counts).tolist()
    assert both.digest != found.digest == counted(TEXT).digest


@settings(max_examples=100)
@given(policy=POLICIES, texts=st.lists(st.one_of(st.none(), TEXTS), max_size=4))
def test_any_texts(policy: Policy, texts: list[str | None]) -> None:
    rules, found = plain(policy), counted(texts, policy)
    expected: dict[str, int] = {}
    for text in texts:
        words = {form(piece.source) for piece in rules.pieces(text or "") if piece.counter}
        for word in words:
            expected[word] = expected.get(word, 0) + 1
    counts = {word: int(found.counts[i]) for i, word in enumerate(WORDS) if found.counts[i]}
    assert counts == {word: n for word, n in expected.items() if word in WORDS}


def test_the_weight_is_the_logarithm_of_the_share() -> None:
    idf = Idf.of(MODEL.engine.table, counted(TEXT))
    one, two, none = (np.float32(math.log(5) - math.log(1 + n)) for n in (1, 2, 0))
    assert weights(idf, "Cat dog ox, frob 12!") == [two, one, none, 0, none, none, 0]
    assert idf.values is not None
    assert idf.values.dtype == np.float32
    everywhere = Idf.of(MODEL.engine.table, counted(["cat"] * 3))
    assert weights(everywhere, "cat") == [0]


def test_a_file_holds_a_document_a_line(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("cat dog, cat!\n\nCAT a frob\n   \na a 12\nox\u2028ox\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dptext_spark.importance.providers.LINES", 2)
        found = Frequencies.read(MODEL.engine, file)
    assert found.documents == 4
    assert found.counts[WORDS.index("ox")] == 1
    assert found.digest == Frequencies.read(MODEL.engine, file).digest
    made = with_importance(MODEL, Importance(percent=20, corpus=str(file)))
    assert made.selector is not None
    assert "4 documents" in made.selector.provider.sentence
    for content, said in ((b"\xff\n", "not UTF-8"), (b"\n \n", "has no document"), (None, "cannot be read")):
        file.unlink()
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(DataError, match=said):
            Frequencies.read(MODEL.engine, file)
    with pytest.raises(DataError, match="cannot be read"):
        made_from(Importance(percent=20, corpus=str(file)), None)


def test_what_a_model_is_made_from(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("cat\n")
    chosen = Importance(percent=20, corpus=str(file))
    before = made_from(chosen, None)
    file.write_text("dog\n")
    assert made_from(chosen, None) != before
    own = Importance(percent=20)
    assert made_from(own, counted(TEXT)) != made_from(own, None) != made_from(own, counted(["cat"]))


def test_nothing_is_chosen_before_it_is_counted() -> None:
    made = with_importance(MODEL, Importance(percent=20))
    assert not made.chooses
    assert made.selector is not None
    assert "The counts have no noise" in made.selector.provider.sentence
    with pytest.raises(SettingsError, match=r"importance.corpus: not set"):
        made.privatize(pa.array(["cat"]), column="b", row_ids=pa.array([1]), key=None)  # type: ignore[arg-type]
    complete = with_importance(MODEL, Importance(percent=20), (), counted(TEXT))
    assert complete.chooses
    other = with_importance(MODEL, Importance(percent=20), (), counted(["ox"]))
    assert len({made.fingerprint, complete.fingerprint, other.fingerprint}) == 3
