"""Where the lists of a run come from: what settings name, before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from dptext_spark.errors import SettingsError, unknown
from dptext_spark.runtime.record import Json
from dptext_spark.text.names.search import MASK, NAME_TYPES, PSEUDONYM

FIELDS = ("file", "table", "column")
ACTIONS = (MASK, PSEUDONYM)
REPLACING = ("kind", "replace")  # fields of a list that masks: what takes the place of its entries
LIST_TYPES = ("name",)  # of what a list masks: it becomes [NAME]


@dataclass(frozen=True)
class ListSource:
    """A list of words and phrases: a file of an entry a line, a column of a table, or a column of the very rows.

    Attributes:
        file: path of a text file in UTF-8.
        table: catalog name, with `column`.
        column: of the table; without one, of the input: each row has the entries of its own.
        kind: `person` or `location`, of what its entries are names; None where they are masked.
        replace: `mask` by `[NAME]`, or `pseudonym`: a keyed name of the same kind from the public lists. Nothing replaces what
            is kept.
    """

    file: str | None = None
    table: str | None = None
    column: str | None = None
    kind: str | None = None
    replace: str = MASK

    def __post_init__(self) -> None:
        """Refuse what names no list, or two, and a kind without pseudonyms, or the other way round.

        Raises:
            SettingsError: the field is added by who reads the settings.
        """
        given = {name: getattr(self, name) for name in FIELDS if getattr(self, name) is not None}
        wrong = [name for name, value in given.items() if not isinstance(value, str) or not value.strip()]
        if wrong:
            raise SettingsError(f"{wrong[0]}: {given[wrong[0]]!r} given; valid: a text that is not empty.")
        if set(given) not in ({"file"}, {"table", "column"}, {"column"}):
            named = ", ".join(given) or "nothing"
            raise SettingsError(
                f"{named} given; valid: file; table with column; or column alone, of the input."
            )
        if self.replace not in ACTIONS:
            raise unknown("replace", self.replace, ACTIONS)
        if self.kind is not None and self.kind not in NAME_TYPES:
            raise unknown("kind", self.kind, NAME_TYPES)
        if self.kind is not None and not self.has_pseudonyms:
            raise SettingsError(
                f"kind: {self.kind!r} given, but its entries are masked; valid: with replace: {PSEUDONYM}, or none."
            )
        if self.kind is None and self.has_pseudonyms:
            raise SettingsError(
                f"replace: {PSEUDONYM!r} given, but not of what its entries are names; valid: with kind: "
                f"{' or '.join(NAME_TYPES)}; or {MASK}."
            )

    @property
    def of_rows(self) -> bool:
        """Whether it is a column of the input, so that each row has a list of its own."""
        return self.column is not None and self.table is None

    @property
    def has_pseudonyms(self) -> bool:
        """Whether pseudonyms take the place of its entries."""
        return self.replace == PSEUDONYM

    def as_dict(self) -> dict[str, Json]:
        """Return what was given, JSON-able; what becomes of entries that are masked leaves no trace."""
        names = (*FIELDS, *(REPLACING if self.has_pseudonyms else ()))
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True)
class ListSources:
    """The lists that settings name.

    Attributes:
        mask: whose entries are masked, or have pseudonyms, whatever the lexicon holds.
        keep: whose entries are released as they stand.
        NAMES: the settings of the policy that name them.
    """

    NAMES: ClassVar = ("mask", "keep")

    mask: tuple[ListSource, ...] = ()
    keep: tuple[ListSource, ...] = ()

    def __post_init__(self) -> None:
        """Refuse pseudonyms of what is kept.

        Raises:
            SettingsError: such a list.
        """
        for number, source in enumerate(self.keep):
            if source.has_pseudonyms:
                raise SettingsError(replaces_nothing(f"policy.keep[{number}]", "replace"))

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.mask or self.keep)

    def named(self) -> Iterator[tuple[str, ListSource]]:
        """Yield each with the setting that names it, those that mask first."""
        for name in self.NAMES:
            for number, source in enumerate(getattr(self, name)):
                yield f"policy.{name}[{number}]", source

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of names that have pseudonyms, those of persons first; none where all entries are masked."""
        wanted = {source.kind for source in self.mask}
        return tuple(kind for kind in NAME_TYPES if kind in wanted)

    def changed(self, change: Callable[[str, ListSource], ListSource]) -> ListSources:
        """Return them with each changed, by the setting that names it."""
        made = iter([change(field, source) for field, source in self.named()])
        return ListSources(*(tuple(next(made) for _ in getattr(self, name)) for name in self.NAMES))

    def as_dict(self) -> dict[str, Json]:
        """Return them as settings hold them: what is not used leaves no trace."""
        held = {name: getattr(self, name) for name in self.NAMES}
        return {name: [one.as_dict() for one in some] for name, some in held.items() if some}


def replaces_nothing(field: str, name: str) -> str:
    """Return the sentence on what is given of a list whose entries stay as they are.

    Args:
        field: the setting of the list.
        name: of `REPLACING`.
    """
    return (
        f"{field}.{name}: given, but what a list keeps stays as it stands; valid here: {', '.join(FIELDS)}. "
        f"{' and '.join(REPLACING)} belong to lists of policy.mask."
    )
