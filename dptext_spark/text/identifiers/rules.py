r"""Rules of identifiers: each has one regular expression over skeletons, evaluated by RE2 in Arrow.

RE2 takes time in proportion to a window's length, whatever the text there. A pattern begins where its window begins. Its group
`x` is the identifier; the rest of the pattern must not continue it. In a skeleton `\x01` is a letter that is not ASCII, and
`\x03` is a letter of a script without spaces. `\n` is any line break; letters count in either case.

Dates with the name of a month in other languages have an expression of their own (:func:`written_dates`). Its skeletons
(:func:`month_shapes`) have lower-case letters without accents. Each foreign letter of a name is a byte from `\x80` on. The
names are those of Unicode's CLDR (cldr/NOTICE; `make months` makes them anew).

Check digits of cards (Luhn, ISO/IEC 7812-1) and of international account numbers (ISO 13616, ISO 7064 mod 97-10).
"""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import I64, U8
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.identifiers.skeletons import (
    ACCOUNT,
    ADDRESS,
    COLONS,
    DAY,
    HANDLE,
    HOST,
    NUMBER,
    SCHEME,
    shapes,
)

# Length of an account number by country, as the registry of ISO 13616 has it.
LENGTHS = {
    15: "NO",
    16: "BE",
    18: "DK FI FO GL NL SD FK",
    19: "MK SI",
    20: "AT BA EE KZ LT LU XK MN",
    21: "CH CR HR LI LV",
    22: "BG BH DE GB GE IE ME RS",
    23: "AE GI IL IQ TL OM SO",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "PT ST LY",
    26: "IS TR",
    27: "BI DJ FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HU LB NI PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU YE",
    31: "MT SC",
    32: "LC",
    33: "RU",
}


@cache
def lengths() -> U8:
    """Return uint8[26 * 26], the length of an account number by the two letters of its country; 0: no accounts."""
    table = np.zeros(26 * 26, np.uint8)
    for length, countries in LENGTHS.items():
        for country in countries.split():
            table[(ord(country[0]) - 65) * 26 + ord(country[1]) - 65] = length
    return table


@compiled
def luhn(text: Any, start: Int, end: Int) -> Int:
    """Compute the Luhn sum of text[start:end] (uint8), modulo 10: every second digit from the last but one is doubled."""
    total, double = np.int64(0), False
    for i in range(end - 1, start - 1, -1):
        if 48 <= text[i] <= 57:
            digit = np.int64(text[i]) - 48
            doubled = 2 * digit - 9 if digit > 4 else 2 * digit
            total += doubled if double else digit
            double = not double
    return total % 10


@compiled
def account_end(text: Any, start: Int, end: Int, known: Any) -> Int:
    """Find the end of the account number at text[start:end] (uint8) by its country; -1 if there is none."""
    if end - start < 15:
        return np.int64(-1)
    country = ((text[start] | 32) - 97) * 26 + (text[start + 1] | 32) - 97
    length = np.int64(known[country])
    i, n = start, 0
    while i < end and n < length:
        n += 48 <= text[i] <= 57 or 97 <= (text[i] | 32) <= 122
        i += 1
    if length == 0 or n < length:
        return np.int64(-1)
    return i


@compiled
def account_rest(text: Any, start: Int, end: Int) -> Int:
    """Compute the number that text[start:end] (uint8, an account number) represents, modulo 97; 1 if its digits are right."""
    rest = np.int64(0)
    for turn in range(2):  # the part behind country and check digits comes first
        place = 0
        for i in range(start, end):
            c = np.int64(text[i])
            digit, letter = 48 <= c <= 57, 97 <= (c | 32) <= 122
            if digit or letter:
                place += 1
                if (place > 4) == (turn == 0):
                    rest = (rest * 10 + c - 48) % 97 if digit else (rest * 100 + (c | 32) - 87) % 97
    return rest


# What is done with a match beyond its pattern; `WRITTEN` reads the skeletons of :func:`month_shapes`.
PLAIN, REACHES, CARD, IBAN, PHONE, FIGURES, IPV6, WRITTEN = range(8)
LEAST_PHONE, MOST_PHONE = 7, 15  # digits; ITU-T E.164 allows 15

_W = r"a-z0-9\x01"  # letters and digits that a word goes on with
_L = r"a-z\x01\x03"  # letters of a name
_N = rf"{_L}0-9"  # and digits
_LABEL = rf"[{_N}_](?:[{_N}_-]*[{_N}_])?"
_LAST = rf"(?:[{_L}][{_N}-]*[{_N}]|[0-9][0-9-]*[{_L}][{_N}-]*)"  # of two or more, not all digits
_HOST = rf"(?:{_LABEL}\.)+{_LAST}"
_LOCAL = rf"[{_N}_](?:[{_N}_.+%'&=!#$*?^`{{|}}~/-]*[{_N}_+~=-])?"
_BREAK = r"[ \n]*\n[ \n]*"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"(?:{_OCTET}\.){{3}}{_OCTET}"
_IPV6 = rf"(?:[0-9a-f]{{0,4}}:){{2,8}}(?:{_IPV4}|[0-9a-f]{{0,4}})"  # counted by `_is_ipv6`
# Top-level domains that are no words or abbreviations which a missing space might join to a sentence's end.
_COMMON = "com|org|net|edu|gov|mil|info|biz|io|ai|dev|app|eu|de|fr|uk|ch|nl|pl|se|dk|ru|jp|cn|br|ca|au|nz|xn--[a-z0-9-]+"
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = "(?:0?[1-9]|[12][0-9]|3[01])"
_YEAR = "(?:1[0-9]|20|21)[0-9][0-9]"
_CLOCK = (
    "(?:[t ](?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?)?(?: ?z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_NEVER = r"[^\x00-\xff]"
_FOREIGN = 0x80  # the first foreign letter of a month
_NTH = rf"{_DAY}(?:er|e|:[ae]|\.?[\x01\x80-\xff]|-[\x01\x80-\xff]{{1,2}})?"  # such as 1er, 3:e, 1º
_TO_MONTH = r"(?:\. ?|\.?[ /-](?:de )?|\.? d')"
_TO_YEAR = r"(?:[.,]{1,2}[ -]?|[.,]?[ /-](?:del? )?)"
_G = r"[ ./\n-][ \n]*"  # between the groups of a telephone number


class Rule(NamedTuple):
    """A type of identifier in one kind of window.

    Attributes:
        pattern: of RE2; the optional group `lead` is the text before the identifier, and `x` is the
            identifier.
        check: a further check, `CARD`, `IBAN`, `PHONE` or `IPV6`; or an addition, `REACHES` or `FIGURES`.
    """

    name: str
    kind: Int
    pattern: str
    check: int = PLAIN


def _rule(name: str, kind: Int, pattern: str, check: int = PLAIN, behind: str = rf"[^{_W}]") -> Rule:
    lead = "" if "?P<lead>" in pattern else "^"
    whole = pattern if lead == "" else f"^(?P<x>{pattern})"
    return Rule(name, kind, rf"(?is){whole}(?:{behind}|$)", check)


# Of two rules that find the same stretch the first counts.
RULES = (
    _rule(
        "email",
        ADDRESS,
        rf"^(?P<lead>[^{_N}_]*)(?P<x>{_LOCAL}(?:{_BREAK})?@(?:{_BREAK})?(?:{_HOST}"
        rf"|(?:{_LABEL}\.)*{_LABEL}{_BREAK}\.?{_HOST}|(?:{_LABEL}\.)*{_LABEL}{_BREAK}\.{_LAST}|(?:{_LABEL}\.)+{_BREAK}(?:{_LABEL}\.)*{_LAST}))",
        behind=".",
    ),
    _rule("url", SCHEME, r"^(?P<lead>[0-9+.-]*)(?P<x>[a-z][a-z0-9+.-]*:///?[^ /\n])", REACHES, behind="."),
    _rule("url", HOST, rf"(?:www[0-9]?\.)(?:{_LABEL}\.)*{_LAST}", REACHES, behind=rf"[^{_W}-]"),
    _rule("url", HOST, rf"(?:{_LABEL}\.)+(?:{_COMMON})", REACHES, behind=rf"[^{_W}@-]"),
    _rule(
        "card",
        NUMBER,
        r"[2-6][0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{5}|[2-6][0-9]{3}(?:[ \n-]*[0-9]{4}){3}|[2-6][0-9]{12,18}",
        CARD,
        behind="[^0-9]",
    ),
    _rule("iban", ACCOUNT, r"[a-z]{2}[0-9]{2}(?:[ \n-]*[a-z0-9]){11,}", IBAN),
    _rule("ip", NUMBER, rf"{_IPV4}(?:/[0-9]{{1,2}})?", behind=r"[^0-9.]|\.[^0-9]|\.$"),
    _rule("ip", COLONS, rf"{_IPV6}(?:/[0-9]{{1,3}})?", IPV6, behind=rf"[^{_W}:]|:[^{_W}:]|:$"),
    _rule(
        "phone",
        NUMBER,
        rf"(?:\((?:\+|00)[1-9][0-9]{{0,2}}\)|(?:\+|00) ?[1-9][0-9]{{0,2}})(?:(?:{_G})?(?:\([0-9]{{1,5}}\)|[0-9]{{1,12}})){{1,7}}"
        r"|\(0[0-9]{1,5}\)[ /-]{0,2}[0-9]{2,}(?:[ /-][0-9]{2,}){0,4}"
        r"|0[0-9]{2,5}(?: ?[/-] ?| )[0-9]{3,}(?:[ /-][0-9]{2,}){0,4}"
        r"|0[0-9](?:[ .-][0-9]{2}){4}|0[0-9] [0-9]{4} [0-9]{4}"
        rf"|(?:1[ .-]?)?(?:\([0-9]{{3}}\) ?|[0-9]{{3}}{_G})[0-9]{{3}}{_G}[0-9]{{4}}",
        PHONE,
        behind="[^0-9]",
    ),
    _rule("digits", NUMBER, "[0-9]{7,}|[0-9]{1,7}-[0-9]{2,7}-[0-9]{2,7}(?:-[0-9]{1,7}){0,4}", FIGURES, behind="[^0-9]"),
    _rule("username", HANDLE, rf"@[0-9_.-]*[{_L}](?:[{_N}_.-]*[{_N}_])?|@[0-9_.-]*[{_L}]", behind="."),
    _rule(
        "date",
        DAY,
        rf"^(?P<lead>(?:.{{0,17}}?[^{_W}])??)(?P<x>{_YEAR}[-/.](?:0?[1-9]|1[0-2])[-/.]{_DAY}{_CLOCK}"
        rf"|{_DAY}[-/.]{_DAY}[-/.](?:{_YEAR}|[0-9]{{2}}){_CLOCK}"
        rf"|{_MONTH}\.? {_DAY}(?:st|nd|rd|th)?(?:,? {_YEAR})?"
        rf"|{_DAY}(?:st|nd|rd|th)?(?: of)?[ -]{_MONTH}(?:[.,]{{0,2}}[ -]{_YEAR})?|{_MONTH}\.? {_YEAR})",
    ),
)  # fmt: skip


# Letters with equal capitals: a dotless i, a sigma at the end of a word.
_SAME = {"\u0131": "i", "\u03c2": "\u03c3"}


def _folded(char: str) -> str:
    """Return a letter in lower case, without accents; a full-width one is the plain one."""
    plain = unicodedata.normalize("NFKD" if char >= "\uff00" else "NFD", char.lower())[0]
    return _SAME.get(plain, plain)


@cache
def months() -> dict[str, dict[str, tuple[bool, bool]]]:
    """Return the folded names of each language: whether a name is written out, and whether it comes before the day."""
    names: dict[str, dict[str, tuple[bool, bool]]] = {}
    text = files("dptext_spark.text.identifiers").joinpath("cldr/months.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        language, kind, order, *words = line.split()
        folded = ("".join(map(_folded, unicodedata.normalize("NFC", word))) for word in words)
        names.setdefault(language, {}).update(dict.fromkeys(folded, (kind == "name", order == "month")))
    return names


@cache
def _letters() -> dict[str, int]:
    """Return the byte of each foreign letter of the names."""
    letters = {letter for names in months().values() for name in names for letter in name}
    return {letter: _FOREIGN + n for n, letter in enumerate(sorted(x for x in letters if not x.isascii()))}


@cache
def month_shapes() -> U8:
    """Return uint8[1114112], the shape of each code point in a date with a month's name (made once a process)."""
    looks: U8 = shapes().copy()
    letters = _letters()
    # Letters before the punctuation, the extended Latin and Greek ones among them, and full-width ones.
    for code in [*range(0x41, 0x5B), *range(0x80, 0x2000), *range(0xFF21, 0xFF5B)]:
        plain = _folded(chr(code))
        if plain in letters or (plain.isascii() and plain.isalpha()):
            looks[code] = letters.get(plain) or ord(plain)
    return looks


@cache
def written_dates(languages: tuple[str, ...]) -> Rule:
    """Return the rule of dates with the months of some languages. A name that several share has the meaning of each."""
    known: dict[str, tuple[bool, bool]] = {}
    for language in languages:
        for name, (written_out, before_day) in months()[language].items():
            other = known.get(name, (False, False))
            known[name] = written_out or other[0], before_day or other[1]

    def names(*kinds: tuple[bool, bool]) -> str:
        those = sorted(name for name, kind in known.items() if kind in kinds)
        spelt = ("".join(rf"\x{_letters().get(x) or ord(x):02x}" for x in name) for name in those)
        return f"(?:{'|'.join(spelt) or _NEVER})"

    first, short_first = names((True, True)), names((False, True))
    whole, short = names((True, True), (True, False)), names((False, True), (False, False))
    either = f"(?:{whole}|{short})"
    word = rf"{_W}\x80-\xff"
    # A short name counts with a full stop or a year only: `set`, `out` and `mag` are words, too.
    return Rule(
        "date",
        DAY,
        rf"(?s)^(?P<lead>(?:.{{0,17}}?[^{word}])??)(?P<x>{_NTH}{_TO_MONTH}(?:{either}{_TO_YEAR}{_YEAR}|{whole}|{short}\.)"
        rf"|{_YEAR}\.? {either}\.? {_DAY}|(?:{first}\.?|{short_first}\.) {_DAY}(?:,? {_YEAR})?"
        rf"|(?:{whole}{_TO_YEAR}|{short}(?:\.[ -]?(?:del? )?| del? )){_YEAR})(?:[^{word}]|$)",
        WRITTEN,
    )


class Matches(NamedTuple):
    """Matches of rules among candidates.

    Attributes:
        candidate: int64[m], the number of each candidate.
        start: int64[m], the first character in the skeletons.
        end: int64[m], one past the last.
        rule: int64[m], the number of the rule.
        reach: int64[m], where the identifier ends in the text; -1: where its last character does.
    """

    candidate: I64
    start: I64
    end: I64
    rule: I64
    reach: I64


def match(texts: U8, bounds: I64, found: I64, rules: tuple[tuple[int, Rule], ...]) -> Matches:
    """Try rules on candidates.

    Args:
        texts: uint8[...], the skeletons.
        bounds: int64[n + 1], the skeleton of candidate i is texts[bounds[i]:bounds[i + 1]].
        found: int64[n, 5], the candidates.
        rules: with their numbers.
    """
    # As bytes, each of which is a character to the expressions.
    windows = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(found), [None, pa.py_buffer(bounds), pa.py_buffer(texts)]
    )
    parts = []
    for kind in sorted({rule.kind for _, rule in rules}):
        at = np.flatnonzero(found[:, 0] == kind)
        if not len(at):
            continue
        some = windows.take(pa.array(at)) if len(at) < len(found) else windows
        for number, rule in rules:
            if rule.kind != kind:
                continue
            groups = pc.extract_regex(some, rule.pattern)
            sizes = _sizes(groups, "x")
            hit = np.flatnonzero(sizes >= 0)
            lead = _sizes(groups, "lead")[hit] if "?P<lead>" in rule.pattern else np.zeros(len(hit), np.int64)
            candidate = at[hit]
            start = bounds[candidate] + lead
            end = start + sizes[hit]
            reach = np.where(np.isin(rule.check, (REACHES, FIGURES)), found[candidate, 4], -1)
            right = _check(texts, start, end, bounds[candidate + 1], reach, rule.check, lengths())
            parts.append(
                (candidate[right], start[right], end[right], np.full(int(right.sum()), number), reach[right])
            )
    if not parts:
        return Matches(*(np.zeros(0, np.int64) for _ in Matches._fields))
    return Matches(*(np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True)))


def _sizes(groups: Any, name: str) -> I64:
    """Return the length of a group, int64[n]; -1 where nothing matched."""
    sizes = pc.cast(pc.binary_length(pc.struct_field(groups, [name])), pa.int64())
    flags = pc.cast(pc.is_valid(sizes), pa.uint8())
    # By buffers: `fill_null` and `to_numpy` would import pandas.
    size, valid = (
        np.frombuffer(values.buffers()[1], kind)[values.offset :][: len(values)]
        for values, kind in ((sizes, np.int64), (flags, np.uint8))
    )
    return np.where(valid, size, -1)


@compiled
def _is_ipv6(texts: Any, start: Int, end: Int) -> Any:
    """Check that there are eight groups of hexadecimal digits, or fewer and one `::`. Four octets are two groups."""
    groups, doubles, width, dots, i = 0, 0, 0, 0, start
    while i < end and texts[i] != 47:
        if texts[i] == 58:
            groups += width > 0
            width = 0
            doubles += i > start and texts[i - 1] == 58
        elif texts[i] == 46:
            dots += 1
        else:
            width += 1
        i += 1
    groups += (width > 0) + (dots > 0)
    ends = (texts[start] == 58 and texts[start + 1] != 58) or (texts[i - 1] == 58 and texts[i - 2] != 58)
    return not ends and ((doubles == 1 and 0 < groups < 8) or (doubles == 0 and groups == 8))


@compiled
def _check(texts: Any, start: Any, end: Any, stop: Any, reach: Any, check: Int, known: Any) -> Any:
    """Return bool[m]: which matches are right; the end of an account number is corrected."""
    right = np.ones(start.shape[0], np.bool_)
    for i in range(start.shape[0]):
        if check == CARD:
            same = True
            for j in range(start[i], end[i]):
                same = same and (texts[j] == texts[start[i]] or not 48 <= texts[j] <= 57)
            right[i] = luhn(texts, start[i], end[i]) == 0 and not same
        elif check == IBAN:
            last = account_end(texts, start[i], end[i], known)
            right[i] = last > 0 and account_rest(texts, start[i], last) == 1
            if right[i]:
                c = texts[last] if last < stop[i] else 32
                right[i] = not (48 <= c <= 57 or 97 <= (c | 32) <= 122)
                end[i] = last
        elif check == IPV6:
            right[i] = _is_ipv6(texts, start[i], end[i])
        elif check == PHONE or check == FIGURES:
            digits, parts = 0, 1
            for j in range(start[i], end[i]):
                digits += 48 <= texts[j] <= 57
                parts += texts[j] == 45
            if check == PHONE:
                # Another number may follow: this one ends with the last group that fits.
                while digits > MOST_PHONE:
                    end[i] -= 1
                    digits -= 48 <= texts[end[i]] <= 57
                    while end[i] > start[i] and 48 <= texts[end[i] - 1] <= 57 and 48 <= texts[end[i]] <= 57:
                        end[i] -= 1
                        digits -= 1
                while end[i] > start[i] and not (48 <= texts[end[i] - 1] <= 57):
                    end[i] -= 1
                right[i] = LEAST_PHONE <= digits <= MOST_PHONE
            else:
                right[i] = parts == 1 or digits >= 9
                if parts > 1:
                    reach[i] = -1
    return right
