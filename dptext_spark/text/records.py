"""Texts from a file, a record a line, with their labels where the lines hold them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from dptext_spark.errors import DataError, SettingsError, require_choice

LABELS = ("first", "last", "none")


@dataclass(frozen=True, eq=False)
class Records:
    """Some texts.

    Attributes:
        texts: string[n].
        labels: [n], or None.

    Examples:
        >>> import pyarrow as pa
        >>> table = dp.tickets(40)
        >>> records = audit.Records(table["body"].combine_chunks(), tuple(table["topic"].to_pylist()))
        >>> len(records.texts)
        40
    """

    texts: pa.StringArray
    labels: tuple[str, ...] | None

    def __repr__(self) -> str:
        """Return how many texts; none of them."""
        return f"Records({len(self.texts):,} texts{'' if self.labels is None else ', labelled'})"

    def spaced(self, most: int) -> Records:
        """Return at most so many of them, evenly spaced."""
        if most >= len(self.texts):
            return self
        places = np.linspace(0, len(self.texts) - 1, most).astype(np.int64)
        labels = None if self.labels is None else tuple(self.labels[i] for i in places)
        return Records(self.texts.take(pa.array(places)), labels)


def read_records(file: str | Path, field: str, labels: str = "none") -> Records:
    """Read a UTF-8 file, a record a line; empty lines are left out.

    Args:
        file: the path.
        field: what messages call it.
        labels: where the label of a tab-separated line stands: `first`, `last`, or `none`, which takes lines whole.

    Raises:
        SettingsError: labels is none of the three, or the file cannot be read.
        DataError: it is no UTF-8 text, holds fewer than two records, a line has no label or an empty one.
    """
    require_choice("labels", labels, LABELS)
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"{field}: {str(file)!r} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise DataError(f"{field}: {str(file)!r} is no UTF-8 text.") from None
    # Not splitlines(), which ends lines at characters that stand within texts.
    lines = [(number, line.rstrip("\r")) for number, line in enumerate(text.split("\n"), start=1)]
    lines = [(number, line) for number, line in lines if line.strip()]
    if len(lines) < 2:
        raise DataError(f"{field}: {len(lines)} record(s); valid: two or more, one a line.")
    if labels == "none":
        return Records(pa.array([line for _, line in lines], pa.string()), None)
    for number, line in lines:
        if "\t" not in line:
            raise DataError(
                f"{field}: line {number} has no tab; valid: a text and a label with a tab between them."
            )
    parts = [line.split("\t", 1) if labels == "first" else line.rsplit("\t", 1)[::-1] for _, line in lines]
    for (number, _), (label, _) in zip(lines, parts, strict=True):
        if not label.strip():
            raise DataError(f"{field}: line {number} has an empty label; valid: a label in every line.")
    return Records(
        pa.array([text for _, text in parts], pa.string()), tuple(label.strip() for label, _ in parts)
    )
