"""Install from a lock file with pip, and say what goes on meanwhile: pip itself is silent for as long as it unpacks.

    python requirements/install.py requirements/run.txt --require-hashes ...

It is run by the interpreter of a virtual environment, before anything is installed there, so it imports nothing from elsewhere.
What follows the lock file goes to pip as it is. pip compiles no bytecode: it would take as long as all the rest, on one core, and
most of it is never used. Python keeps that of each module when it is first imported. Where PYTHONDONTWRITEBYTECODE forbids
that, every process would compile anew, so all of it is compiled here, on every core.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

INTERVAL = 2.0  # seconds between two looks; a line is written where something changed
POLL = 0.1
_NAMED = re.compile(r"^(?:Collecting|Requirement already satisfied:) ([\w.-]+)", re.MULTILINE)
_TESTS = r"/tests?/"  # of other projects, which nobody runs here


def progress(printed: str, locked: int, before: int, now: int) -> str:
    """Return in a line how far pip is.

    Args:
        printed: what it printed until now.
        locked: packages in the lock file.
        before: packages that were installed when it began.
        now: packages that are installed.
    """
    names = _NAMED.findall(printed)
    if "Installing collected packages" in printed:
        return f"installing: {max(0, now - before)} packages are in place"
    if not names:
        return f"reading the lock file of {locked} packages"
    return f"fetching {names[-1]} ({min(len(set(names)), locked)} of at most {locked} packages)"


def installed(folder: Path) -> int:
    """Return how many packages are installed in a folder."""
    return sum(1 for _ in folder.glob("*.dist-info"))


def main(lock: str, *options: str) -> int:
    """Install; return pip's exit code.

    Args:
        lock: the lock file.
        *options: for pip.
    """
    folder = Path(sysconfig.get_path("purelib"))
    locked = sum("==" in line.split(";")[0] for line in Path(lock).read_text(encoding="utf-8").splitlines())
    before, said = installed(folder), ""
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--no-compile",
        "--progress-bar=off",
    ]
    with tempfile.TemporaryFile() as printed:
        child = subprocess.Popen([*command, *options, "-r", lock], stdout=printed, stdin=subprocess.DEVNULL)
        looked = time.monotonic()
        while child.poll() is None:
            time.sleep(POLL)
            if time.monotonic() - looked < INTERVAL:
                continue
            looked = time.monotonic()
            line = progress(_read(printed.fileno()), locked, before, installed(folder))
            if line != said:
                sys.stdout.write(f"  {line}\n")
                sys.stdout.flush()
                said = line
        if child.returncode:
            sys.stdout.write(_read(printed.fileno()))
            return child.returncode
    if sys.flags.dont_write_bytecode:
        sys.stdout.write(
            "  compiling bytecode, which PYTHONDONTWRITEBYTECODE keeps Python from writing later\n"
        )
        sys.stdout.flush()
        # What a package brings for another version of Python does not compile, and is never imported.
        subprocess.run(
            [sys.executable, "-m", "compileall", "-qq", "-j", "0", "-x", _TESTS, str(folder)], check=False
        )
    return 0


def _read(handle: int) -> str:
    """Return what a file holds, from its beginning, and leave the place where others write as it is."""
    return os.pread(handle, os.fstat(handle).st_size, 0).decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
