"""Make the demo's packaged support tickets anew, from a grammar of the project's own: `make tickets`.

Whoever writes has habits: of greeting, of length, of contractions and short forms, of capitals, and of slips.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from dptext_spark.arrays import F64, I64, Bools
from dptext_spark.demo import TICKETS
from dptext_spark.text.names.public_names import LIKELY, public_entries
from tools.ticket_grammar import NOTHING, START, Forms, Grammar, UniformNumbers

SEED = 20_000
PACKAGED = Path(__file__).parents[1] / "dptext_spark" / "demo" / "tickets.parquet"
SCHEMA = pa.schema(
    [
        pa.field("ticket_id", pa.int64(), nullable=False),
        pa.field("customer_id", pa.string(), nullable=False),
        pa.field("created_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("channel", pa.string(), nullable=False),
        pa.field("priority", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("body", pa.string(), nullable=False),
        pa.field("agent_reply", pa.string()),
    ]
)

_FIRST_TICKET = 100_001
_TICKETS_A_CUSTOMER = 3
_FIRST_DAY = datetime(2025, 1, 6, 8, tzinfo=timezone.utc)
_MEAN_GAP_SECONDS = 1500
_CHANNELS = ("email", "email", "email", "web form", "web form", "chat", "phone note")
_PRIORITIES = ("low", "normal", "normal", "normal", "high", "urgent")
# What is one text throughout a customer's tickets, or throughout a ticket: the rule that it is drawn by.
_OF_A_CUSTOMER = {
    "me": "any_given", "mine": "any_family", "home": "any_city", "street": "any_street", "phone": "any_phone",
}  # fmt: skip
_OF_A_TICKET = {
    "agent": "any_given", "thing": "goods", "mark": "any_mark", "product": "any_product", "order": "any_order",
    "parcel": "any_parcel",
}  # fmt: skip
_BOUND = (*_OF_A_CUSTOMER, "email", *_OF_A_TICKET)
_LISTED = {"listed_given": 2_000, "listed_family": 4_000, "listed_city": 2_000, "listed_region": 250}
_MOST_SAID, _MOST_REPLIED = 6, 3  # sentences about the topic
_TOPIC = "of_topic"
# What may stand beside them, and how often.
_BESIDE = (
    (_TOPIC, 1.4), (_TOPIC, 0.55), ("tell", 0.7), ("tell", 0.45), ("aside", 0.15), ("mood", 0.15),
    ("ask", 0.1), ("reach", 0.2), ("angry", 0.06), ("foreign", 0.06),
)  # fmt: skip
_OF_PRAISE = {"mood": "happy", "angry": "happy", "ask": "happy"}
_LETTERS_WITHOUT_MARKS = str.maketrans({"ø": "o", "\u0131": "i", "ß": "ss", "ł": "l"})


@dataclass(frozen=True, eq=False)
class _Language:
    """The grammar, and the forms that words have by habit."""

    grammar: Grammar
    topics: tuple[str, ...]
    forms: dict[str, Forms]


@dataclass(frozen=True, eq=False)
class _Writers:
    """Who writes, row by row: the texts of their own, and their habits.

    Attributes:
        texts: string[rows] of each bound rule.
        formal: how stiffly one writes, from 0 to 1.
        length: how much one has to say, from 0 to 1.
        habits: float64[rows] for each of the kinds of forms: how often a word has one.
        lower: who writes no capitals; and `bare`, who writes no apostrophes; and `curly`, whose apostrophes are.
    """

    texts: dict[str, pa.StringArray]
    formal: F64
    length: F64
    habits: dict[str, F64]
    lower: Bools
    bare: Bools
    curly: Bools


def tickets(rows: int, seed: int) -> pa.Table:
    """Make a table of support tickets, with the columns of :data:`SCHEMA`.

    About a third as many customers as tickets write them, some far more often than others. The first ticket has something of
    everything that the demo shows.

    Args:
        rows: how many tickets.
        seed: equal seeds give equal tables, on every supported Python.
    """
    language, uniform = _language(), UniformNumbers(seed)
    u = uniform.numbers(rows)
    # The exponent of 1.75 makes a few customers write often. A square root is the same everywhere, a power is not.
    often = u * np.sqrt(u) * np.sqrt(np.sqrt(u))
    customers = ((rows / _TICKETS_A_CUSTOMER + 1) * often).astype(np.int64)
    writers = _writers(language, customers, uniform)
    topic = uniform.picks(rows, len(language.topics))
    topic[:1] = language.topics.index("delivery")  # of which the first ticket tells
    gaps = (2 * _MEAN_GAP_SECONDS * 1_000_000 * uniform.numbers(rows)).astype(np.int64)
    columns = {
        "ticket_id": pa.array(np.arange(rows) + _FIRST_TICKET),
        "customer_id": pa.array([f"C-{10_000 + one * 7:06d}" for one in customers.tolist()], pa.string()),
        "created_at": pa.array(np.cumsum(gaps) + int(_FIRST_DAY.timestamp()) * 1_000_000),
        "channel": pa.array(_CHANNELS).take(pa.array(uniform.picks(rows, len(_CHANNELS)))),
        "priority": pa.array(_PRIORITIES).take(pa.array(uniform.picks(rows, len(_PRIORITIES)))),
        "topic": pa.array(language.topics).take(pa.array(topic)),
        "subject": _subjects(language, writers, topic, uniform),
        "body": _bodies(language, writers, topic, uniform),
        "agent_reply": _replies(language, writers, rows, uniform),
    }
    return pa.table([columns[field.name].cast(field.type) for field in SCHEMA], schema=SCHEMA)


@cache
def _language() -> _Language:
    """Read the grammar, and put the public lists of names into it."""
    file = Path(__file__).with_name("ticket_grammar.yaml")
    read = yaml.safe_load(file.read_text(encoding="utf-8"))
    forms, topics = read.pop("forms"), tuple(read["topics"])
    rules = {
        name: rule.splitlines() if isinstance(rule, str) else [str(one) for one in rule]
        for name, rule in read.items()
    }
    of_topic = rules.pop("of_topic")
    rules |= {
        f"of_{name}": [line.replace("{word}", f"{{{name}_word}}") for line in of_topic] for name in topics
    }
    names = {name: _listed(kind, most) for kind, (name, most) in enumerate(_LISTED.items())}
    grammar = Grammar(rules | names, _BOUND, names, apart=[*dict.fromkeys(topics), "reply"])
    for text in (" ", "  ", "\n", "\n\n", "\n- ", "Re: ", "Fwd: "):
        grammar.piece(text)
    known = {
        kind: grammar.forms(
            {
                str(word): [str(x) for x in ([has] if isinstance(has, str | int) else has)]
                for word, has in of.items()
            }
        )
        for kind, of in forms.items()
    }
    return _Language(grammar, topics, known)


def _listed(kind: int, most: int) -> list[str]:
    """Return the commonest names of a packaged list that are hardly other words."""
    entries = public_entries(kind)
    data = entries.data.tobytes()
    places = np.flatnonzero(entries.classes >= LIKELY)[:most]
    return [
        data[entries.bounds[place] : entries.bounds[place + 1]].decode("utf-8") for place in places.tolist()
    ]


def _drawn(
    language: _Language, rules: dict[str, str], rows: int, uniform: UniformNumbers
) -> dict[str, pa.StringArray]:
    """Return texts by rules, each of which may name those before it."""
    made: dict[str, pa.StringArray] = {}
    for name, rule in rules.items():
        made[name] = language.grammar.texts(
            np.full((rows, 1), language.grammar.rule(rule)), uniform, {**made}
        )
    return made


def _writers(language: _Language, customers: I64, uniform: UniformNumbers) -> _Writers:
    """Draw those who write: their names, where they can be reached, and their habits."""
    known, row = np.unique(customers, return_inverse=True)
    many = len(known)
    own = _drawn(language, {**_OF_A_CUSTOMER, "small": "small", "domain": "domain"}, many, uniform)
    small, domain = own.pop("small").to_pylist(), own.pop("domain").to_pylist()
    form = uniform.picks(many, 4).tolist()
    addresses = []
    for n, (first, last) in enumerate(zip(own["me"].to_pylist(), own["mine"].to_pylist(), strict=True)):
        first, last = _address_part(first), _address_part(last)
        forms = (f"{first}.{last}", f"{first[:1]}{last}", f"{last}{small[n]}", f"{first}_{last}")
        addresses.append(f"{forms[form[n]]}@{domain[n]}")
    own["email"] = pa.array(addresses, pa.string())
    place = pa.array(row)
    texts = {name: texts.take(place) for name, texts in own.items()}
    texts |= _drawn(language, _OF_A_TICKET, len(customers), uniform)
    u = uniform.numbers(8, many)[:, row]
    # The first ticket shows what a ticket can hold, without what is peculiar to a writer.
    u[:, :1] = 0.5
    habits = {
        "full": np.select([u[2] < 0.55, u[2] < 0.8], [0.0, 0.35], 1.0),
        "short": np.select([u[3] < 0.8, u[3] < 0.93], [0.0, 0.2], 0.7),
        "slip": np.select([u[4] < 0.55, u[4] < 0.85], [0.0, 0.04], 0.15),
        "american": np.where(u[5] < 0.6, 0.0, 1.0),
    }
    return _Writers(texts, u[0], u[1], habits, u[6] < 0.08, u[7] < 0.08, u[7] > 0.88)


def _address_part(name: str) -> str:
    """A name as it stands in an e-mail address: ASCII letters in lower case."""
    plain = unicodedata.normalize("NFKD", name.lower().translate(_LETTERS_WITHOUT_MARKS))
    return "".join(letter for letter in plain if letter.isascii() and letter.isalpha())


def _subjects(language: _Language, writers: _Writers, topic: I64, uniform: UniformNumbers) -> pa.StringArray:
    """Return a subject line for each ticket."""
    rows, grammar = len(topic), language.grammar
    rules = np.array([grammar.rule(f"{name}_subject") for name in language.topics])
    manner = uniform.numbers(rows)
    before = np.select(
        [manner < 0.05, manner < 0.1], [grammar.piece("Re: "), grammar.piece("Fwd: ")], NOTHING
    )
    plan = np.column_stack((before, np.full(rows, START), rules[topic]))
    if rows:
        plan[0] = (NOTHING, START, grammar.rule("everything_subject"))
        manner[0] = 1.0
    texts = grammar.texts(plan, uniform, writers.texts, _habits(language, writers))
    texts = pc.if_else(pa.array((manner > 0.1) & (manner < 0.15)), pc.utf8_lower(texts), texts)
    shouted = pc.binary_join_element_wise(pc.utf8_upper(texts), "!!!", "")
    return _manners(pc.if_else(pa.array((manner > 0.15) & (manner < 0.19)), shouted, texts), writers)


def _bodies(language: _Language, writers: _Writers, topic: I64, uniform: UniformNumbers) -> pa.StringArray:
    """Return what each customer writes: some sentences about the topic, and some beside it."""
    rows, grammar = len(topic), language.grammar
    said, order = [], []
    wanted = 1 + (writers.length * 0.6 + uniform.numbers(rows)).astype(np.int64)
    main = np.zeros((rows, _MOST_SAID), np.int64)
    for name in dict.fromkeys(language.topics):
        here = np.flatnonzero(np.array(language.topics)[topic] == name)
        lines = grammar.lines(name)
        main[here] = lines[np.argsort(uniform.numbers(len(here), len(lines)), axis=1)[:, :_MOST_SAID]]
    for number in range(_MOST_SAID):
        said.append(np.where(number < wanted, main[:, number], NOTHING))
        order.append(np.full(rows, float(number)))
    praises = np.array(language.topics)[topic] == "praise"
    for name, share in _BESIDE:
        rule = (
            np.array([grammar.rule(f"of_{one}") for one in language.topics])[topic]
            if name == _TOPIC
            else np.where(praises, grammar.rule(_OF_PRAISE.get(name, name)), grammar.rule(name))
        )
        says = uniform.numbers(rows) < share * (0.5 + writers.length)
        said.append(np.where(says, rule, NOTHING))
        order.append(uniform.numbers(rows) * wanted)  # anywhere but at the beginning
    by_row = np.argsort(np.where(np.column_stack(said) == NOTHING, np.inf, np.column_stack(order)), axis=1)
    sentences = np.take_along_axis(np.column_stack(said), by_row, axis=1)
    plan = _laid_out(grammar, writers, sentences, uniform)
    if rows:
        plan[0] = NOTHING
        plan[0, :2] = START, grammar.rule("everything")
    return _manners(grammar.texts(plan, uniform, writers.texts, _habits(language, writers)), writers)


def _laid_out(grammar: Grammar, writers: _Writers, sentences: I64, uniform: UniformNumbers) -> I64:
    """Return the plan of letters: a greeting, sentences with what stands between them, and an end."""
    rows, most = sentences.shape
    gap, wide, line, empty, dash = (grammar.piece(text) for text in (" ", "  ", "\n", "\n\n", "\n- "))
    count = (sentences != NOTHING).sum(axis=1)
    layout, cut = uniform.numbers(rows), 1 + (uniform.numbers(rows) * count).astype(np.int64)
    number = np.arange(1, most + 1)
    between = np.full((rows, most), gap)
    between[layout < 0.06] = dash
    between[layout > 0.97] = wide
    between[((layout > 0.06) & (layout < 0.35))[:, None] & (number == cut[:, None])] = empty
    between[number >= count[:, None]] = NOTHING
    begins = np.where(sentences == NOTHING, NOTHING, START)
    formal = uniform.numbers(rows) < writers.formal
    hello = np.where(formal, grammar.rule("hello_formal"), grammar.rule("hello_friendly"))
    bye = np.where(formal, grammar.rule("bye_formal"), grammar.rule("bye_friendly"))
    greets, leaves = uniform.numbers(rows) < 0.5, uniform.numbers(rows) < 0.6
    smiles = (uniform.numbers(rows) < 0.12) & ~formal
    return np.column_stack(
        (
            np.where(greets, hello, NOTHING),
            np.where(greets, np.where(uniform.numbers(rows) < 0.7, line, gap), NOTHING),
            np.stack((begins, sentences, between), axis=2).reshape(rows, 3 * most),
            np.where(smiles, gap, NOTHING),
            np.where(smiles, grammar.rule("emoji"), NOTHING),
            np.where(leaves, empty, NOTHING),
            np.where(leaves, bye, NOTHING),
        )
    )


def _replies(language: _Language, writers: _Writers, rows: int, uniform: UniformNumbers) -> pa.StringArray:
    """Return what agents wrote: NULL where nobody has answered, empty where the answer has no text."""
    grammar = language.grammar
    lines = grammar.lines("reply")
    chosen = lines[np.argsort(uniform.numbers(rows, len(lines)), axis=1)[:, :_MOST_REPLIED]]
    kept = np.arange(_MOST_REPLIED) <= uniform.picks(rows, _MOST_REPLIED)[:, None]
    gap, empty = grammar.piece(" "), grammar.piece("\n\n")
    parts = np.stack((np.full(chosen.shape, gap), np.full(chosen.shape, START), chosen), axis=2)
    parts[:, 0, 0] = empty
    said = np.where(kept[:, :, None], parts, NOTHING).reshape(rows, 3 * _MOST_REPLIED)
    ends = (
        np.full(rows, grammar.rule("reply_start")),
        np.full(rows, empty),
        np.full(rows, grammar.rule("reply_end")),
    )
    answered = uniform.numbers(rows)
    plan = np.column_stack((ends[0], said, *ends[1:]))
    plan[answered < 0.16] = NOTHING
    texts = grammar.texts(plan, uniform, writers.texts)
    return pc.if_else(pa.array(answered < 0.125), pa.scalar(None, pa.string()), texts)


def _habits(language: _Language, writers: _Writers) -> list[tuple[Forms, F64]]:
    return [(forms, writers.habits[kind]) for kind, forms in language.forms.items()]


def _manners(texts: pa.StringArray, writers: _Writers) -> pa.StringArray:
    """Return texts with the capitals and apostrophes that their writers use."""
    texts = pc.if_else(pa.array(writers.lower), pc.utf8_lower(texts), texts)
    texts = pc.if_else(pa.array(writers.bare), pc.replace_substring(texts, "'", ""), texts)
    return pc.if_else(pa.array(writers.curly), pc.replace_substring(texts, "'", "\u2019"), texts)


if __name__ == "__main__":
    pq.write_table(tickets(TICKETS, SEED), PACKAGED, compression="zstd", compression_level=19)
