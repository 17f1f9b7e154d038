"""The wheel holds every file that the package reads: the report's page, the lexicon, stop words, sample and settings."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

UNREACHABLE = ("No matching distribution found", "connection", "Temporary failure in name resolution")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--quiet",
        "--wheel-dir",
        str(out),
        str(CHECKOUT),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode and any(reason in built.stderr for reason in UNREACHABLE):
        pytest.skip("the build backend cannot be fetched here")
    assert built.returncode == 0, built.stderr
    (file,) = out.glob("*.whl")
    return file


def test_it_holds_what_the_package_reads(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        page = archive.read("dptext_spark/report/page.html")
    package = CHECKOUT / "dptext_spark"
    wanted = [file for file in package.rglob("*") if file.is_file() and "__pycache__" not in file.parts] + [
        *(file for file in (CHECKOUT / "conf").rglob("*") if file.is_file()),
        *(CHECKOUT / "jobs").glob("*.py"),
    ]
    names = {
        str(file.relative_to(CHECKOUT))
        if package in file.parents
        else f"dptext_spark/{file.relative_to(CHECKOUT)}"
        for file in wanted
    }
    assert len(names) > 200 and names - held == set()
    assert page == (package / "report" / "page.html").read_bytes()
    assert not [name for name in held if name.startswith(("tests/", "benchmarks/"))]
