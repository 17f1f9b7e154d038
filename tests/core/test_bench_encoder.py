"""The benchmark of the encoder at toy size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import encoder
from benchmarks.sizes import TOY
from tests.core.encoder.tiny_bert import make_tiny_bert


@pytest.fixture(autouse=True)
def without_real_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path / "nowhere"))


def test_pace_and_memory_stand_beside_their_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("onnx", "onnxruntime", "tokenizers", "safetensors"):
        pytest.importorskip(name, reason="the extra [encoder] is not installed")
    monkeypatch.setenv("DPTEXT_ENCODER", str(make_tiny_bert(tmp_path)))
    monkeypatch.setattr(encoder, "of_transformers", lambda *given: None)
    section = encoder.measure(replace(TOY, workers=1), lambda step: None)
    pace = section.figures[0]
    assert pace.goals == encoder.OWN_PACE
    assert len(pace.value.runs) == TOY.long_rounds
    assert pace.ratio is not None
    assert min(pace.ratio.runs) > 0
    assert section.facts["texts"] == TOY.texts
    assert section.facts["tokens"] > 5 * TOY.texts
    assert any("torch" in reason for reason in section.skipped)
    if encoder.ROLLUP.exists():
        held = section.figures[1]
        assert len(held.value.runs) == 1
        assert held.peer is not None


def test_without_an_encoder_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPTEXT_ENCODER", "no-such-bert")
    (reason,) = encoder.measure(TOY, lambda step: None).skipped
    assert reason.startswith("encoder: ")
