"""The picture of the home page: rows of the demo's table, and what the default style releases of them."""

from __future__ import annotations

import re
from functools import cache
from html import escape

import pyarrow as pa

from dptext_spark.config.load import parse_model_config
from dptext_spark.demo.tickets import tickets
from dptext_spark.model.compile import prepare
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import marked, silent

# Places in the demo's table, and how many sentences of the body the picture shows.
ROWS = {0: 2, 4: 1, 7: 2}
SENTENCE = re.compile(r"(?<=[.!?])\s+")


@cache
def before_and_after() -> str:
    """Draw rows of the demo's table before and after a run in the style `balanced`, the changed words marked."""
    sample = tickets(max(ROWS) + 1)
    model, _ = prepare(parse_model_config({"style": "balanced"}), silent)
    body = pa.array(
        [
            " ".join(SENTENCE.split(text)[: ROWS.get(place, 1)])
            for place, text in enumerate(sample["body"].to_pylist())
        ]
    )
    # A public key: the picture is the same at each build, and its texts are invented.
    released, _ = model.privatize(
        body, column="text", row_ids=pa.array(range(len(body))), key=RunKey.insecure(1)
    )
    before, after = [], []
    for place in ROWS:
        row = sample.slice(place, 1).to_pylist()[0]
        first, second = marked(body[place].as_py(), released[place].as_py())
        before.append((str(row["ticket_id"]), row["customer_id"], row["topic"], first))
        after.append((str(row["ticket_id"]), second))
    tables = [
        _table(
            "Before: <code>tickets</code>, private", ("ticket_id", "customer_id", "topic", "body"), before
        ),
        _table("After: <code>sanitized</code>, <code>style: balanced</code>", ("ticket_id", "body"), after),
    ]
    return f'<div class="before-and-after">\n{"".join(tables)}</div>'


def _table(caption: str, names: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    heads = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in row).replace("\n", "<br>") + "</tr>\n" for row in rows
    )
    return f"<table>\n<caption>{caption}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"
