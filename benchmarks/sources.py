"""What is measured on: lexicons, and texts whose words are as frequent as words are."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary

CHECKOUT = Path(__file__).resolve().parent.parent
GLOVE = "glove.840B.300d.34k.txt.gz"
SHIFT = 2.7  # Zipf-Mandelbrot: the word of rank r (from 0) has frequency 1 / (r + SHIFT)
UNKNOWN_SHARE, NUMBER_SHARE, CAPITAL_SHARE, STOP_MARK_SHARE = 0.02, 0.01, 0.03, 0.10
INVENTED = 500


def shared_data() -> Path | None:
    """Return the folder with real data: `$DPTEXT_SHARED_DATA`, else `../shared/data`; None where it is absent."""
    named = os.environ.get("DPTEXT_SHARED_DATA")
    folder = Path(named) if named else CHECKOUT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def shared_file(name: str) -> tuple[Path | None, str]:
    """Return a file of the real data, or None and the reason."""
    folder = shared_data()
    if folder is None:
        return None, f"{name}: no folder with the real data (DPTEXT_SHARED_DATA names one)"
    file = folder / name
    return (file, "") if file.is_file() else (None, f"{name}: not in the folder with the real data")


@cache
def glove(limit: int | None = None, tokenizer: Literal["words", "whitespace"] = "words") -> Lexicon:
    """Return the GloVe excerpt, or its first `limit` words, without those that the tokenizer never produces."""
    file, reason = shared_file(GLOVE)
    if file is None:
        raise FileNotFoundError(reason)
    return Lexicon.read(file, limit=limit, tokenizer=tokenizer)


@cache
def packaged(limit: int | None = None) -> Lexicon:
    """Return the packaged lexicon, or its first `limit` words."""
    whole = Lexicon.default()
    if limit is None or limit >= len(whole):
        return whole
    words = Vocabulary.of(whole.vocabulary.strings()[:limit])
    return Lexicon(words, np.ascontiguousarray(whole.vectors[:limit]), metric=whole.metric, name=whole.name)


def lexicons(
    limit: int | None, tokenizer: Literal["words", "whitespace"] = "words"
) -> tuple[list[tuple[str, Lexicon]], list[str]]:
    """Return the lexicons that are here, by name, and why others are not."""
    found = [("packaged", packaged(limit))]
    file, reason = shared_file(GLOVE)
    if file is None:
        return found, [reason]
    return [*found, ("GloVe", glove(limit, tokenizer))], []


def sst2(parts: tuple[str, ...] = ("train", "dev", "test")) -> tuple[pa.StringArray | None, str]:
    """Return the sentences of SST-2 (6,920, 872 and 1,821 of them), cut into words by spaces; or None and the reason."""
    rows: list[str] = []
    for part in parts:
        file, reason = shared_file(f"sst2/{part}.tsv")
        if file is None:
            return None, reason
        rows += [line.split("\t")[0] for line in file.read_text(encoding="utf-8").splitlines()]
    return pa.array(rows, pa.string()), ""


def by_frequency(lexicon: Lexicon, corpus: pa.Array) -> Lexicon:
    """Return the words of a corpus that a lexicon holds, frequent ones first: how the paper's code walks them."""
    count = Counter(word for row in corpus.to_pylist() for word in row.lower().split())
    ids = lexicon.vocabulary.ids(pa.array(list(count), pa.string()))
    held = sorted(
        (-number, word, int(i)) for (word, number), i in zip(count.items(), ids, strict=True) if i >= 0
    )
    words = Vocabulary.of([word for _, word, _ in held])
    return Lexicon(words, np.ascontiguousarray(lexicon.vectors[[i for _, _, i in held]]))


def texts(lexicon: Lexicon, rows: int, words_a_row: int, seed: int = 0) -> pa.StringArray:
    """Make rows of words of a lexicon.

    Both lexicons are in the order of frequency, so a Zipf-Mandelbrot law over their order gives the share of stop words
    and the spread over rare words that running text has. A few words are unknown, are numbers, are capitalised, or end
    in a comma or a full stop.

    Args:
        lexicon: V words, frequent ones first.
        rows: how many rows.
        words_a_row: words in each.
        seed: equal seeds give equal texts.

    Returns:
        string[rows].
    """
    random = np.random.default_rng(seed)
    words = len(lexicon)
    count = rows * words_a_row
    ids = _frequent(1.0 / (np.arange(words) + SHIFT), random.random(count))
    kind = random.random(count)
    unknown = kind < UNKNOWN_SHARE
    number = ~unknown & (kind < UNKNOWN_SHARE + NUMBER_SHARE)
    ids[unknown] = words + random.integers(0, INVENTED, int(unknown.sum()))
    ids[number] = words + INVENTED + random.integers(0, INVENTED, int(number.sum()))
    invented = [f"zq{''.join(random.choice(list('bdfgklmnprst'), 6))}" for _ in range(INVENTED)]
    numbers = [str(n) for n in random.integers(0, 10_000, INVENTED)]
    forms = pa.chunked_array([lexicon.vocabulary.strings(), pa.array(invented + numbers)]).combine_chunks()
    taken = _flat(forms.take(pa.array(ids)))
    capital = random.random(count) < CAPITAL_SHARE
    capital[::words_a_row] = True
    taken = pc.if_else(pa.array(capital), pc.utf8_capitalize(taken), taken)
    mark = np.where(random.random(count) < STOP_MARK_SHARE, random.integers(1, 3, count), 0)
    marks = pa.array(["", ",", "."]).take(pa.array(mark))
    tokens = pc.binary_join_element_wise(taken, marks, "")
    offsets = pa.array(np.arange(0, count + 1, words_a_row, dtype=np.int32))
    return pc.binary_join(pa.ListArray.from_arrays(offsets, _flat(tokens)), " ")


def _frequent(law: npt.NDArray[np.float64], numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the words that uniform numbers give under a law which need not sum to 1: int64[n]."""
    reached = np.cumsum(law / law.sum())
    return np.searchsorted(reached, numbers * reached[-1], side="right").clip(max=len(law) - 1)


def _flat(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def composition(totals: dict[str, int]) -> dict[str, float]:
    """Return the share of each kind of word in counted totals."""
    names = ("drawn", "stop_kept", "oov", "numbers")
    return {name: round(totals[name] / totals["words"], 4) for name in names}


def row_ids(rows: int) -> pa.Array:
    """Return int64[rows], one id a row."""
    return pa.array(np.arange(rows, dtype=np.int64))
