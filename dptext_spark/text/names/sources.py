"""Where the lists of a run come from: what settings name, before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from dptext_spark.errors import SettingsError
from dptext_spark.runtime.record import Json

FIELDS = ("file", "table", "column")
LIST_TYPES = ("name",)  # of what a list masks: it becomes [NAME]


@dataclass(frozen=True)
class ListSource:
    """A list of words and phrases: a file of an entry a line, a column of a table, or a column of the very rows.

    Attributes:
        file: path of a text file in UTF-8.
        table: catalog name, with `column`.
        column: of the table; without one, of the input: each row has the entries of its own.
    """

    file: str | None = None
    table: str | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        """Refuse what names no list, or two.

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

    @property
    def of_rows(self) -> bool:
        """Whether it is a column of the input, so that each row has a list of its own."""
        return self.column is not None and self.table is None

    def as_dict(self) -> dict[str, Json]:
        """Return what was given, JSON-able."""
        return {name: getattr(self, name) for name in FIELDS if getattr(self, name) is not None}


@dataclass(frozen=True)
class ListSources:
    """The lists that settings name.

    Attributes:
        mask: whose entries are masked, whatever the lexicon holds.
        keep: whose entries are released as they stand.
        NAMES: the settings of the policy that name them.
    """

    NAMES: ClassVar = ("mask", "keep")

    mask: tuple[ListSource, ...] = ()
    keep: tuple[ListSource, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.mask or self.keep)

    def named(self) -> Iterator[tuple[str, ListSource]]:
        """Yield each with the setting that names it, those that mask first."""
        for name in self.NAMES:
            for number, source in enumerate(getattr(self, name)):
                yield f"policy.{name}[{number}]", source

    def changed(self, change: Callable[[str, ListSource], ListSource]) -> ListSources:
        """Return them with each changed, by the setting that names it."""
        made = iter([change(field, source) for field, source in self.named()])
        return ListSources(*(tuple(next(made) for _ in getattr(self, name)) for name in self.NAMES))

    def as_dict(self) -> dict[str, Json]:
        """Return them as settings hold them: what is not used leaves no trace."""
        held = {name: getattr(self, name) for name in self.NAMES}
        return {name: [one.as_dict() for one in some] for name, some in held.items() if some}
