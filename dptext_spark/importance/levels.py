"""The user's choice, in one frozen value: the share of a record's words to draw, and the measure of importance.

Words that are drawn at different levels have one guarantee for them all, and their ε adds up in integer units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from itertools import accumulate
from math import gcd
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy.typing as npt
from pydantic import AfterValidator, Field

from dptext_spark.errors import SettingsError, either
from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.mechanisms.base import Mechanism, Sampler
from dptext_spark.rounding import exact
from dptext_spark.runtime.display import settings_line
from dptext_spark.runtime.validation import Json, problems_of, valid

Provider = Literal["idf", "column", "attention", "random"]
Direction = Literal["top", "medium", "bottom"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
STRATEGIES = {"aggressive": "token", "conservative": "record"}  # each with its level of consistency
MOST_LEVELS = 250
PLACES = 6  # decimals of a percentage
WHOLE = 100 * 10**PLACES  # a record, in the integers that shares are counted in; compiled loops read it
# Which providers take which setting; all others refuse it.
OWN = {"corpus": ("idf",), "weights": ("column",), "model": ("attention",)}
NEEDED = {
    "weights": "the column of weights of each text column",
    "model": "an encoder: a folder, or an installed package that holds one",
}


def _of_few_decimals(percent: float) -> float:
    if Decimal(repr(percent)).scaleb(PLACES) % 1:
        raise ValueError(percent)
    return percent


Percentage = Annotated[
    float,
    Field(gt=0, le=100, allow_inf_nan=False),
    AfterValidator(_of_few_decimals),
    valid(f"a number above 0 and at most 100, with {PLACES} decimals or fewer"),
]


@dataclass(frozen=True)
class Level:
    """A share of the words and how they are drawn.

    Attributes:
        share: of each record's words, in percent; None, of the last level only, for all that are left.
        epsilon: of the settings' mechanism; None for its own.
        mechanism: in place of the settings'; None for that.

    Examples:
        >>> levels = (dp.Level(20, epsilon=1.0), dp.Level(30, epsilon=6.0))  # half of the words are drawn
        >>> dp.Importance(levels=levels).percent is None
        True
    """

    share: Percentage | None
    epsilon: float | None = None
    mechanism: Mechanism | None = None

    def __repr__(self) -> str:
        """Return share and ε or mechanism."""
        return settings_line(self, always=("share",))

    def drawn_by(self, mechanism: Mechanism) -> Mechanism:
        """Return the mechanism of this level, where the settings name `mechanism`.

        Raises:
            SettingsError: ε is out of the mechanism's range.
        """
        if self.mechanism is not None:
            return self.mechanism
        if self.epsilon is None:
            return mechanism
        return replace(mechanism, epsilon=self.epsilon)


@dataclass(frozen=True)
class Importance:
    """The words to draw. The others are released unchanged, except unknown words and numbers.

    A record is all texts of a row: the words of all its columns and list elements are ranked together.

    Attributes:
        provider: what measures importance: `idf`, rare words; `column`, numbers of the user's; `attention` of a pretrained
            encoder; `random`, nothing: places that depend on the number of words alone.
        direction: which words come first: `top`, the most important; `bottom`, the least; `medium`, those around the median.
        percent: of each record's words, that are drawn; None where `levels` say.
        strategy: `aggressive` looks at each occurrence by itself (consistency: token); `conservative` draws all occurrences of a
            word in a record if one is among those that come first (consistency: record). None: as the consistency is.
        levels: shares in the order of `direction`, each with its own ε or mechanism; empty where `percent` says.
        rank_punctuation: whether punctuation is ranked with the words, as in the paper: it takes places, and is never drawn.
        corpus: of idf: a text file, a document a line; None counts in the texts that are sanitized.
        weights: of column: for each text column a column with a number for each word.
        model: of attention: the folder of the encoder, or an installed package that holds one.

    Examples:
        >>> some = dp.compile(dp.CusText(epsilon=2.0), lexicon, importance=dp.Importance(percent=30, provider="random"))
        >>> sorted({word.reason for word in dp.preview(some, "Please send the broken kettle back").words})
        ['', 'NOT CHOSEN, IN CLEAR', 'stop word']
    """

    provider: Provider = "idf"
    direction: Direction = "top"
    percent: Percentage | None = None
    strategy: Literal["aggressive", "conservative"] | None = None
    levels: tuple[Level, ...] = ()
    rank_punctuation: bool = False
    corpus: str | None = None
    weights: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    model: str | None = None

    def __post_init__(self) -> None:
        """Check every choice.

        Raises:
            SettingsError: values are not valid; a line for each.
        """
        problems = [*problems_of(self, "importance")]
        if problems := problems or [*self._shares_problems(), *self._own()]:
            raise SettingsError("\n".join(problems))

    def __repr__(self) -> str:
        """Return the provider and the choices that differ from the default."""
        return settings_line(self, always=("provider",))

    def _shares_problems(self) -> Iterator[str]:
        if (self.percent is None) == (not self.levels):
            named = "neither" if self.percent is None else "both"
            yield f"importance: {named} of percent and levels is set. Set one of them."
            return
        if self.percent is not None:
            return
        if len(self.levels) > MOST_LEVELS:
            yield f"importance.levels: {len(self.levels)} levels are too many. Choose {MOST_LEVELS} or fewer."
        problems = 0
        for number, level in enumerate(self.levels):
            field = f"importance.levels[{number}]"
            if level.share is None and number < len(self.levels) - 1:
                problems += 1
                yield f"{field}.share: not set. Choose a percentage: only the last level can take the rest."
            for problem in problems_of(level, field):
                problems += 1
                yield problem
            if level.epsilon is not None and level.mechanism is not None:
                yield f"{field}: epsilon and mechanism are both set. Set at most one."
        if not problems and (total := self.cumulative[-1]) > WHOLE:
            total_share = f"{Decimal(total).scaleb(-PLACES).normalize():f}"
            yield f"importance.levels: the sum of the shares is {total_share} %. Choose at most 100."

    def _own(self) -> Iterator[str]:
        for name, providers in OWN.items():
            setting = getattr(self, name)
            if setting and self.provider not in providers:
                yield f"importance.{name}: not valid with provider {self.provider}. Choose {either(providers)}, or remove it."
            if not setting and name in NEEDED and self.provider in providers:
                yield f"importance.{name}: not set, but provider {self.provider} needs {NEEDED[name]}."

    @property
    def cumulative(self) -> tuple[int, ...]:
        """The share of each level and those before it, in parts of `WHOLE`."""
        if self.percent is not None:
            return (_parts(self.percent),)
        shares = [_parts(level.share) for level in self.levels if level.share is not None]
        rest = [WHOLE - sum(shares)] if self.levels[-1].share is None else []
        return tuple(accumulate([*shares, *rest]))

    @property
    def shares(self) -> tuple[int, ...]:
        """The share of each level, in parts of `WHOLE`: public, as the settings are."""
        steps = self.cumulative
        return tuple(last - before for before, last in zip((0, *steps), steps, strict=False))

    @property
    def own_data(self) -> bool:
        """Whether it needs document frequencies of the sanitized texts themselves."""
        return self.provider == "idf" and self.corpus is None

    def mechanisms(self, mechanism: Mechanism) -> tuple[Mechanism, ...]:
        """Return the mechanism of each level, where the settings name `mechanism`."""
        return tuple(level.drawn_by(mechanism) for level in self.levels) or (mechanism,)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Importance:
        """Build again from :meth:`as_dict`."""
        levels = tuple(
            Level(level["share"], level.get("epsilon"), mechanism_again(level.get("mechanism")))
            for level in values.get("levels", ())
        )
        return cls(**{**values, "levels": levels, "weights": tuple(values.get("weights", ()))})

    def as_dict(self) -> dict[str, Json]:
        """Return the fields, JSON-able."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        levels = [
            {
                "share": level.share,
                "epsilon": level.epsilon,
                "mechanism": None if level.mechanism is None else level.mechanism.as_dict(),
            }
            for level in self.levels
        ]
        return values | {"levels": levels, "weights": list(self.weights)}


def agree(strategy: str | None, consistency: str) -> str:
    """Return the strategy of a level of consistency.

    Raises:
        SettingsError: it names no provider, or another than the given one.
    """
    agreed = next((name for name, level in STRATEGIES.items() if level == consistency), None)
    valid = ", ".join(f"{level} (strategy {name})" for name, level in STRATEGIES.items())
    if agreed is None:
        raise SettingsError(
            f"consistency: {consistency!r} is not valid with importance. Importance chooses row by row, so that a word may "
            f"be drawn in one row and stay in another. Choose {valid}."
        )
    if strategy is not None and strategy != agreed:
        raise SettingsError(
            f"importance.strategy: {strategy!r} is not valid with consistency: {consistency}. Choose consistency "
            f"{STRATEGIES[strategy]}, or strategy {agreed}."
        )
    return agreed


def check_record_key(consistency: str, row_key: str | None, record_key: str | None) -> None:
    """Refuse records of several rows whose words importance would choose.

    Raises:
        SettingsError: at record level, a record_key that is not the row.
    """
    if consistency == "record" and record_key is not None and record_key != row_key:
        raise SettingsError(
            f"record_key: {record_key!r} is not valid with importance and consistency: record. Importance chooses row by "
            "row, so that a word may be drawn in one row of the record and stay in another. Choose none, the row_key, or "
            "consistency: token."
        )


def mechanism_again(values: Mapping[str, Any] | None) -> Mechanism | None:
    """Build a mechanism again from :meth:`Mechanism.as_dict`."""
    if values is None:
        return None
    listed = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    parameters = {name: value for name, value in {**values, **listed}.items() if name != "name"}
    return MECHANISMS[values["name"]](**parameters)


def _parts(percent: float) -> int:
    """Return a percentage as an integer, exactly."""
    return int(Decimal(repr(percent)).scaleb(PLACES))


STATUSES = ("proved", "verified", "claimed", "refuted")  # from the best known to the worst
# Parameters that decide how words are drawn and not how far apart they are.
NOT_OF_THE_DISTANCE = ("epsilon", "calibration", "search", "remap")
LARGEST = 10**9  # multiple of a unit: the sum over a billion words is still an integer of 64 bits


class Units(NamedTuple):
    """The units in which the ε of a record is counted.

    Attributes:
        multiples: of each level, units per draw.
        of_one: the guarantee of one unit.
    """

    multiples: tuple[int, ...]
    of_one: Guarantee


class Levels:
    """Common parts of choosers of levels. A level is a share of the words with a law, or a law of a budget.

    `further`: the samplers of the levels after the first, over the same words as the first one's.
    """

    further: tuple[Sampler, ...]

    @property
    def is_complete(self) -> bool:
        """Check whether everything that it chooses by is known."""
        return True

    @property
    def is_private(self) -> bool:
        """Whether it holds counts of the sanitized texts, which are as private as the texts."""
        return False

    @property
    def reads_weights(self) -> bool:
        """Check whether it takes weights of words from the user."""
        return False

    @property
    def whole_records(self) -> bool:
        """Check whether all texts of a record must be known before its first draw, also at token level."""
        return False

    def level_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of the further samplers, by file name."""
        return {
            f"level{number}.{name}": array
            for number, sampler in enumerate(self.further, start=1)
            for name, array in sampler.arrays().items()
        }

    def guarantees(self, first: Guarantee) -> tuple[Guarantee, ...]:
        """Return the guarantee of a draw at each level; `first` is that of the first level."""
        return (first, *(sampler.guarantee for sampler in self.further))

    def guarantee(self, first: Guarantee) -> Guarantee:
        """Return the guarantee of a drawn word, whatever its level; see :func:`weakest_guarantee`."""
        return weakest_guarantee(self.guarantees(first))

    def units(self, first: Guarantee) -> Units:
        """Return the units in which the ε of a record is counted; see :func:`common_unit`."""
        return common_unit(self.guarantees(first))


def weakest_guarantee(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return the guarantee of a drawn word, whatever its level: the weakest, with a sentence that names all.

    Raises:
        SettingsError: they bound different things, so a text has no ε.
    """
    first = guarantees[0]
    if len(guarantees) == 1:
        return first
    for number, other in enumerate(guarantees):
        if (other.kind, other.metric) != (first.kind, first.metric):
            raise SettingsError(
                f"importance.levels[{number}]: its guarantee has the kind {_kind(other)}, but that of levels[0] has "
                f"{_kind(first)}. Choose mechanisms of one kind, because ε of different kinds have no sum."
            )
    return replace(
        first,
        epsilon=max(guarantee.epsilon for guarantee in guarantees),
        delta=max(guarantee.delta for guarantee in guarantees),
        status=max((guarantee.status for guarantee in guarantees), key=STATUSES.index),
        sentence=" ".join(
            f"Level {number}: {guarantee.sentence}" for number, guarantee in enumerate(guarantees, start=1)
        ),
    )


def common_unit(guarantees: Sequence[Guarantee]) -> Units:
    """Return the greatest unit of which every ε is a multiple. If that is too small, the unit rounds each ε up a little.

    One level: its ε is the unit. The δ of a unit is such that no level has more than its multiple of it.
    """
    if len(guarantees) == 1:
        return Units((1,), guarantees[0])
    bounds = [Decimal(repr(float(guarantee.epsilon))) for guarantee in guarantees]
    step = Decimal(1).scaleb(min(int(bound.as_tuple().exponent) for bound in bounds))
    wholes = [int(bound / step) for bound in bounds]
    common = gcd(*wholes) or 1
    if max(wholes) // common > LARGEST:
        common = -(-max(wholes) // LARGEST)
    multiples = tuple(-(-whole // common) for whole in wholes)
    unit = float(step * common)
    if not any(multiples):  # every ε is 0: a draw counts, but reveals nothing
        multiples, unit = (1,) * len(guarantees), 0.0
    delta = max(
        (guarantee.delta / times for guarantee, times in zip(guarantees, multiples, strict=True) if times),
        default=0.0,
    )
    sentence = f"{exact(unit)} is the unit in which the ε of the levels is counted."
    return Units(
        multiples, replace(weakest_guarantee(guarantees), epsilon=unit, delta=delta, sentence=sentence)
    )


def require_one_distance(mechanisms: Sequence[Mechanism], guarantees: Sequence[Guarantee]) -> None:
    """Refuse levels with different distances between words, by a :class:`SettingsError`: their values of ε are not comparable."""
    first = _geometry(mechanisms[0])
    for number, (mechanism, promised) in enumerate(zip(mechanisms, guarantees, strict=True)):
        if promised.adds_up or promised.metric == "euclidean":
            continue
        if _geometry(mechanism) != first:
            raise SettingsError(
                f"importance.levels[{number}]: its distance ({promised.metric}) has other parameters than "
                "importance.levels[0]. Choose levels that differ in ε alone."
            )


def _geometry(mechanism: Mechanism) -> list[tuple[str, object]]:
    return [(name, value) for name, value in mechanism.as_dict().items() if name not in NOT_OF_THE_DISTANCE]


def _kind(guarantee: Guarantee) -> str:
    return guarantee.kind + (f" ({guarantee.metric})" if guarantee.metric else "")
