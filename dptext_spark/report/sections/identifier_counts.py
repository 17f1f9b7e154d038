"""How many identifiers of each type a run replaced: figures that depend on the private text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dptext_spark.report.blocks import Block, Listed, Table

PREFIX = "identifiers_"
SAID = "Identifiers that were replaced whole"


def by_type(counts: Mapping[str, float | None]) -> list[tuple[str, int]]:
    """Return (type, number) of the types that occurred, the most frequent first.

    Args:
        counts: the metrics of a run or of a column, by name.
    """
    held = [
        (name.removeprefix(PREFIX), int(value))
        for name, value in counts.items()
        if name.startswith(PREFIX) and value
    ]
    return sorted(held, key=lambda entry: (-entry[1], entry[0]))


def in_words(counts: Mapping[str, float | None]) -> str | None:
    """Return the number of identifiers, and of each type; None where the metrics do not hold it."""
    if counts.get("identifiers") is None:
        return None
    types = ", ".join(f"{name} {number:,}" for name, number in by_type(counts))
    return f"{counts['identifiers']:,.0f}{f' ({types})' if types else ''}"


def table(counts: Mapping[str, float | None]) -> Iterator[Block]:
    """Write the numbers by type, where there are any."""
    held = by_type(counts)
    if held:
        yield Listed(SAID, ("By rules, without a guarantee; they are not among the words.",))
        yield Table(("type", "number"), tuple((name, f"{number:,}") for name, number in held))
