"""Where an encoder comes from, and what is said of one that cannot be read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from dptext_spark.encoder.encoder import Encoder
from dptext_spark.encoder.weights import EncoderModel, find
from dptext_spark.errors import DataError, SettingsError
from tests.core.encoder.tiny_bert import CONFIG, make_tiny_bert, tiny_weights


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
