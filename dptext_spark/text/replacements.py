"""Replace identifiers and names by fakes, placeholders and pseudonyms, all by the key.

Fakes: keyed letters and digits in the shape of an identifier, for whoever needs text that still looks like one.

A letter becomes a consonant of its case, so that no fake spells a word. A digit becomes a digit, and separators stay. Check
digits and the octets of an address are valid again. A fake's type stays recognisable. A URL keeps a registered scheme, `www.`,
or without a scheme a known top-level label. A telephone number keeps leading zeros and the plus, and an account keeps its
country. Equal identifiers of a scope have equal fakes, however they are grouped. A fake is no draw of a mechanism: it may
belong to somebody, and its shape is the original's.

A placeholder of the type is written where no fake is asked for.

Schemes of URLs and top-level labels are facts of IANA's public registries. They are the permanent and the usual provisional
schemes, the old generic labels, and the labels of countries. A fake keeps these alone; a list that lacks a name only fakes more.

Pseudonyms: a keyed name of the same kind from the public lists for each word of a name.

Given names, surnames and towns become names of their kind, a country or state another, an initial a letter. The choice depends on
the key, the kind and the normal form of the word, and at record level on the record. At token level each mention has its own. So
a full name, a title with the surname and an initial with it have one surname. No table is kept. Two names may have one pseudonym:
of n names of the kind, with probability 1/n. A pseudonym may be somebody's name, and it may be the name itself, with probability
1/n. None is an obscenity or a slur (:mod:`dptext_spark.lexicon.vocabulary`).
"""

from __future__ import annotations

# Lists of many short words are easier to read in lines.
# ruff: noqa: SIM905
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import I64, U8, U64, Bools
from dptext_spark.lexicon.characters import LETTER, cell, decode, tables
from dptext_spark.lexicon.vocabulary import excluded_words
from dptext_spark.randomness import byte_view, hash_all, hash_bytes
from dptext_spark.runtime.jit import Int, compiled, inlined, mul_high
from dptext_spark.text.identifiers.finder import Finder, FoundSpans
from dptext_spark.text.identifiers.rules import account_rest, luhn
from dptext_spark.text.identifiers.skeletons import FOREIGN, NOTHING, STRANGE, UNSPACED, look, shapes
from dptext_spark.text.names.normal_words import FORM, folding, next_word
from dptext_spark.text.names.public_names import KINDS, LISTED_KINDS, LISTS, public_entries
from dptext_spark.text.policy import FAKE, TYPES, placeholder

LETTERS = [chr(ord("A") + n) for n in range(26)]
SMALL, CAPITALISED, WHOLE = range(3)  # how a name is written


class KeyedNames(NamedTuple):
    """The source of pseudonyms; equal in every run with the same key, lists and level.

    Attributes:
        hash_keys: the two keys for hashing names.
        draw: blocks uint64[n, 2] -> uint64[n, 2], by a subkey of its own.
    """

    hash_keys: tuple[np.uint64, np.uint64]
    draw: Callable[[U64], U64]


class Pool(NamedTuple):
    """The names of a kind that pseudonyms are drawn from, in three cases.

    Attributes:
        data: uint8[...], UTF-8.
        bounds: int64[3n + 1]; name i in case c is data[bounds[c * n + i]:bounds[c * n + i + 1]].
        size: n.
    """

    data: U8
    bounds: I64
    size: int


@cache
def pool(kind: int) -> Pool:
    """Return the pool of a kind: single words of the public names that are fit to show, or the letters of initials."""
    if kind == len(LISTS):
        names = pa.array(LETTERS, pa.large_string())
    else:
        entries = public_entries(kind)
        whole = pa.Array.from_buffers(
            pa.large_string(),
            len(entries.classes),
            [None, pa.py_buffer(entries.bounds), pa.py_buffer(entries.data)],
        )
        names = whole.filter(pc.match_substring_regex(whole, r"^[\p{L}\p{M}]+$"))
        unfit = pa.array(sorted(excluded_words()), names.type)
        names = names.filter(pc.invert(pc.is_in(pc.utf8_lower(names), value_set=unfit)))
    cases = pa.concat_arrays([pc.utf8_lower(names), names, pc.utf8_upper(names)])
    bounds, data = byte_view(cases)
    return Pool(np.asarray(data, np.uint8), np.asarray(bounds, np.int64), len(names))


@compiled
def _read_names(
    data: Any, starts: Any, ends: Any, keys: Any, letters: Any, fold: Any, blocks: Any, cases: Any
) -> None:
    """Fill the hash of each name's normal words, uint64[n, 2], and how it is written, int64[n]."""
    stage, classes, lower = letters
    form, name = np.zeros(FORM, np.uint8), np.zeros(FORM, np.uint8)
    for k in range(starts.shape[0]):
        p, size = starts[k], np.int64(0)
        while True:
            _, _, p, more = next_word(data, p, ends[k], (stage, classes), fold, form)
            if more < 0:
                break
            if more > 0 and form[more - 1] == 0x2E:
                more -= 1
            need = size + more + 1
            if need > name.shape[0]:
                grown = np.zeros(2 * need, np.uint8)
                grown[:size] = name[:size]
                name = grown
            name[size : size + more] = form[:more]
            name[size + more] = 0x20
            size = need
        blocks[k, 0], blocks[k, 1] = hash_bytes(name, 0, size, keys[0], keys[1])
        count, capitals = 0, 0
        p = starts[k]
        while p < ends[k]:
            code, length = decode(data, p, ends[k])
            place = cell(code, stage) if code >= 0 else 0
            if code >= 0 and classes[place] == LETTER:
                count += 1
                capitals += lower[place] != 0
            p += length
        if count > 1 and capitals == count:
            cases[k] = WHOLE
        else:
            cases[k] = CAPITALISED if capitals else SMALL


@compiled
def _choose(draws: Any, kinds: Any, cases: Any, sizes: Any, chosen: Any) -> None:
    """Fill which name of its pool takes the place of each, int64[n], counted over the three cases."""
    for k in range(kinds.shape[0]):
        size = sizes[kinds[k]]
        chosen[k] = cases[k] * size + np.int64(mul_high(draws[k, 0], np.uint64(size)))


def pseudonyms(
    data: U8, places: tuple[I64, I64, I64], kinds: I64, identity: U64 | None, placed: bool, keyed: KeyedNames
) -> tuple[U8, I64]:
    """Make pseudonyms: (text uint8[...], bounds int64[n + 1]); pseudonym k is text[bounds[k]:bounds[k + 1]].

    Args:
        data: uint8[...], the bytes of the texts.
        places: (begin of the row, start, end) of each name, int64[n] each.
        kinds: int64[n], positions in `LISTS` of the lists; one more for an initial.
        identity: uint64[n, 2], of the row or the record of each; None where equal names of the dataset have one pseudonym.
        placed: whether a draw's block holds the position in the text.
        keyed: the draws.
    """
    begins, starts, ends = places
    chars = tables()
    blocks, cases = np.empty((len(kinds), 2), np.uint64), np.empty(len(kinds), np.int64)
    letters = (chars.stage, chars.classes, chars.lower)
    _read_names(data, starts, ends, keyed.hash_keys, letters, folding(), blocks, cases)
    blocks[:, 1] ^= kinds.astype(np.uint64) << np.uint64(56)
    if identity is not None:
        blocks ^= identity
    if placed:
        blocks[:, 1] ^= (starts - begins).astype(np.uint64)
    pools = [pool(kind) for kind in range(len(LISTS) + 1)]
    chosen = np.empty(len(kinds), np.int64)
    _choose(keyed.draw(blocks), kinds, cases, np.array([names.size for names in pools], np.int64), chosen)
    first, last = np.empty(len(kinds), np.int64), np.empty(len(kinds), np.int64)
    for kind, names in enumerate(pools):
        here = kinds == kind
        first[here], last[here] = names.bounds[chosen[here]], names.bounds[chosen[here] + 1]
    bounds = np.concatenate([[0], np.cumsum(last - first)]).astype(np.int64)
    owner = np.repeat(np.arange(len(kinds)), last - first)
    source = first[owner] + np.arange(bounds[-1]) - bounds[owner]
    text = np.empty(int(bounds[-1]), np.uint8)
    for kind, names in enumerate(pools):
        here = kinds[owner] == kind
        text[here] = names.data[source[here]]
    return text, bounds


SCHEMES = (
    "about acap acct coap coaps crid data dav dict dns file ftp geo git go gopher h323 http https iax icap im imap info ipp "
    "ipps iris irc ircs jabber ldap ldaps magnet mailto mid mms msrp msrps mtqp nfs news nntp pop pres rsync rtmp rtsp rtsps "
    "rtspu sftp sip sips smb sms snmp ssh stun stuns svn tel telnet tftp tip turn turns tv udp urn vemmi vnc ws wss xmpp"
).split()
GENERIC = ["com", "org", "net", "edu", "gov", "mil", "int", "info", "biz", "app", "dev"]
COUNTRIES = (
    "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bv bw by bz ca cc cd cf "
    "cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr ga gb gd ge gf gg "
    "gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp "
    "kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne "
    "nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk "
    "sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn "
    "vu wf ws ye yt za zm zw"
).split()


def _table(names: list[str]) -> U8:
    """Return uint8[n, m], the names filled with zeros."""
    return np.array([list(name.encode().ljust(max(map(len, names)), b"\0")) for name in names], np.uint8)


@cache
def schemes() -> U8:
    """Return the schemes, uint8[n, m], each filled with zeros."""
    return _table(SCHEMES)


@cache
def labels() -> U8:
    """Return the top-level labels, uint8[n, m], each filled with zeros."""
    return _table([*GENERIC, *COUNTRIES])


# Characters from 64 bits: 20^8 of 2^64, so that no letter is likelier than another by more than 2^-29.
CHUNK = 8
_PHONE, _IBAN, _CARD, _IP, _URL, _DIGITS = (
    TYPES.index(name) for name in ("phone", "iban", "card", "ip", "url", "digits")
)


class FakeSource(NamedTuple):
    """The source of a batch's fakes.

    Attributes:
        identity: uint64[rows, 2], of the row or the record; None where equal identifiers of the dataset have one fake.
        hash_keys: the two keys for hashing identifiers.
        draw: blocks uint64[n, 2] -> uint64[n, 2], by a subkey of its own.
        placed: whether a draw's block holds the position in the text.
        names: the source of pseudonyms; None if there are none.
    """

    identity: U64 | None
    hash_keys: tuple[np.uint64, np.uint64]
    draw: Callable[[U64], U64]
    placed: bool
    names: KeyedNames | None = None


@compiled
def _read_identifiers(
    data: Any,
    starts: Any,
    ends: Any,
    types: Any,
    shapes: Any,
    forms: Any,
    ends_of: Any,
    seen: Any,
    bounds: Any,
) -> None:
    """Write what each identifier is hashed by, and its skeleton; fill where they end: int64[n + 1] each."""
    m, n = np.int64(0), np.int64(0)
    for k in range(starts.shape[0]):
        i = starts[k]
        grouped = types[k] == _PHONE or types[k] == _IBAN or types[k] == _CARD or types[k] == _DIGITS
        while i < ends[k]:
            char, length = look(data, i, ends[k], shapes)
            if char == FOREIGN or char == UNSPACED or char == STRANGE:
                for j in range(length):
                    forms[m] = data[i + j]
                    m += 1
            elif char != NOTHING:
                letter = 97 <= (char | 32) <= 122
                if letter or 48 <= char <= 57 or not grouped:
                    forms[m] = char | 32 if letter else char
                    m += 1
            if char != NOTHING:
                seen[n] = 95 if char == STRANGE else char
                n += 1
            i += length
        ends_of[k + 1], bounds[k + 1] = m, n


@compiled
def _is_one(text: Any, start: Int, end: Int, names: Any) -> Any:
    """Check that text[start:end], in any case, is one of some names: uint8[n, m] in lower case, filled with zeros."""
    size = end - start
    if size > names.shape[1]:
        return False
    for k in range(names.shape[0]):
        same = size == names.shape[1] or names[k, size] == 0
        for j in range(size):
            char = text[start + j]
            same = same and names[k, j] == (char | 32 if 65 <= char <= 90 else char)
        if same:
            return True
    return False


@compiled
def _unfaked_parts(text: Any, start: Int, end: Int, schemes: Any, labels: Any) -> tuple[Int, Int]:
    """Return two places of the URL text[start:end]: the text before the first, and from the second to `/?#:`, is not faked."""
    first, scheme = start, False
    for i in range(start, end):
        if text[i] == 58 and i + 1 < end and text[i + 1] == 47:
            first, scheme = i, True
            break
        if text[i] == 47 or text[i] == 63:
            break
    known = scheme and _is_one(text, start, first, schemes)
    host = first
    while host < end and (text[host] == 58 or text[host] == 47):
        host += 1
    if (
        host + 3 < end
        and text[host] | 32 == 119
        and text[host + 1] | 32 == 119
        and text[host + 2] | 32 == 119
    ):
        stop = host + 3
        if 48 <= text[stop] <= 57 and stop + 1 < end:
            stop += 1
        if text[stop] == 46:
            return (stop, end) if known or not scheme else (start, end)
    if scheme:
        return host if known else start, end
    last, i = end, start
    while i < end and text[i] != 47 and text[i] != 63 and text[i] != 35 and text[i] != 58:
        last = i if text[i] == 46 else last
        i += 1
    known = last < end and _is_one(text, last + 1, i, labels)
    return start, (last if known else end)


@inlined
def _consonant(number: Int) -> Int:
    """Return the distance from `a` of the number-th of the 20 consonants: letters without a, e, i, o, u and y."""
    k = number + 1
    return k + (k > 3) + (k > 6) + (k > 11) + (k > 16) + (k > 19)


@compiled
def _fake(text: Any, bounds: Any, types: Any, draws: Any, first: Any, schemes: Any, labels: Any) -> None:
    """Put fakes in the place of skeletons; identifier k has the draws from first[k] on."""
    for k in range(types.shape[0]):
        start, end, kind = bounds[k], bounds[k + 1], types[k]
        octet, dotted, quad = 0, False, start  # with dots, octets follow the last colon
        for i in range(start, end):
            dotted = dotted or text[i] == 46
            quad = i if text[i] == 58 else quad
        keep, again = (_unfaked_parts(text, start, end, schemes, labels)) if kind == _URL else (start, end)
        if kind == _IBAN:
            keep = min(end, start + 2)
        used, zeros, in_label = 0, True, False
        state = np.uint64(0)
        for i in range(start, end):
            c = np.int64(text[i])
            digit, letter = 48 <= c <= 57, 97 <= (c | 32) <= 122 or c == FOREIGN or c == UNSPACED
            if i == again:
                in_label = True
            elif in_label and (c == 47 or c == 63 or c == 35 or c == 58):
                in_label = False
            if i < keep or in_label or not (digit or letter):
                octet = octet if digit else 0
                continue
            if used % CHUNK == 0:
                state = draws[first[k] + used // (2 * CHUNK), (used // CHUNK) % 2]
            used += 1
            low, size = np.int64(48), np.int64(10)
            if letter:
                low, size = np.int64(65 if 65 <= c <= 90 else 97), np.int64(6 if kind == _IP else 20)
            elif kind == _PHONE and zeros:
                low, size = np.int64(48 if c == 48 else 49), np.int64(1 if c == 48 else 9)
                zeros = c == 48
            elif kind == _CARD and zeros:
                low, size, zeros = np.int64(50), np.int64(5), False
            elif kind == _IP and dotted and i >= quad:
                # Three digits are 100 to 255, two are 10 to 99.
                follows = 0
                while i + follows + 1 < end and 48 <= text[i + follows + 1] <= 57:
                    follows += 1
                if octet == 0:
                    whole = follows + 1
                    low = np.int64(48 if whole == 1 else 49)
                    size = np.int64(10 if whole == 1 else (9 if whole == 2 else 2))
                elif octet == 1 and follows == 1:
                    size = np.int64(6 if text[i - 1] == 50 else 10)
                elif octet == 2:
                    size = np.int64(6 if text[i - 2] == 50 and text[i - 1] == 53 else 10)
                octet += 1
            drawn = np.int64(mul_high(state, np.uint64(size)))
            text[i] = low + (_consonant(drawn) if letter and kind != _IP else drawn)
            state = state * np.uint64(size)
        _mend(text, start, end, kind)


@compiled
def _mend(text: Any, start: Int, end: Int, kind: Int) -> None:
    """Make the check digits of a card or an account number right."""
    if kind == _CARD:
        last = end - 1
        while last > start and not 48 <= text[last] <= 57:
            last -= 1
        text[last] = 48
        text[last] = 48 + (10 - luhn(text, start, end)) % 10
    elif kind == _IBAN:
        at, place = start, 0
        first = second = start
        while at < end and place < 4:
            if 48 <= text[at] <= 57 or 97 <= (text[at] | 32) <= 122:
                place += 1
                if place == 3:
                    first = at
                elif place == 4:
                    second = at
            at += 1
        if place == 4:
            text[first], text[second] = 48, 48
            check = 98 - account_rest(text, start, end)
            text[first], text[second] = 48 + check // 10, 48 + check % 10


def fakes(data: U8, places: tuple[I64, I64, I64, I64], types: I64, keyed: FakeSource) -> tuple[U8, I64]:
    """Make fakes.

    Args:
        data: uint8[...], the bytes of the texts.
        places: (row, begin of the row, start, end) of each identifier, int64[n] each.
        types: int64[n], positions in `TYPES`.
        keyed: the draws.

    Returns:
        (text uint8[...], bounds int64[n + 1]): fake k is text[bounds[k]:bounds[k + 1]], one byte for each character seen.
    """
    rows, begins, starts, ends = places
    n, room = len(starts), int((ends - starts).sum())
    forms, text = np.empty(room, np.uint8), np.empty(room, np.uint8)
    ends_of, bounds = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    _read_identifiers(data, starts, ends, types, shapes(), forms, ends_of, text, bounds)
    blocks = hash_all(forms, ends_of, *keyed.hash_keys)
    blocks[:, 1] ^= types.astype(np.uint64) << np.uint64(58)
    if keyed.identity is not None:
        blocks ^= keyed.identity[rows]
    if keyed.placed:
        blocks[:, 1] ^= (starts - begins).astype(np.uint64)
    # A block is 16 characters.
    count = -(-np.diff(bounds) // (2 * CHUNK))
    first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    blocks = np.repeat(blocks, count, axis=0)
    chunk = np.arange(len(blocks)) - np.repeat(first[:-1], count)
    blocks[:, 1] ^= chunk.astype(np.uint64) << np.uint64(32)
    _fake(text, bounds, types, keyed.draw(blocks), first, schemes(), labels())
    return text[: bounds[-1]], bounds


def _gathered(data: U8, starts: I64, ends: I64) -> tuple[U8, I64]:
    """Return the bytes of stretches, one behind the other, and where each begins and ends: int64[n + 1]."""
    bounds = np.concatenate([[0], np.cumsum(ends - starts)]).astype(np.int64)
    return data[np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], ends - starts)], bounds


class Replacements(NamedTuple):
    """The replacements of a batch.

    Attributes:
        text: uint8[...].
        bounds: int64[n + 1], that of identifier i is text[bounds[i]:bounds[i + 1]].
        faked: bool[n], which are fakes.
        named: bool[n], which are pseudonyms of names.
    """

    text: U8
    bounds: I64
    faked: Bools
    named: Bools


def replacements(finder: Finder, found: FoundSpans, keyed: FakeSource) -> Replacements:
    """Make the replacements."""
    faked_types = set(finder.identifiers.wanted(FAKE))
    free = ~(found.written | found.kept)
    faked = np.array([name in faked_types for name in finder.names])[found.types] & free
    of_types = {name: kind for names in (KINDS, LISTED_KINDS) for kind, name in enumerate(names)}
    parts = np.array([of_types.get(name, -1) for name in finder.names])[found.types]
    named = (parts >= 0) & free if keyed.names is not None else np.zeros(len(parts), np.bool_)
    marks = [placeholder(name).encode() for name in finder.names]
    of_marks = np.frombuffer(b"".join(marks), np.uint8)
    lengths = np.array([len(mark) for mark in marks], np.int64)
    sizes = lengths[found.types]
    spans = found.spans
    sizes[found.kept] = (spans.ends - spans.starts)[found.kept]
    texts = []
    at = np.flatnonzero(faked)
    if len(at):
        rows = spans.owners[at]
        places = (rows, spans.rows[rows], spans.starts[at], spans.ends[at])
        texts.append((at, *fakes(spans.data, places, found.types[at], keyed)))
    at = np.flatnonzero(named)
    if len(at) and keyed.names is not None:
        rows = spans.owners[at]
        identity = None if keyed.identity is None else keyed.identity[rows]
        where = (spans.rows[rows], spans.starts[at], spans.ends[at])
        texts.append((at, *pseudonyms(spans.data, where, parts[at], identity, keyed.placed, keyed.names)))
    for which, _, ends in texts:
        sizes[which] = np.diff(ends)
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    # All are placeholders first. Other replacements are written over them.
    shift = (np.cumsum(lengths) - lengths)[found.types] - bounds[:-1]
    text = of_marks.take(np.arange(bounds[-1]) + np.repeat(shift, sizes), mode="clip")
    at = np.flatnonzero(found.kept)
    if len(at):
        texts.append((at, *_gathered(spans.data, spans.starts[at], spans.ends[at])))
    if not texts:
        return Replacements(text, bounds, faked, named)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    for which, written, _ in texts:
        of_these = np.zeros(len(sizes), np.bool_)
        of_these[which] = True
        text[of_these[owner]] = written
    return Replacements(text, bounds, faked, named)
