"""What words that are drawn at different levels cost: one guarantee for them all, and ε in units that add up as integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from math import gcd
from typing import NamedTuple

from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.base import Mechanism
from dptext_spark.rounding import exact

STATUSES = ("proved", "verified", "claimed", "refuted")  # from the best known to the worst
# Parameters that decide how words are drawn and not how far apart they are.
NOT_OF_THE_DISTANCE = ("epsilon", "calibration", "search", "remap")
LARGEST = 10**9  # multiple of a unit: the sum over a billion words is still an integer of 64 bits


class Units(NamedTuple):
    """How the ε of a record is counted.

    Attributes:
        multiples: of each level, what one draw comes to in units.
        of_one: the guarantee of one unit.
    """

    multiples: tuple[int, ...]
    of_one: Guarantee


def weakest_guarantee(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return what holds for a drawn word, whatever its level: the weakest, with a sentence that names all.

    Raises:
        SettingsError: they bound different things, so that no ε stands for a text.
    """
    first = guarantees[0]
    if len(guarantees) == 1:
        return first
    for number, other in enumerate(guarantees):
        if (other.kind, other.metric) != (first.kind, first.metric):
            raise SettingsError(
                f"importance.levels[{number}]: its guarantee is of the kind {_kind(other)}, that of levels[0] of the kind "
                f"{_kind(first)}; valid: mechanisms of one kind, for ε of different kinds has no sum."
            )
    return replace(
        first,
        epsilon=max(one.epsilon for one in guarantees),
        delta=max(one.delta for one in guarantees),
        status=max((one.status for one in guarantees), key=STATUSES.index),
        sentence=" ".join(
            f"Level {number}: {one.sentence}" for number, one in enumerate(guarantees, start=1)
        ),
    )


def common_unit(guarantees: Sequence[Guarantee]) -> Units:
    """Return the greatest unit of which every ε is a multiple; where that is too small, one that rounds each up a little.

    One level: its ε is the unit. The δ of a unit is such that no level has more than its multiple of it.
    """
    if len(guarantees) == 1:
        return Units((1,), guarantees[0])
    bounds = [Decimal(repr(float(one.epsilon))) for one in guarantees]
    step = Decimal(1).scaleb(min(int(bound.as_tuple().exponent) for bound in bounds))
    wholes = [int(bound / step) for bound in bounds]
    common = gcd(*wholes) or 1
    if max(wholes) // common > LARGEST:
        common = -(-max(wholes) // LARGEST)
    multiples = tuple(-(-whole // common) for whole in wholes)
    unit = float(step * common)
    if not any(multiples):  # every ε is 0: a draw counts, and tells nothing
        multiples, unit = (1,) * len(guarantees), 0.0
    delta = max(
        (one.delta / times for one, times in zip(guarantees, multiples, strict=True) if times), default=0.0
    )
    said = f"{exact(unit)} is the unit in which the ε of the levels is counted."
    return Units(multiples, replace(weakest_guarantee(guarantees), epsilon=unit, delta=delta, sentence=said))


def require_one_distance(mechanisms: Sequence[Mechanism], guarantees: Sequence[Guarantee]) -> None:
    """Refuse levels that measure distances between words in different ways: ε of one is not ε of another.

    Raises:
        SettingsError: naming the level.
    """
    first = _geometry(mechanisms[0])
    for number, (mechanism, promised) in enumerate(zip(mechanisms, guarantees, strict=True)):
        if promised.adds_up or promised.metric == "euclidean":
            continue
        if _geometry(mechanism) != first:
            raise SettingsError(
                f"importance.levels[{number}]: its distance ({promised.metric}) has other parameters than importance.levels[0]; "
                "valid: levels that differ in ε alone."
            )


def _geometry(mechanism: Mechanism) -> list[tuple[str, object]]:
    return [(name, value) for name, value in mechanism.as_dict().items() if name not in NOT_OF_THE_DISTANCE]


def _kind(guarantee: Guarantee) -> str:
    return guarantee.kind + (f" ({guarantee.metric})" if guarantee.metric else "")
