"""Support tickets for the demo: realistic private text from the project's own templates."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime, timezone
from importlib import resources
from random import Random

import pyarrow as pa
import yaml

from dptext_spark.errors import SettingsError

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
_OF_A_CUSTOMER = ("me", "mine", "home", "street", "phone")
_OF_A_TICKET = ("agent", "thing", "mark", "product", "order", "parcel")
# What may be added to a text, and how often.
_ASIDES = (("about", 0.6), ("mood", 0.5), ("reach", 0.3), ("angry", 0.12), ("foreign", 0.08))
# "an hour" needs no rule here: none of the words that follow a slot begins with a silent h.
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeioAEIO]|[uU](?![sn]i|SB))")
_LETTERS_WITHOUT_MARKS = str.maketrans({"ø": "o", "\u0131": "i", "ß": "ss", "ł": "l"})


def tickets(rows: int, seed: int) -> pa.Table:
    """Make a table of support tickets.

    About a third as many customers as tickets write them, some far more often than others. Texts hold names,
    order numbers, e-mail addresses, phone numbers, prices, dates, product names, emoji, words of other
    languages, capitals and several lines. All of it is invented.

    Args:
        rows: how many tickets; 0 gives an empty table.
        seed: equal seeds give equal tables, on every supported Python.

    Returns:
        a table of `rows` rows with the columns of :data:`SCHEMA`. `ticket_id` is unique, `customer_id`
        repeats, `topic` is what the text is about, and `agent_reply` is NULL for one ticket in eight and empty for some.

    Raises:
        SettingsError: `rows` is negative.

    Examples:
        >>> table = dp.tickets(100, seed=1)
        >>> table.num_rows, table.column_names[-3:]
        (100, ['subject', 'body', 'agent_reply'])
    """
    if rows < 0:
        raise SettingsError(f"rows: {rows} is negative; valid: 0 or more.")
    random = Random(seed)
    writer = _Writer(random)
    customers: dict[int, dict[str, str]] = {}
    columns: dict[str, list[object]] = {name: [] for name in SCHEMA.names}
    seconds = _FIRST_DAY.timestamp()
    for number in range(rows):
        # The exponent makes a few customers write often.
        customer = int((rows / _TICKETS_A_CUSTOMER + 1) * random.random() ** 1.7)
        if customer not in customers:
            customers[customer] = writer.customer()
        topic = writer.start(customers[customer])
        seconds += 2 * _MEAN_GAP_SECONDS * random.random()
        columns["ticket_id"].append(_FIRST_TICKET + number)
        columns["customer_id"].append(f"C-{10_000 + customer * 7:06d}")
        columns["created_at"].append(int(seconds) * 1_000_000)
        columns["channel"].append(_one(random, _CHANNELS))
        columns["priority"].append(_one(random, _PRIORITIES))
        columns["topic"].append(topic)
        columns["subject"].append(writer.subject(topic))
        columns["body"].append(writer.body(topic))
        columns["agent_reply"].append(writer.reply())
    return pa.table([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


def _one(random: Random, choices: tuple[str, ...]) -> str:
    # Of all its methods only random() is promised to stay the same from one Python to the next.
    return choices[int(random.random() * len(choices))]


class _Writer:
    """Expands the templates, with the values that a customer and a ticket keep."""

    def __init__(self, random: Random) -> None:
        text = (
            resources.files("dptext_spark.demo").joinpath("sample_tickets.yaml").read_text(encoding="utf-8")
        )
        self._random = random.random
        # A line is cut into its literal parts, at even places, and the names between them, at odd places.
        self._lines: dict[str, list[list[str]]] = {
            name: [re.split(r"\{(\w+)\}", line) for line in lines]
            for name, lines in yaml.safe_load(text).items()
        }
        self._fixed: dict[str, str] = {}

    def customer(self) -> dict[str, str]:
        """Draw somebody who writes: a name, an address, a phone number and an e-mail address."""
        self._fixed = {}
        drawn = {name: self._say(name) for name in _OF_A_CUSTOMER}
        first, last = _address_part(drawn["me"]), _address_part(drawn["mine"])
        forms = (f"{first}.{last}", f"{first[0]}{last}", f"{last}{self._say('small')}", f"{first}_{last}")
        local = forms[int(self._random() * len(forms))]
        return {**drawn, "email": f"{local}@{self._say('domain')}"}

    def start(self, customer: dict[str, str]) -> str:
        """Begin a ticket of `customer` and return its topic."""
        self._fixed = dict(customer)
        for name in _OF_A_TICKET:
            self._fixed[name] = self._say(name)
        return self._say("topics")

    def subject(self, topic: str) -> str:
        """Return a subject line."""
        subject = self._sentence(f"{topic}_subject")
        style = self._random()
        if style < 0.05:
            return subject.upper() + "!!!"
        if style < 0.15:
            return f"{'Re' if style < 0.1 else 'Fwd'}: {subject}"
        return subject.lower() if style < 0.2 else subject

    def body(self, topic: str) -> str:
        """Return a text of three to ten sentences, in one of several manners of writing."""
        chance = self._random
        said = self._distinct(topic, 2 + int(chance() * 4))
        # Asides stand anywhere but at the beginning.
        for name, share in _ASIDES:
            if chance() < share and not (topic == "praise" and name in ("mood", "angry")):
                aside = self._sentence(name)
                shouted = name == "angry" and chance() < 0.7
                said.insert(1 + int(chance() * len(said)), aside.upper() if shouted else aside)
        if chance() < 0.1:
            said[-1] += f" {self._say('emoji')}"
        layout = chance()
        if layout < 0.08:
            text = said[0] + "\n" + "\n".join(f"- {sentence}" for sentence in said[1:])
        elif layout < 0.35:
            cut = 1 + int(chance() * len(said))
            text = " ".join(said[:cut]) + "\n\n" + " ".join(said[cut:])
        else:
            text = ("  " if layout > 0.97 else " ").join(said)
        if chance() < 0.75:
            text = f"{self._say('hello')}{chr(10) if chance() < 0.7 else ' '}{text}"
        if chance() < 0.8:
            text = f"{text.rstrip()}\n\n{self._say('bye')}"
        manner = chance()
        if manner < 0.07:
            return text.lower().replace("'", "")
        return text.replace("'", "\u2019") if manner < 0.2 else text

    def reply(self) -> str | None:
        """Return what the agent wrote: None where nobody has answered, empty where the answer has no text."""
        answered = self._random()
        if answered < 0.125:
            return None
        if answered < 0.16:
            return ""
        said = " ".join(self._distinct("reply", 1 + int(self._random() * 3)))
        return f"{self._say('reply_start')}\n\n{said}\n\n{self._say('reply_end')}"

    def _distinct(self, name: str, count: int) -> list[str]:
        """Return `count` sentences from different lines."""
        lines = list(self._lines[name])
        said = []
        for _ in range(count):
            line = lines.pop(int(self._random() * len(lines)))
            said.append(_mended(self._fill(line)))
        return said

    def _sentence(self, name: str) -> str:
        return _mended(self._say(name))

    def _say(self, name: str) -> str:
        fixed = self._fixed.get(name)
        if fixed is not None:
            return fixed
        lines = self._lines[name]
        return self._fill(lines[int(self._random() * len(lines))])

    def _fill(self, line: list[str]) -> str:
        if len(line) == 1:
            return line[0]
        return "".join(self._say(part) if i % 2 else part for i, part in enumerate(line))


def _mended(sentence: str) -> str:
    """The sentence with a capital first letter, and `an` where a drawn word begins with a vowel."""
    sentence = _ARTICLE.sub(r"\1n ", sentence)
    return sentence[:1].upper() + sentence[1:]


def _address_part(name: str) -> str:
    """A name as it stands in an e-mail address: ASCII letters in lower case."""
    plain = unicodedata.normalize("NFKD", name.lower().translate(_LETTERS_WITHOUT_MARKS))
    return "".join(letter for letter in plain if letter.isascii() and letter.isalpha())
