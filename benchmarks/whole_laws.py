"""Laws over a whole lexicon: what a word costs for every ε, compiling included, and what the tables take."""

from __future__ import annotations

from benchmarks.engine import one_core
from benchmarks.measure import Figure, Goal, Section, Spread, in_turn, scaled
from benchmarks.sampling import drawing, model, subject
from benchmarks.sizes import Sizes
from dptext_spark.mechanisms import TEM, Mechanism, SanText
from dptext_spark.mechanisms.extent import largest_distance

SPREAD_OVER = 1e8  # tokens that share the time of compiling
TOKEN = (Goal(1000.0, 1000.0, "value"),)
TABLES = (Goal(512.0, 512.0, "value"),)
MEGABYTE = 1e6
NOTE = (
    "Laws over a whole lexicon: sampling is from ids to ids, on one core; compiling takes all cores, and its time is spread over "
    "100 million draws in what is judged. TEM is left out where its radius passes the largest distance of the lexicon: there it "
    "is SanText."
)


def whole_laws(sizes: Sizes) -> Section:
    """Measure SanText and TEM for a range of ε."""
    name, lexicon = subject(sizes)
    farthest = largest_distance(lexicon.vectors)
    laws: list[tuple[str, Mechanism]] = []
    for epsilon in sizes.epsilons:
        laws.append((f"santext, ε = {epsilon:g}", SanText(epsilon=epsilon)))
        tem = TEM(epsilon=epsilon)
        if tem.radius(len(lexicon)) < farthest:
            laws.append((f"tem, ε = {epsilon:g}", tem))
    section = Section("whole laws", f"laws over a whole lexicon, {name}")
    section.facts = {"drawn_ids": sizes.drawn_ids, "largest_distance": farthest, "laws": {}}
    for shown, mechanism in laws:
        sampler, seconds = model(lexicon, mechanism)
        with one_core():
            (times,) = in_turn(sizes.long_rounds, drawing(sampler, lexicon, sizes.drawn_ids))
        sampling = scaled(times, 1e9 / sizes.drawn_ids)
        compiling = seconds * 1e9 / SPREAD_OVER
        amortised = Spread(tuple(one + compiling for one in sampling.runs))
        figure = Figure(
            f"{shown}, a draw, with compiling", "ns", amortised, "sampling alone", sampling, goals=TOKEN, note=NOTE
        )  # fmt: skip
        section.figures.append(figure)
        section.facts["laws"][shown] = {
            "compile_seconds": round(seconds, 3),
            "table_bytes": sum(array.nbytes for array in sampler.arrays().values()),
            **sampler.summary.as_dict(),
        }
    measured = section.facts["laws"].values()
    seconds_each = Spread(tuple(law["compile_seconds"] for law in measured))
    bytes_each = Spread(tuple(law["table_bytes"] / MEGABYTE for law in measured))
    section.figures.append(Figure("compiling one of these laws, all cores", "s", seconds_each))
    section.figures.append(Figure("the tables of one of these laws", "MB", bytes_each, goals=TABLES))
    return section
