"""How much is measured: in full, quickly, or just enough to see that it works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run.

    Attributes:
        name: of this choice.
        rounds: how often a short figure is measured, in turn with its peer.
        long_rounds: how often one that takes seconds is.
        rows: rows of a batch.
        words_a_row: words in each row.
        loop_rows: rows that the plain Python loop gets.
        lexicon_words: cut lexicons to that many words; None takes them whole.
        set_sizes: K of the shares by type.
        spark_rows: rows of the Spark job.
        workers: processes that hold the model at once.
        noise_rows: rows of a batch for mechanisms that search the whole lexicon.
        sample_words: words over which a mean goes that is costly for all of them.
        sample_draws: draws of each, where a law has no closed form.
        texts: rows of a real data set.
        scale_rows: rows of the smallest table of the Spark job as it grows.
        scale_times: how often its files are repeated.
    """

    name: str
    rounds: int
    long_rounds: int
    rows: int
    words_a_row: int
    loop_rows: int
    lexicon_words: int | None
    set_sizes: tuple[int, ...]
    spark_rows: int
    workers: int
    noise_rows: int
    sample_words: int
    sample_draws: int
    texts: int
    scale_rows: int
    scale_times: tuple[int, ...]


FULL = Sizes(
    "full",
    15,
    5,
    50_000,
    25,
    2_500,
    None,
    (20, 50, 100),
    1_000_000,
    8,
    160,
    300,
    20,
    1_000,
    400_000,
    (1, 10, 100),
)
QUICK = Sizes("quick", 5, 2, 10_000, 25, 500, 6_000, (20, 50), 20_000, 2, 80, 60, 5, 100, 8_000, (1, 4))
TOY = Sizes("toy", 2, 1, 40, 5, 10, 300, (5,), 200, 2, 20, 20, 2, 10, 400, (1, 2))
