"""The class of the guide that lets Presidio look for names in a Spark job, imported from a file as its users do."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.text.identifiers.imported import _imported, import_providers
from dptext_spark.text.identifiers.presidio import Presidio
from tests.core.presidio import installed_model, people

TEXTS = [
    "My name is Mary Robinson and I live in Paris.",
    None,
    "",
    "été: Barack Obama met Angela Merkel in Berlin.",
]


def written(texts: list[str | None], spans: list[tuple[int, int, int, int]]) -> list[str]:
    return [(texts[row] or "").encode()[start:end].decode() for row, start, end, _ in spans]


@pytest.mark.filterwarnings("ignore")
def test_the_class_of_the_guide_finds_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = installed_model()
    monkeypatch.syspath_prepend(str(tmp_path))
    people(tmp_path, "presidio_people", model)
    _imported.cache_clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (found,) = import_providers(("presidio_people:People",), tried=True)
            spans = found.find(pa.array(TEXTS))
    finally:
        sys.modules.pop("presidio_people", None)
        _imported.cache_clear()
    assert found.record.types == ("person", "location")
    assert model in found.record.name
    rows = list(
        zip(*(part.tolist() for part in (spans.rows, spans.starts, spans.ends, spans.types)), strict=True)
    )
    assert {"Mary Robinson", "Paris", "Barack Obama", "Angela Merkel", "Berlin"} <= set(written(TEXTS, rows))


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_is_not_there_is_not_fetched() -> None:
    pytest.importorskip("presidio_analyzer", reason="the extra [presidio] is not installed")
    with pytest.raises(SettingsError, match="spaCy has no such model here"):
        Presidio(model="no_such_model_of_spacy")
