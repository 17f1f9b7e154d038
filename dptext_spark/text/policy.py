"""Which words are drawn, kept and masked: the user's choice, in one frozen value."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal, get_args

from pydantic import Field

from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.characters import look_up_form
from dptext_spark.runtime.display import settings_line
from dptext_spark.runtime.validation import Json, problems_of, valid
from dptext_spark.text.identifiers.imported import check_paths
from dptext_spark.text.identifiers.types import Identifiers
from dptext_spark.text.names.search import NameSearch

Oov = Literal["mask", "draw", "keep"]
Numbers = Literal["random", "mask", "keep"]
Case = Literal["carry", "lower"]
OOV, NUMBERS, CASES = (get_args(names) for names in (Oov, Numbers, Case))
StopWords = Annotated[
    tuple[Annotated[str, Field(pattern=r"[^\s\x1c-\x1f]")], ...] | None,
    valid(
        "null (the packaged list), a list of words in valid Unicode, none of them empty, or in settings the path of a text file"
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
    """What happens to each kind of token.

    Attributes:
        stop_words: `keep` releases them as they are (as in the CusText paper); `draw` treats them like any word.
        stop_word_list: words in place of the packaged English list; None for the packaged one.
        oov: words that the lexicon does not hold: `mask` with `[OOV]`; `draw` a uniform word of the lexicon; `keep` in
            clear (said loudly in the disclosure).
        numbers: `random` digits of the same shape; `mask` with `[NUM]`; `keep` in clear.
        case: `carry` lower, Capitalised and UPPER over to the output (mixed case becomes lower, and U+2019 in a drawn
            word an ASCII apostrophe), a single capital as UPPER where the longer word before it is, or at a text's beginning the
            one after it; `lower` releases all words in lower case.
        gaps: `keep` what stands between words byte for byte; `normalise` runs of spaces and line breaks to one space,
            none at the ends, and keep the rest.
        tokenizer: `words`, or `whitespace` for sets that are tokenized already, as the papers use them.
        identifiers: e-mail addresses, telephone and card numbers and the like, which are replaced whole by rules and without a
            guarantee; given as an :class:`Identifiers`, a mapping of types to actions, or `none`.
        names: names of persons and places that public lists and rules or a classifier find, also without a guarantee; given as a
            :class:`NameSearch`, a mapping such as `{lists: true}`, or `none`.
        providers: import paths `package.module:Class` of code of your own that finds identifiers, on the driver and on every
            node; what it finds is masked by its type, also without a guarantee.

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
        """Return what is not as by default; of a list of words, its length."""
        return settings_line(self)

    def as_dict(self) -> dict[str, Json]:
        """Return it JSON-able; a search for names and providers that are not used leave no trace."""
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
