"""The lexicon: how well its geometry agrees with people's judgements, and how long reading and opening take."""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Figure, Section, Spread, in_turn, quotient, scaled
from benchmarks.simlex import simlex_spearman
from benchmarks.sizes import Sizes
from benchmarks.sources import GLOVE, SIMLEX, lexicons, shared_file
from dptext_spark.lexicon.lexicon import VECTORS_FILE, Lexicon
from dptext_spark.lexicon.neighbors import Metric
from dptext_spark.lexicon.vocabulary import BYTES_FILE, OFFSETS_FILE

# What is known of SimLex-999: of this table reduced to 100 dimensions, and of GloVe. The raw table has 0.495 and 0.459.
EXPECTED: dict[tuple[str, Metric], float] = {
    ("packaged", "cosine"): 0.498,
    ("packaged", "euclidean"): 0.504,
    ("GloVe", "cosine"): 0.409,
}
BLOCK = 1 << 20


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure every lexicon that is here."""
    section = Section("lexicon", "Lexicons: SimLex-999, reading, opening")
    found, section.skipped = lexicons(sizes.lexicon_words)
    pairs, reason = shared_file(SIMLEX)
    if pairs is None:
        section.skipped.append(reason)
    else:
        say("lexicon: SimLex-999")
        section.figures += _similarity(found, pairs, whole=sizes.lexicon_words is None)
    file, _ = shared_file(GLOVE)  # that it is missing is said above
    if file is not None:
        say("lexicon: reading the GloVe file")
        section.figures += _reading(file, sizes)
    say("lexicon: opening saved lexicons")
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as folder:
        for name, lexicon in found:
            section.figures += _opening(name, lexicon, Path(folder) / name, sizes.rounds)
    return section


def _similarity(found: list[tuple[str, Lexicon]], pairs: Path, whole: bool) -> list[Figure]:
    """Return Spearman's correlation of each lexicon and metric, beside what is expected of a whole lexicon."""
    figures = []
    for name, lexicon in found:
        metrics: tuple[Metric, ...] = ("cosine", "euclidean")
        for metric in metrics:
            expected = EXPECTED.get((name, metric)) if whole else None
            value = Spread((simlex_spearman(lexicon, pairs, metric),))
            figures.append(
                Figure(
                    f"SimLex-999, {name} {len(lexicon):,}, {metric}",
                    "Spearman's rho",
                    value,
                    "" if expected is None else "expected",
                    None if expected is None else Spread((expected,)),
                    note="an exact figure: nothing to repeat",
                )
            )
    return figures


def _reading(file: Path, sizes: Sizes) -> list[Figure]:
    """Return the seconds of reading beside a plain Python reader, and beside decompression alone."""
    limit = sizes.lexicon_words
    ours, plain, bare = in_turn(
        sizes.long_rounds,
        lambda: Lexicon.read(file, limit=limit),
        lambda: _read_plainly(file, limit),
        lambda: _decompress(file, limit),
    )
    value = scaled(ours, 1.0)
    name = f"reading {limit or 'all'} words of {file.name}"
    return [
        Figure(name, "s", value, peer, theirs, quotient(value, theirs), "x its time")
        for peer, theirs in (
            ("plain Python reader", scaled(plain, 1.0)),
            ("decompression alone", scaled(bare, 1.0)),
        )
    ]


def _read_plainly(file: Path, limit: int | None) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Read GloVe text the way everybody does: a line, a split, an array."""
    words, rows = [], []
    with gzip.open(file, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            word, *numbers = line.rstrip("\n").split(" ")
            if len(numbers) == 1:
                continue  # a header: how many words, how many numbers
            words.append(word)
            rows.append(np.array(numbers, dtype=np.float32))
            if len(words) == limit:
                break
    return words, np.stack(rows)


def _decompress(file: Path, limit: int | None) -> None:
    """Decompress as much as holds `limit` lines."""
    lines = 0
    with gzip.open(file, "rb") as content:
        while block := content.read(BLOCK):
            lines += block.count(b"\n") if limit is not None else 0
            if limit is not None and lines >= limit:
                break


def _opening(name: str, lexicon: Lexicon, folder: Path, rounds: int) -> list[Figure]:
    """Return the milliseconds of opening a saved lexicon, checked and unchecked, beside hashing its files."""
    lexicon.save(folder)
    files = [folder / file for file in (OFFSETS_FILE, BYTES_FILE, VECTORS_FILE)]

    def hashed() -> None:
        for file in files:
            hashlib.sha256(file.read_bytes()).digest()

    checked, unchecked, floor = in_turn(
        rounds, lambda: Lexicon.open(folder), lambda: Lexicon.open(folder, verify=False), hashed
    )
    peer = scaled(floor, 1e3)
    return [
        Figure(f"opening {name}, {how}", "ms", value, "sha256 of its files", peer, quotient(value, peer), "x its time")
        for how, value in (("checked", scaled(checked, 1e3)), ("unchecked", scaled(unchecked, 1e3)))
    ]  # fmt: skip
