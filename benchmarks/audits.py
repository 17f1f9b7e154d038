"""Audits over a lexicon: exact deniability of a table mechanism, and laws over the whole lexicon block by block; whole commands.

The laws over the lexicon are measured in a process of their own, so that its peak of memory is theirs:
`python -m benchmarks.audits NAME [WORDS]` prints it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks import audit_commands
from benchmarks.measure import Figure, Goal, Section, Spread, in_turn, quotient, scaled
from benchmarks.sizes import TOY, Sizes
from benchmarks.sources import CHECKOUT, glove, lexicons, packaged
from dptext_spark.audit.deniability.deniability import deniability
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText, SanText

K = 20
EPSILON = 1.0
WARM_UP = 300
TABLE_GOALS = (Goal(10.0, 10.0, "value"),)
MEMORY_GOALS = (Goal(2.0, 2.0, "value"),)
GIGABYTE = 1e9


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Measure with every lexicon that is here."""
    section = Section("audits", "Deniability of every word: N_w, S_w, S_w[100], S_w[1000], exact")
    found, section.skipped = lexicons(sizes.lexicon_words)
    for name, lexicon in found:
        say(f"audits: CusText, {name}")
        section.figures.append(_table(f"{name} {len(lexicon):,}", lexicon, sizes))
    name, lexicon = found[-1]
    say(f"audits: laws over the whole lexicon, {name}")
    shown = f"SanText, {name} {len(lexicon):,} x {lexicon.dimensions}"
    one = _in_a_process(name, sizes.lexicon_words)
    note = "laws over the lexicon: in a process of their own, measured once; its peak holds the lexicon and the model"
    section.figures += [
        Figure(
            f"{shown}: every law", "s", Spread((one["seconds"],)), "compiling it", Spread((one["compiled"],)),
            Spread((one["seconds"] / one["compiled"],)), "x its time", note=note,
        ),
        Figure(f"{shown}: peak memory", "GB", Spread((one["peak"] / GIGABYTE,)), goals=MEMORY_GOALS, note=note),
    ]  # fmt: skip
    if sizes.name != TOY.name:  # each starts Spark
        section.figures += audit_commands.figures(sizes, say)
    return section


def _table(shown: str, lexicon: Lexicon, sizes: Sizes) -> Figure:
    """Return the seconds of all figures of every word, beside those of asking for one law after the other."""
    sampler = CusText(k=K).compile(lexicon)
    words = np.arange(len(lexicon), dtype=np.int32)
    ours, theirs = in_turn(
        sizes.long_rounds,
        lambda: deniability(sampler, len(lexicon)),
        lambda: [sampler.law(word) for word in words.tolist()],
    )
    value, peer = scaled(ours, 1.0), scaled(theirs, 1.0)
    return Figure(
        f"CusText, K = {K}, {shown}", "s", value, "law() a word, nothing else", peer, quotient(value, peer),
        "x its time", TABLE_GOALS,
    )  # fmt: skip


def _in_a_process(name: str, limit: int | None) -> dict[str, float]:
    """Return `seconds`, `compiled` (seconds) and `peak` (bytes) of a process that measures a law over the whole lexicon."""
    command = [sys.executable, "-m", "benchmarks.audits", name, *([] if limit is None else [str(limit)])]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(name: str, limit: int | None) -> None:
    """Compile SanText, measure every word, and print what it took."""
    lexicon = (glove if name == "GloVe" else packaged)(limit)
    small = packaged(WARM_UP)
    deniability(SanText(epsilon=EPSILON).compile(small), len(small))
    began = time.perf_counter()
    sampler = SanText(epsilon=EPSILON).compile(lexicon)
    compiled = time.perf_counter() - began
    began = time.perf_counter()
    deniability(sampler, len(lexicon))
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"seconds": seconds, "compiled": compiled, "peak": peak}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
