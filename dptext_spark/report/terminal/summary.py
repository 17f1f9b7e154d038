"""The summary of a run that a person reads at its end, from plain numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dptext_spark.report.sections import run
from dptext_spark.report.terminal.console import WIDTH, hanging
from dptext_spark.rounding import exact, percent_down, percent_up, rounded_up

LARGE = 5e12  # bytes: the 5 TB that a cost is named for
LEAST = 1e6  # bytes: a run of fewer measures nothing but its own start
LEAST_SECONDS = (
    30.0  # of a write; a shorter one is mostly the start of its workers, and says nothing of a large one
)
PRICE = 0.05  # of a core-hour, in whatever currency the reader pays; a round figure for rented machines
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


def summary(
    facts: Mapping[str, Any], *, internal: bool = False, price: float = PRICE, columns: int = WIDTH
) -> str:
    """Write the summary.

    Args:
        facts: of the run's report: `status`, `run_id`, `rows`, `seconds`, `write_seconds`, `guarantee`,
            `certificate`, `record_epsilon`, `input`, `output`, `output_version`, `audit`, `other_columns`, `compiled_loops`,
            `key_kind`, `problems`, `consistency_audit`, of a stream `batches`; `text_bytes` and `cores` for the cost;
            `restricted` with what depends on the private text; `disclosure` for its warnings; `ledger` for what was spent so far.
            What is missing is left out.
        internal: also show what depends on the private text; such a summary is not for sharing.
        price: of a core-hour.
        columns: how long a line may be.

    Returns:
        Lines of text without a final newline.
    """
    counted = "its counts by a second pass" if facts.get("counted") else "without its counts"
    said = _STATUS.get(facts["status"], facts["status"]).format(counted=counted)
    status = f"run {facts.get('run_id', '')}: {said}"
    lines = [status, *(hanging("  ", problem, columns) for problem in facts.get("problems") or ())]
    lines += [hanging("  WARNING: ", warning, columns) for warning in _warnings(facts)]
    if facts["status"] == "unchanged":
        if facts.get("input_version_now") is not None:
            then = facts["run"]["input_version"]
            note = (
                f"It read {then}; the input is at {facts['input_version_now']} now, which takes a new run id."
            )
            lines.append(hanging("  ", note, columns))
        return "\n".join(lines)
    rows = [*_work(facts, internal), *_promise(facts, internal), *_places(facts), *_cost(facts, price)]
    width = max((len(name) for name, _ in rows), default=0)
    lines += [hanging(f"  {name:<{width}}  ", value, columns) for name, value in rows]
    if internal:
        lines.append("These figures depend on the private text: not for sharing.")
    return "\n".join(lines)


def _warnings(facts: Mapping[str, Any]) -> list[str]:
    """Return the warnings of the disclosure statement: whoever reads no further must have seen them."""
    sections = (facts.get("disclosure") or {}).get("sections", ())
    return [text for section in sections if section["heading"] == "Warnings" for text in section["sentences"]]


def _work(facts: Mapping[str, Any], internal: bool) -> Iterator[tuple[str, str]]:
    if facts.get("rows") is not None:
        broken = facts.get("corrupt_records")
        note = (
            f"; {broken:,} RECORDS DO NOT FIT THE INPUT'S COLUMNS (kept as far as they do)" if broken else ""
        )
        yield "rows", f"{facts['rows']:,}{note}"
    if facts.get("batches"):
        held = facts["batches"]
        added = f"{held['now']:,} now" if held["now"] else "none now: nothing was added to the source"
        yield (
            "micro-batches",
            f"{added}; {held['in_all']:,} with {held['rows']:,} rows since the stream began",
        )
    if internal:
        yield from _words(facts.get("restricted") or {})
    if facts.get("seconds") is not None:
        written = f", of which writing {facts['write_seconds']:,.1f}" if facts.get("write_seconds") else ""
        measured = facts.get("tokens_per_second") and (facts.get("text_bytes") or 0) >= LEAST
        speed = f"; {facts['tokens_per_second']:,.0f} words/s" if measured else ""
        yield "seconds", f"{facts['seconds']:,.1f}{written}{speed}"
    loops = facts.get("compiled_loops")
    if loops is not None:
        said = f"{loops} loops; the cache holds them now" if loops else "nothing, all was in the cache"
        yield "compiled", said


def _words(counts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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
        if counts.get(figure) is not None:
            yield f"  {name}", percent(counts[figure])
    replaced = run.in_words(counts)
    if replaced:
        yield "identifiers", f"{replaced}; by rules, no guarantee"


def _share(share: float | None) -> str:
    return "" if share is None else f"  ({100 * share:.1f} %)"


def _promise(facts: Mapping[str, Any], internal: bool) -> Iterator[tuple[str, str]]:
    guarantee = facts.get("guarantee")
    if guarantee:
        yield "guarantee", f"{guarantee['sentence']} [{guarantee['status']}]"
    if facts.get("certificate"):
        yield "certificate", str(facts["certificate"]["sentence"])
    epsilon = (facts.get("restricted") or {}).get("record_epsilon") if internal else None
    epsilon = epsilon or facts.get("record_epsilon") or {}
    if internal and epsilon.get("mean") is not None:
        spread = ", ".join(
            f"{said} {rounded_up(epsilon[name])}"
            for name, said in (("mean", "mean"), ("p50", "median"), ("p95", "95 %"), ("max", "most"))
        )
        yield "ε a record", f"{spread}; {epsilon['basis']}"
    elif epsilon:
        yield "ε a record", epsilon["basis"] + ("" if internal else " (figures: --internal)")
    counted = facts.get("ledger") or {}
    if counted.get("sentence"):
        limit = "" if counted.get("limit") is None else f" The limit is ε = {exact(counted['limit'])}"
        if limit:  # accounts of old do not say what is left of it
            limit += (
                "." if counted.get("left") is None else f", and ε = {exact(counted['left'])} of it is left."
            )
        yield "spent so far", f"{counted['sentence']}{limit} (ledger: {counted['ledger']})"
    audited = facts.get("consistency_audit") or {}
    if audited.get("said"):
        yield "consistency", str(audited["said"])
    if facts.get("key_kind") == "insecure":
        yield "key", "INSECURE: from a seed; nothing is protected"


def _places(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    version = facts.get("output_version")
    if facts.get("input"):
        yield "input", str(facts["input"])
    if facts.get("output"):
        yield "output", f"{facts['output']}{'' if version is None else f' (version {version})'}"
    audit = facts.get("audit") or {}
    if audit.get("runs"):
        yield "account", f"{audit['runs']} (may be shared: settings, guarantee, disclosure)"
    if audit.get("metrics"):
        yield "metrics", f"{audit['metrics']} (restricted: depends on the private text)"
    others = facts.get("other_columns")
    if others is not None:
        yield "in clear", f"columns {', '.join(others)}" if others else "no other column"


def core_hours(text_bytes: float, seconds: float, cores: int, size: float = LARGE) -> float:
    """Return the core-hours for `size` bytes of text at the measured speed."""
    return size / (text_bytes / (seconds * cores)) / 3600.0


def _cost(facts: Mapping[str, Any], price: float) -> Iterator[tuple[str, str]]:
    text_bytes, cores = facts.get("text_bytes"), facts.get("cores")
    seconds = facts.get("write_seconds") or facts.get("seconds")
    if not text_bytes or not cores or not seconds or facts["status"] == "recovered":
        return  # the seconds of a write are gone with the driver that wrote
    if text_bytes < LEAST:
        yield "5 TB like it", f"{text_bytes:,} bytes are too few to say what it would cost"
        return
    if seconds < LEAST_SECONDS:
        why = f"{seconds:,.1f} s of writing are mostly the start of the workers"
        yield "5 TB like it", f"{why}, and say nothing of a large table (docs/scale.md works one out)"
        return
    speed = text_bytes / (seconds * cores)
    hours = core_hours(text_bytes, seconds, cores)
    yield (
        "5 TB like it",
        f"5e12 bytes / {speed:,.0f} bytes a second and core / 3600 = {hours:,.0f} core-hours; "
        f"at {price:g} a core-hour {hours * price:,.0f} (--price)",
    )
    if text_bytes < 1e9:
        yield "", f"measured on {text_bytes / 1e6:,.1f} MB and {cores} cores, where starting up weighs much"
