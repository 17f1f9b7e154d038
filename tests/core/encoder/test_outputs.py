"""Words behind a mask, against BERT in NumPy: one mask for the whole word, the rest of the text as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from dptext_spark.encoder.encoder import Encoder, guesses
from dptext_spark.errors import DataError
from dptext_spark.text.chunks import Spans
from tests.core.encoder.plain_bert import PlainBert
from tests.core.encoder.spans_of import spans_of
from tests.core.encoder.tiny_bert import VOCABULARY, make_tiny_bert


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return Encoder.open(folder, head=True)


def guessed(encoder: Encoder, words: Spans) -> list[str]:
    out = [""] * len(words.starts)
    for places, found in guesses(encoder, words):
        for place, one in zip(places.tolist(), found, strict=True):
            assert out[place] == ""
            out[place] = one
    return out


def test_guesses_are_those_of_a_plain_bert(encoder: Encoder, folder: Path) -> None:
    texts = ["The unbelievable movie was good!", "a", "", "dull, and bad film"]
    inner = [
        ["the", ["un", "##believ", "##able"], "movie", "was", "good", "!"],
        ["a"],
        ["dull", ",", "and", "bad", "film"],
    ]
    plain = PlainBert(folder)
    expected = []
    for text in inner:
        for place, word in enumerate(text):
            if word in ("!", ","):
                continue
            said = [one for at, each in enumerate(text) for one in ("[MASK]" if at == place else each,)]
            flat = [one for each in said for one in ([each] if isinstance(each, str) else each)]
            ids = [VOCABULARY.index(one) for one in ("[CLS]", *flat, "[SEP]")]
            expected.append(VOCABULARY[plain.guess(ids, ids.index(VOCABULARY.index("[MASK]")))])
    assert guessed(encoder, spans_of(texts)) == expected
    assert guessed(encoder, spans_of([""])) == guessed(encoder, spans_of([])) == []
    assert len(set(expected)) > 1


def test_of_a_long_text_the_window_around_the_mask_is_seen(encoder: Encoder, folder: Path) -> None:
    inner = ["the", "dull", "movie", "was", "bad", "and", "the", "film", "was", "good"] * 4
    found = guessed(encoder, spans_of([" ".join(inner)]))
    plain = PlainBert(folder)
    for place in (0, 5, 20, 39):
        start = min(max(place - 11, 0), len(inner) - 22)
        seen = [*inner[:place], "[MASK]", *inner[place + 1 :]][start : start + 22]
        ids = [VOCABULARY.index(one) for one in ("[CLS]", *seen, "[SEP]")]
        assert found[place] == VOCABULARY[plain.guess(ids, place - start + 1)]


def test_a_word_without_a_sub_word_is_guessed_where_it_stood(encoder: Encoder) -> None:
    assert len([*filter(None, guessed(encoder, spans_of([b"the \xff\xfe film"])))]) == 3


def test_an_encoder_that_guesses_nothing_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="without the weights that guess"):
        guessed(Encoder.open(folder), spans_of(["the film"]))
    weights = make_tiny_bert(tmp_path)
    kept = {n: w for n, w in load_file(weights / "model.safetensors").items() if not n.startswith("cls.")}
    save_file(kept, str(weights / "model.safetensors"))
    with pytest.raises(DataError, match=r"has no weight 'cls\.predictions"):
        Encoder.open(weights, head=True)
