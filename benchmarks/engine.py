"""The text engine on one core: nanoseconds a word from string to string."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from benchmarks.measure import Figure, Goal, Section, in_turn, quotient, scaled
from benchmarks.plain_loop import laws_of, plain_loop
from benchmarks.sizes import Sizes
from benchmarks.sources import composition, lexicons, row_ids, texts
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.privatizer import CONSISTENCY, Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.text.policy import Policy

GOALS = (Goal(45.0, 60.0, "value"), Goal(24.0, 18.0, "ratio", at_least=True))
ROWS_A_RECORD = 4


@contextmanager
def one_core() -> Iterator[int | None]:
    """Keep this process on one core, where the system can; yields its number."""
    if not hasattr(os, "sched_setaffinity"):
        yield None
        return
    before = os.sched_getaffinity(0)
    core = max(before)
    os.sched_setaffinity(0, {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, before)


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure the engine with every lexicon that is here."""
    section = Section("engine", "Text engine, one core, string to string")
    found, section.skipped = lexicons(sizes.lexicon_words)
    with one_core() as core:
        section.facts = {"core": core, "rows": sizes.rows, "words_a_row": sizes.words_a_row, "texts": {}}
        for name, lexicon in found:
            say(f"engine: {name} lexicon")
            _lexicon(section, name, lexicon, sizes)
    return section


def _lexicon(section: Section, name: str, lexicon: Lexicon, sizes: Sizes) -> None:
    """Add the figures of one lexicon."""
    shown = f"{name} {len(lexicon):,}"
    batch = texts(lexicon, sizes.rows, sizes.words_a_row)
    mechanism = CusText() if len(lexicon) > CusText().k else CusText(k=2)
    usual = Privatizer(lexicon, mechanism.compile(lexicon))
    drawing = Privatizer(lexicon, usual.sampler, Policy(stop_words="draw"))
    laws = laws_of(usual)
    variants = [(level, replace(usual, consistency=level, fingerprint="")) for level in CONSISTENCY]
    for variant, privatizer in [*variants, ("token, stop words drawn too", drawing)]:
        run = runner(privatizer, batch)
        totals = run()[1].totals()
        loop_rows = batch[: sizes.loop_rows].to_pylist()
        kept = frozenset(privatizer.policy.kept_words())

        def loop(rows: list[str] = loop_rows, kept: frozenset[str] = kept) -> None:
            plain_loop(rows, laws, kept)

        ours, theirs = in_turn(sizes.rounds, run, loop)
        value = scaled(ours, 1e9 / totals["words"])
        peer = scaled(theirs, 1e9 / (len(loop_rows) * sizes.words_a_row))
        figure = Figure(
            f"{shown}, {variant}", "ns/word", value, "plain Python loop", peer, quotient(peer, value), "x faster", GOALS
        )  # fmt: skip
        section.figures.append(figure)
        section.facts["texts"][f"{shown}, {variant}"] = composition(totals)


def runner(privatizer: Privatizer, batch: pa.Array) -> Callable[[], Any]:
    """Return a call that sanitizes the batch: (texts, counters)."""
    rows = row_ids(len(batch))
    records = pa.array([i // ROWS_A_RECORD for i in range(len(batch))], pa.int64())
    key = RunKey.insecure(0)
    return lambda: privatizer.privatize(batch, column="text", row_ids=rows, record_ids=records, key=key)
