"""The samplers of several mechanisms at several ε, with what they share made once.

Laws by distance over the whole lexicon (SanText, TEM) take nearly all of their time for distances, which depend on no ε: they are
compiled together, with rows for the words that will be drawn. The lists of 1-Diffractor depend on neither ε nor form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from dptext_spark.arrays import Ids
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import Diffractor, Mechanism, Sampler
from dptext_spark.mechanisms.diffractor import Lists
from dptext_spark.mechanisms.remap import Remappable, released
from dptext_spark.mechanisms.samplers import ExponentialSampler

Point = tuple[str, float]


class SamplerGrid:
    """Compiles when it is asked; a sampler is held only until it is handed out."""

    def __init__(
        self,
        lexicons: tuple[Lexicon, ...],
        mechanisms: dict[str, Mechanism],
        wanted: Iterable[Point],
        drawn: Ids | None,
    ) -> None:
        """Look at what will be asked for.

        Args:
            lexicons: of the same words.
            mechanisms: by the name of their curve.
            wanted: (curve, ε) of each sampler; the mechanism accepts the ε.
            drawn: int32[n], ids, ascending: the words that will be drawn, where it is known and laws of other words are not
                asked for. None: samplers draw every word.
        """
        self._lexicons, self._mechanisms, self._drawn = lexicons, mechanisms, drawn
        self._over: dict[str, Callable[[float], Sampler]] = {}
        self._lists: dict[tuple[int, int, int], Lists] = {}
        self._together: dict[Point, tuple[float, float]] = {}
        self._made: dict[Point, Sampler] = {}
        for name, epsilon in wanted if drawn is not None else ():
            law = replace(mechanisms[name], epsilon=epsilon).by_distance(len(lexicons[0]))
            if law is not None:
                self._together[name, epsilon] = law

    def progress_text(self, name: str, epsilon: float) -> str:
        """Say what the next :meth:`sampler` does, for progress: laws that are compiled together take a while once."""
        if (name, epsilon) in self._together and len(self._together) > 1:
            return f"compiling {len(self._together)} laws together"
        return "compiling"

    def sampler(self, name: str, epsilon: float) -> Sampler:
        """Return the sampler of a curve at an ε.

        Raises:
            SettingsError: a parameter does not fit the lexicon.
        """
        point = (name, epsilon)
        if point in self._together and self._drawn is not None:
            laws = list(self._together.values())
            made = ExponentialSampler.compile_many(self._lexicons[0].vectors, laws, self._drawn)
            self._made = dict(zip(self._together, made, strict=True))
            self._together = {}
        if point in self._made:
            drawn, mechanism = self._made.pop(point), self._mechanisms[name]
            if not isinstance(mechanism, Remappable):
                return drawn
            found: Sampler = released(mechanism, drawn, self._lexicons[0])
            return found
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
