"""A grammar of texts, expanded for all rows of a table at once, in whole arrays.

A rule has a name and some wordings. In a wording, `{name}` stands for one of the wordings of that rule, drawn anew wherever it
stands, and `[this|that|]` for one of those between the bars, perhaps nothing. `^` begins a sentence: the next word has a capital.
`a` becomes `an` before a vowel. Words can have other forms, such as `I am` for `I'm`, which a text takes as often as its writer
does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import F64, I64, Bools
from dptext_spark.errors import DataError

_SYMBOLS = re.compile(r"\{(\w+)\}|([\[|\]^])|([^\s{\[|\]^]+\s*|\s+)")
_WORD = re.compile(r"(\W*)(.*?)(\W*)", re.DOTALL)
# "an hour" needs no rule here: no word of the grammar begins with a silent h.
_VOWEL = "^[aeiouAEIOU]"
_NO_VOWEL = "^(?:USB|[eE]u|[uU](?:si|se|ni[^m]|kul|te))"  # written as one, and not said so
_ARTICLE = "a "
NOTHING, START = 0, 1  # pieces without a text: one that is left out, and the beginning of a sentence
NOT_GIVEN = -1


class UniformNumbers:
    """Numbers between 0 and 1: the same for a seed on every platform, with every Python and every NumPy.

    Args:
        seed: at least 0.
    """

    def __init__(self, seed: int) -> None:
        """Begin with the first number of a seed."""
        # NumPy promises that the bits of a generator stay the same, not what its distributions make of them.
        self._bits = np.random.PCG64(seed)

    def numbers(self, *shape: int) -> F64:
        """Return float64[shape], each at least 0 and below 1."""
        bits = np.asarray(self._bits.random_raw(int(np.prod(shape))), np.uint64)
        return np.asarray((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)

    def picks(self, rows: int, among: int) -> I64:
        """Return int64[rows], each of them 0 or more and below `among`."""
        return (self.numbers(rows) * among).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Forms:
    """Other forms of the words of a grammar.

    Attributes:
        first: int64[pieces], where the forms of a piece begin among the pieces.
        count: int64[pieces], how many forms it has.
    """

    first: I64
    count: I64


@dataclass
class _Reading:
    """What is read of a grammar: a piece of text is its number, a rule the negative of its number, less 1."""

    pieces: dict[str, int] = field(default_factory=lambda: {"": NOTHING, "^": START})
    numbers: dict[str, int] = field(default_factory=dict)
    wordings: list[list[list[int]]] = field(default_factory=list)

    def rule(self, name: str) -> int:
        """Return the symbol of a rule."""
        number = self.numbers.setdefault(name, len(self.numbers))
        if number == len(self.wordings):
            self.wordings.append([])
        return -number - 1

    def unnamed(self, wordings: list[list[int]]) -> int:
        """Return the symbol of a rule that stands in one place only."""
        symbol = self.rule(f"[{len(self.numbers)}")
        self.wordings[-symbol - 1] = wordings
        return symbol

    def wording(self, text: str) -> list[int]:
        """Return the symbols of a wording."""
        opened: list[list[list[int]]] = [[[]]]
        for name, mark, piece in _SYMBOLS.findall(text):
            if mark == "[":
                opened.append([[]])
            elif mark == "|":
                opened[-1].append([])
            elif mark == "]":
                closed = opened.pop()
                opened[-1][-1].append(self.unnamed(closed))
            else:
                symbol = self.rule(name) if name else self.pieces.setdefault(mark or piece, len(self.pieces))
                opened[-1][-1].append(symbol)
        return opened[0][0]


class Grammar:
    """Rules that are ready to be expanded.

    Args:
        rules: the wordings of each rule.
        bound: rules without wordings, each of which is one text throughout a row: :meth:`texts` is given them.
        ranked: rules whose first wordings are drawn more often than their last, as names are.
        apart: rules whose wordings a plan can hold one by one (:meth:`lines`).

    Raises:
        DataError: a rule that is named has no wordings.
    """

    def __init__(
        self, rules: Mapping[str, Iterable[str]], bound: Sequence[str] = (), ranked: Iterable[str] = (),
        apart: Iterable[str] = (),
    ) -> None:  # fmt: skip
        """Read the rules."""
        reading = _Reading()
        for name in (*bound, *rules):
            reading.rule(name)
        for name, wordings in rules.items():
            reading.wordings[-reading.rule(name) - 1] = [reading.wording(one) for one in wordings]
        lines = {
            name: [reading.unnamed([one]) for one in reading.wordings[reading.numbers[name]]]
            for name in apart
        }
        self._lines = {name: np.array(symbols, np.int64) for name, symbols in lines.items()}
        empty = [name for name, number in reading.numbers.items() if not reading.wordings[number]]
        missing = sorted(set(empty) - set(bound))
        if missing:
            raise DataError(f"rules: {missing[0]!r} is named; valid: the name of a rule that has wordings.")
        self.bound = tuple(bound)
        self._numbers = reading.numbers
        self._counts = np.array([len(one) for one in reading.wordings], np.int64)
        self._first = np.cumsum(self._counts) - self._counts
        all_wordings = [one for rule in reading.wordings for one in rule]
        self._lengths = np.array([len(one) for one in all_wordings], np.int64)
        self._begins = np.cumsum(self._lengths) - self._lengths
        self._symbols = np.array([symbol for one in all_wordings for symbol in one], np.int64)
        self._ranked = np.zeros(len(self._counts), np.bool_)
        self._ranked[[reading.numbers[name] for name in ranked]] = True
        self._pieces = ["", "", *list(reading.pieces)[2:]]
        self._piece_of = reading.pieces

    def rule(self, name: str) -> int:
        """Return the symbol of a rule, for a plan."""
        return -self._numbers[name] - 1

    def lines(self, name: str) -> I64:
        """Return the symbols of the wordings of a rule that is named by `apart`."""
        return self._lines[name]

    def piece(self, text: str) -> int:
        """Return the symbol of a text that stands in a plan as it is."""
        number = self._piece_of.setdefault(text, len(self._pieces))
        if number == len(self._pieces):
            self._pieces.append(text)
        return number

    def forms(self, of: Mapping[str, Sequence[str]]) -> Forms:
        """Return other forms of the pieces.

        Args:
            of: a word in lower case: its forms. A word with a capital, or in capitals, has forms with them.
        """
        first, count = [], []
        for piece in tuple(self._pieces):
            before, word, behind = _matched(piece)
            forms = [before + _cased(form, word) + behind for form in of.get(word.lower(), ())]
            first.append(len(self._pieces))
            count.append(len(forms))
            self._pieces += forms
        return Forms(np.array(first, np.int64), np.array(count, np.int64))

    def texts(
        self,
        plan: I64,
        uniform: UniformNumbers,
        bound: Mapping[str, pa.StringArray] | None = None,
        habits: Sequence[tuple[Forms, F64]] = (),
    ) -> pa.StringArray:
        """Write a text for each row.

        Args:
            plan: int64[rows, columns], the symbols that a text consists of.
            uniform: what draws.
            bound: the texts of bound rules, string[rows] each; all that the plan comes to.
            habits: forms of words, and float64[rows]: how often a row takes them where it can.

        Returns:
            string[rows].

        Raises:
            DataError: a bound rule comes up whose texts are not given.
        """
        rows = len(plan)
        if not rows:
            return pa.array([], pa.string())
        given = bound or {}
        names = [name for name in self.bound if name in given]
        strings = pa.concat_arrays([pa.array(self._pieces, pa.string()), *(given[name] for name in names)])
        begins = np.full(len(self.bound), NOT_GIVEN, np.int64)
        begins[[self.bound.index(name) for name in names]] = len(self._pieces) + rows * np.arange(len(names))
        said = plan != NOTHING
        symbols, row = plan[said], np.nonzero(said)[0]
        while (symbols < 0).any():
            symbols, row = self._expanded(symbols, row, begins, uniform)
        for forms, often in habits:
            symbols = _with_forms(symbols, row, forms, often, uniform)
        return _joined(symbols, row, strings, rows, self._piece_of.get(_ARTICLE, NOT_GIVEN))

    def _expanded(self, symbols: I64, row: I64, begins: I64, uniform: UniformNumbers) -> tuple[I64, I64]:
        """Replace each rule by one of its wordings, and a bound one by its text."""
        at = np.flatnonzero(symbols < 0)
        rule = -symbols[at] - 1
        is_bound = rule < len(begins)
        missing = rule[is_bound][begins[rule[is_bound]] == NOT_GIVEN]
        if len(missing):
            raise DataError(
                f"bound: no text for {self.bound[missing[0]]!r} is given; valid: one for each row."
            )
        symbols = symbols.copy()
        here = at[is_bound]
        symbols[here] = begins[rule[is_bound]] + row[here]
        at, rule = at[~is_bound], rule[~is_bound]
        drawn = uniform.numbers(len(at))
        drawn *= np.where(self._ranked[rule], drawn, 1.0)
        wording = self._first[rule] + (drawn * self._counts[rule]).astype(np.int64)
        sizes = np.ones(len(symbols), np.int64)
        sizes[at] = self._lengths[wording]
        source = np.arange(len(symbols), dtype=np.int64)
        source[at] = len(symbols) + self._begins[wording]
        ends = np.cumsum(sizes)
        places = np.repeat(source - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)
        return np.concatenate((symbols, self._symbols))[places], np.repeat(row, sizes)


def _matched(piece: str) -> tuple[str, str, str]:
    """Return what stands before the word of a piece, the word, and what stands behind it."""
    found = _WORD.fullmatch(piece)
    assert found is not None  # it matches everything
    return found[1], found[2], found[3]


def _cased(form: str, word: str) -> str:
    """Return a form of a word with the word's capitals."""
    if len(word) > 1 and word.isupper():
        return form.upper()
    return form[:1].upper() + form[1:] if word[:1].isupper() else form


def _with_forms(symbols: I64, row: I64, forms: Forms, often: F64, uniform: UniformNumbers) -> I64:
    """Give words the forms that their writers have."""
    known = symbols < len(forms.count)
    at = np.flatnonzero(known)
    at = at[forms.count[symbols[at]] > 0]
    takes, which = uniform.numbers(len(at)) < often[row[at]], uniform.numbers(len(at))
    at, which = at[takes], which[takes]
    changed = symbols.copy()
    changed[at] = forms.first[symbols[at]] + (which * forms.count[symbols[at]]).astype(np.int64)
    return changed


def _joined(symbols: I64, row: I64, strings: pa.StringArray, rows: int, article: int) -> pa.StringArray:
    """Join pieces to texts, with capitals and articles."""
    begins = np.zeros(len(symbols), np.bool_)
    begins[1:] = (symbols[:-1] == START) & (row[1:] == row[:-1])
    kept = symbols != START
    symbols, row, begins = symbols[kept], row[kept], begins[kept]
    used, symbols = np.unique(symbols, return_inverse=True)
    articles = used[:0] if article < 0 else np.flatnonzero(used == article)
    texts = strings.take(pa.array(used))
    vowel = _mask(texts, _VOWEL) & ~_mask(texts, _NO_VOWEL)
    if len(articles):
        is_article = symbols == articles[0]
        before_vowel = np.append(is_article[:-1] & vowel[symbols[1:]], False)
        symbols = np.where(before_vowel, len(used), symbols)
    known = [*texts.to_pylist(), "an "]
    large, places = np.unique(symbols[begins], return_inverse=True)
    symbols[begins] = len(known) + places
    known += [known[one][:1].upper() + known[one][1:] for one in large.tolist()]
    pieces = pa.array(known, pa.string()).take(pa.array(symbols))
    bounds = np.searchsorted(row, np.arange(rows + 1)).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(bounds), pieces), "")


def _mask(texts: pa.StringArray, pattern: str) -> Bools:
    found = pc.match_substring_regex(texts, pattern)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
