"""Every mechanism on one core: tokens a second, whole-lexicon laws, the noise kernel, 1-D lists, and what grows.

All but the lists is measured in a process of its own whose matrix products have one thread: binding a process to a core binds
the thread that asks, but not those that the BLAS has made before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from unittest.mock import patch

from benchmarks.measure import Figure, Goal, Section, in_turn, scaled
from benchmarks.noise_search import noise_search
from benchmarks.sampling import subject
from benchmarks.sizes import Sizes
from benchmarks.sources import lexicons
from benchmarks.token_rates import growth, rates, short_laws
from benchmarks.whole_laws import whole_laws
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.orderings import orderings, start_words

THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
PARTS: dict[str, Callable[[Sizes], Section]] = {
    "tokens a second": rates,
    "short laws": short_laws,
    "growth": growth,
    "whole laws": whole_laws,
    "noise search": noise_search,
}
WALK = (Goal(5.0, 5.0, "value"),)


@contextmanager
def single_threaded() -> Iterator[Executor]:
    """Yield a process whose matrix products have one thread."""
    with (
        patch.dict(os.environ, dict.fromkeys(THREADS, "1")),
        ProcessPoolExecutor(1, get_context("spawn")) as process,
    ):
        yield process


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure with the GloVe excerpt if it is here, or else with the packaged lexicon."""
    name, lexicon = subject(sizes)
    shown = f"{name} {len(lexicon):,} x {lexicon.dimensions}"
    section = Section("mechanisms", f"Mechanisms, {shown}, one core")
    section.skipped = lexicons(sizes.lexicon_words)[1]
    with single_threaded() as process:
        for part, measured in PARTS.items():
            say(f"mechanisms: {part}")
            found = process.submit(measured, sizes).result()
            section.figures += found.figures
            section.facts[part] = found.facts
    say("mechanisms: lists")
    section.figures.append(_walk(lexicon, sizes.long_rounds))
    return section


def _walk(lexicon: Lexicon, rounds: int) -> Figure:
    """Return the seconds of one exact greedy walk, on all cores that faiss takes."""
    starts = start_words(len(lexicon), 1, 0)
    orderings(lexicon.vectors[:1000], [0])  # machine code is made or loaded once a process
    (times,) = in_turn(rounds, lambda: orderings(lexicon.vectors, starts))
    return Figure(f"the list of {len(lexicon):,} words, all cores", "s", scaled(times, 1.0), goals=WALK)
