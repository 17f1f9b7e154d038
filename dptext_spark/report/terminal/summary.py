"""The summary of a run that a person reads at its end, from plain numbers.

What a ledger says to a person: a block for each input, a line for each column.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dptext_spark.audit.table.metrics import options_for
from dptext_spark.audit.verdict import BROKEN, Verdict
from dptext_spark.config.requirements import MEANING
from dptext_spark.disclosure.facts import Figures, RunFacts, Unchanged
from dptext_spark.disclosure.released import MANY_UNKNOWN
from dptext_spark.disclosure.statement import not_audited
from dptext_spark.guarantee import counted as word_count
from dptext_spark.ledger.balance import Balance
from dptext_spark.ledger.sums import left_of
from dptext_spark.model.record import WEAK
from dptext_spark.model.tables.target_checks import mapped_names
from dptext_spark.report.sections import names, run
from dptext_spark.report.terminal.console import PRICE, WIDTH, entries, hanging
from dptext_spark.rounding import exact, percent_down, percent_up, rounded_up
from dptext_spark.text.names.search import ListSources


def spent_text(balances: Sequence[Balance], columns: int = WIDTH) -> str:
    """Write what was spent on each input, in lines of so many columns."""
    if not balances:
        return "The ledger is empty."
    return "\n".join(line for balance in balances for line in _lines(balance, columns)).rstrip()


def _lines(balance: Balance, columns: int) -> Iterator[str]:
    yield f"{balance.input}, since {balance.since:%Y-%m-%d}"
    wide = max((len(spent.column) for spent in balance.columns), default=0)
    for spent in balance.columns:
        yield hanging(f"  {spent.column:<{wide}}  ", str(spent), columns)
        if balance.limit is not None:
            said = "no ε stands for it" if math.isinf(spent.total) else f"spent ε = {exact(spent.total)}"
            left = exact(left_of(balance.limit, spent.total))
            yield hanging(
                f"  {'':<{wide}}  ", f"limit ε = {exact(balance.limit)}, {said}, left ε = {left}", columns
            )
    record = balance.record
    if record is not None and (record.times or record.without):
        yield hanging("  ", f"one record, all its drawn words: {record}.", columns)
    if balance.limit is None:
        yield hanging("  ", "no limit is kept", columns)
    if balance.unfinished:
        yield hanging("  ", f"counted with them: {balance.unfinished:,} that did not finish", columns)
    yield ""


LARGE = 5e12  # bytes: the 5 TB that a cost is named for
LEAST = 1e6  # bytes: a run of fewer measures nothing but its own start
LEAST_SECONDS = 30.0  # of a write; a shorter one is mostly the start of its workers
_STATUS = {
    "succeeded": "succeeded",
    "mismatch": "COMMITTED, BUT ITS COUNTS OR ITS CONSISTENCY DO NOT AGREE: do not share this version",
    "recovered": "recovered: it had committed before; only the account was made now, {counted}",
    "unchanged": "unchanged: this run id had committed before, and nothing was done",
}
_PARTS = (
    ("drawn", ("drawn",)),
    ("kept: stop words", ("stop_kept",)),
    ("unknown words", ("oov",)),
    ("numbers", ("numbers",)),
    ("not chosen, IN CLEAR", ("not_chosen",)),
)


class Pair(NamedTuple):
    """A text before and after: private."""

    column: str
    before: str
    after: str


def summary(
    outcome: RunFacts | Unchanged, *, internal: bool = False, price: float = PRICE, columns: int = WIDTH,
    verdict: Verdict | None = None, pair: Pair | str | None = None, settings: str | None = None, overrides: Sequence[str] = (),
) -> str:  # fmt: skip
    """Write the summary.

    Args:
        outcome: of the run; what is not known of it is left out.
        internal: also show what depends on the private text; such a summary is not for sharing.
        price: of a core-hour.
        columns: how long a line may be.
        verdict: how the requirements of the settings stand; None where there are none.
        pair: a row before and after, private text, shown with `internal` only; or why there is none. None says nothing of it.
        settings: the file of the settings, for the command that comes next; None where there is none.
        overrides: `a.b=value`, which the run was given beside that file.

    Returns:
        Lines of text without a final newline.
    """
    if isinstance(outcome, Unchanged):
        notes = [hanging("  ", note, columns) for _, note in _since(outcome)]
        return "\n".join([_heading(outcome), *notes, *entries([*_required(verdict)], columns, 0)])
    facts = outcome
    lines = [_heading(facts), *(hanging("  ", problem, columns) for problem in facts.problems)]
    # Whoever reads no further must have seen the warnings.
    lines += [
        hanging("  WARNING: ", warning, columns) for warning in (*_warnings(facts), *_of_operators(facts))
    ]
    rows = [
        *_required(verdict),
        *_work(facts, internal),
        *_shown(facts, internal, pair),
        *_promise(facts, internal),
        *_places(facts),
        *_cost(facts, price),
        *_next(facts, verdict, settings, overrides),
    ]
    lines += entries(rows, columns)
    if internal:
        lines.append("These figures depend on the private text: not for sharing.")
    return "\n".join(lines)


def shareable_summary(
    outcome: RunFacts | Unchanged, verdict: Verdict | None = None
) -> tuple[str, list[tuple[str, str]]]:
    """Return a heading, and (name, value) of what may be shared: what the summary has without `internal`, but for its cost."""
    required = list(_required(verdict))
    if isinstance(outcome, Unchanged):
        return _heading(outcome), [*_since(outcome), *required]
    facts = outcome
    first = [("problem", problem) for problem in facts.problems]
    first += [("WARNING", warning) for warning in _warnings(facts)]
    shown = [*required, *_work(facts, False), *_shown(facts, False, None), *_promise(facts, False)]
    return _heading(facts), [*first, *shown, *_places(facts)]


def _heading(outcome: RunFacts | Unchanged) -> str:
    if isinstance(outcome, Unchanged):
        return f"run {outcome.run_id}: {_STATUS['unchanged']}"
    counted = "its counts by a second pass" if outcome.counted else "without its counts"
    return f"run {outcome.run_id}: {_STATUS.get(outcome.status, outcome.status).format(counted=counted)}"


def _required(verdict: Verdict | None) -> Iterator[tuple[str, str]]:
    """Say how the requirements of the settings stand; their figures are not shown."""
    if verdict is None:
        return
    for one in verdict.judged:
        yield "required", f"{one.requirement}: {one.loud}"
    for reason in verdict.against:
        yield "required", f"BROKEN whatever is required: {reason}"
    said = verdict.standing if verdict.standing != BROKEN else "BROKEN: do not publish this table"
    bits = verdict.bits
    which = "1 of these answers depends" if bits == 1 else f"{bits:,} of these answers depend"
    released = f" ({which} on the private text, a bit each)" if bits else ""
    yield "verdict", f"{said}{released}"


def _shown(facts: RunFacts, internal: bool, pair: Pair | str | None) -> Iterator[tuple[str, str]]:
    """Say what became of the text: by the law alone, and to those inside by the text itself."""
    band = facts.expected_change
    shown = pair if internal else None
    if isinstance(shown, str):
        yield "a row", f"none can be shown: {shown}"
    elif shown is not None:
        yield "before", f"PRIVATE TEXT, {shown.column}: {shown.before}"
        yield "after", f"PRIVATE TEXT, {shown.column}: {shown.after}"
    if internal or band is None:
        return
    if isinstance(band, str):
        why = f"no law tells what is to be expected: {band}"
        yield "changed", f"{why} (the figure of this table: --internal)"
        return
    low, high = percent_down(min(band)), percent_up(max(band))
    expected = f"{low} to {high} of the drawn words are to be expected: by the law and by how common words are in public"
    yield "changed", f"{expected}, so that it tells nothing of this table (its figure: --internal)"


def _next(
    facts: RunFacts, verdict: Verdict | None, settings: str | None, overrides: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Name the command that comes next."""
    if settings is None or not facts.output or facts.status not in ("succeeded", "recovered"):
        return
    given = shlex.join([settings, *(word for setting in overrides for word in ("--set", setting))])
    waiting = [] if verdict is None else [one for one in verdict.not_measured if one.split()[0] in MEANING]
    unaudited = not_audited(facts.config.row_key)
    if waiting and unaudited:
        yield "undecided", f"{', '.join(waiting)}: {unaudited}"
    audit = " ".join(["dptext audit", given, *options_for(each.split()[0] for each in waiting)])
    yield "next", f"{'' if unaudited else f'{audit}; then '}dptext report {given}"


def _since(outcome: Unchanged) -> Iterator[tuple[str, str]]:
    """Say what is not as it was at the run: the key, the target, the input."""
    yield from (("WARNING", sentence) for sentence in outcome.since)
    if outcome.input_version_now is not None:
        now, then = outcome.input_version_now, outcome.record.input_version
        yield "input", f"It read {then}; the input is at {now} now, which takes a new run id."


def _warnings(facts: RunFacts) -> tuple[str, ...]:
    return () if facts.disclosure is None else tuple(facts.disclosure.under("Warnings"))


def _of_operators(facts: RunFacts) -> Iterator[str]:
    """Warn of names that some readers of the target cannot follow, and of many rows of unknown words.

    The number of those rows is restricted.
    """
    warned = mapped_names((*facts.config.columns, *(facts.other_columns or ())))
    if warned:
        yield warned
    figures = {} if facts.restricted is None else facts.restricted.figures
    if facts.rows and (figures.get("unknown_rows") or 0.0) > MANY_UNKNOWN * facts.rows:
        yield (
            f"MORE THAN {percent_up(MANY_UNKNOWN)} OF THE ROWS ARE MOSTLY UNKNOWN WORDS, such as another language or "
            "codes: hardly a word of them is drawn. Leave such rows or columns out (input.where, columns), "
            "or take a lexicon of their language (lexicon.source, "
            "lexicon.more). `unknown_rows` in the metrics counts them."
        )


def _work(facts: RunFacts, internal: bool) -> Iterator[tuple[str, str]]:
    if facts.rows is not None:
        broken = facts.corrupt_records
        note = (
            f"; {broken:,} RECORD{' DOES' if broken == 1 else 'S DO'} NOT FIT THE INPUT'S COLUMNS (kept as far as they do)"
            if broken
            else ""
        )
        yield "rows", f"{facts.rows:,}{note}"
    held = facts.batches
    if held is not None:
        added = f"{held.now:,} now" if held.now else "none now: nothing was added to the source"
        yield (
            "micro-batches",
            f"{added}; {held.in_all:,} with {held.rows:,} rows since the stream began",
        )
    if internal and facts.restricted is not None:
        yield from _words(
            facts.restricted.figures,
            lists=facts.config.lists,
            search=facts.policy.names.finders if facts.policy.names else "",
        )
    if facts.rows is not None:
        looked = names.looked(facts.policy, bool(facts.config.lists))
        yield "names", f"looked for by {looked}; no guarantee" if looked else names.NOT_LOOKED_FOR
    if facts.seconds is not None:
        written = f", of which writing {facts.write_seconds:,.1f}" if facts.write_seconds else ""
        measured = facts.tokens_per_second and (facts.text_bytes or 0) >= LEAST
        speed = f"; {facts.tokens_per_second:,.0f} words/s" if measured else ""
        yield "seconds", f"{facts.seconds:,.1f}{written}{speed}"
    loops = facts.compiled_loops
    if loops is not None:
        said = f"{loops} loops; the cache holds them now" if loops else "nothing, all was in the cache"
        yield "compiled", said


def _words(counts: Figures, *, lists: ListSources, search: str) -> Iterator[tuple[str, str]]:
    words = counts.get("words")
    if words is None:
        return
    yield "words", f"{words:,.0f}"
    for name, parts in _PARTS if counts.get("not_chosen") else _PARTS[:-1]:
        held = sum(counts.get(part) or 0.0 for part in parts)
        yield f"  {name}", f"{held:,.0f}{_share(held / words if words else None)}"
    for name, figure, percent in (
        ("changed", "changed_share", percent_down),
        ("as before, of drawn", "original_share", percent_up),
        ("as before, of all", "original_share_all", percent_up),
    ):
        share = counts.get(figure)
        if share is not None:
            yield f"  {name}", percent(share)
    replaced = run.in_words(counts)
    if replaced:
        by = "rules and providers" if counts.get(f"{run.PREFIX}provided") else "rules"
        yield "identifiers", f"{replaced}; by {by}, no guarantee"
    if lists:
        yield "names", f"{names.listed_names(counts, named=bool(lists.kinds))}; by lists, no guarantee"
    if search:
        yield "names", f"{names.found_names(counts)}; by {search}, no guarantee"
    for what, said in names.stayed_words(counts):
        yield f"  {what}", said


def _share(share: float | None) -> str:
    return "" if share is None else f"  ({100 * share:.1f} %)"


def _promise(facts: RunFacts, internal: bool) -> Iterator[tuple[str, str]]:
    yield "guarantee", str(facts.guarantee)
    if facts.certificate is not None:
        yield "certificate", facts.certificate.sentence
    epsilon = facts.restricted.record_epsilon if internal and facts.restricted is not None else None
    if epsilon is not None and epsilon.mean is not None:
        spread = ", ".join(
            f"{said} {rounded_up(figure)}"
            for said, figure in (
                ("mean", epsilon.mean), ("median", epsilon.p50), ("95 %", epsilon.p95), ("most", epsilon.max)
            )
            if figure is not None
        )  # fmt: skip
        yield "ε a record", f"{spread}; {epsilon.basis}"
        least = epsilon.of_words(word_count(facts.consistency))
        if least:
            yield "  least bound", least
    elif epsilon is not None or facts.record_epsilon is not None:
        basis = facts.record_epsilon if epsilon is None else epsilon.basis
        yield "ε a record", f"{basis}{'' if internal else ' (figures: --internal)'}"
    if facts.record is not None and not facts.record.why and not facts.is_refuted:
        yield "  of so many words", f"{facts.record.stated} {WEAK}"
    counted = facts.ledger
    if counted is not None and counted.sentence:
        limit = ""
        if counted.limit is not None:  # accounts of old do not say what is left of it
            left = "" if counted.left is None else f", and ε = {exact(counted.left)} of it is left"
            limit = f" The limit is ε = {exact(counted.limit)}{left}."
        yield "spent so far", f"{counted.sentence}{limit} (ledger: {counted.ledger})"
    if facts.audited:
        yield "consistency", facts.audited
    if facts.key_kind == "insecure":
        yield "key", "INSECURE: from a seed; nothing is protected"


def _places(facts: RunFacts) -> Iterator[tuple[str, str]]:
    version, others = facts.output_version, facts.other_columns
    if facts.input:
        yield "input", facts.input
    if facts.output:
        yield "output", f"{facts.output}{'' if version is None else f' (version {version})'}"
    if facts.runs:
        yield "account", f"{facts.runs} (may be shared: settings, guarantee, disclosure)"
    if facts.metrics:
        yield "metrics", f"{facts.metrics} (restricted: depends on the private text)"
    if others is not None:
        yield "in clear", f"columns {', '.join(others)}" if others else "no other column"


def core_hours(text_bytes: float, seconds: float, cores: int, size: float = LARGE) -> float:
    """Return the core-hours for `size` bytes of text at the measured speed."""
    return size / (text_bytes / (seconds * cores)) / 3600.0


def _cost(facts: RunFacts, price: float) -> Iterator[tuple[str, str]]:
    text_bytes, cores = facts.text_bytes, facts.cores
    seconds = facts.write_seconds or facts.seconds
    if not text_bytes or not cores or not seconds or facts.status == "recovered":
        return  # the seconds of a write are gone with the driver that wrote
    if text_bytes < LEAST or seconds < LEAST_SECONDS:
        return  # it would say nothing of a large table; docs/scale.md works one out
    speed = text_bytes / (seconds * cores)
    hours = core_hours(text_bytes, seconds, cores)
    yield (
        "5 TB like it",
        f"5e12 bytes / {speed:,.0f} bytes a second and core / 3600 = {hours:,.0f} core-hours; "
        f"at {price:g} a core-hour {hours * price:,.0f} (--price)",
    )
    if text_bytes < 1e9:
        yield "", f"measured on {text_bytes / 1e6:,.1f} MB and {cores} cores, where starting up weighs much"
