"""The wheel of the checkout, built as its users build it."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def build_wheel(folder: Path) -> Path:
    """Build the wheel into an empty folder, and return its file.

    Raises:
        RuntimeError: the build failed, with what it said.
    """
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # The build backend is the environment's own, as it is for `make`: nothing is fetched.
    command = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(CHECKOUT)]
    # It writes into the checkout's folder `build`, which two builds at a time would take from each other.
    with (CHECKOUT / "pyproject.toml").open("rb") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        raise RuntimeError(built.stderr)
    (wheel,) = folder.glob("*.whl")
    return wheel
