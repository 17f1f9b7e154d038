"""Presidio as a provider of identifiers: names of persons, places and the other types of its recognisers.

It comes with the extra `[presidio]`. Its recognisers run Python and models on one text at a time: some thousand times the cost
of everything else here. Its finds are masked by a placeholder of the type. Missed names are private text like any other, so it
adds no guarantee.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dptext_spark.errors import SettingsError, require_extra
from dptext_spark.text.identifiers.provider import TypedSpans

ENTITIES = ("PERSON", "LOCATION")


@dataclass(frozen=True, eq=False)
class Presidio:
    """Spans of a Presidio analyzer.

    Attributes:
        entities: Presidio's names of the wanted entities; the types are these in lower case.
        language: of the texts.
        threshold: scores below it do not count.
        analyzer: an `AnalyzerEngine`; None: Presidio's own, which needs a spaCy model.
        label: distinguishes an `analyzer` of your own; part of the name that draws are bound to.
        model: an installed model of spaCy for the analyzer; empty: Presidio's own choice. Its version is part of the name, too.
    """

    entities: tuple[str, ...] = ENTITIES
    language: str = "en"
    threshold: float = 0.4
    analyzer: Any = None
    label: str = ""
    model: str = ""
    _made: list[Any] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check that the library is there.

        Raises:
            SettingsError: it is not, or no entities are named.
        """
        require_extra("presidio", "presidio_analyzer")
        if not self.entities:
            raise SettingsError("presidio: no entities. Name some, such as PERSON or LOCATION.")
        if self.model and not _is_installed(self.model):
            raise SettingsError(
                f"presidio: {self.model!r} is not a spaCy model on this machine. Choose an installed one, or a folder."
            )

    @property
    def name(self) -> str:
        """Library, version and settings."""
        parts = (
            version("presidio-analyzer"),
            self.language,
            ",".join(self.entities),
            f"{self.threshold:g}",
            self.label,
            f"{self.model} {_version_of(self.model)}" if self.model else "",
        )
        return " ".join(["presidio", *(part for part in parts if part)])

    @property
    def version(self) -> str:
        """The library's."""
        return version("presidio-analyzer")

    @property
    def types(self) -> tuple[str, ...]:
        """The entities in lower case."""
        return tuple(entity.lower() for entity in self.entities)

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return the spans of string or large_string texts. Of overlapping spans the first and longest counts."""
        spans: list[tuple[int, int, int, int]] = []
        engine = self._engine()
        for row, text in enumerate(texts.to_pylist()):
            if not text:
                continue
            results = engine.analyze(
                text=text,
                language=self.language,
                entities=list(self.entities),
                score_threshold=self.threshold,
            )
            places = _apart(
                (result.start, result.end, self.entities.index(result.entity_type)) for result in results
            )
            # Presidio counts characters.
            ends = (
                np.cumsum([0, *(len(char.encode()) for char in text)])
                if not text.isascii()
                else range(len(text) + 1)
            )
            spans += [(row, int(ends[start]), int(ends[end]), kind) for start, end, kind in places]
        rows, starts, ends_, kinds = zip(*spans, strict=True) if spans else ((), (), (), ())
        return TypedSpans(rows, starts, ends_, kinds)

    def _engine(self) -> Any:
        if self.analyzer is not None:
            return self.analyzer
        if not self._made:
            from presidio_analyzer import AnalyzerEngine

            self._made.append(AnalyzerEngine(nlp_engine=_nlp_engine(self.model, self.language)))
        return self._made[0]

    def __getstate__(self) -> object:
        """Travel without an engine that can be made again."""
        return self.__dict__ | {"_made": []}


def _nlp_engine(model: str, language: str) -> Any:
    """Return an NLP engine with a model of spaCy; None for Presidio's own choice."""
    if not model:
        return None
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    models = [{"lang_code": language, "model_name": model}]
    return NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": models}).create_engine()


def _is_installed(model: str) -> bool:
    """Check that a model of spaCy is installed: Presidio would download a missing one."""
    from spacy.util import is_package

    return bool(is_package(model)) or Path(model).is_dir()


def _version_of(model: str) -> str:
    """Return the version of a package with a model; empty for a folder."""
    try:
        return version(model)
    except PackageNotFoundError:
        return ""


def _apart(places: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return (start, end, kind) in order, without those that overlap an earlier or longer one."""
    separate: list[tuple[int, int, int]] = []
    for place in sorted(places, key=lambda place: (place[0], -place[1])):
        if place[0] < place[1] and (not separate or place[0] >= separate[-1][1]):
            separate.append(place)
    return separate
