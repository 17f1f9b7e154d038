"""From settings, two texts and a list of mechanisms to the frontier: utility against risk, and the best at each risk.

All in memory, without Spark. The public text is what the adversary knows of the language; the private one is replaced by each
mechanism at each ε and attacked. Its draws are made with public numbers and are released nowhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dptext_spark.asked import Asked
from dptext_spark.audit.bigrams import Bigrams
from dptext_spark.audit.frontier import LEAST_POINTS, Frontier, frontier
from dptext_spark.audit.points import Measure, Point
from dptext_spark.audit.risks import BAYES, CONTEXT, Text, risks, words_of
from dptext_spark.audit.tokens import Ids
from dptext_spark.audit.usefulness import ACCURACY, COSINE, KEPT, downstream, utilities
from dptext_spark.config import ModelConfig
from dptext_spark.errors import DataError, SettingsError, require_extra
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.shared_words import with_shared_words
from dptext_spark.measured_points import KeptPoints, digest
from dptext_spark.mechanisms import Mechanism, Sampler
from dptext_spark.models import Progress, load_lexicons
from dptext_spark.privatizer import ENGINE_VERSION
from dptext_spark.sampler_grid import SamplerGrid
from dptext_spark.text.engine import Engine
from dptext_spark.text.reading import Reading, drawn_words, read
from dptext_spark.text.records import Records
from dptext_spark.text.words import WordTable
from dptext_spark.version import __version__

POINTS = 1  # raised when the same settings give other figures


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was found.

    Attributes:
        frontiers: one for each risk and utility.
        points: all that was measured.
        refused: (curve, ε, why) of those that the mechanism does not accept.
        unprotected: the utilities of the text as it is.
        settings: what it was made with.
    """

    frontiers: tuple[Frontier, ...]
    points: tuple[Point, ...]
    refused: tuple[tuple[str, float, str], ...]
    unprotected: dict[str, Measure]
    settings: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return {
            "restricted": True,
            "frontiers": [one.as_dict() for one in self.frontiers],
            "points": [one.as_dict() for one in self.points],
            "refused": [dict(zip(("mechanism", "epsilon", "why"), one, strict=True)) for one in self.refused],
            "unprotected": {name: asdict(one) for name, one in self.unprotected.items()},
            "settings": self.settings,
        }


def compare(
    config: ModelConfig,
    asked: Asked,
    public: Records,
    private: Records,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Measure every mechanism at every ε, and compare.

    Args:
        config: lexicon, policy and level of consistency.
        asked: what is compared.
        public: what the adversary knows of the language.
        private: what is replaced; its labels, where it has any, give an accuracy.
        folder: where points are kept; those that are there are taken. None keeps none.
        progress: is told each step.

    Raises:
        SettingsError: a mechanism with fewer than two ε that it accepts; labels, but no scikit-learn.
        DataError: the lexicon is missing or damaged; no word of the private text would be drawn; one class of labels.
    """
    say = progress or (lambda step, share: None)
    if config.run.artifact is not None:
        raise SettingsError(
            f"run.artifact: {config.run.artifact!r} given, but a comparison compiles several mechanisms; valid: null."
        )
    if public.texts.equals(private.texts):
        raise SettingsError(
            "public: the private text itself given; valid: another text of the same language."
        )
    if private.labels is not None:
        require_extra("audit", "sklearn")
    refused = _refused(asked)
    _require_enough(asked, refused)
    lexicons = with_shared_words(load_lexicons(config, say))
    bench = _Bench.of(config, asked, lexicons, public, private)
    kept = KeptPoints(folder)
    points: list[Point] = []
    no = {(name, epsilon) for name, epsilon, _ in refused}
    every = ((name, epsilon) for name in asked.curves for epsilon in asked.epsilons[name])
    wanted = [one for one in every if one not in no]
    keys = {one: bench.key(one[0], asked.curves[one[0]], one[1]) for one in wanted}
    missing = [one for one in wanted if kept.get(keys[one]) is None]
    grid = SamplerGrid(lexicons, asked.curves, missing, bench.drawn())
    for done, (name, epsilon) in enumerate(wanted, start=1):
        step = f"{name}, ε = {epsilon:g} ({done} of {len(wanted)})"
        point = kept.get(keys[name, epsilon])
        if point is None:
            try:
                say(f"{step}: compiling", None)
                sampler = grid.sampler(name, epsilon)
            except SettingsError as error:
                refused.append((name, epsilon, str(error)))
                _require_enough(asked, refused)
                continue
            point = bench.measured(name, epsilon, sampler, partial(_say, say, step))
            kept.put(keys[name, epsilon], point)
        points.append(point)
    names = [KEPT, COSINE, *([ACCURACY] if private.labels is not None else [])]
    frontiers = tuple(
        frontier(points, risk, utility, asked.levels) for risk in (BAYES, CONTEXT) for utility in names
    )
    return Comparison(frontiers, tuple(points), tuple(refused), bench.unprotected(), bench.settings())


@dataclass(frozen=True, eq=False)
class _Bench:
    """Both texts as words of a lexicon, and what every point depends on."""

    config: ModelConfig
    asked: Asked
    lexicons: tuple[Lexicon, ...]
    whole: Text
    attacked: Text
    labels: tuple[str, ...] | None
    digests: dict[str, str]

    @classmethod
    def of(
        cls,
        config: ModelConfig,
        asked: Asked,
        lexicons: tuple[Lexicon, ...],
        public: Records,
        private: Records,
    ) -> _Bench:
        lexicon = lexicons[0]
        engine = Engine(WordTable.build(lexicon.vocabulary, config.policy.stop_list()), config.policy)
        known = read(engine, public.texts)
        bigrams = Bigrams.of(known.words, known.bounds, len(lexicon))
        drawable = drawn_words(engine)

        def text(reading: Reading) -> Text:
            return Text(reading.words, reading.drawn, reading.bounds, drawable, bigrams, config.consistency)

        chosen = private.spaced(asked.records)
        whole, attacked = (read(engine, one.texts) for one in (chosen, chosen.spaced(asked.attacked)))
        if not attacked.drawn.any():
            raise DataError("private: no word of it would be drawn; valid: a text in the lexicon's language.")
        digests = {
            "public": _digest(public.texts),
            "private": _digest(private.texts),
            "labels": "none" if private.labels is None else digest(list(private.labels)),
        }
        return cls(config, asked, lexicons, text(whole), text(attacked), chosen.labels, digests)

    def key(self, name: str, mechanism: Mechanism, epsilon: float) -> str:
        """Return the digest of everything that a point depends on."""
        values = asdict(mechanism) | {"name": mechanism.name, "epsilon": epsilon}  # type: ignore[call-overload]
        values = {field: list(one) if isinstance(one, tuple) else one for field, one in values.items()}
        return digest({"curve": name, "mechanism": values, **self.settings(), **self.digests})

    def settings(self) -> dict[str, Any]:
        """Return what all points are made with, JSON-able; nothing of the texts."""
        spec = self.config.spec()
        asked = self.asked
        return {
            "version": __version__,
            "engine": ENGINE_VERSION,
            "points": POINTS,
            "lexicon_fingerprints": [lexicon.fingerprint for lexicon in self.lexicons],
            "words": len(self.lexicons[0]),
            "policy": spec["policy"],
            "stop_words": digest(list(self.config.policy.stop_list())),
            "consistency": self.config.consistency,
            "few": asked.few,
            "draws": asked.draws,
            "records": len(self.whole.bounds) - 1,
            "attacked": len(self.attacked.bounds) - 1,
        }

    def drawn(self) -> Ids | None:
        """Return the words that points draw, ascending; None where they also need the laws of others."""
        found = words_of(self.attacked)
        return None if found is None else np.union1d(found, self.whole.words[self.whole.drawn])

    def measured(self, name: str, epsilon: float, sampler: Sampler, say: Callable[[str], None]) -> Point:
        """Measure a point."""
        say("attacking")
        found, more = risks(sampler, self.attacked, few=self.asked.few, draws=self.asked.draws)
        say("measuring what is left")
        lexicon = self.lexicons[0]
        useful = utilities(
            self.whole.replaced(sampler), lexicon.vectors, lexicon.vocabulary.strings(), self.labels
        )
        return Point(name, epsilon, found, useful, more)

    def unprotected(self) -> dict[str, Measure]:
        """Return the utilities of the text as it is."""
        found = {KEPT: Measure(1.0, 1.0, 1.0, exact=True), COSINE: Measure(1.0, 1.0, 1.0, exact=True)}
        if self.labels is not None:
            strings = self.lexicons[0].vocabulary.strings()
            found[ACCURACY] = downstream(self.whole.words, self.whole.bounds, strings, self.labels)
        return found


def _refused(asked: Asked) -> list[tuple[str, float, str]]:
    """Return the (curve, ε, why) that are no parameters of their mechanism, before anything is compiled."""
    refused = []
    for name, mechanism in asked.curves.items():
        for epsilon in asked.epsilons[name]:
            try:
                replace(mechanism, epsilon=epsilon)  # type: ignore[type-var]
            except SettingsError as error:
                refused.append((name, epsilon, str(error)))
    return refused


def _require_enough(asked: Asked, refused: Sequence[tuple[str, float, str]]) -> None:
    """Refuse a curve of which too few ε are left."""
    for name, grid in asked.epsilons.items():
        reasons = [why for curve, _, why in refused if curve == name]
        if len(grid) - len(reasons) < LEAST_POINTS:
            raise SettingsError(f"epsilons: {name} accepts fewer than {LEAST_POINTS} of them. {reasons[0]}")


def _say(say: Progress, step: str, what: str) -> None:
    say(f"{step}: {what}", None)


def _digest(texts: pa.StringArray) -> str:
    found = hashlib.sha256()
    for text in texts.to_pylist():
        found.update(len(text.encode()).to_bytes(8, "little") + text.encode())
    return found.hexdigest()
