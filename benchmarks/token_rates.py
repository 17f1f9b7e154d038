"""Tokens a second of every mechanism, from string to string, beside other implementations; short laws beside CusText."""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.engine import one_core, runner
from benchmarks.measure import Figure, Goal, Section, Spread, in_turn, quotient, scaled
from benchmarks.sampling import model, subject
from benchmarks.sizes import Sizes
from benchmarks.sources import composition, lexicons, texts
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
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.policy import Policy

ELSEWHERE = (
    "The other implementations' tokens a second were taken elsewhere, on a machine of this kind, and are not measured here: of "
    "a range (TEM 9 to 18, truncated Gumbel 36 to 1,030) the upper end stands. Some of them read ids or text that is split "
    "already; ours are from string to string. Tokens are all words of the text; stop words are kept unless it says otherwise."
)
SELECTION = "truncated_gumbel stands beside CusText without a goal: it has no law in a table, but draws noise for ten words."
SAME_TEXTS = "Growth with V: the same texts of the smaller lexicon's words through both models; every known word is drawn."
CACHES = "Of its own words: texts made of each lexicon's words. More distinct words touch more of the tables, beyond the caches."
KEEP, DRAW = Policy(), Policy(stop_words="draw")
SHORT = (Goal(1.3, 1.3, "ratio"),)
GROWTH = (Goal(1.15, 1.3, "ratio"),)


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


def prepared(
    lexicon: Lexicon,
    mechanism: Mechanism,
    sizes: Sizes,
    policy: Policy,
    part: int = 1,
    of: Lexicon | None = None,
) -> Run:
    """Make a text of the words of a lexicon (`of`; the mechanism's own), one `part`-th of the rows; a first run is done."""
    sampler = model(lexicon, mechanism).sampler
    rows = sizes.noise_rows if isinstance(sampler, NoiseSampler) else sizes.rows
    call = runner(
        Privatizer(lexicon, sampler, policy), texts(of or lexicon, max(1, rows // part), sizes.words_a_row)
    )
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


def growth(sizes: Sizes) -> Section:
    """Measure whether a token costs more in a longer text, or with a larger lexicon; every known word is drawn."""
    _, lexicon = subject(sizes)
    small = lexicons(sizes.few_words)[0][-1][1]
    section = Section("growth", "growth")
    cases, sets_and_lists = (CUSTEXT, GEOMETRIC, SANTEXT, GUMBEL, CALIBRATED), (CUSTEXT, GEOMETRIC)
    compile_all(lexicon, cases)
    compile_all(small, sets_and_lists)
    with one_core():
        for case in cases:
            many = prepared(lexicon, case.mechanism, sizes, DRAW)
            few = prepared(lexicon, case.mechanism, sizes, DRAW, part=10)
            shown, peer = f"{case.shown}, a token of {many.words:,}", f"of {few.words:,}"
            section.figures.append(_grown(shown, many, peer, few, sizes.long_rounds, GROWTH))
        for case in sets_and_lists:
            little = prepared(small, case.mechanism, sizes, DRAW)
            shown, peer = f"{case.shown}, a token, V = {len(lexicon):,}", f"V = {len(small):,}"
            same = prepared(lexicon, case.mechanism, sizes, DRAW, of=small)
            section.figures.append(_grown(shown, same, peer, little, sizes.rounds, GROWTH, SAME_TEXTS))
            own = prepared(lexicon, case.mechanism, sizes, DRAW)
            section.figures.append(
                _grown(f"{shown}, of its own words", own, peer, little, sizes.rounds, note=CACHES)
            )
    return section


def _grown(
    shown: str,
    more: Run,
    peer_name: str,
    less: Run,
    rounds: int,
    goals: tuple[Goal, ...] = (),
    note: str = "",
) -> Figure:
    ours, theirs = in_turn(rounds, more.call, less.call)
    value, peer = scaled(ours, 1e9 / more.words), scaled(theirs, 1e9 / less.words)
    return Figure(shown, "ns", value, peer_name, peer, quotient(value, peer), "x its cost", goals, note)
