"""Runs of letters of some texts as words."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from dptext_spark.text.chunks import Spans


def spans_of(texts: Sequence[str | bytes]) -> Spans:
    raw = [text.encode() if isinstance(text, str) else text for text in texts]
    rows = np.append(0, np.cumsum([len(one) for one in raw])).astype(np.int64)
    found = [[match.span() for match in re.finditer(rb"[A-Za-z\x80-\xff]+", one)] for one in raw]
    texts = zip(found, rows[:-1].tolist(), strict=True)
    places = [(start + at, end + at) for text, at in texts for start, end in text]
    starts, ends = np.array(places, np.int64).reshape(-1, 2).T
    bounds = np.append(0, np.cumsum([len(one) for one in found])).astype(np.int64)
    return Spans(np.frombuffer(b"".join(raw) + bytes(16), np.uint8), rows, starts, ends, bounds)
