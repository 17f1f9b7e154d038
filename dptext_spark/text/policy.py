"""The user's choice, in one frozen value: the words to draw, keep and mask, and the treatment of each type of identifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal, get_args

from pydantic import Field

from dptext_spark.errors import SettingsError, did_you_mean, either
from dptext_spark.lexicon.characters import look_up_form
from dptext_spark.runtime.display import settings_line
from dptext_spark.runtime.validation import Json, problems_of, shown, valid
from dptext_spark.text.identifiers.provider import check_paths
from dptext_spark.text.names.search import NameSearch

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
    """The treatment of each type of identifier: found by rules, without any guarantee.

    `mask` writes a placeholder such as `[EMAIL]`, and `fake` keyed letters and digits of the same shape. With `keep` the type is
    not looked for, so that its words and numbers are words and numbers like any.

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
        """Check every action; else a :class:`SettingsError`."""
        if isinstance(self.languages, list):
            object.__setattr__(self, IN_LANGUAGES, tuple(self.languages))
        problems = [*problems_of(self, FIELD)]
        if not problems and self.languages and self.date == KEEP:
            problems.append(
                f"{FIELD}.{IN_LANGUAGES}: {shown(list(self.languages))} is not valid without a search for dates. Set "
                f"{FIELD}.date: mask, or remove it."
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
                f"{FIELD}: {shown(value)} is not valid. Choose none, or a mapping of types ({', '.join(TYPES)}) to "
                f"{either(ACTIONS)}."
            )
        names = (*TYPES, IN_LANGUAGES)
        lines = [
            f"{FIELD}.{name}: no such type of identifier. Choose {', '.join(TYPES)}, or {IN_LANGUAGES} for written "
            f"dates.{did_you_mean(name, names)}"
            for name in value
            if name not in names
        ]
        try:
            identifiers = cls(**{name: action for name, action in value.items() if name in names})
        except SettingsError as error:
            lines.append(str(error))
        if lines:
            raise SettingsError("\n".join(lines))
        return identifiers

    def __bool__(self) -> bool:
        """Check whether any type is looked for."""
        return any(getattr(self, name) != KEEP for name in TYPES)

    def as_dict(self) -> dict[str, Json]:
        """Return the choices, JSON-able, without unnamed languages."""
        values: dict[str, Json] = {name: getattr(self, name) for name in TYPES}
        return {**values, IN_LANGUAGES: list(self.languages)} if self.languages else values

    def wanted(self, *actions: str) -> tuple[str, ...]:
        """Return the types with one of some actions; without arguments those that are looked for."""
        return tuple(name for name in TYPES if getattr(self, name) in (actions or (MASK, FAKE)))


TYPES = tuple(field.name for field in fields(Identifiers) if field.name != IN_LANGUAGES)
NO_IDENTIFIERS = Identifiers(**dict.fromkeys(TYPES, KEEP))  # type: ignore[arg-type]  # each field


def placeholder(name: str) -> str:
    """Return the placeholder of a masked identifier of a type."""
    return f"[{name.upper()}]"


Oov = Literal["mask", "draw", "keep"]
Numbers = Literal["random", "mask", "keep"]
Case = Literal["carry", "lower"]
OOV, NUMBERS, CASES = (get_args(names) for names in (Oov, Numbers, Case))
StopWords = Annotated[
    tuple[Annotated[str, Field(pattern=r"[^\s\x1c-\x1f]")], ...] | None,
    valid(
        "null (the packaged list), a list of words in valid Unicode, or in settings the path of a text file"
    ),
]
OOV_MASK = "[OOV]"
NUMBER_MASK = "[NUM]"
BEYOND_MASK = "[BGT]"  # in the place of words that are beyond those a budget draws


@cache
def packaged_stop_words() -> tuple[str, ...]:
    """Return the packaged English list, in look-up form (lower case, ASCII apostrophes)."""
    text = files("dptext_spark.text").joinpath("stop_words_en.txt").read_text(encoding="utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))


@dataclass(frozen=True)
class Policy:
    """The treatment of each kind of token.

    Attributes:
        stop_words: `keep` releases them as they are (as in the CusText paper); `draw` treats them like any word.
        stop_word_list: words in place of the packaged English list; None for the packaged one.
        oov: words that the lexicon does not hold: `mask` with `[OOV]`; `draw` a uniform word of the lexicon; `keep` in
            clear (said loudly in the disclosure).
        numbers: `random` digits of the same shape; `mask` with `[NUM]`; `keep` in clear.
        case: `carry` lower, Capitalised and UPPER over to the output (mixed case becomes lower, and U+2019 in a drawn
            word an ASCII apostrophe), a single capital as UPPER where the longer word before it is, or at a text's beginning the
            one after it; `lower` releases all words in lower case.
        gaps: `keep` the text between words byte for byte; `normalise` runs of spaces and line breaks to one space,
            none at the ends, and keep the rest.
        tokenizer: `words`, or `whitespace` for sets that are tokenized already, as the papers use them.
        identifiers: e-mail addresses, telephone and card numbers and the like, which are replaced whole by rules and without a
            guarantee; given as an :class:`Identifiers`, a mapping of types to actions, or `none`.
        names: names of persons and places that public lists and rules or a classifier find, also without a guarantee; given as a
            :class:`NameSearch`, a mapping such as `{lists: true}`, or `none`.
        providers: import paths `package.module:Class` of code of your own that finds identifiers, on the driver and on every
            node. Its finds are masked by their type, also without a guarantee.

    Examples:
        >>> policy = dp.Policy(stop_words="draw", numbers="mask", identifiers={"email": "fake"})
        >>> dp.compile(dp.CusText(), lexicon, policy).policy.numbers
        'mask'
    """

    stop_words: Literal["keep", "draw"] = "keep"
    stop_word_list: StopWords = None
    oov: Oov = "mask"
    numbers: Numbers = "random"
    case: Case = "carry"
    gaps: Literal["keep", "normalise"] = "keep"
    tokenizer: Literal["words", "whitespace"] = "words"
    identifiers: Identifiers = field(default_factory=Identifiers)
    names: NameSearch = field(default_factory=NameSearch)
    providers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every choice.

        Raises:
            SettingsError: values are not valid; a line for each.
        """
        if isinstance(self.stop_word_list, list):
            object.__setattr__(self, "stop_word_list", tuple(self.stop_word_list))
        problems = []
        for name, kind in (("identifiers", Identifiers), ("names", NameSearch)):
            try:
                object.__setattr__(self, name, kind.of(getattr(self, name)))
            except SettingsError as error:
                problems.append(str(error))
        try:
            object.__setattr__(self, "providers", check_paths(self.providers))
        except SettingsError as error:
            problems.append(str(error))
        if problems := [*problems_of(self, "policy", but=("identifiers", "names", "providers")), *problems]:
            raise SettingsError("\n".join(problems))

    def __repr__(self) -> str:
        """Return the choices that differ from the default; for a list of words, its length."""
        return settings_line(self)

    def as_dict(self) -> dict[str, Json]:
        """Return the policy, JSON-able, without an unused search for names or unused providers."""
        values: dict[str, Json] = asdict(self)
        values["identifiers"] = self.identifiers.as_dict()
        values["names"] = self.names.as_dict()
        if self.names == NameSearch():
            del values["names"]
        values["providers"] = list(self.providers)
        if not self.providers:
            del values["providers"]
        return values

    def kept_words(self) -> tuple[str, ...]:
        """Return the stop words that are kept, in look-up form; none where they are drawn."""
        return self.stop_list() if self.stop_words == "keep" else ()

    def stop_list(self) -> tuple[str, ...]:
        """Return the stop words in look-up form."""
        if self.stop_word_list is None:
            return packaged_stop_words()
        return tuple(dict.fromkeys(look_up_form(word.strip()) for word in self.stop_word_list))
