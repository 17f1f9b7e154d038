"""The two objects of every mechanism: what the user writes (small, frozen) and what the workers hold (arrays)."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeGuard, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from dptext_spark.draws import Draws
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon

Ids = npt.NDArray[np.int32]
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
    weight: npt.NDArray[np.uint64]
    probability: npt.NDArray[np.float64]


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
    def restore(
        cls, arrays: Mapping[str, npt.NDArray[Any]], guarantee: Guarantee, summary: dict[str, Any]
    ) -> Sampler:
        """Build the sampler again from :meth:`arrays` (memory-mapped or not)."""


class Mechanism(ABC):
    """The user's parameters: a frozen dataclass that checks its ranges when it is made."""

    name: ClassVar[str]
    paper: ClassVar[str]
    protects: ClassVar[str]
    sampler: ClassVar[type]

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

    def _at(self: M, epsilon: float) -> M:
        """Return the mechanism with another ε."""
        return replace(self, epsilon=epsilon)  # type: ignore[type-var]


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether `value` is an int or a float; True and False are neither. It may be NaN or infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_epsilon(field: str, epsilon: object, zero_allowed: bool) -> None:
    """Raise :class:`SettingsError` unless `epsilon` is a finite number in the range."""
    allowed = "0 (uniform) or greater" if zero_allowed else "greater than 0"
    # Compared, not tested by isfinite, which fails for an integer that is no float.
    valid = is_number(epsilon) and 0 <= epsilon <= sys.float_info.max
    if not valid or (epsilon == 0 and not zero_allowed):
        raise SettingsError(f"{field}: {epsilon!r} given; valid: a finite number, {allowed}.")


def check_integer(field: str, value: object, low: int, high: int) -> None:
    """Raise :class:`SettingsError` unless `value` is an integer in [low, high]."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise SettingsError(f"{field}: {value!r} given; valid: an integer from {low} to {high}.")


def check_share(field: str, value: object) -> None:
    """Raise :class:`SettingsError` unless `value` is a number in [0, 1]."""
    if not is_number(value) or not 0 <= value <= 1:
        raise SettingsError(f"{field}: {value!r} given; valid: a number from 0 to 1.")
