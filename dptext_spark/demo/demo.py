"""The demo: a sample table of support tickets, written as Delta, sanitized by the whole job, and shown.

One ticket is shown by each of the files of settings in conf/ that most users choose among.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from dptext_spark.config.load import load_model_config, parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.demo.tickets import tickets
from dptext_spark.errors import SettingsError, require_extra
from dptext_spark.model.compile import prepare
from dptext_spark.randomness.draws import RunKey
from dptext_spark.report.terminal.console import progress, width, write, write_json
from dptext_spark.report.terminal.summary import summary
from dptext_spark.runtime.paths import folder_of
from dptext_spark.spark.reporting.report import report
from dptext_spark.spark.runner import run
from dptext_spark.spark.session.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 20_000
SHOWN = 3
PUBLIC = 2_000  # tickets whose text the report's adversary learns from and attacks
TEXTS = ("subject", "body", "agent_reply")
MADE = ("tickets.parquet", "tickets", "sanitized", "sanitized_audit", "report.html")
SETTINGS = ("strict", "balanced", "papers")  # files of conf/, what protects most first


def demo(folder: Path | None, rows: int, as_json: bool) -> None:
    """Run the demo.

    Args:
        folder: where to write; None is `dptext-demo`. What an earlier demo wrote there is replaced.
        rows: tickets of the sample.
        as_json: print one JSON document in place of the lines for people.

    Raises:
        SettingsError: `folder` holds something else.
    """
    place = (folder or Path("dptext-demo")).resolve()
    _clear(place)
    with progress() as say:
        say("making sample tickets", None)
        sample = tickets(rows, SEED)
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(sample, place / MADE[0])
        say("starting Spark (the first time it downloads Delta Lake)", None)
        spark = spark_session("dptext demo")
        source = str(place / MADE[1])
        spark.read.parquet(str(place / MADE[0])).write.format("delta").save(source)
        config = parse_config(
            {
                "input": {"path": source},
                "columns": list(TEXTS),
                "row_key": "ticket_id",
                "record_key": "customer_id",
                "mechanism": {"name": "custext", "epsilon": 2.0},
                "output": {"path": str(place / MADE[2])},
            }
        )
        result = run(config, spark, progress=lambda step: say(step, None))
        public = sample.column("body").to_pylist()[:PUBLIC]
        page = _report(config, result.run_id, public, spark, place / MADE[4], say)
        examples = list(_examples(spark, source, str(place / MADE[2])))
        shown = side_by_side(_body(examples), RunKey.generate(), say)
    if as_json:
        others = [one._asdict() for one in shown]
        return write_json({**result.as_dict(), "examples": examples, "settings": others, "report": page})
    write("\n".join(_lines(examples)))
    write("\n".join(_settings(examples, shown)))
    # The tickets are invented: what depends on them may be shown.
    write(summary(result.outcome, internal=True, columns=width()))
    if page is not None:
        write(f"\nThe report of this run, one file for any browser: {page}")
    write(
        f"\nThe tickets are in {source}, the sanitized ones in {place / MADE[2]}.\n"
        "Next: the same for a table of yours, `dptext run conf/minimal.yaml`; what a sentence becomes, "
        '`dptext preview "Please send the parcel to my sister in London"`.'
    )


def _report(
    config: RunConfig, run_id: str, public: Sequence[str], spark: SparkSession, file: Path,
    say: Callable[[str, float | None], None],
) -> str | None:  # fmt: skip
    """Write the report of the run; None where what it is made with is not installed."""
    try:
        require_extra("audit", "jinja2", "matplotlib")
    except SettingsError as error:
        say(f"no report: {error}", None)
        return None
    # The tickets are invented, so they may serve as the public text that the adversary learns from.
    return str(report(run_id, config, public_text=public, spark=spark, progress=say).save(file))


def _clear(place: Path) -> None:
    """Remove what an earlier demo wrote; refuse a folder with anything else in it."""
    if not place.exists():
        return
    others = sorted(entry.name for entry in place.iterdir() if entry.name not in MADE)
    if others:
        raise SettingsError(f"folder: {str(place)!r} holds {others[0]!r}; name a new or empty folder.")
    shutil.rmtree(place)


def _examples(spark: SparkSession, source: str, target: str) -> Iterator[dict[str, str]]:
    """Yield the first tickets before and after. The sample is invented: showing it gives nothing away."""
    before = spark.read.format("delta").load(source).orderBy("ticket_id").limit(SHOWN)
    after = spark.read.format("delta").load(target)
    after = after.select("ticket_id", *[F.col(name).alias(f"{name}_after") for name in ("subject", "body")])
    for row in before.join(after, "ticket_id").orderBy("ticket_id").collect():
        for name in ("subject", "body"):
            yield {
                "ticket": str(row["ticket_id"]),
                "column": name,
                "before": row[name],
                "after": row[f"{name}_after"],
            }


def _body(examples: list[dict[str, str]]) -> str:
    return next(one["before"] for one in examples if one["column"] == "body")


def _settings(examples: list[dict[str, str]], shown: list[Released]) -> Iterator[str]:
    """Yield one ticket as the settings of conf/ would release it."""
    yield f"The body of ticket {examples[0]['ticket']} by the settings of conf/ (docs/guide/settings)"
    for one in shown:
        yield f"  {one.settings + '.yaml':<15}{one.mechanism}"
        yield textwrap.fill(
            " ".join(one.text.split()), 110, initial_indent=" " * 17, subsequent_indent=" " * 17
        )
    yield ""


def _lines(examples: list[dict[str, str]]) -> Iterator[str]:
    ticket = ""
    for example in examples:
        if example["ticket"] != ticket:
            ticket = example["ticket"]
            yield f"\nticket {ticket}"
        for side in ("before", "after"):
            shown = " ".join(example[side].split())
            yield textwrap.fill(
                shown,
                110,
                initial_indent=f"  {example['column'] if side == 'before' else '':<8}{side:<7}",
                subsequent_indent=" " * 17,
            )
    yield ""


class Released(NamedTuple):
    """A text as one file of settings releases it: the file's name, what it says of the mechanism, and one draw."""

    settings: str
    mechanism: str
    text: str


def side_by_side(
    text: str, key: RunKey, progress: Callable[[str, float | None], None] | None = None
) -> list[Released]:
    """Release a text by each of `SETTINGS`, all with the packaged lexicon.

    Args:
        text: public, such as one of a sample: it is returned in three forms.
        key: that the draws follow from.
        progress: progress callback, called with each step.

    Raises:
        DataError: conf/ is not installed with the package.
    """
    return [_released(settings, text, key, progress) for settings in SETTINGS]


def _released(
    settings: str, text: str, key: RunKey, progress: Callable[[str, float | None], None] | None
) -> Released:
    config = load_model_config(folder_of("conf") / f"{settings}.yaml", ["lexicon.source=default"])
    privatizer, _ = prepare(config, progress)
    out, _ = privatizer.privatize(pa.array([text]), column="text", row_ids=pa.array([0]), key=key)
    mechanism = config.spec()["mechanism"]
    words = "stop words drawn" if config.policy.stop_words == "draw" else "stop words in clear"
    level = (
        f"one replacement a word of a {config.consistency}"
        if config.consistency != "token"
        else "each word anew"
    )
    return Released(
        settings, f"{mechanism['name']}, ε = {mechanism['epsilon']:g}, {level}, {words}", out[0].as_py()
    )
