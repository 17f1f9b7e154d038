"""The folder for what can be made again: machine code, compiled models, what was unpacked. It can always be written."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def writable(folder: Path) -> bool:
    """Whether a file can be made in `folder`, which is created if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _is_private(folder: Path) -> bool:
    """Whether `folder`, created if it is missing, is this user's alone to write: cached code is run as it is found."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022


def user_cache() -> Path:
    """Return the project's cache folder: `$DPTEXT_CACHE`, `$XDG_CACHE_HOME`, `~/.cache`, else a temporary one."""
    named = os.environ.get("DPTEXT_CACHE")
    candidates = [Path(named)] if named else []
    base = os.environ.get("XDG_CACHE_HOME")
    home = Path(os.path.expanduser("~"))
    if base or home.is_absolute():  # a user without a home stays "~", which would be a folder of that name
        candidates.append(Path(base or home / ".cache") / "dptext_spark")
    for folder in candidates:
        if writable(folder):
            return folder
    # The folder for temporary files is everybody's: whoever came first may have made one under our name.
    shared = Path(tempfile.gettempdir()) / f"dptext_spark-{os.getuid()}"
    if _is_private(shared) and writable(shared):
        return shared
    return Path(tempfile.mkdtemp(prefix="dptext_spark-"))
