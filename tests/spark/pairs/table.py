"""The settings that are run: every supported pair of features occurs in one of them, and every other pair is refused.

Texts are tagged: `<person:Ada Lovelace>` is what a search for names finds, `<listed:...>` what a list masks, `<clear:...>` what a
list keeps, `<email:...>` an identifier. What becomes of each follows from the settings alone.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

LEVELS = ("token", "record", "dataset")
FEATURES = (
    *LEVELS, "columns", "lists", "names", "importance", "budget", "fluent", "remap", "stream", "connect", "nested", "executors",
)  # fmt: skip
WORDS = 600  # of the lexicon
SECRET = hashlib.sha256(b"pairs").digest()
SCHEMA = (
    "id long, customer string, size int, body string, note string, tags array<string>, "
    "comments array<struct<text:string,by:string>>, owner string, weights_body array<float>, weights_note array<float>"
)
TAG = re.compile(r"<(\w+):([^>]*)>")


@dataclass(frozen=True)
class Row:
    """Settings that are run and judged."""

    features: frozenset[str]  # what of `FEATURES` is in use
    more: dict[str, Any] = field(default_factory=dict)  # settings beside those of the features
    quick: bool = False  # whether `make test` runs it
    fresh: bool = False  # whether the input is released a second time, under another run id

    @property
    def level(self) -> str:
        return next(level for level in LEVELS if level in self.features)

    @property
    def columns(self) -> tuple[str, ...]:
        nested = ("comments.text", "tags") if "nested" in self.features else ()
        several, first = "columns" in self.features, nested[:1] or ("body",)
        return (("body", *nested) if nested else ("body", "note")) if several else first

    @property
    def record_key(self) -> str | None:
        """Records of several rows, but where words are chosen in one row."""
        return None if self.features & {"importance", "budget"} else "customer"

    @property
    def pairs(self) -> set[frozenset[str]]:
        return set(map(frozenset, combinations(self.features, 2)))

    @property
    def epsilon(self) -> float:
        """What a release is promised to spend on a word, by the settings alone: the largest of several laws."""
        if "budget" in self.features:
            return 0.707  # by which one word keeps to the budget
        levels = self.more.get("importance", {}).get("levels", [])
        drawn_by = self.more.get("mechanism", mechanism("custext"))
        return max([float(level["epsilon"]) for level in levels], default=float(drawn_by["epsilon"]))


def row(features: str, *, quick: bool = False, fresh: bool = False, **more: Any) -> Row:
    return Row(frozenset(features.split()), more, quick, fresh)


def mechanism(name: str, epsilon: float = 2.0, **more: Any) -> dict[str, Any]:
    return {"name": name, "epsilon": epsilon, **more}


RANDOM = {"provider": "random", "percent": 60}
LEVELLED = {"provider": "random", "levels": [{"share": 30, "epsilon": 1.0}, {"share": 40, "epsilon": 3.0}]}
IDF = {"provider": "idf", "percent": 50, "corpus": "CORPUS"}

ROWS: dict[str, Row] = {
    # Run by `make test`, too.
    "plain": row("token", quick=True, fresh=True),
    "names in records": row("record names lists columns", quick=True, mechanism=mechanism("santext")),
    "fluent in a stream": row("token fluent stream names", quick=True),
    "remap of the dataset": row(
        "dataset remap nested columns executors", quick=True, mechanism=mechanism("tem", remap="bayes")
    ),
    "budget of nested texts": row("token budget nested lists remap", quick=True),
    "levels of importance": row("token importance columns names", importance=LEVELLED, quick=True),
    "fluent and important": row("token fluent importance columns nested", importance=IDF, quick=True),
    "fluent with lists": row("token fluent lists columns executors", quick=True),
    # Run by `make test-all`.
    "token by noise": row("token columns", mechanism=mechanism("truncated_laplace", 20.0)),
    "stream of records under a budget": row("record budget stream columns executors"),
    "important words of a stream": row(
        "record importance stream nested lists", importance=IDF, mechanism=mechanism("truncated_laplace", 20.0)
    ),
    "fluent, important, read by executors": row("token fluent importance executors"),
    "dataset with names": row("dataset names lists columns", mechanism=mechanism("diffractor")),
    "dataset stream remapped": row(
        "dataset remap stream executors names", mechanism=mechanism("santext", remap="bayes")
    ),
    "dataset of nested texts": row("dataset nested lists executors", mechanism=mechanism("tem")),
    "dataset by noise": row("dataset columns lists", fresh=True, mechanism=mechanism("vickrey", 20.0)),
    "dataset of names by noise": row("dataset columns names", mechanism=mechanism("truncated_gumbel", 5000.0)),
    "record by noise": row("record columns nested", mechanism=mechanism("laplace", 20.0)),
    "record of names by noise": row("record names executors", fresh=True, mechanism=mechanism("gaussian", 20.0)),
    "record, important, remapped": row(
        "record importance remap columns executors names", mechanism=mechanism("diffractor", remap="bayes")
    ),
    "record of nested names": row("record names nested executors budget"),
    "record budget with names": row("record budget names columns lists remap"),
    "token by projected noise": row("token nested lists executors", mechanism=mechanism("projection", 20.0, m=8)),
    "token budget in a stream": row("token budget stream names executors remap"),
    "token remap": row("token remap columns names lists executors"),
    "important by a column": row(
        "record importance columns lists executors",
        importance={"provider": "column", "percent": 40, "direction": "medium", "weights": ["weights_body", "weights_note"]},
        mechanism=mechanism("mvc", 20.0),
    ),
    "nested, important, named": row(
        "token importance nested names executors lists", mechanism=mechanism("mahalanobis", 20.0)
    ),
    # In a session of Spark Connect.
    "connect: tokens": row("connect token lists names columns fluent"),
    "connect: records": row("connect record importance nested executors remap"),
    "connect: dataset": row("connect dataset names executors columns remap"),
    "connect: budget": row("connect token budget lists nested", quick=True),
    "connect: fluent and important": row("connect token fluent importance executors"),
}  # fmt: skip


def marked(rows: dict[str, Row]) -> list[Any]:
    """Return the names of rows as parameters; those that are not quick are run by `make test-all` only."""
    marks = {name: [] if entry.quick else [pytest.mark.long] for name, entry in rows.items()}
    return [pytest.param(name, marks=found) for name, found in marks.items()]


# What a feature sets, and what of it two features together have to say.
SETTINGS: dict[str, dict[str, Any]] = {
    **{level: {"consistency": level} for level in LEVELS},
    "columns": {},
    "lists": {"policy": {"mask": [{"file": "MASK"}, {"column": "owner"}], "keep": [{"file": "KEEP"}]}},
    "names": {"policy": {"names": {"lists": True}}},
    "importance": {"importance": RANDOM},
    "budget": {"budget": {"record": 0.5, "delta": 1e-9}},
    "fluent": {"mechanism": mechanism("custext", k=5, fluent=True)},
    "remap": {"mechanism": mechanism("custext", k=5, remap="bayes")},
    "stream": {"mode": "incremental"},
    "connect": {},
    "nested": {},
    "executors": {"key": {"file": "KEY", "deliver": "executors"}},
}


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Join two settings; where both name a value that is no section, the other's holds."""
    both = dict(one)
    for name, value in other.items():
        mine = both.get(name)
        both[name] = merged(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return both


def settings_of(entry: Row, folder: Path, own: Path, source: str = "in", out: str = "out") -> dict[str, Any]:
    """Return the settings of a row.

    Args:
        entry: the row.
        folder: with what all rows read.
        own: what the row itself reads and writes; its input is `source` there, else in the folder.
        source: name of the input.
        out: name of the output.
    """
    settings: dict[str, Any] = {
        "input": {"path": str((own if (own / source).exists() else folder) / source)},
        "columns": list(entry.columns),
        "row_key": "id",
        "record_key": entry.record_key,
        "lexicon": {"source": str(folder / "lexicon")},
        "mechanism": mechanism("custext", k=5),
        "output": {"path": str(own / out), "other_columns": ["customer", "size"]},
        "ledger": {"path": str(own / f"{source}_ledger")},
        "key": {"file": "KEY"},
        "run": {"id": "pairs"},
    }
    for feature in FEATURES:
        if feature in entry.features:
            settings = merged(settings, SETTINGS[feature])
    for name, value in entry.more.items():
        settings[name] = value
    return _placed(settings, folder)


def _placed(value: Any, folder: Path) -> Any:
    places = {"KEY": "run.key", "MASK": "mask.txt", "KEEP": "keep.txt", "CORPUS": "corpus.txt"}
    if isinstance(value, dict):
        return {name: _placed(part, folder) for name, part in value.items()}
    if isinstance(value, list):
        return [_placed(part, folder) for part in value]
    return str(folder / places[value]) if isinstance(value, str) and value in places else value


@dataclass(frozen=True)
class Refused:
    """Settings that two features make impossible: refused before anything is read."""

    pair: frozenset[str]  # the features
    field: str  # that the error names
    more: dict[str, Any] = field(default_factory=dict)  # settings beside those of the features


def refused(pair: str, named: str, **more: Any) -> Refused:
    return Refused(frozenset(pair.split()), named, more)


REFUSED: dict[str, Refused] = {
    "fluent draws of records": refused("record fluent", "consistency"),
    "fluent draws of the dataset": refused("dataset fluent", "consistency"),
    "fluent draws under a budget": refused("budget fluent", "budget"),
    "fluent draws that are remapped": refused("fluent remap", "mechanism.fluent"),
    "a budget of the dataset": refused("dataset budget", "consistency"),
    "important words of the dataset": refused("dataset importance", "consistency"),
    "important words under a budget": refused("importance budget", "budget"),
    "a stream on Connect": refused("stream connect", "mode"),
}
# Of pairs that are supported, what is not: (features, settings) with the field that the error names.
REFUSED_DETAILS: dict[str, Refused] = {
    "important words in records of several rows": refused("record importance", "record_key", record_key="customer"),
    "a budget of records of several rows": refused("record budget", "record_key", record_key="customer"),
    "levels of importance with fluent draws": refused("fluent importance", "importance.levels", importance=LEVELLED),
    "weights of nested texts": refused(
        "importance nested", "columns", importance={"provider": "column", "percent": 50, "weights": ["weights_body"]}
    ),
    "weights of another number of columns": refused(
        "importance columns", "importance.weights", importance={"provider": "column", "percent": 50, "weights": ["weights_body"]}
    ),
    "document frequencies of a stream's own texts": refused(
        "importance stream", "importance.corpus", importance={"provider": "idf", "percent": 50}
    ),
    "a strategy of another level": refused(
        "token importance", "importance.strategy", importance=RANDOM | {"strategy": "conservative"}
    ),
    "unknown words by several remaps": refused("budget remap", "policy.oov", policy={"oov": "draw"}),
    "executors without a place of the key": refused("token executors", "key.deliver", key={"deliver": "executors"}),
    "a stream that overwrites": refused("token stream", "output.mode", output={"mode": "overwrite"}),
    "a stream of other files": refused("token stream", "input.format", input={"format": "parquet"}),
    "a remap without a law": refused("token remap", "mechanism.remap", mechanism=mechanism("laplace", remap="bayes")),
    "a column that is text and key": refused("record columns", "record_key", record_key="note"),
}  # fmt: skip

# Each text of one row; NULL and empty ones among them.
TEXTS: list[dict[str, Any]] = [
    {
        "body": "The old house of Dr. <person:Ada Lovelace> and the new school, said <listed:Qwxyz Zorblax>.",
        "note": "people like <clear:new music> in the city",
        "tags": ["city house", None, "good music, GOOD friends"],
        "comments": [("the old house", "x"), (None, "y"), ("<listed:Zorblax> of the world", "z")],
    },
    {
        "body": "Time and time again the people of the world see the people",
        "note": None,
        "tags": [],
        "comments": [],
    },
    {"body": None, "note": "", "tags": None, "comments": None},
    {"body": "", "note": "Music music MUSIC", "tags": ["", "war"], "comments": [("", "x")]},
    {
        "body": "write to <email:ada@example.org> by night, 17 times",
        "note": "call <email:x.y@example.com> back",
        "tags": ["<email:q@example.org> home"],
        "comments": [("night water 2024 river", None)],
    },
    {
        "body": "wurbel the drotzen school\nand the king's horse - a long-time story",
        "note": "flimsch",
        "tags": ["flimsch river", "wurbel"],
        "comments": [("The king of the drotzen", "x"), ("church river church", "x")],
    },
    {
        "body": "three men, four women; five children with six books in the white house near the black river today",
        "note": "seven times the same story of the old king, his wife and his brother, and of a battle in the north",
        "tags": ["long " * 9 + "road", "village and county and town"],
        "comments": [("men women children people family father mother brother daughter wife", "x")],
    },
    {
        "body": "Mrs. <person:Brzezinski> met the owner <listed:vladimirova> at <clear:new music>",
        "note": "Mr. <person:Zorkin> and his song",
        "tags": ["<clear:new music> of the band"],
        "comments": [("Mrs. <person:Brzezinski> left", "x")],
    },
    {  # most words of it are unknown
        "body": "flimsch drotzen, the wurbel",
        "note": "wurbel",
        "tags": ["wurbel", None, "drotzen"],
        "comments": [("wurbel flimsch house", None)],
    },
]
OWNERS = [None, "", "Vladimirova", None]
MASK, KEEP = ["Qwxyz Zorblax", "Zorblax"], ["new music"]
COPIES = 3


def shown(text: str | None) -> str | None:
    """Return a tagged text as the input holds it."""
    return None if text is None else TAG.sub(r"\2", text)


def tagged_rows() -> list[dict[str, Any]]:
    """Return the rows of the input, their texts tagged: each text several times, for draws differ by row."""
    found = []
    for number in range(COPIES * len(TEXTS)):
        texts = TEXTS[number % len(TEXTS)]
        found.append(
            {
                "id": 1000 + number,
                "customer": f"c{number // 4}",
                "size": number,
                **texts,
                "owner": "Vladimirova" if number % len(TEXTS) == 7 else OWNERS[number % 2],
            }
        )
    return found
