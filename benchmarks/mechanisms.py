"""Every mechanism on one core: tokens a second, short laws beside CusText, and 1-D lists.

All but the lists is measured in a process of its own whose matrix products have one thread: binding a process to a core binds
the thread that asks, but not those that the BLAS has made before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import get_context
from typing import Any, NamedTuple
from unittest.mock import patch

from benchmarks.engine import one_core, runner
from benchmarks.measure import Figure, Goal, Section, Spread, in_turn, quotient, scaled
from benchmarks.sizes import Sizes
from benchmarks.sources import composition, lexicons, packaged, texts
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import (
    MVC,
    TEM,
    CusText,
    Diffractor,
    Gaussian,
    Laplace,
    Mahalanobis,
    Mechanism,
    Projection,
    SanText,
    TruncatedGumbel,
    TruncatedLaplace,
    Vickrey,
)
from dptext_spark.mechanisms.diffractor import orderings, start_words
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.policy import Policy

ELSEWHERE = (
    "The other implementations' tokens a second were taken elsewhere, on a machine of this kind, and are not measured here: of "
    "a range (TEM 9 to 18, truncated Gumbel 36 to 1,030) the upper end stands. Some of them read ids or text that is split "
    "already; ours are from string to string. Tokens are all words of the text; stop words are kept unless it says otherwise."
)
SELECTION = "truncated_gumbel stands beside CusText without a goal: it has no law in a table, but draws noise for ten words."
KEEP, DRAW = Policy(), Policy(stop_words="draw")
SHORT = (Goal(1.3, 1.3, "ratio"),)
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
WALK = (Goal(5.0, 5.0, "value"),)
WARM_UP = 300


class Peer(NamedTuple):
    """Another implementation.

    Attributes:
        name: whose.
        rate: tokens a second, as taken elsewhere.
        wanted: how many times as fast we should be; None: nothing is asked.
    """

    name: str
    rate: float
    wanted: float | None = None


class Case(NamedTuple):
    """A mechanism to measure; `shown` names its parameters."""

    shown: str
    mechanism: Mechanism
    peer: Peer | None = None


CUSTEXT = Case("custext, ε = 1, K = 20", CusText(), Peer("reference loop, ids", 68_000))
GEOMETRIC = Case("diffractor, ε = 1, geometric", Diffractor(), Peer("dp-diffractor as shipped", 1_440))
DIFFRACTOR_TEM = Case("diffractor, ε = 1, tem", Diffractor(form="tem"))
FOUR_LISTS = Case("diffractor, ε = 1, geometric, 4 lists", Diffractor(lists=4))
SANTEXT = Case("santext, ε = 1", SanText(), Peer("reference, ids", 4_000))
LONG_TEM = Case("tem, ε = 1 (whole lexicon)", TEM(), Peer("mldp-text", 18, 10_000))
SHORT_TEM = Case("tem, ε = 10 (a short ball)", TEM(epsilon=10.0), Peer("mldp-text", 18, 10_000))
GUMBEL = Case("truncated_gumbel, ε = 50", TruncatedGumbel(unsafe="published"), Peer("mldp-text", 1_030))
CALIBRATED = Case("calibrated (MVC), ε = 10", MVC(), Peer("mldp-text", 93, 40))
RATES = (
    CUSTEXT, GEOMETRIC, DIFFRACTOR_TEM, SANTEXT, LONG_TEM, SHORT_TEM, GUMBEL, CALIBRATED,
    Case("mahalanobis, ε = 10", Mahalanobis(), Peer("mldp-text", 26, 150)),
    Case("vickrey, ε = 10, t = 0.5", Vickrey(), Peer("mldp-text", 93)),
    Case("projection, ε = 10, m = 50", Projection(m=50)),
    Case("laplace, ε = 10", Laplace()),
    Case("gaussian, ε = 10, δ = 1e-6", Gaussian()),
    Case("truncated_laplace, ε = 10", TruncatedLaplace()),
)  # fmt: skip


class Run(NamedTuple):
    """A text that is sanitized: the call, and how many words of which kinds it meets."""

    call: Any
    words: int
    kinds: dict[str, float]


def prepared(lexicon: Lexicon, mechanism: Mechanism, sizes: Sizes, policy: Policy) -> Run:
    """Make a text of the words of a lexicon; a first run is done."""
    sampler = model(lexicon, mechanism)
    rows = sizes.noise_rows if isinstance(sampler, NoiseSampler) else sizes.rows
    call = runner(Privatizer(lexicon, sampler, policy), texts(lexicon, rows, sizes.words_a_row))
    totals = call()[1].totals()
    return Run(call, totals["words"], composition(totals))


def compile_all(lexicon: Lexicon, cases: tuple[Case, ...]) -> None:
    """Compile mechanisms before the process is kept on one core."""
    for case in cases:
        model(lexicon, case.mechanism)


def rates(sizes: Sizes) -> Section:
    """Measure every mechanism of the registry, those with a peer with stop words drawn, too."""
    name, lexicon = subject(sizes)
    section = Section("rates", f"tokens a second, {name}")
    compile_all(lexicon, RATES)
    with one_core() as core:
        section.facts = {"core": core, "lexicon": [name, len(lexicon), lexicon.dimensions], "texts": {}}
        for case in RATES:
            for policy in (KEEP, DRAW) if case.peer else (KEEP,):
                run = prepared(lexicon, case.mechanism, sizes, policy)
                shown = case.shown + ("" if policy is KEEP else ", stop words drawn")
                section.figures.append(_rate(shown, run, case.peer, sizes.long_rounds))
                section.facts["texts"][shown] = run.kinds
    return section


def _rate(shown: str, run: Run, peer: Peer | None, rounds: int) -> Figure:
    (times,) = in_turn(rounds, run.call)
    value = Spread(tuple(run.words / seconds for seconds in times))
    if peer is None:
        return Figure(shown, "tokens/s", value, note=ELSEWHERE)
    theirs = Spread((float(peer.rate),) * rounds)
    goals = () if peer.wanted is None else (Goal(peer.wanted, peer.wanted, "ratio", at_least=True),)
    return Figure(
        shown, "tokens/s", value, peer.name, theirs, quotient(value, theirs), "x faster", goals, ELSEWHERE
    )


def short_laws(sizes: Sizes) -> Section:
    """Measure what a word costs with short laws and lists, in turn with CusText."""
    _, lexicon = subject(sizes)
    section = Section("short laws", "short laws and lists, beside CusText")
    cases = (GEOMETRIC, DIFFRACTOR_TEM, FOUR_LISTS, SHORT_TEM, GUMBEL)
    compile_all(lexicon, (CUSTEXT, *cases))
    with one_core():
        custext = prepared(lexicon, CUSTEXT.mechanism, sizes, KEEP)
        for case in cases:
            run = prepared(lexicon, case.mechanism, sizes, KEEP)
            ours, theirs = in_turn(sizes.rounds, run.call, custext.call)
            value, peer = scaled(ours, 1e9 / run.words), scaled(theirs, 1e9 / custext.words)
            goals, note = ((), SELECTION) if case is GUMBEL else (SHORT, "")
            figure = Figure(
                f"{case.shown}, a token", "ns", value, CUSTEXT.shown, peer, quotient(value, peer), "x its cost", goals, note
            )  # fmt: skip
            section.figures.append(figure)
    return section


def subject(sizes: Sizes) -> tuple[str, Lexicon]:
    """Return the lexicon on which mechanisms are measured, and its name: the GloVe excerpt if it is here, or the packaged one."""
    return lexicons(sizes.lexicon_words)[0][-1]


@lru_cache(maxsize=20)  # tables over a whole lexicon are large
def model(lexicon: Lexicon, mechanism: Mechanism) -> Any:
    """Compile a mechanism, and remember the last few."""
    mechanism.compile(packaged(WARM_UP))  # machine code is made or loaded once a process
    return mechanism.compile(lexicon)


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
        for part, measured in {"tokens a second": rates, "short laws": short_laws}.items():
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
