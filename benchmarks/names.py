"""Names: what a long list costs a word, what a name of each row, what the search by public lists; how long a table is made."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from benchmarks.engine import one_core, runner
from benchmarks.measure import Figure, Goal, Section, Spread, in_turn, quotient, scaled
from benchmarks.sizes import Sizes
from benchmarks.sources import packaged, sst2, texts
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_table import NameTable, WordList
from dptext_spark.text.names.search import NameSearch
from dptext_spark.text.policy import Policy

ENTRIES_A_ROW = 20  # a million names beside a batch of 50,000 texts
SYLLABLES = (
    "ka", "ri", "mo", "ta", "len", "son", "ber", "di", "vo", "sha", "an",
    "el", "or", "is", "um", "ma", "jo", "pe", "ki", "ro",
)  # fmt: skip
LEXICON_WORDS = 400  # one entry in that many is a word of the lexicon, beyond its commonest
COMMONEST = 2_000
GOALS = (Goal(2.0, 2.0, "ratio"),)
BUILD_GOALS = (Goal(60.0, 60.0, "value"),)
SEARCH_GOALS = (Goal(1_000.0, 1_000.0, "value"),)  # a million words a second and core


def made_up(count: int, lexicon: Lexicon, seed: int = 1) -> list[bytes]:
    """Make names of two to eight syllables, a third of them of two words; some are words of the lexicon."""
    rng = np.random.default_rng(seed)
    words = lexicon.vocabulary.strings().to_pylist()
    first = min(COMMONEST, len(words) // 2)

    def name() -> str:
        return "".join(SYLLABLES[i] for i in rng.integers(0, len(SYLLABLES), rng.integers(2, 5))).capitalize()

    names = []
    for number in range(count):
        if number % LEXICON_WORDS == 1:
            names.append(words[rng.integers(first, len(words))])
        else:
            names.append(f"{name()} {name()}" if number % 3 == 0 else name())
    return [one.encode() for one in names]


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure lists beside a model that has none, over the same texts in turn."""
    section = Section("names", "Lists of names: what they cost")
    lexicon = packaged(sizes.lexicon_words)
    model = Privatizer(
        lexicon, (CusText() if len(lexicon) > CusText().k else CusText(k=2)).compile(lexicon), Policy()
    )
    batch, reason = sst2()
    name = "SST-2's sentences"
    if batch is None:
        section.skipped.append(reason)
        name, batch = "texts of the lexicon's words", texts(lexicon, sizes.rows, sizes.words_a_row)
    batch = pa.array(np.resize(np.array(batch.to_pylist(), object), sizes.rows))
    say("names: the list")
    entries = made_up(ENTRIES_A_ROW * sizes.rows, lexicon)
    listed = WordList.of("names", entries)
    NameTable.of([listed])  # compiles the loop, or loads it
    began = time.perf_counter()
    table = NameTable.of([listed])
    built = time.perf_counter() - began
    section.facts = {"entries": len(entries), "megabytes": round(table.cells.nbytes / 1e6, 1)}
    section.figures.append(
        Figure(
            f"the table of {len(entries):,} names is made", "s", Spread((built,)), goals=BUILD_GOALS,
            note=f"a third of them of two words; {table.cells.nbytes / 1e6:.1f} MB of hashes",
        )
    )  # fmt: skip
    one_each = WordList.of("names", entries[: sizes.rows])
    own = NameTable.of([one_each], rows=[np.arange(sizes.rows)])
    with one_core() as core:
        section.facts["core"] = core
        peer = runner(model, batch)
        words = peer()[1].totals()["words"]
        searching = replace(model, policy=Policy(names=NameSearch(lists=True)), fingerprint="")
        listing = model.with_names(NameMatcher(table))
        each = model.with_names(NameMatcher(NameTable.of([]), own))
        for shown, variant, without, goals in (
            (f"a list of {len(entries):,} names", listing, "no list", GOALS),
            ("a name of each row's own", each, "no list", GOALS),
            ("the search by public lists", searching, "no search", SEARCH_GOALS),
        ):
            say(f"names: {shown}")
            run = runner(variant, batch)
            counts = run()[1].totals()
            ours, theirs = in_turn(sizes.rounds, run, peer)
            value, plain_run = scaled(ours, 1e9 / words), scaled(theirs, 1e9 / words)
            section.figures.append(
                Figure(
                    f"{name}, {shown}", "ns/word", value, without, plain_run, quotient(value, plain_run), "x its time", goals,
                    f"{counts['names_masked']:,} masked, {counts['persons_found']:,} persons and {counts['locations_found']:,} "
                    f"places found; words as they are without: {words:,}",
                )
            )  # fmt: skip
    return section
