"""Input of a comparison: its specification, and its two texts as words of a lexicon.

The specification: mechanisms with their settings, a grid of ε for each, levels of risk, and sizes.

The two texts as words of a lexicon: the attacked one, the measured one, and the inputs of every point.

Texts from a file, a record a line, with their labels where the lines hold them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pydantic_core import PydanticCustomError

from dptext_spark._version import __version__
from dptext_spark.arrays import Ids
from dptext_spark.audit import text_utility
from dptext_spark.audit.attacks.attacked_text import Bigrams
from dptext_spark.audit.deniability import check_epsilons
from dptext_spark.audit.frontier import LEAST_POINTS, Point, Text, check_levels, risks, words_of
from dptext_spark.audit.options import ComparisonOptions, takes
from dptext_spark.audit.results import Estimate
from dptext_spark.audit.text_classifier import classes_of
from dptext_spark.audit.text_utility import TESTED, Originals, OwnOrder
from dptext_spark.config.file import override
from dptext_spark.config.model import ModelConfig
from dptext_spark.config.values import parse_mechanism
from dptext_spark.encoder.encoder import Encoder, vectors
from dptext_spark.encoder.name_classifier import read_classifier
from dptext_spark.encoder.weights import require_encoders
from dptext_spark.errors import DataError, SettingsError, require_choice
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import ZIPF
from dptext_spark.mechanisms import Mechanism, Sampler, mechanism_named
from dptext_spark.model.privatizer import ENGINE_VERSION, providers_of
from dptext_spark.runtime.display import Steps, cut, line
from dptext_spark.runtime.validation import Json
from dptext_spark.text.engine import Engine
from dptext_spark.text.tokens import Reading, drawn_words, read
from dptext_spark.text.word_table import WordTable


@dataclass(frozen=True, eq=False)
class ComparisonSpec(ComparisonOptions):
    """Specification of a comparison.

    Attributes:
        curves: mechanisms by the name of their curve.
        epsilons: the grid of each curve.
        levels: of risk; None for round ones.

    Examples:
        >>> spec = audit.ComparisonSpec.of(config, "custext", ["2,8"], records=20, attacked=5)
        >>> spec.epsilons
        {'custext': [2.0, 8.0]}
    """

    curves: dict[str, Mechanism]
    epsilons: dict[str, list[float]]
    levels: list[float] | None = None

    def __repr__(self) -> str:
        """Return the curves and how many ε there are."""
        epsilons = sum(len(grid) for grid in self.epsilons.values())
        return line("ComparisonSpec", cut(", ".join(self.curves), 120), f"{epsilons:,} ε")

    @classmethod
    @takes(ComparisonOptions)
    def of(
        cls,
        config: ModelConfig,
        mechanisms: str,
        epsilons: Sequence[str],
        levels: str | None = None,
        *,
        options: ComparisonOptions,
    ) -> ComparisonSpec:
        """Read the specification from a command line.

        Args:
            config: a mechanism that is named without fields takes those of the settings, where they name the same one.
            mechanisms: names with commas between them, each with fields behind colons, such as `tem,diffractor:form=tem`.
            epsilons: numbers with commas between them, for all; `NAME=numbers` for one curve.
            levels: as those, of risk.
            options: each field by its name, not this argument itself.

        Raises:
            SettingsError: an unknown mechanism or field; a grid that is empty, unsorted or shorter than two; a size below 2. Also
                an encoder that is neither folder nor package, or whose extra is not installed.
            DataError: a folder that holds no encoder that is supported.
        """
        curves: dict[str, Mechanism] = {}
        for text in mechanisms.split(","):
            name = text.strip()
            if name in curves:
                raise SettingsError(f"mechanisms: {name!r} is there twice. Name each once.")
            curves[name] = _mechanism(name, config.mechanism)
        grids = dict(_grids(epsilons, list(curves)))
        missing = [name for name in curves if name not in grids and "" not in grids]
        if missing:
            raise SettingsError(
                f"epsilons: none given for {', '.join(missing)}. Give {LEAST_POINTS} or more in ascending order."
            )
        risk_levels = None if levels is None else check_levels("levels", _numbers("levels", levels))
        require_encoders(options.encoder, None)
        grid = {name: grids.get(name) or grids[""] for name in curves}
        return cls(curves, grid, risk_levels, **vars(options))


def _mechanism(text: str, base: Mechanism) -> Mechanism:
    """Return a mechanism from `name:field=value:field=value`."""
    name, *fields = text.split(":")
    kind = mechanism_named("mechanisms", name)
    overrides = override({}, [f"mechanism.{field}" for field in fields]).get("mechanism", {})
    if "epsilon" in overrides:
        raise SettingsError(f"mechanisms: {text!r} sets ε. Use epsilons instead, such as {name}=1,2,5.")
    if not overrides and kind is type(base):
        return base
    values = asdict(base) if kind is type(base) else {}
    try:
        return parse_mechanism({"name": name} | values | overrides)
    except PydanticCustomError as error:
        raise SettingsError(str(error)) from None


def _grids(texts: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
    """Yield (curve or nothing for all, its ε)."""
    curves: set[str] = set()
    for text in texts:
        name, equals, numbers = text.rpartition("=")
        if equals:
            require_choice("epsilons", name.strip(), names)
        if name.strip() in curves:
            raise SettingsError(f"epsilons: {name.strip() or 'all'!r} is there twice. Give each once.")
        curves.add(name.strip())
        grid = _numbers("epsilons", numbers)
        if len(grid) < LEAST_POINTS:
            raise SettingsError(
                f"epsilons: {grid} is not valid. Give {LEAST_POINTS} or more in ascending order."
            )
        yield name.strip(), check_epsilons("epsilons", grid)


def _numbers(field: str, text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(",") if number.strip()]
    except ValueError:
        raise SettingsError(
            f"{field}: {text!r} is not valid. Use numbers with commas between them."
        ) from None


LABELS = ("first", "last", "none")


@dataclass(frozen=True, eq=False)
class Records:
    """Texts with their labels, for one side of a comparison.

    Attributes:
        texts: string[n].
        labels: [n], or None.

    Examples:
        >>> import pyarrow as pa
        >>> table = dp.tickets(40)
        >>> records = audit.Records(table["body"].combine_chunks(), tuple(table["topic"].to_pylist()))
        >>> len(records.texts)
        40
    """

    texts: pa.StringArray
    labels: tuple[str, ...] | None

    def __repr__(self) -> str:
        """Show the number of texts, without the texts."""
        return f"Records({len(self.texts):,} texts{'' if self.labels is None else ', labelled'})"

    def spaced(self, most: int) -> Records:
        """Return at most so many texts, evenly spaced."""
        if most >= len(self.texts):
            return self
        places = np.linspace(0, len(self.texts) - 1, most).astype(np.int64)
        labels = None if self.labels is None else tuple(self.labels[i] for i in places)
        return Records(self.texts.take(pa.array(places)), labels)


def read_records(file: str | Path, field: str, labels: str = "none") -> Records:
    """Read a UTF-8 file, a record a line; empty lines are left out.

    Args:
        file: the path.
        field: what messages call it.
        labels: the place of the label in a tab-separated line: `first`, `last`, or `none`, to read whole lines as texts.

    Raises:
        SettingsError: labels is none of the three, or the file cannot be read.
        DataError: it is no UTF-8 text, holds fewer than two records, a line has no label or an empty one.
    """
    require_choice("labels", labels, LABELS)
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"{field}: {str(file)!r} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise DataError(f"{field}: {str(file)!r} is not UTF-8 text. Re-encode the file.") from None
    # Not splitlines(), which ends lines at characters that stand within texts.
    lines = [(number, text_line.rstrip("\r")) for number, text_line in enumerate(text.split("\n"), start=1)]
    lines = [(number, text_line) for number, text_line in lines if text_line.strip()]
    if len(lines) < 2:
        raise DataError(f"{field}: {len(lines)} record(s) are too few. Give two or more, one on each line.")
    if labels == "none":
        return Records(pa.array([text_line for _, text_line in lines], pa.string()), None)
    for number, text_line in lines:
        if "\t" not in text_line:
            raise DataError(f"{field}: line {number} has no tab. Put a tab between text and label.")
    parts = [
        text_line.split("\t", 1) if labels == "first" else text_line.rsplit("\t", 1)[::-1]
        for _, text_line in lines
    ]
    for (number, _), (label, _) in zip(lines, parts, strict=True):
        if not label.strip():
            raise DataError(f"{field}: line {number} has an empty label. Give each line a label.")
    return Records(
        pa.array([text for _, text in parts], pa.string()), tuple(label.strip() for label, _ in parts)
    )


@dataclass(frozen=True, kw_only=True)
class CorpusSettings:
    """Settings that all points of a comparison share; they hold nothing of the texts.

    Attributes:
        version: of the package; `engine` is that of the text engine.
        stop_words: the sha256 of their list.
        few: words that the adversary considers at most, with `draws` for each.
        records: number of replaced records; `attacked` counts the attacked ones.
        encoder: the fingerprint of the encoder, or None.
        prior: which public prior completes what the adversary learns from the public text.
    """

    version: str
    engine: str
    lexicon_fingerprints: tuple[str, ...]
    words: int
    policy: Mapping[str, Json]
    stop_words: str
    consistency: str
    few: int
    draws: int
    records: int
    attacked: int
    encoder: str | None = None
    prior: str = ZIPF

    def as_dict(self) -> dict[str, Json]:
        """Return the fields, JSON-able, without an encoder where there is none."""
        values = asdict(self)
        return (
            values if self.encoder else {name: value for name, value in values.items() if name != "encoder"}
        )


@dataclass(frozen=True, eq=False)
class EvaluationCorpus:
    """Both texts, and what every point depends on.

    Attributes:
        lexicons: of the same words.
        whole: the records of the private text that are replaced.
        attacked: the attacked ones among them.
        labels: of the former, or None.
        order: that of the words of the private text, by a third one; or None.
        encoder: what compares texts, too, or None.
    """

    config: ModelConfig
    comparison: ComparisonSpec
    lexicons: tuple[Lexicon, ...]
    whole: Text
    attacked: Text
    labels: tuple[str, ...] | None
    order: OwnOrder | None = None
    encoder: Encoder | None = None

    @classmethod
    def of(
        cls,
        config: ModelConfig,
        comparison: ComparisonSpec,
        lexicons: tuple[Lexicon, ...],
        public: Records,
        private: Records,
        language: Records | None = None,
    ) -> EvaluationCorpus:
        """Read both texts.

        Args:
            config: policy and level of consistency.
            comparison: sizes.
            lexicons: of the same words; texts are read as those of the first.
            public: what the adversary knows of the language.
            private: what is replaced.
            language: a third text, whose word pairs judge the word order; None leaves that out.

        Raises:
            DataError: the public or the third text holds no word of the lexicon, or no word of the private one would be drawn.
                Also a private text whose words are in no order by the third text.
        """
        lexicon = lexicons[0]
        classifier = read_classifier(config.policy.names)
        table = WordTable.build(lexicon.vocabulary, config.policy.stop_list())
        searches = () if classifier is None else (classifier,)
        engine = Engine(table, config.policy, providers_of(config.policy), searches=searches)
        bigrams = _pairs("public", engine, public, lexicon)
        drawable = drawn_words(engine)

        def text(reading: Reading) -> Text:
            level, numbers = config.consistency, reading.numbers
            return Text(reading.words, reading.drawn, reading.bounds, drawable, bigrams, level, numbers)

        chosen = private.spaced(comparison.records)
        whole, attacked = (read(engine, part.texts) for part in (chosen, chosen.spaced(comparison.attacked)))
        if not attacked.drawn.any():
            raise DataError(
                "private: the policy would draw no word of this text. Use a text in the lexicon's language."
            )
        order = None
        if language is not None:
            third = _pairs("language", engine, language, lexicon)
            order = OwnOrder.of(whole.words, whole.bounds, third)
        encoder = (
            None
            if comparison.encoder is None
            else Encoder.open(comparison.encoder, threads=os.cpu_count() or 1)
        )
        return cls(config, comparison, lexicons, text(whole), text(attacked), chosen.labels, order, encoder)

    def settings(self) -> CorpusSettings:
        """Return the settings that all points share."""
        return CorpusSettings(
            version=__version__,
            engine=ENGINE_VERSION,
            lexicon_fingerprints=tuple(lexicon.fingerprint for lexicon in self.lexicons),
            words=len(self.lexicons[0]),
            policy=self.config.spec()["policy"],
            stop_words=_digest(self.config.policy.stop_list()),
            consistency=self.config.consistency,
            few=self.comparison.few,
            draws=self.comparison.draws,
            records=len(self.whole.bounds) - 1,
            attacked=len(self.attacked.bounds) - 1,
            encoder=None if self.encoder is None else self.encoder.model.fingerprint,
            prior=self.lexicons[0].prior.name,
        )

    def drawn(self) -> Ids | None:
        """Return the words that points draw, ascending; None where they also need the laws of others."""
        words = words_of(self.attacked)
        return None if words is None else np.union1d(words, self.whole.words[self.whole.drawn])

    def measured(self, name: str, epsilon: float, sampler: Sampler, say: Steps) -> Point:
        """Measure a point."""
        say("attacking")
        success, basis = risks(sampler, self.attacked, few=self.comparison.few, draws=self.comparison.draws)
        say("measuring the utility")
        lexicon = self.lexicons[0]
        replaced, strings = self.whole.replaced(sampler), lexicon.vocabulary.strings()
        useful = text_utility.utilities(replaced, lexicon.vectors, strings, self.labels)
        if self.order is not None:
            useful[text_utility.ORDER] = self.order.left(text_utility.released(replaced), replaced.bounds)
        if self._originals is not None:
            say("comparing sentence embeddings")
            texts = text_utility.joined(text_utility.released(replaced), replaced.bounds, strings)
            useful[text_utility.EMBEDDED] = self._originals.similarity(texts)
        return Point(name, epsilon, success, useful, basis)

    @cached_property
    def _originals(self) -> Originals | None:
        if self.encoder is None:
            return None
        strings = self.lexicons[0].vocabulary.strings()
        return Originals(
            partial(vectors, self.encoder), text_utility.joined(self.whole.words, self.whole.bounds, strings)
        )

    def unprotected(self) -> dict[str, Estimate]:
        """Return the utilities of the text as it is."""
        same = [
            text_utility.KEPT,
            text_utility.COSINE,
            text_utility.DISTINCT,
            *([text_utility.EMBEDDED] if self.encoder is not None else []),
        ]
        utility_of = {name: Estimate.known(1.0) for name in same}
        if self.order is not None:
            utility_of[text_utility.ORDER] = Estimate.known(1.0)
        if self.labels is not None:
            strings = self.lexicons[0].vocabulary.strings()
            utility_of[text_utility.ACCURACY] = text_utility.downstream(
                self.whole.words, self.whole.bounds, strings, self.labels
            )
        return utility_of


def _pairs(field: str, engine: Engine, records: Records, lexicon: Lexicon) -> Bigrams:
    """Count the word pairs of a text."""
    known = read(engine, records.texts)
    if not (known.words >= 0).any():
        raise DataError(f"{field}: no word is in the lexicon. Use a text in the lexicon's language.")
    return Bigrams.of(known.words, known.bounds, len(lexicon), prior=lexicon.prior)


def check_labels(private: Records, records: int) -> None:
    """Refuse labels that no classifier can learn from, before anything is measured.

    Raises:
        DataError: too few records, a label that is missing, or one class among those that are learnt from.
    """
    labels = private.spaced(records).labels or ()
    if len(labels) < TESTED:
        raise DataError(f"private: {len(labels)} records with labels are too few. Give {TESTED} or more.")
    classes_of([label for place, label in enumerate(labels) if place % TESTED != TESTED - 1], "labels")


def _digest(words: Iterable[str]) -> str:
    """Return the sha256 of a list of words, hex: settings name long lists by it."""
    text = json.dumps(list(words), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
