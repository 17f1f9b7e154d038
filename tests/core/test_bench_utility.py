"""The benchmark of utility at toy size."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import paper_tables, utility
from benchmarks.measure import Section
from benchmarks.sentiment import OneSet, Task
from benchmarks.sizes import TOY
from benchmarks.sources import by_frequency, packaged
from dptext_spark.randomness.draws import Draws


@pytest.fixture(autouse=True)
def without_real_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("DPTEXT_ENCODER", "no_such_encoder")


@pytest.mark.cluster
def test_the_utility_section() -> None:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")
    pytest.importorskip("sacrebleu", reason="the extra [audit] is not installed")
    section = utility.measure(TOY, lambda step: None)
    assert section.facts["text"] == "made-up sentences"
    assert len(section.skipped) == 3
    grids = {grid.title: grid for grid in section.grids}
    assert len(grids) == 14
    for grid in section.grids[:5]:
        here = grid.headings.index("here")
        assert all(0 <= row[here] <= 1 and len(row) == len(grid.headings) for row in grid.rows)
    assert len(grids["CusText, Table 5: accuracy, K = 50, balanced"].rows) == 18
    assert len(grids["1-Diffractor, Table 3: accuracy"].rows) == 7 * 3 * 2 + 1
    assert len(grids["1-Diffractor, Table 2: cosine of sentences and their replacements"].rows) == 7 * 2 * 2
    assert len(grids["MVC, Table 4: membership"].rows) == 4
    assert set(section.facts["audits"]) == {"1", "5", "10"}
    json.dumps(section.as_dict(), allow_nan=False)


def test_one_set_over_a_whole_lexicon_draws_by_its_law() -> None:
    words = packaged(TOY.lexicon_words)
    ids = np.full(20_000, 7, np.int32)
    blocks = np.zeros((len(ids), 2), np.uint64)
    blocks[:, 0] = np.arange(len(ids))
    found = OneSet(words.vectors, 4.0).sample(ids, Draws(bytes(32), blocks))
    unit = words.vectors / np.linalg.norm(words.vectors, axis=1, keepdims=True)
    score = (unit @ unit[7]).astype(np.float64)
    law = np.exp(2.0 * (score - score.min()) / (score.max() - score.min()))
    law /= law.sum()
    seen = np.bincount(found, minlength=len(words)) / len(ids)
    # 300 shares within 6 standard errors each: a false alarm in 2 million.
    assert (np.abs(seen - law) < 6 * np.sqrt(law / len(ids))).all()


def test_sst2_is_read_with_its_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path))
    (tmp_path / "sst2").mkdir()
    for part in ("train", "test"):
        (tmp_path / "sst2" / f"{part}.tsv").write_text(
            "the first one\t1\nkey to he\t0\nit\t0", encoding="utf-8"
        )
    task, reasons = Task.sst2(packaged(TOY.lexicon_words), 8)
    assert reasons == []
    assert task.train.to_pylist() == ["the first one", "key to he", "it"]
    assert task.train_labels == ["1", "0", "0"]
    assert task.test_labels == ["1", "0"]
    assert by_frequency(packaged(TOY.lexicon_words), task.train).vocabulary.strings().to_pylist()[:2] == [
        "first",
        "he",
    ]


def test_sentences_are_compared_by_an_encoder_where_one_is_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime", reason="the extra [encoder] is not installed")
    from tests.core.encoder.tiny_bert import make_tiny_bert

    monkeypatch.setenv("DPTEXT_ENCODER", str(make_tiny_bert(tmp_path / "bert")))
    section, lexicon = Section("utility", ""), packaged(TOY.lexicon_words)
    task, _ = Task.sst2(lexicon, 40)
    rows = list(paper_tables._similarity(section, lexicon, task, (10.0,), lambda step: None))
    assert not section.skipped
    assert len(rows) == 7 * 2
    assert all(-1 <= row[-1] <= 1 for row in rows)
