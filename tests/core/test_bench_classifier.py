"""The benchmark of classifiers at toy size, and what it reads of labelled texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import classifier
from benchmarks.sizes import TOY
from tests.core.encoder.tiny_classifier import make_tiny_classifier

TAGGED = """Not\tO
read\tO

Anna\tB-person
Keller\tI-person
in\tO
Oslo\tB-location
!\tO
\t
Even\tO

Anna\tB-person
Both\tB-person
,\tI-person
Jose\tI-person
the\tB-product
lives\tB-person
Oslo\tO
"""


@pytest.fixture(autouse=True)
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("onnx", "onnxruntime", "tokenizers", "safetensors"):
        pytest.importorskip(name, reason="the extra [encoder] is not installed")
    (tmp_path / "data" / "wnut17").mkdir(parents=True)
    (tmp_path / "data" / "wnut17" / "train.conll").write_text(TAGGED, encoding="utf-8")
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path / "data"))


def test_labelled_texts(tmp_path: Path) -> None:
    found = classifier.labelled(tmp_path / "data" / "wnut17" / "train.conll", 1)
    assert found.texts.to_pylist() == ["Anna Keller in Oslo !", "Anna Both , Jose the lives Oslo"]
    assert found.kinds == ("person", "location", "person", "person", "product", "person")
    assert found.owners.tolist() == [0, 0, 1, 1, 1, 1]
    assert found.starts.tolist() == [0, 15, 0, 5, 17, 21]
    assert found.ends.tolist() == [11, 19, 4, 16, 20, 26]
    assert len(classifier.labelled(tmp_path / "data" / "wnut17" / "train.conll").texts) == 4


def test_pace_accuracy_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPTEXT_CLASSIFIER", str(make_tiny_classifier(tmp_path / "tiny")))
    section = classifier.measure(replace(TOY, workers=1), lambda step: None)
    (reason,) = section.skipped
    assert "sst2" in reason
    made, tweets = section.figures[:2]
    assert "texts of the lexicon's words" in made.name
    assert tweets.name == "tweets of WNUT 2017: 100.0% of the texts are read"
    assert len(tweets.value.runs) == TOY.long_rounds
    assert min(tweets.value.runs) > 0
    names, marked = section.grids
    # Three of four persons are found whole; of the five words that are found as persons each is one.
    assert names.rows[0] == ("with a candidate", 1.0, "person", 4, 3 / 4, 3 / 4, 5, 1.0)
    assert names.rows[1] == ("with a candidate", 1.0, "location", 1, 1.0, 1.0, 2, 0.5)
    assert [row[0] for row in names.rows] == [
        how for how in ("with a candidate", "with a capital", "all") for _ in classifier.LABELLED
    ]
    assert [row[1:] for row in marked.rows][3:] == [
        ("with a candidate", 1.0, 10, 0.7), ("with a capital", 1.0, 10, 0.7), ("all", 1.0, 10, 0.7),
    ]  # fmt: skip
    if classifier.ROLLUP.exists():
        assert len(section.figures[2].value.runs) == 1


def test_without_a_classifier_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPTEXT_CLASSIFIER", "no-such-classifier")
    (reason,) = classifier.measure(TOY, lambda step: None).skipped
    assert reason.startswith("classifier: policy.names.model: ")
