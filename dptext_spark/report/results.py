"""Results of audits that were written to files as JSON, to be shown in a report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dptext_spark.errors import DataError

# What every result says of itself; an attack has `success`, too.
SAID = {"name": str, "measures": str, "restricted": bool, "exact": bool}


def read_results(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Read results: what audits return as dictionaries, one or a list of them in a file.

    Raises:
        DataError: a file cannot be read, or holds something else.
    """
    return [one for file in files for one in _read(file)]


def _read(file: Path) -> Iterator[dict[str, Any]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"figures: {str(file)!r} cannot be read as JSON ({type(error).__name__}).") from None
    for one in found if isinstance(found, list) else [found]:
        lacks = [
            name
            for name, kind in SAID.items()
            if not isinstance(one, Mapping) or not isinstance(one.get(name), kind)
        ]
        if lacks:
            raise DataError(
                f"figures: a result in {str(file)!r} lacks {', '.join(lacks)}; valid: what an audit returns as JSON."
            )
        yield dict(one)


def is_attack(result: Mapping[str, Any]) -> bool:
    """Whether a result says what an adversary finds, and not what the text is good for."""
    return "success" in result or "knows" in result
