"""The wheel of the checkout, built as its users build it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


class Unreachable(Exception):
    """The build backend cannot be fetched here."""


def build_wheel(folder: Path) -> Path:
    """Build the wheel into an empty folder, and return its file.

    Raises:
        Unreachable: no package registry answers.
        RuntimeError: the build failed, with what it said.
    """
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    command = [*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), str(CHECKOUT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode and re.search("No matching distribution|connection|name resolution", built.stderr):
        raise Unreachable("the build backend of the wheel cannot be fetched here")
    if built.returncode:
        raise RuntimeError(built.stderr)
    (wheel,) = folder.glob("*.whl")
    return wheel
