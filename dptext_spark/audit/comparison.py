"""From settings, two texts and a list of mechanisms to the frontier: utility against risk, and the best at each risk.

All in memory, without Spark. The public text is what the adversary knows of the language; the private one is replaced by each
mechanism at each ε and attacked. Its draws are made with public numbers and are released nowhere.

The samplers of several mechanisms at several ε; their common parts are made once.

Laws by distance over the whole lexicon (SanText, TEM) take nearly all of their time for distances. Distances depend on no ε, so
these laws are compiled together, with rows for the drawn words. The lists of 1-Diffractor depend on neither ε nor form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

from dptext_spark.arrays import Ids
from dptext_spark.audit.comparison_input import (
    ComparisonSpec,
    CorpusSettings,
    EvaluationCorpus,
    Records,
    check_labels,
)
from dptext_spark.audit.frontier import BAYES, CONTEXT, LEAST_POINTS, Frontier, Point, frontier
from dptext_spark.audit.results import Estimate
from dptext_spark.audit.text_utility import ACCURACY, COSINE, DISTINCT, EMBEDDED, KEPT, ORDER
from dptext_spark.config.model import ModelConfig
from dptext_spark.errors import SettingsError, require_extra
from dptext_spark.lexicon.lexicon import Lexicon, with_shared_words
from dptext_spark.mechanisms import Diffractor, Mechanism, Sampler
from dptext_spark.mechanisms.base import check_context
from dptext_spark.mechanisms.diffractor import Lists
from dptext_spark.mechanisms.remap import Remappable, released, remap_of
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler
from dptext_spark.model.compile import in_table_order, load_lexicons
from dptext_spark.runtime.display import Progress, by_default, line, table
from dptext_spark.runtime.validation import Json

GridPoint = tuple[str, float]


class SamplerGrid:
    """Compiles when it is asked; a sampler is held only until it is handed out."""

    def __init__(
        self,
        lexicons: tuple[Lexicon, ...],
        mechanisms: dict[str, Mechanism],
        points: Iterable[GridPoint],
        drawn: Ids | None,
    ) -> None:
        """Look at what will be asked for.

        Args:
            lexicons: of the same words.
            mechanisms: by the name of their curve.
            points: (curve, ε) of each sampler; the mechanism accepts the ε.
            drawn: int32[n], ids, ascending: the words that will be drawn, where it is known and laws of other words are not
                asked for. None: samplers draw every word.
        """
        self._lexicons, self._mechanisms, self._drawn = lexicons, mechanisms, drawn
        self._over: dict[str, Callable[[float], Sampler]] = {}
        self._lists: dict[tuple[int, int, int], Lists] = {}
        self._together: dict[GridPoint, tuple[float, float]] = {}
        self._made: dict[GridPoint, Sampler] = {}
        for name, epsilon in points if drawn is not None else ():
            law = replace(mechanisms[name], epsilon=epsilon).by_distance(len(lexicons[0]))
            if law is not None:
                self._together[name, epsilon] = law

    def progress_text(self, name: str, epsilon: float) -> str:
        """Describe the next :meth:`sampler`, for progress: laws that are compiled together take a while once."""
        if (name, epsilon) in self._together and len(self._together) > 1:
            return f"compiling {len(self._together)} laws together"
        return "compiling"

    def sampler(self, name: str, epsilon: float) -> Sampler:
        """Return the sampler of a curve at an ε; :class:`SettingsError`: a parameter does not fit the lexicon."""
        point = (name, epsilon)
        if point in self._together and self._drawn is not None:
            laws = list(self._together.values())
            samplers = ExponentialSampler.compile_many(self._lexicons[0].vectors, laws, self._drawn)
            self._made = dict(zip(self._together, samplers, strict=True))
            self._together = {}
        if point in self._made:
            drawn, mechanism = self._made.pop(point), self._mechanisms[name]
            if not isinstance(mechanism, Remappable):
                return drawn
            remapped: Sampler = released(mechanism, drawn, self._lexicons[0])
            return remapped
        if name not in self._over:
            self._over[name] = self._over_epsilons(self._mechanisms[name])
        return self._over[name](epsilon)

    def _over_epsilons(self, mechanism: Mechanism) -> Callable[[float], Sampler]:
        fitting = self._lexicons if len(self._lexicons) in mechanism.embeddings() else self._lexicons[:1]
        if not isinstance(mechanism, Diffractor):
            return mechanism.over_epsilons(*fitting)
        key = (len(fitting), mechanism.lists_of_each, mechanism.list_seed)
        if key not in self._lists:
            self._lists[key] = mechanism.walked(*fitting)
        return mechanism.along(self._lists[key], fitting[0])


@dataclass(frozen=True, eq=False)
class Comparison:
    """Result of a comparison.

    Attributes:
        frontiers: one for each risk and utility.
        points: all that was measured.
        refused: (curve, ε, why) of those that the mechanism does not accept.
        unprotected: the utilities of the text as it is.
        settings: what it was made with.
        remapped: the curves whose draws are replaced by a Bayes remap.

    Examples:
        >>> sorted(found.as_dict())
        ['frontiers', 'points', 'refused', 'restricted', 'settings', 'unprotected']
    """

    frontiers: tuple[Frontier, ...]
    points: tuple[Point, ...]
    refused: tuple[tuple[str, float, str], ...]
    unprotected: dict[str, Estimate]
    settings: CorpusSettings
    remapped: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show the number of points; the figures depend on the private text."""
        points, frontiers = f"{len(self.points):,} points", f"{len(self.frontiers):,} frontiers"
        return line("Comparison", points, frontiers, f"{len(self.refused):,} refused")

    def _repr_html_(self) -> str:
        """Show the compared mechanisms without figures, for a notebook."""
        curves = dict.fromkeys(point.mechanism for point in self.points)
        rows = [
            ("mechanisms", ", ".join(curves)),
            ("points", f"{len(self.points):,}"),
            ("refused", f"{len(self.refused):,}"),
            ("risks", ", ".join(dict.fromkeys(compared.risk for compared in self.frontiers))),
            ("utilities", ", ".join(dict.fromkeys(compared.utility for compared in self.frontiers))),
        ]
        return table(
            "Comparison", rows, note="The figures depend on the private text. `as_dict` returns them."
        )

    def as_dict(self) -> dict[str, Json]:
        """Return everything, JSON-able."""
        return {
            **({"remapped": list(self.remapped)} if self.remapped else {}),
            "restricted": True,
            "frontiers": [best.as_dict() for best in self.frontiers],
            "points": [asdict(point) for point in self.points],
            "refused": [
                dict(zip(("mechanism", "epsilon", "why"), entry, strict=True)) for entry in self.refused
            ],
            "unprotected": {name: asdict(utility) for name, utility in self.unprotected.items()},
            "settings": self.settings.as_dict(),
        }


def compare(
    config: ModelConfig,
    spec: ComparisonSpec,
    public: Records,
    private: Records,
    *,
    language: Records | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Measure every mechanism at every ε, and compare.

    Args:
        config: lexicon, policy and level of consistency.
        spec: what is compared.
        public: what the adversary knows of the language.
        private: what is replaced; its labels, where it has any, give an accuracy.
        language: a third text, public and of the same language, whose word pairs judge the word order; None leaves that out.
        progress: progress callback, called with each step. None shows them on stderr in a notebook or terminal.

    Raises:
        SettingsError: run.artifact or importance is set; two of the texts are the same; labels, but no scikit-learn. Also a
            mechanism that accepts fewer than two ε, or does not fit the level of consistency.
        DataError: the lexicon is missing or damaged; the public or the third text holds none of its words; one class of labels.
            Also a private text with no word to draw, or with words in no order by the third text.

    Examples:
        >>> body = dp.tickets(80)["body"].combine_chunks()
        >>> public, private = audit.Records(body[:40], None), audit.Records(body[40:], None)
        >>> spec = audit.ComparisonSpec.of(config, "custext", ["2,8"], records=20, attacked=5)
        >>> found = audit.compare(config, spec, public, private)
        >>> [(point.mechanism, point.epsilon) for point in found.points]
        [('custext', 2.0), ('custext', 8.0)]
    """
    say = progress or by_default()
    if config.run.artifact is not None:
        raise SettingsError(
            f"run.artifact: {config.run.artifact!r} holds one mechanism, and a comparison compiles several. "
            "Leave it out (null)."
        )
    if config.importance is not None:
        raise SettingsError(
            "importance: not valid here, because a comparison draws and attacks all words. Leave it out (--set "
            "importance=null)."
        )
    if config.budget is not None:
        raise SettingsError(
            "budget: not valid here, because a comparison draws all words at one ε. Leave it out (--set budget=null)."
        )
    if any(mechanism.reads_context for mechanism in spec.curves.values()):
        check_context(config.consistency)
    if public.texts.equals(private.texts):
        raise SettingsError(
            "public: this is the private text itself. Name another text of the same language."
        )
    if language is not None and any(language.texts.equals(other.texts) for other in (public, private)):
        raise SettingsError(
            "language: this is the public or the private text. Name a third text, so that the judged text is "
            "unknown to its judge."
        )
    if private.labels is not None:
        require_extra("audit", "sklearn")
        check_labels(private, spec.records)
    refused = _refused(spec)
    _require_enough(spec, refused)
    lexicons = with_shared_words(load_lexicons(config, say))
    if any(mechanism.reads_context for mechanism in spec.curves.values()):
        lexicons = in_table_order(lexicons, config.policy)
    texts = EvaluationCorpus.of(config, spec, lexicons, public, private, language)
    points: list[Point] = []
    skipped = {(name, epsilon) for name, epsilon, _ in refused}
    every = ((name, epsilon) for name in spec.curves for epsilon in spec.epsilons[name])
    grid_points = [grid_point for grid_point in every if grid_point not in skipped]
    known = (lexicons[0].drawing(texts.whole.drawable), *lexicons[1:])  # by which a remap chooses
    grid = SamplerGrid(known, spec.curves, grid_points, texts.drawn())
    for done, (name, epsilon) in enumerate(grid_points, start=1):
        step = f"{name}, ε = {epsilon:g} ({done} of {len(grid_points)})"
        try:
            say(f"{step}: {grid.progress_text(name, epsilon)}", None)
            sampler = grid.sampler(name, epsilon)
        except SettingsError as error:
            refused.append((name, epsilon, str(error)))
            _require_enough(spec, refused)
            continue
        points.append(texts.measured(name, epsilon, sampler, partial(_say, say, step)))
    names = [KEPT, COSINE, DISTINCT]
    names += [ORDER] if language is not None else []
    names += [EMBEDDED] if spec.encoder is not None else []
    names += [ACCURACY] if private.labels is not None else []
    frontiers = tuple(
        frontier(points, risk, utility, spec.levels) for risk in (BAYES, CONTEXT) for utility in names
    )
    remapped = tuple(name for name, mechanism in spec.curves.items() if remap_of(mechanism) != "none")
    return Comparison(
        frontiers, tuple(points), tuple(refused), texts.unprotected(), texts.settings(), remapped
    )


def _refused(comparison: ComparisonSpec) -> list[tuple[str, float, str]]:
    """Return the (curve, ε, why) that are no parameters of their mechanism, before anything is compiled."""
    refused = []
    for name, mechanism in comparison.curves.items():
        for epsilon in comparison.epsilons[name]:
            try:
                replace(mechanism, epsilon=epsilon)
            except SettingsError as error:
                refused.append((name, epsilon, str(error)))
    return refused


def _require_enough(comparison: ComparisonSpec, refused: Sequence[tuple[str, float, str]]) -> None:
    """Refuse a curve of which too few ε are left."""
    for name, grid in comparison.epsilons.items():
        reasons = [why for curve, _, why in refused if curve == name]
        if len(grid) - len(reasons) < LEAST_POINTS:
            raise SettingsError(f"epsilons: {name} accepts fewer than {LEAST_POINTS} of them. {reasons[0]}")


def _say(say: Progress, step: str, what: str) -> None:
    say(f"{step}: {what}", None)
