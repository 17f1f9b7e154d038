"""Attention, vectors, and words behind a mask, against BERT in NumPy; where an encoder comes from, one that cannot be read."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from dptext_spark.encoder.encoder import Encoder, guesses, vectors
from dptext_spark.encoder.sub_words import Pieces
from dptext_spark.encoder.weights import EncoderModel, find
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.text.chunks import Spans
from tests.core.encoder.plain_bert import PlainBert
from tests.core.encoder.tiny_bert import CONFIG, VOCABULARY, make_tiny_bert, tiny_weights

TEXTS: list[str | bytes] = [
    "The movie was good.",
    "unbelievable!",
    "",
    "a",
    "Café 日本 film, un-good [SEP] x",
    "  ... !",
    b"the \xff\xfe film \xc3",
    "the dull movie was bad and the film was good " * 6,
    "it",
]


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return Encoder.open(folder)


def pieces_of(encoder: Encoder, texts: list[str | bytes]) -> Pieces:
    words = spans_of(texts)
    return encoder.tokenizer.pieces(words.data, words.rows)


def ids_of(encoder: Encoder, pieces: Pieces, text: int) -> list[int]:
    inner = pieces.ids[pieces.bounds[text] : pieces.bounds[text + 1]].tolist()
    return [encoder.tokenizer.start, *inner, encoder.tokenizer.end]


def test_attention_is_that_of_a_plain_bert(encoder: Encoder, folder: Path) -> None:
    plain = PlainBert(folder)
    pieces = pieces_of(encoder, TEXTS)
    found = encoder.attention(pieces)
    for text in (0, 1, 3, 4, 6):
        inside = slice(pieces.bounds[text], pieces.bounds[text + 1])
        received = plain.received(ids_of(encoder, pieces, text))
        np.testing.assert_allclose(found[inside], received / received.sum(), rtol=2e-6)


def test_words_sum_to_one_in_each_text(encoder: Encoder) -> None:
    words = spans_of(TEXTS)
    found = encoder.importance(words)
    assert found.dtype == np.float32
    assert found.shape == words.starts.shape
    sums = [found[start:end].sum() for start, end in zip(words.bounds[:-1], words.bounds[1:], strict=True)]
    np.testing.assert_allclose(sums, [1, 1, 0, 1, 1, 0, 1, 1, 1], atol=1e-6)
    assert encoder.importance(spans_of([])).shape == encoder.importance(spans_of(["", "..."])).shape == (0,)


def test_a_word_is_the_sum_of_its_sub_words_over_the_sum_of_the_words(encoder: Encoder, folder: Path) -> None:
    words = spans_of(["unbelievable movie."])
    pieces = encoder.tokenizer.pieces(words.data, words.rows)
    received = PlainBert(folder).received(ids_of(encoder, pieces, 0))
    assert len(received) == 5  # un ##believ ##able movie .
    expected = np.array([received[:3].sum(), received[3]])
    np.testing.assert_allclose(encoder.importance(words), expected / expected.sum(), rtol=2e-6)


def test_a_word_of_bytes_that_are_no_text_has_no_importance(encoder: Encoder) -> None:
    found = encoder.importance(spans_of([b"the \xff\xfe film"]))
    assert found[1] == 0
    assert found[0] > 0
    assert found[2] > 0


def test_a_result_does_not_depend_on_the_batch(encoder: Encoder) -> None:
    together = encoder.importance(spans_of(TEXTS * 40))
    once = encoder.importance(spans_of(TEXTS))
    alone = np.concatenate([encoder.importance(spans_of([text])) for text in TEXTS])
    assert np.array_equal(together, np.tile(once, 40))
    assert np.array_equal(once, alone)


def test_a_long_text_is_looked_at_in_windows(encoder: Encoder, folder: Path) -> None:
    """Each sub-word in the window in which it stands most centrally, as a share of that window's attention."""
    plain, most = PlainBert(folder), 22
    pieces = pieces_of(encoder, TEXTS[7:8])
    inner, m = pieces.ids.tolist(), len(pieces.ids)
    assert m == 60
    starts = [0, 17, 34, 38]  # windows of 22 that share 5; the last one ends with the text
    shares = np.zeros((4, m))
    for row, start in enumerate(starts):
        ids = [encoder.tokenizer.start, *inner[start : start + most], encoder.tokenizer.end]
        received = plain.received(ids)
        shares[row, start : start + most] = received / received.sum()
    depth = np.array([[min(i - s, s + most - 1 - i) for i in range(m)] for s in starts])
    expected = shares[depth.argmax(axis=0), np.arange(m)]
    found = encoder.attention(pieces)
    edges = np.sort(depth, axis=0)[-2] == depth.max(axis=0)  # equally central in two
    np.testing.assert_allclose(found[~edges], expected[~edges], rtol=2e-6)
    assert edges.sum() <= 2
    assert (found > 0).all()


def test_a_saved_encoder_is_memory_mapped_and_gives_the_same(encoder: Encoder, tmp_path: Path) -> None:
    encoder.model.save(tmp_path / "kept")
    model = Encoder.open(tmp_path / "kept").model
    assert isinstance(model.weights, np.memmap)
    assert all(np.shares_memory(weight, model.weights) for weight in model.named().values())
    plain = EncoderModel.restore({name: np.array(array) for name, array in model.arrays().items()})
    words = spans_of(TEXTS)
    for kept in (model, plain):
        assert np.array_equal(Encoder(kept).importance(words), encoder.importance(words))


def test_the_extra_is_named_where_it_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dptext_spark.errors.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"onnxruntime.*pip install 'dptext-spark\[encoder\]'"):
        Encoder.open(folder)


SENTENCES = ["A good film.", "", "unbelievable!", "...", "the dull movie was bad and the film was good " * 4]


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_vectors_are_those_of_a_plain_bert(folder: Path) -> None:
    encoder, plain = Encoder.open(folder), PlainBert(folder)
    found = vectors(encoder, SENTENCES)
    for text in (0, 2, 3):
        raw = SENTENCES[text].encode()
        ids = encoder.tokenizer.pieces(np.frombuffer(raw, np.uint8), np.array([0, len(raw)])).ids.tolist()
        _, states = plain.run([encoder.tokenizer.start, *ids, encoder.tokenizer.end])
        np.testing.assert_allclose(found.texts[text], unit(states.mean(axis=0)), atol=1e-6)
        inside = slice(found.bounds[text], found.bounds[text + 1])
        np.testing.assert_allclose(found.pieces[inside], unit(states[1:-1]), atol=1e-6)
    assert not found.texts[1].any()
    assert found.bounds[1] == found.bounds[2]


def test_a_long_text_has_a_vector_for_every_sub_word(folder: Path) -> None:
    found = vectors(Encoder.open(folder), SENTENCES[4:])
    assert len(found.pieces) == 40
    np.testing.assert_allclose(np.linalg.norm(found.pieces, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found.texts, axis=1), 1, atol=1e-6)


def test_a_vector_does_not_depend_on_the_batch(folder: Path) -> None:
    encoder = Encoder.open(folder)
    together = vectors(encoder, SENTENCES * 30)
    alone = vectors(encoder, SENTENCES)
    assert np.array_equal(together.texts, np.tile(alone.texts, (30, 1)))
    assert np.array_equal(together.pieces, np.tile(alone.pieces, (30, 1)))


@pytest.fixture(scope="module")
def guesser(folder: Path) -> Encoder:
    return Encoder.open(folder, head=True)


def guessed(guesser: Encoder, words: Spans) -> list[str]:
    out = [""] * len(words.starts)
    for places, found in guesses(guesser, words):
        for place, one in zip(places.tolist(), found, strict=True):
            assert out[place] == ""
            out[place] = one
    return out


def test_guesses_are_those_of_a_plain_bert(guesser: Encoder, folder: Path) -> None:
    texts = ["The unbelievable movie was good!", "a", "", "dull, and bad film"]
    last = ["dull", ",", "and", "bad", "film"]
    inner = [["the", ["un", "##believ", "##able"], "movie", "was", "good", "!"], ["a"], last]
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
    assert guessed(guesser, spans_of(texts)) == expected
    assert guessed(guesser, spans_of([""])) == guessed(guesser, spans_of([])) == []
    assert len(set(expected)) > 1


def test_of_a_long_text_the_window_around_the_mask_is_seen(guesser: Encoder, folder: Path) -> None:
    inner = ["the", "dull", "movie", "was", "bad", "and", "the", "film", "was", "good"] * 4
    found = guessed(guesser, spans_of([" ".join(inner)]))
    plain = PlainBert(folder)
    for place in (0, 5, 20, 39):
        start = min(max(place - 11, 0), len(inner) - 22)
        seen = [*inner[:place], "[MASK]", *inner[place + 1 :]][start : start + 22]
        ids = [VOCABULARY.index(one) for one in ("[CLS]", *seen, "[SEP]")]
        assert found[place] == VOCABULARY[plain.guess(ids, place - start + 1)]


def test_a_word_without_a_sub_word_is_guessed_where_it_stood(guesser: Encoder) -> None:
    assert len([*filter(None, guessed(guesser, spans_of([b"the \xff\xfe film"])))]) == 3


def test_an_encoder_that_guesses_nothing_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="without the weights for"):
        guessed(Encoder.open(folder), spans_of(["the film"]))
    weights = make_tiny_bert(tmp_path)
    kept = {n: w for n, w in load_file(weights / "model.safetensors").items() if not n.startswith("cls.")}
    save_file(kept, str(weights / "model.safetensors"))
    with pytest.raises(DataError, match=r"lacks the weight 'cls\.predictions"):
        Encoder.open(weights, head=True)


def spans_of(texts: Sequence[str | bytes]) -> Spans:
    raw = [text.encode() if isinstance(text, str) else text for text in texts]
    rows = np.append(0, np.cumsum([len(one) for one in raw])).astype(np.int64)
    found = [[match.span() for match in re.finditer(rb"[A-Za-z\x80-\xff]+", one)] for one in raw]
    texts = zip(found, rows[:-1].tolist(), strict=True)
    places = [(start + at, end + at) for text, at in texts for start, end in text]
    starts, ends = np.array(places, np.int64).reshape(-1, 2).T
    bounds = np.append(0, np.cumsum([len(one) for one in found])).astype(np.int64)
    return Spans(np.frombuffer(b"".join(raw) + bytes(16), np.uint8), rows, starts, ends, bounds)


def test_a_package_is_found_by_its_name_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "some_small_bert"
    make_tiny_bert(package / "model")
    (package / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(tmp_path)
    assert find("some-small-bert").weights == package / "model" / "model.safetensors"
    assert "some_small_bert" not in sys.modules


def test_neither_folder_nor_package() -> None:
    with pytest.raises(SettingsError, match=r"attention: 'no-such-encoder' is neither"):
        find("no-such-encoder", "attention")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt"])
def test_a_file_is_missing(tmp_path: Path, name: str) -> None:
    (make_tiny_bert(tmp_path) / name).unlink()
    with pytest.raises(DataError, match=rf"has no .*{name}"):
        Encoder.open(tmp_path)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"architectures": ["RobertaModel"], "model_type": "roberta"}, "RobertaModel is not valid. Choose BertModel or BertFor"),
        ({"architectures": None, "model_type": "mpnet"}, "architecture mpnet is not valid. Choose BertModel"),
        ({"position_embedding_type": "relative_key"}, "relative_key positions"),
        ({"is_decoder": True}, "decodes"),
        ({"hidden_act": "swish"}, "hidden_act 'swish' is not valid. Choose gelu"),
        ({"layer_norm_eps": "small"}, "layer_norm_eps 'small' is not valid. Choose a number"),
        ({"num_attention_heads": 3}, "hidden_size 16 is not valid. Choose a multiple of 3"),
        ({"max_position_embeddings": 2}, "max_position_embeddings 2"),
        ({"num_hidden_layers": 3}, "lacks the weight 'encoder.layer.2"),
        ({"intermediate_size": 25}, r"shape \[24, 16\], .* \[25, 16\]"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(tmp_path: Path, config: dict[str, object], said: str) -> None:
    make_tiny_bert(tmp_path, config=config)
    with pytest.raises(DataError, match=said):
        Encoder.open(tmp_path)


def test_files_that_are_none(tmp_path: Path) -> None:
    (make_tiny_bert(tmp_path) / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(DataError, match="cannot be read as weights"):
        Encoder.open(tmp_path)
    weights = tiny_weights()
    weights["bert.embeddings.LayerNorm.bias"][3] = np.nan
    save_file(weights, str(tmp_path / "model.safetensors"))
    with pytest.raises(DataError, match="not finite"):
        Encoder.open(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps([CONFIG]))
    with pytest.raises(DataError, match="not a JSON object"):
        Encoder.open(tmp_path)


def test_old_names_and_half_precision_are_read(tmp_path: Path) -> None:
    make_tiny_bert(tmp_path / "new")
    make_tiny_bert(tmp_path / "old", config={"architectures": ["BertModel"]})
    stored = {name: one.astype(np.float16) for name, one in tiny_weights().items()}
    widened = {name: weight.astype(np.float32) for name, weight in stored.items()}
    save_file(widened, str(tmp_path / "new/model.safetensors"))
    renamed = {
        name.removeprefix("bert.").replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): one
        for name, one in stored.items()
        if not name.startswith("cls.")
    }
    save_file(renamed, str(tmp_path / "old/model.safetensors"))
    new, old = (EncoderModel.open(tmp_path / name) for name in ("new", "old"))
    assert np.array_equal(new.weights, old.weights)


def test_a_saved_encoder_that_was_cut_off(tmp_path: Path) -> None:
    model = EncoderModel.open(make_tiny_bert(tmp_path / "tiny"))
    model.save(tmp_path / "kept")
    with pytest.raises(SettingsError, match="Choose a new or empty folder"):
        model.save(tmp_path / "kept")
    np.save(tmp_path / "kept/weights.npy", model.weights[:-1])
    with pytest.raises(DataError, match=r"weights do not fit"):
        Encoder.open(tmp_path / "kept")
    (tmp_path / "kept/weights.npy").write_bytes(b"")
    with pytest.raises(DataError, match="cannot be read"):
        Encoder.open(tmp_path / "kept")
