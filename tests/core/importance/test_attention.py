"""The attention that words receive chooses them; the model holds the encoder."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.importance.levels import Importance
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.artifact import open_model, save_model
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.record import made_from, with_importance
from dptext_spark.randomness import RunKey

TEXTS = pa.array(["The movie was good, and the film dull!", None, "", "unbelievable café 12", "film " * 700])


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    for name in ("onnx", "onnxruntime", "tokenizers", "safetensors"):
        pytest.importorskip(name, reason="the extra [encoder] is not installed")
    tiny_bert = pytest.importorskip("tests.core.encoder.tiny_bert", reason="there are no encoders here")
    return str(tiny_bert.make_tiny_bert(tmp_path_factory.mktemp("bert")))


@pytest.fixture(scope="module")
def every_word() -> Privatizer:
    lexicon = Lexicon.default()
    return Privatizer(lexicon, CusText(epsilon=1.0, k=5).compile(lexicon))


def out(model: Privatizer) -> list[str | None]:
    ids = pa.array(range(len(TEXTS)))
    return model.privatize(TEXTS, column="b", row_ids=ids, key=RunKey.insecure(3))[0].to_pylist()


@pytest.mark.cluster
def test_the_model_holds_the_encoder(encoder: str, every_word: Privatizer, tmp_path: Path) -> None:
    copy = shutil.copytree(encoder, tmp_path / "bert")
    chosen = Importance("attention", percent=30, model=str(copy))
    made = with_importance(every_word, chosen)
    before = out(made)
    assert before != out(every_word)
    assert before[1:3] == [None, ""]
    save_model(made, tmp_path / "model")
    named = made_from(chosen, None)
    shutil.rmtree(copy)
    again = open_model(tmp_path / "model")
    assert out(again) == before == out(pickle.loads(pickle.dumps(made)))
    assert again.selector is not None
    assert again.selector.provider.fingerprint == named[1]
    assert again.fingerprint == made.fingerprint


def test_a_folder_that_is_none(encoder: str, every_word: Privatizer) -> None:
    with pytest.raises(SettingsError, match=r"importance.model: 'no-such-bert' is neither a folder nor"):
        with_importance(every_word, Importance("attention", percent=30, model="no-such-bert"))
