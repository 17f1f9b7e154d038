"""What `make` says while pip is silent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.core.test_requirements import module

COLLECTING = "Collecting numpy==2.4.6 (from -r run.txt (line 1))\n  Using cached numpy.whl (1 kB)\n"
SATISFIED = "Requirement already satisfied: pip_audit==1 in /x\n"
INSTALLING = "Installing collected packages: numpy, scipy\n"


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("", "70"),
        (COLLECTING * 2, "numpy (1 "),
        (COLLECTING + SATISFIED, "pip_audit (2 "),
        (COLLECTING + INSTALLING, "3 packages"),
    ],
)
def test_a_line_says_how_far_pip_is(printed: str, said: str) -> None:
    assert said in module("install").progress(printed, 70, before=2, now=5)


def test_what_pip_refuses_ends_with_its_message_and_exit_code(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("there-is-no-such-package==1.0\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "requirements" / "install.py"), str(lock), "--require-hashes", "--no-index"],
        capture_output=True, text=True, check=False, env=os.environ | {"PIP_FIND_LINKS": ""},
    )  # fmt: skip
    assert done.returncode == 1
    assert "No matching distribution" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_make_installs_in_no_other_way() -> None:
    """Every lock file goes through it, with hashes; the project itself is installed without what it depends on."""
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    lines = [line for line in makefile.splitlines() if "install.py" in line or "$(PIP) install" in line]
    assert len(lines) == 7
    assert [line for line in lines if "--require-hashes" not in line and "--no-deps" not in line] == []
