"""A comparison of CusText, 1-Diffractor in both forms, SanText, TEM and calibrated noise at five ε each."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Figure, Goal, Grid, Section, Spread
from benchmarks.sentiment import Task
from benchmarks.sizes import Sizes
from benchmarks.sources import lexicons
from dptext_spark.audit.comparison.compare import Comparison, compare
from dptext_spark.audit.comparison.corpus import Records
from dptext_spark.audit.comparison.risks import CONTEXT
from dptext_spark.audit.comparison.spec import ComparisonSpec
from dptext_spark.config.load import parse_model_config

CURVES = "custext,diffractor,diffractor:form=tem,santext,tem,mvc"
# Each over the range in which it goes from hiding most words to keeping most.
EPSILONS = (
    *("custext=1,4,8,12,20", "diffractor=0.2,0.5,1,2,3", "diffractor:form=tem=0.5,1,2,3,5"),
    *("santext=1,1.5,2,2.5,3", "tem=1,1.5,2,2.5,3", "mvc=5,8,12,16,25"),
)
TEN_MINUTES = (Goal(600.0, 600.0, "value"),)


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Compare with GloVe where it is here, else with the packaged lexicon."""
    section = Section("frontier", "Which mechanism keeps most at equal risk: SST-2, stop words kept")
    found, section.skipped = lexicons(sizes.lexicon_words, tokenizer="whitespace")
    name, lexicon = found[-1]
    task, reasons = Task.sst2(lexicon, None if sizes.lexicon_words is None else 4 * sizes.rows)
    section.skipped += [one for one in reasons if one not in section.skipped]
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "lexicon"
        lexicon.save(saved)
        settings = {"source": str(saved)}
        mechanism = {"k": min(20, len(lexicon) // 2)}
        config = parse_model_config(
            {"lexicon": settings, "mechanism": mechanism, "policy": {"tokenizer": "whitespace"}}
        )
        asked = ComparisonSpec.of(config, CURVES, EPSILONS)
        began = time.perf_counter()
        compared = compare(
            config, asked, Records(task.test, None), Records(task.train, tuple(task.train_labels)),
            progress=lambda step, _: say(f"frontier: {step}"),
        )  # fmt: skip
        seconds = time.perf_counter() - began
    section.figures.append(
        Figure(
            f"{name} {len(lexicon):,}, {len(compared.points)} points", "s", Spread((seconds,)), goals=TEN_MINUTES,
            note=f"measured once, with compilation; {asked.records:,} records replaced, {asked.attacked:,} attacked",
        )
    )  # fmt: skip
    section.facts = {
        "lexicon": name, "words": len(lexicon), "text": task.name, "records": len(task.train), "public": len(task.test),
        "unprotected": {use: one.value for use, one in compared.unprotected.items()},
        "points": [one.as_dict() for one in compared.points],
    }  # fmt: skip
    section.grids += _grids(compared)
    section.notes.append(
        "Risk: what the contextual adversary guesses; it learnt from the other part of the text. Utility between two ε is taken "
        "as linear in risk; mechanisms whose intervals overlap are not told apart."
    )
    return section


def _grids(compared: Comparison) -> list[Grid]:
    """Return the best at each level of risk in context, by each utility."""
    grids = []
    for one in compared.frontiers:
        if one.risk == CONTEXT:
            names = [curve.mechanism for curve in one.curves]
            rows = []
            for best in one.levels:
                reached = {found.mechanism: found.utility for found in best.reached}
                rows.append((best.level, best.verdict, *(reached.get(name) for name in names)))
            grids.append(
                Grid(f"{one.utility} at equal risk in context", ("risk", "best", *names), tuple(rows))
            )
    return grids
