"""Which identifiers are replaced whole, and by what: the user's choice, by type, in one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from dptext_spark.errors import SettingsError, did_you_mean, unknown

MASK, FAKE, KEEP = ACTIONS = ("mask", "fake", "keep")
NONE = "none"
FIELD = "policy.identifiers"
Action = Literal["mask", "fake", "keep"]


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
        date: days in figures or with an English month; `fake` is not to be had.
        digits: seven digits or more in a row, or nine and more in three groups with hyphens.
        username: names after an @.
    """

    email: Action = "mask"
    url: Action = "mask"
    phone: Action = "mask"
    iban: Action = "mask"
    card: Action = "mask"
    ip: Action = "mask"
    date: Action = "keep"
    digits: Action = "mask"
    username: Action = "mask"

    def __post_init__(self) -> None:
        """Check every action.

        Raises:
            SettingsError: values are not valid; a line for each.
        """
        found = []
        for name, action in asdict(self).items():
            valid = (MASK, KEEP) if name == "date" else ACTIONS
            if action not in valid:
                found.append(str(unknown(f"{FIELD}.{name}", action, valid)))
        if found:
            raise SettingsError("\n".join(found))

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
                f"{FIELD}: {_shown(value)} given; valid: none, or a mapping of types ({', '.join(TYPES)}) to "
                f"{', '.join(ACTIONS)}."
            )
        lines = [
            f"{FIELD}.{name}: no such type of identifier; valid: {', '.join(TYPES)}.{did_you_mean(name, TYPES)}"
            for name in value
            if name not in TYPES
        ]
        try:
            made = cls(**{name: action for name, action in value.items() if name in TYPES})
        except SettingsError as error:
            lines.append(str(error))
        if lines:
            raise SettingsError("\n".join(lines))
        return made

    def __bool__(self) -> bool:
        """Whether any type is looked for."""
        return any(action != KEEP for action in asdict(self).values())

    def wanted(self, *actions: str) -> tuple[str, ...]:
        """Return the types with one of some actions; without arguments those that are looked for."""
        return tuple(name for name, action in asdict(self).items() if action in (actions or (MASK, FAKE)))


TYPES = tuple(field.name for field in fields(Identifiers))
NO_IDENTIFIERS = Identifiers(**dict.fromkeys(TYPES, KEEP))  # type: ignore[arg-type]  # each field


def placeholder(name: str) -> str:
    """Return what stands for a masked identifier of a type."""
    return f"[{name.upper()}]"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
