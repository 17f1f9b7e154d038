"""The wheel holds every file that the package reads: the report's page, the lexicon, stop words, sample and settings."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.wheels import Unreachable, build_wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    try:
        return build_wheel(out)
    except Unreachable as error:
        pytest.skip(str(error))


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
