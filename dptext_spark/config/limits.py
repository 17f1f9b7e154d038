"""How large settings may be: what no run needs is refused before anything looks at it closely."""

from __future__ import annotations

from collections.abc import Mapping

from dptext_spark.errors import SettingsError

MOST_BYTES = 1 << 19  # of a file
MOST_VALUES = 10_000  # that stand in a file; longer lists of words have files of their own
DEEPEST = 32  # sections and lists inside each other
MOST_NAMES = 1_000  # of settings, in all sections
MOST_ENTRIES = 1_000_000  # of lists, each counted wherever it stands
MOST_COLUMNS = 1_000
MOST_SHOWN = 20  # problems that a message names


def check_bounded(settings: object) -> None:
    """Refuse settings that are too many or too deep, or that hold themselves; what stands in two places counts twice.

    Raises:
        SettingsError: names the limit.
    """
    names = entries = 0
    left = [(settings, 1)]
    while left:
        value, depth = left.pop()
        if isinstance(value, Mapping):
            names += len(value)
            inside = list(value.values())
        elif isinstance(value, list | tuple):
            entries += len(value)
            inside = list(value)
        else:
            continue
        check_at_most("levels of sections and lists inside each other", depth, DEEPEST)
        check_at_most("names of settings", names, MOST_NAMES)
        check_at_most("entries of lists", entries, MOST_ENTRIES)
        left.extend((one, depth + 1) for one in inside if not isinstance(one, str))


def check_at_most(what: str, given: int, most: int) -> None:
    """Raise :class:`SettingsError` where there are more than `most`."""
    if given > most:
        raise SettingsError(f"settings: {given:,} {what} given, or more; valid: at most {most:,}.")
