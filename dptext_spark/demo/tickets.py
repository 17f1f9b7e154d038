"""The demo's sample, packaged support tickets, and the release of one text by `strict` and `balanced` settings."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dptext_spark.config.load import parse_config, parse_model_config
from dptext_spark.config.model import RunConfig
from dptext_spark.demo import TICKETS
from dptext_spark.errors import SettingsError
from dptext_spark.model.compile import prepare
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import Progress, silent

FILE = "tickets.parquet"
TEXTS = ("subject", "body", "agent_reply")
ROW, RECORD = "ticket_id", "customer_id"
# Files of conf/, what protects most first. Those of papers are for corpora that are cut at blanks, which tickets are not.
SETTINGS = ("strict", "balanced")


def tickets(rows: int) -> pa.Table:
    """Return the first of the 4,000 packaged support tickets.

    Some 1,200 customers wrote them, some far more often than others. Texts hold names, order numbers, e-mail addresses,
    phone numbers, prices, dates, product names, emoji, words of other languages, capitals, slips and several lines. The first
    ticket has something of everything that the demo shows. All tickets are invented: a grammar of this project
    (`tools/tickets.py`) wrote them, and they are under its licence. It combined names at random, from lists of its own and from
    the packaged public lists.

    Args:
        rows: how many tickets, 0 to 4,000. Repeat them under new keys if you need more.

    Returns:
        A table of `rows` rows. `ticket_id` is unique, `customer_id` repeats, `topic` is what the text is about, and
        `agent_reply` is NULL for one ticket in eight and empty for some.

    Raises:
        SettingsError: `rows` is negative, or there are fewer tickets.

    Examples:
        >>> table = dp.tickets(100)
        >>> table.num_rows, table.column_names[-3:]
        (100, ['subject', 'body', 'agent_reply'])
    """
    if not 0 <= rows <= TICKETS:
        raise SettingsError(f"rows: {rows:,} is not valid. Use 0 to {TICKETS:,}, the packaged tickets.")
    file = files("dptext_spark.demo").joinpath(FILE)
    return pq.read_table(pa.BufferReader(file.read_bytes())).slice(0, rows)


def demo_config(source: str, target: str) -> RunConfig:
    """Return the settings of the demo's run."""
    return parse_config(
        {
            "input": {"path": source},
            "columns": list(TEXTS),
            "row_key": ROW,
            "record_key": RECORD,
            "style": "balanced",
            "output": {"path": target},
        }
    )


class ReleasedText(NamedTuple):
    """A text as one file of settings releases it: the file's name, its note on the mechanism, and one draw."""

    settings: str
    mechanism: str
    text: str


def side_by_side(text: str, key: RunKey, progress: Progress | None = None) -> list[ReleasedText]:
    """Release a text by each of `SETTINGS`, all with the packaged lexicon.

    The text must be public: the result shows its release by each file.

    Raises:
        DataError: conf/ is not installed with the package.
    """
    return [_released(settings, text, key, progress or silent) for settings in SETTINGS]


def _released(settings: str, text: str, key: RunKey, progress: Progress) -> ReleasedText:
    config = parse_model_config({"style": settings})
    privatizer, _ = prepare(config, progress)
    out, _ = privatizer.privatize(pa.array([text]), column="text", row_ids=pa.array([0]), key=key)
    mechanism = config.spec()["mechanism"]
    words = "stop words drawn" if config.policy.stop_words == "draw" else "stop words in clear"
    level = (
        f"one replacement for each word of a {config.consistency}"
        if config.consistency != "token"
        else "each word anew"
    )
    return ReleasedText(
        settings, f"{mechanism['name']}, ε = {mechanism['epsilon']:g}, {level}, {words}", out[0].as_py()
    )
