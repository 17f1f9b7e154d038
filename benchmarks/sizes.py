"""How much is measured: in full, quickly, or just enough to see that it works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run."""

    name: str  # of this choice
    rounds: int  # how often a short figure is measured, in turn with its peer
    long_rounds: int  # how often one that takes seconds is
    rows: int  # rows of a batch
    words_a_row: int  # words in each row
    loop_rows: int  # rows that the plain Python loop gets
    lexicon_words: int | None  # cut lexicons to that many words; None takes them whole
    set_sizes: tuple[int, ...]  # K of the shares by type
    spark_rows: int  # rows of the Spark job
    workers: int  # processes that hold the model at once
    noise_rows: int  # rows of a batch for mechanisms that search the whole lexicon
    texts: int  # rows of a real data set
    scale_rows: int  # rows of the smallest table of the Spark job as it grows
    scale_times: tuple[int, ...]  # how often its files are repeated
    against: str | None = None  # the folder of a lexicon that the packaged one is compared with


FULL = Sizes(
    "full", 15, 5, 50_000, 25, 2_500, None, (20, 50, 100), 1_000_000, 8, 160, 1_000, 400_000, (1, 10, 100)
)  # fmt: skip
QUICK = Sizes("quick", 5, 2, 10_000, 25, 500, 6_000, (20, 50), 20_000, 2, 80, 100, 8_000, (1, 4))
TOY = Sizes("toy", 2, 1, 40, 5, 10, 300, (5,), 200, 2, 20, 10, 400, (1, 2))
