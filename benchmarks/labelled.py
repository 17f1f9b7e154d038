"""A sample of sentences whose identifiers are known: made from templates, as people write them, with look-alikes between.

The forms below are written from the identifiers' own standards and from common use, not from the patterns that are tried on
them; some of them no pattern finds, and they stay in.
"""

from __future__ import annotations

import random
import string
from typing import NamedTuple

LETTERS, DIGITS = string.ascii_lowercase, string.digits
NAMES = (
    "jane",
    "bob",
    "müller",
    "o'brien",
    "li",
    "anna-lena",
    "josé",
    "van.dijk",
    "smith",
    "иван",
    "kim",
    "garcía",
)
HOSTS = (
    "example",
    "mail.example",
    "uni-bonn",
    "big-shop",
    "bücher",
    "xn--bcher-kva",
    "my-site",
    "sub.domain.example",
    "почта",
)
ENDINGS = ("com", "org", "de", "co.uk", "net", "io", "museum", "com.br", "fr", "рф")
MONTHS = ("January", "March", "Apr", "June", "Sept.", "October", "Dec")
BEFORE = (
    *(
        "please write to {}",
        "my details are {}",
        "call {} after six",
        "({})",
        "see {}, thanks",
        "it was {}.",
        "contact: {}",
    ),
    *(
        "I tried {} and nothing happened",
        "“{}” is what they gave me",
        "{}",
        "the agent asked for {} again",
        "from {} to nowhere",
    ),
    *(
        "refund to {} please",
        "used {} since May",
        "Re: {}; still open",
        "{}\nthank you",
        "please write to\n{}",
        "ref={}",
        "user {} complained",
    ),
)
# What looks like an identifier and is none.
DECOYS = (
    *("I paid 1,299.00 for 2 of them in 2019", "it scored 3.5 of 5 and 10/10", "the 1914-1918 war", "version 10.4 of the app"),
    *("between 100-2000 people came", "at 10:30 or 10:22:33 sharp", "e.g. the U.S.A. and i.e. nothing", "a 50/50 chance"),
    *("3.14159265 is pi", "see you @ 5", "chapter 12.3.4", "room 101, floor 12", "it ended.Then it began", "and/or w/o sugar"),
    *("about 12 345 678 euros", "std::vector of int", "1 2 3 4 5 6 7", "call 911 or 112", "size 10x20x30", "mp3 and 4k"),
)  # fmt: skip


class Labelled(NamedTuple):
    """A text with its identifiers.

    Attributes:
        text: the sentence.
        spans: (type, start, end) of each, in UTF-8 bytes.
    """

    text: str
    spans: tuple[tuple[str, int, int], ...]


def sample(count: int, seed: int = 0) -> list[Labelled]:
    """Make `count` texts of one to three sentences, about half of which hold identifiers; equal seeds give equal texts."""
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        text, spans = "", []
        for _ in range(chance.randint(1, 3)):
            if text:
                text += " "
            if chance.random() < 0.4:
                text += chance.choice(DECOYS) + "."
                continue
            name = chance.choice(tuple(FORMS))
            before, _, after = chance.choice(BEFORE).partition("{}")
            held = FORMS[name](chance)
            start = len((text + before).encode())
            text += before + held + after
            spans.append((name, start, start + len(held.encode())))
        made.append(Labelled(text, tuple(spans)))
    return made


def _some(chance: random.Random, of: str, size: int) -> str:
    return "".join(chance.choice(of) for _ in range(size))


def _digits(chance: random.Random, shape: str) -> str:
    """Fill a shape: d is any digit, n one above 0."""
    return "".join(
        chance.choice(DIGITS) if c == "d" else chance.choice(DIGITS[1:]) if c == "n" else c for c in shape
    )


def _email(chance: random.Random) -> str:
    local = chance.choice(NAMES) + chance.choice(("", ".x", "_1", "+shop", "1984", "-k"))
    made = f"{local}@{chance.choice(HOSTS)}.{chance.choice(ENDINGS)}"
    return made.upper() if chance.random() < 0.05 else made


def _url(chance: random.Random) -> str:
    host = f"{chance.choice(HOSTS)}.{chance.choice(ENDINGS)}"
    path = chance.choice(("", "/", "/a/b.html", "/search?q=x&y=1", "/wiki/A_(b)", ":8080/x", "/über#top"))
    return chance.choice(("https://", "http://", "https://www.", "www.", "")) + host + path


def _phone(chance: random.Random) -> str:
    return _digits(
        chance,
        chance.choice(
            (
                *("+nd ndd ddddddd", "+n (ndd) ndd-dddd", "+nd nd dddd dddd", "+nddddddddd", "00nd nd dddddd", "+nd (0)nd ddddd"),
                *("(0nd) ddddddd", "0nd/ddddddd", "0ndd ddddddd", "0ndd-ddddddd", "0n dd dd dd dd", "0n.dd.dd.dd.dd"),
                *("nnd-ndd-dddd", "(nnd) ndd-dddd", "nnd.ndd.dddd", "1-nnd-ndd-dddd", "ndd-dddd", "0nd dddd dddd"),
            )
        ),
    )  # fmt: skip


def _iban(chance: random.Random) -> str:
    country, shape = chance.choice(
        (
            ("DE", "0" * 18),
            ("GB", "AAAA" + "0" * 14),
            ("FR", "0" * 23),
            ("NO", "0" * 11),
            ("NL", "AAAA" + "0" * 10),
        )
    )
    account = "".join(
        chance.choice(string.ascii_uppercase) if c == "A" else chance.choice(DIGITS) for c in shape
    )
    number = int("".join(str(int(c, 36)) for c in f"{account}{country}00"))
    whole = f"{country}{98 - number % 97:02d}{account}"
    return " ".join(whole[i : i + 4] for i in range(0, len(whole), 4)) if chance.random() < 0.5 else whole


def _card(chance: random.Random) -> str:
    first = chance.choice(("4", "51", "2221", "6011", "37"))
    size = 15 if first == "37" else 16
    body = first + _some(chance, DIGITS, size - 1 - len(first))
    total = sum(int(c) if i % 2 else sum(divmod(2 * int(c), 10)) for i, c in enumerate(reversed(body)))
    whole = body + str(-total % 10)
    groups = (4, 6, 5) if size == 15 else (4, 4, 4, 4)
    joint = chance.choice(("", " ", "-"))
    parts, at = [], 0
    for group in groups:
        parts.append(whole[at : at + group])
        at += group
    return joint.join(parts)


def _ip(chance: random.Random) -> str:
    if chance.random() < 0.6:
        return ".".join(str(chance.randint(0, 255)) for _ in range(4))
    groups = [f"{chance.randint(1, 65535):x}" for _ in range(8)]
    return ":".join(groups) if chance.random() < 0.5 else f"{':'.join(groups[:3])}::{groups[7]}"


def _date(chance: random.Random) -> str:
    year, month, day = chance.randint(1950, 2029), chance.randint(1, 12), chance.randint(1, 28)
    named = chance.choice(MONTHS)
    return chance.choice(
        (
            f"{year}-{month:02d}-{day:02d}",
            f"{day}.{month}.{year}",
            f"{month}/{day}/{year % 100:02d}",
            f"{named} {day}, {year}",
            f"{day} {named.rstrip('.')} {year}",
            f"{year}-{month:02d}-{day:02d}T10:30:00Z",
            f"{day}th of {named.rstrip('.')}",
        )
    )


def _figures(chance: random.Random) -> str:
    return _digits(chance, chance.choice(("ndddddd", "n" + "d" * 8, "n" + "d" * 11, "ndd-dd-dddd", "d" * 20)))


def _username(chance: random.Random) -> str:
    return "@" + chance.choice(("jane_doe", "j0hn", "the.real.x", "_x_", "Bob99", "жанна", "a1"))


FORMS = {
    **{"email": _email, "url": _url, "phone": _phone, "iban": _iban, "card": _card},
    **{"ip": _ip, "date": _date, "digits": _figures, "username": _username},
}
