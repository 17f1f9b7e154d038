"""The two objects of every mechanism: what the user writes (small, frozen) and what the workers hold (arrays)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy.typing as npt

from dptext_spark.arrays import F64, U64, Ids
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.parameters import documented, parameters_of
from dptext_spark.randomness.draws import Draws
from dptext_spark.runtime.array_checks import Arrays

TOTAL = 1 << 63
M = TypeVar("M", bound="Mechanism")


class Law(NamedTuple):
    """The exact output distribution of one word.

    Attributes:
        ids: int32[m], the outputs that are possible, ascending.
        weight: uint64[m], integers that sum to 2^63; P(u) = weight / 2^63 exactly as sampled.
        probability: float64[m], the same as floats.
    """

    ids: Ids
    weight: U64
    probability: F64


@runtime_checkable
class Sampler(Protocol):
    """A compiled mechanism: arrays only, no text, no files."""

    @property
    def guarantee(self) -> Guarantee:
        """What holds for one draw."""

    @property
    def summary(self) -> dict[str, Any]:
        """What the mechanism says of itself: public figures of the compiled law, JSON-able."""

    def sample(self, ids: Ids, draws: Draws) -> Ids:
        """Draw one output for each input: int32[n] in, int32[n] out; draw i reads only number i of `draws`."""

    def law(self, word_id: int) -> Law | None:
        """Return the exact law of a word, or None where there is no closed form."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what must be stored to sample elsewhere, by name."""

    @classmethod
    def check(cls, arrays: Arrays, words: int) -> None:
        """Refuse stored arrays over a lexicon of `words` words that sampling could not bear.

        Raises:
            DataError: names the array, what it holds and what is valid.
        """

    @classmethod
    def restore(
        cls, arrays: Mapping[str, npt.NDArray[Any]], guarantee: Guarantee, summary: dict[str, Any]
    ) -> Sampler:
        """Build the sampler again from :meth:`arrays` (memory-mapped or not)."""


class Mechanism(ABC):
    """The user's parameters: a frozen dataclass whose fields are made by :mod:`dptext_spark.mechanisms.parameters`.

    Each value is checked by its declaration when the object is made; rules between parameters are added by the mechanism.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    protects: ClassVar[str]
    sampler: ClassVar[type]

    def __init_subclass__(cls) -> None:
        """Explain the parameters in the docstring, as `dptext mechanisms` does."""
        super().__init_subclass__()
        cls.__doc__ = documented(cls.__doc__, vars(cls))

    def __post_init__(self) -> None:
        """Check every parameter.

        Raises:
            SettingsError: values are not valid; a line for each.
        """
        checked = (
            parameter.problem(f"mechanism.{name}", getattr(self, name))
            for name, parameter in parameters_of(self).items()
        )
        if found := [*filter(None, checked)]:
            raise SettingsError("\n".join(found))

    def as_dict(self) -> dict[str, Any]:
        """Return the name and the parameters, JSON-able."""
        parameters = asdict(self)  # type: ignore[call-overload]
        listed = {name: list(value) for name, value in parameters.items() if isinstance(value, tuple)}
        return {"name": self.name, **parameters, **listed}

    def embeddings(self) -> range:
        """Return how many lexicons of the same words it can be compiled for; where several, `compile` takes them all."""
        return range(1, 2)

    @abstractmethod
    def compile(self, lexicon: Lexicon) -> Any:
        """Return the :class:`Sampler` for a lexicon.

        Raises:
            SettingsError: a parameter does not fit the lexicon.
        """

    def over_epsilons(self, *lexicons: Lexicon) -> Callable[[float], Any]:
        """Return what compiles the mechanism at another ε, for searches: as `replace(self, epsilon=...).compile(...)` does.

        Where what does not depend on ε takes long (output sets, lists), it is done once.

        Raises:
            SettingsError: a parameter does not fit the lexicon; from what is returned, an ε that is out of range.
        """
        return lambda epsilon: self._at(epsilon).compile(*lexicons)

    def by_distance(self, words: int) -> tuple[float, float] | None:  # noqa: ARG002
        """Return (ε, γ) where the law is ∝ exp(-ε·min(d, γ)/2) over all V words, d Euclidean; None where it is another."""
        return None

    def _at(self: M, epsilon: float) -> M:
        """Return the mechanism with another ε."""
        return replace(self, epsilon=epsilon)  # type: ignore[type-var]
