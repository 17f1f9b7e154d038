"""Without the extra there is nothing to test here but what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _encoder() -> None:
    for name in ("onnx", "onnxruntime", "tokenizers", "safetensors"):
        pytest.importorskip(name, reason="the extra [encoder] is not installed")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.core.encoder.tiny_bert import make_tiny_bert

    return make_tiny_bert(tmp_path_factory.mktemp("encoder") / "tiny")
