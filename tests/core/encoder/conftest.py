"""Without the extra there is nothing to test here but what is said of it."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _encoder() -> None:
    for name in ("onnx", "onnxruntime", "tokenizers", "safetensors"):
        pytest.importorskip(name, reason="the extra [encoder] is not installed")
