"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

PRIVATE = 0o600  # the mode of a file that nobody but its owner may read


def write_atomically(file: Path, text: str, mode: int = 0o666) -> None:
    """Write a text in place of the file that is there; its folder must exist.

    Args:
        file: the place.
        text: as UTF-8.
        mode: of the file, less what the process's umask takes away.

    Raises:
        OSError: it cannot be written; then nothing has changed.
    """
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}-") as work:
        draft = Path(work) / file.name
        with open(draft, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, mode)) as out:
            out.write(text)
        os.replace(draft, file)
