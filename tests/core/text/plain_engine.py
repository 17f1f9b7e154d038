"""The text engine in plain Python, from its rules alone, a character at a time: what the other must equal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dptext_spark.lexicon.characters import tables
from dptext_spark.text.engine import OF_IDENTIFIERS, OF_NAMES, OF_STAYED
from dptext_spark.text.policy import Policy

CLITICS = {"s", "t", "d", "m", "ll", "re", "ve"}
SPACES = {"\t", "\n", "\v", "\f", "\r", "\x1c", "\x1d", "\x1e", "\x1f", "\x85"}
JOINERS = set("\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u2060\u20e3\ufeff")
JOINERS |= set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") | set(
    map(chr, range(0xFE00, 0xFE10))
)
# Symbols that spell, by what Unicode calls them.
SPELLING = re.compile(
    r"(CJK|KANGXI|YI) RADICAL|(MONO|DI|TRI|TETRA|HEXA)GRAM FOR|CJK STROKE|IDEOGRAPHIC DESCRIPTION|CANADIAN SYLLABICS"
    r"|ARABIC LIGATURE|BRAILLE PATTERN|SIGNWRITING|REGIONAL INDICATOR|TURNED GREEK SMALL LETTER"
)
ENCLOSED = ("\U0001f100", "\U0001f1ff")  # letters in squares and circles, and abbreviations
# One letter a class: L letter, M mark, D digit, A apostrophe, H hyphen, X joiner, S space, P passes, O other.
TOKEN = re.compile(r"(?P<word>L(?:X*[LM]|[AH]L)*)|(?P<number>D+)|(?P<unknown>[OM]+)|(?P<gap>[AHXSP])")


def kind(char: str) -> str:
    """The class of a character, from Python's own Unicode database."""
    category = unicodedata.category(char)
    if char in "'\u2019":
        return "A"
    if char in "-\u2010\u2011":
        return "H"
    if char in JOINERS:
        return "X"
    if char in SPACES or category in ("Zs", "Zl", "Zp"):
        return "S"
    if category[0] in "LM":
        return category[0]
    if category == "Nd":
        return "D"
    if category[0] == "P":
        return "P"
    if category[0] == "S":
        made_of = any(unicodedata.category(c)[0] in "LN" for c in unicodedata.normalize("NFKD", char))
        spells = made_of or ENCLOSED[0] <= char <= ENCLOSED[1] or SPELLING.match(unicodedata.name(char, ""))
        return "O" if spells else "P"
    return "O"


def comparable(char: str) -> bool:
    """Whether this Python and the packaged table must agree: not where only the newer Unicode has a character."""
    mine, packaged = (
        tuple(map(int, version.split(".")))
        for version in (unicodedata.unidata_version, tables().unicode_version)
    )
    if mine <= packaged:
        return mine == packaged or unicodedata.category(char) != "Cn"
    old = unicodedata.ucd_3_2_0.category(char)
    return old != "Cn" and old == unicodedata.category(char)


def lower(text: str) -> str:
    """One to one lower case; the dotted capital I becomes i."""
    return "".join("i" if c == "\u0130" else c.lower() if len(c.lower()) == 1 else c for c in text)


def upper(text: str) -> str:
    """One to one upper case; a letter whose upper case is longer, or is that of another letter, stays."""
    return "".join(c.upper() if len(c.upper()) == 1 and lower(c.upper()) == c else c for c in text)


def form(word: str) -> str:
    """What is looked up."""
    return lower(word).replace("\u2019", "'")


def shape(word: str) -> str:
    """How a word is written: lower, capitalised, upper, or mixed."""
    base, plain = form(word), word.replace("\u2019", "'")
    if plain == base:
        return "lower"
    if plain == upper(base[0]) + base[1:]:
        return "capitalised"
    return "upper" if plain == upper(base) else "mixed"


def letters(word: str) -> int:
    """How many of its letters have a capital."""
    return sum(upper(c) != c for c in form(word))


def written(word: str, how: str) -> str:
    """A lexicon word in a shape; mixed case is released in lower case."""
    if how == "capitalised":
        return upper(word[0]) + word[1:]
    return upper(word) if how == "upper" else word


@dataclass
class Piece:
    """What one stretch of the input becomes."""

    source: str
    action: str  # gap, kept, drawn, masked, any word (drawn over the lexicon), digits
    text: str  # what is written; for `any word` the shape
    counter: str = ""  # that it belongs to; empty for gaps
    symbols: bool = False  # that spell, and no word


@dataclass
class Plain:
    """The plain engine: `words` in lexicon order, a draw from id to id, and a policy."""

    words: Sequence[str]
    draw: Callable[[int], int]
    policy: Policy
    number: dict[str, int] = field(init=False)
    stop: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.number = {word: i for i, word in enumerate(self.words)}
        self.stop = set(self.policy.stop_list())

    def stops(self, base: str, after_apostrophe: bool) -> bool:
        """Whether a form is kept as a stop word."""
        listed = base in self.stop or (after_apostrophe and base in CLITICS)
        return self.policy.stop_words == "keep" and listed

    def known(self, base: str, after_apostrophe: bool) -> bool:
        return base in self.number or self.stops(base, after_apostrophe)

    def look_up(self, word: str, after_apostrophe: bool = False) -> Piece:
        """One word, whole: kept as a stop word, drawn, or unknown."""
        base, how = form(word), shape(word) if self.policy.case == "carry" else "lower"
        if self.stops(base, after_apostrophe):
            return Piece(word, "kept", lower(word) if self.policy.case == "lower" else word, "stop_kept")
        if base in self.number:
            return Piece(word, "drawn", written(self.words[self.draw(self.number[base])], how), "drawn")
        return self.unknown(word)

    def unknown(self, word: str) -> Piece:
        """A word that is not looked up any more."""
        how = shape(word) if self.policy.case == "carry" else "lower"
        kept = "kept", lower(word) if self.policy.case == "lower" else word
        became = {"keep": kept, "mask": ("masked", "[OOV]"), "draw": ("any word", how)}
        return Piece(word, *became[self.policy.oov], "oov")

    def digits(self, digits: str) -> Piece:
        became = {"keep": ("kept", digits), "mask": ("masked", "[NUM]"), "random": ("digits", "")}
        return Piece(digits, *became[self.policy.numbers], "numbers")

    def pieces(self, text: str) -> Iterator[Piece]:
        """Cut a text and say what becomes of each stretch."""
        cut = self.by_words if self.policy.tokenizer == "words" else self.by_spaces
        found = list(cut(text))
        # What a single capital is: what the last released word of two letters is, else the first near the beginning.
        told, waiting, at = "", [], 0
        for piece in found:
            released = piece.action in ("drawn", "any word", "kept") and not piece.symbols
            if released and letters(piece.source) > 1:
                if not told and shape(piece.source) == "upper" and at < 1024:
                    for single in waiting:
                        self.raise_it(single)
                told = shape(piece.source)
            elif released and piece.action != "kept" and shape(piece.source) == "capitalised":
                if told == "upper":
                    self.raise_it(piece)
                elif not told:
                    waiting.append(piece)
            at += len(piece.source.encode())
        yield from found

    def raise_it(self, piece: Piece) -> None:
        """Write a piece in upper case, where case is carried over."""
        if self.policy.case == "carry":
            piece.text = "upper" if piece.action == "any word" else upper(piece.text)

    def by_words(self, text: str) -> Iterator[Piece]:
        classes = "".join(map(kind, text))
        for match in TOKEN.finditer(classes):
            part = text[match.start() : match.end()]
            quoted = match.start() > 0 and classes[match.start() - 1] == "A"
            if match.lastgroup == "gap":
                yield Piece(part, "gap", part)
            elif match.lastgroup == "number":
                yield self.digits(part)
            elif match.lastgroup == "unknown":
                piece = self.look_up(part)
                how = "lower" if piece.action == "any word" else piece.text
                yield Piece(part, piece.action, how, "oov", symbols=True)
            elif self.known(form(part), quoted):
                yield self.look_up(part, quoted)
            else:
                for joint in re.finditer("[AH]|[^AH]+", match.group()):
                    a, b = match.start() + joint.start(), match.start() + joint.end()
                    if joint.group() in "AH":
                        yield Piece(text[a:b], "gap", text[a:b])
                    else:
                        yield self.look_up(text[a:b], a > 0 and classes[a - 1] == "A")

    def by_spaces(self, text: str) -> Iterator[Piece]:
        classes = "".join(map(kind, text))
        for match in re.finditer("S|[^S]+", classes):
            part, found = text[match.start() : match.end()], set(match.group())
            base = form(part)
            if found == {"S"}:
                yield Piece(part, "gap", part)
            elif self.policy.stop_words == "keep" and base[0] == "'" and base[1:] in CLITICS:
                yield Piece(part, "kept", lower(part) if self.policy.case == "lower" else part, "stop_kept")
            elif self.known(base, False):
                yield self.look_up(part)
            elif found == {"D"}:
                yield self.digits(part)
            elif found & set("LMDO"):
                yield self.look_up(part)
            else:
                yield Piece(part, "gap", part)

    def expected(self, text: str) -> tuple[re.Pattern[str], dict[str, int], list[Piece]]:
        """What the output must match, the counters that follow from the input, and the pieces."""
        pieces = list(self.pieces(text))
        pattern, owed, begun = "", False, False
        for number, piece in enumerate(pieces):
            listed = piece.action in ("drawn", "masked", "any word", "digits")
            lowered = piece.action == "kept" and self.policy.case == "lower" and piece.counter != "numbers"
            if self.policy.gaps == "normalise" and not listed and not lowered:
                for char in piece.text:
                    if kind(char) == "S":
                        owed = True
                    else:
                        pattern += (" " if owed and begun else "") + re.escape(char)
                        owed, begun = False, True
                continue
            pattern += " " if owed and begun else ""
            owed, begun = False, True
            if piece.action == "any word":
                anything = "|".join(re.escape(written(w, piece.text)) for w in self.words)
                pattern += f"(?:{anything})"
            elif piece.action == "digits":
                zeros = [chr(ord(c) - unicodedata.digit(c)) for c in piece.source]
                pattern += f"(?P<n{number}>{''.join(f'[{z}-{chr(ord(z) + 9)}]' for z in zeros)})"
            else:
                pattern += re.escape(piece.text)
        names = ("drawn", "stop_kept", "oov", "numbers")
        counts = {name: sum(p.counter == name for p in pieces) for name in names}
        return re.compile(pattern, re.DOTALL), counts | {"words": sum(counts.values())}, pieces

    def check(self, text: str, output: str, counters: dict[str, int]) -> None:
        """Assert that the output and the counters of one row are what the rules say."""
        pattern, counts, pieces = self.expected(text)
        match = pattern.fullmatch(output)
        assert match, (text, output, pattern.pattern)
        drawn = [form(p.source) for p in pieces if p.action == "drawn"]
        same = sum(self.draw(self.number[base]) == self.number[base] for base in drawn)
        changed = len(drawn) - same + sum(p.action in ("masked", "any word") for p in pieces)
        changed += sum(p.action == "digits" and match[f"n{i}"] != p.source for i, p in enumerate(pieces))
        wanted = counts | dict.fromkeys((*OF_IDENTIFIERS, *OF_NAMES, *OF_STAYED), 0)
        wanted |= {"invalid": 0, "changed": changed, "same": same, "distinct": len(set(drawn))}
        assert counters == wanted, (text, output)
