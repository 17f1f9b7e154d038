"""Which identifiers are replaced whole, and by what: the user's choice, by type, in one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, get_args

from dptext_spark.errors import SettingsError, did_you_mean
from dptext_spark.runtime.display import settings_line
from dptext_spark.runtime.validation import Json, problems_of, shown

NONE = "none"
FIELD = "policy.identifiers"
Action = Literal["mask", "fake", "keep"]
MASK, FAKE, KEEP = ACTIONS = ("mask", "fake", "keep")
IN_LANGUAGES = "languages"  # the one setting that is no type
# Whose months are known by name, by their codes of ISO 639-1; English ones are always looked for.
Language = Literal[
    "ar", "bg", "cs", "da", "de", "el", "es", "fi", "fr", "hu", "it", "nb", "nl", "pl", "pt", "ro", "ru", "sv", "tr", "uk",
]  # fmt: skip
LANGUAGES: tuple[Language, ...] = get_args(Language)


@dataclass(frozen=True)
class Identifiers:
    """What happens to each type of identifier: found by rules, without any guarantee.

    `mask` writes a placeholder such as `[EMAIL]`; `fake` keyed letters and digits of the same shape; `keep` does not look
    for the type, so that its words and numbers are words and numbers like any.

    Attributes:
        email: e-mail addresses.
        url: addresses with a scheme, with www., or of a common top-level domain.
        phone: telephone numbers, international or grouped.
        iban: account numbers whose length and check digits are right.
        card: payment cards, 13 to 19 digits with a right check digit (Luhn).
        ip: IPv4 and IPv6 addresses.
        date: days in figures, or with a month in English or in one of `languages`; `fake` is not to be had.
        digits: seven digits or more in a row, or nine and more in three groups with hyphens.
        username: names after an @.
        languages: whose names of months dates may have, beside English ones: codes such as `de` and `fr`, in any order; only
            where dates are looked for.
    """

    email: Action = "mask"
    url: Action = "mask"
    phone: Action = "mask"
    iban: Action = "mask"
    card: Action = "mask"
    ip: Action = "mask"
    date: Literal["mask", "keep"] = "keep"
    digits: Action = "mask"
    username: Action = "mask"
    languages: tuple[Language, ...] = ()

    def __post_init__(self) -> None:
        """Check every action.

        Raises:
            SettingsError: values are not valid; a line for each.
        """
        if isinstance(self.languages, list):
            object.__setattr__(self, IN_LANGUAGES, tuple(self.languages))
        problems = [*problems_of(self, FIELD)]
        if not problems and self.languages and self.date == KEEP:
            problems.append(
                f"{FIELD}.{IN_LANGUAGES}: {shown(list(self.languages))} given, but dates are not looked for; valid: with "
                f"{FIELD}.date: mask."
            )
        if problems:
            raise SettingsError("\n".join(problems))
        object.__setattr__(self, IN_LANGUAGES, tuple(sorted(set(self.languages))))

    def __repr__(self) -> str:
        """Return the types whose action is not that by default."""
        return settings_line(self)

    @classmethod
    def of(cls, value: object) -> Identifiers:
        """Take `none`, or a mapping of types to actions; types that it does not name have their defaults.

        Raises:
            SettingsError: neither, an unknown type or an unknown action.
        """
        if isinstance(value, Identifiers):
            return value
        if value == NONE:
            return NO_IDENTIFIERS
        if not isinstance(value, Mapping):
            raise SettingsError(
                f"{FIELD}: {shown(value)} given; valid: none, or a mapping of types ({', '.join(TYPES)}) to "
                f"{', '.join(ACTIONS)}."
            )
        names = (*TYPES, IN_LANGUAGES)
        lines = [
            f"{FIELD}.{name}: no such type of identifier; valid: {', '.join(TYPES)}; or {IN_LANGUAGES}, of written dates."
            f"{did_you_mean(name, names)}"
            for name in value
            if name not in names
        ]
        try:
            made = cls(**{name: given for name, given in value.items() if name in names})
        except SettingsError as error:
            lines.append(str(error))
        if lines:
            raise SettingsError("\n".join(lines))
        return made

    def __bool__(self) -> bool:
        """Whether any type is looked for."""
        return any(getattr(self, name) != KEEP for name in TYPES)

    def as_dict(self) -> dict[str, Json]:
        """Return it JSON-able; languages that are not named leave no trace."""
        values: dict[str, Json] = {name: getattr(self, name) for name in TYPES}
        return {**values, IN_LANGUAGES: list(self.languages)} if self.languages else values

    def wanted(self, *actions: str) -> tuple[str, ...]:
        """Return the types with one of some actions; without arguments those that are looked for."""
        return tuple(name for name in TYPES if getattr(self, name) in (actions or (MASK, FAKE)))


TYPES = tuple(field.name for field in fields(Identifiers) if field.name != IN_LANGUAGES)
NO_IDENTIFIERS = Identifiers(**dict.fromkeys(TYPES, KEEP))  # type: ignore[arg-type]  # each field


def placeholder(name: str) -> str:
    """Return what stands for a masked identifier of a type."""
    return f"[{name.upper()}]"
