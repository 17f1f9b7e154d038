"""The wheel holds every file that the package reads: report page, lexicon, stop words, sample, settings, and its SBOM."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.wheels import build_wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


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
    assert len(names) > 200
    assert names - held == set()
    assert page == (package / "report" / "page.html").read_bytes()
    assert not [name for name in held if name.startswith(("tests/", "benchmarks/"))]


def test_it_carries_its_bill_of_materials(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if ".dist-info/sboms/" in name)
        carried = archive.read(name)
    assert carried == (CHECKOUT / "requirements" / "sbom.cdx.json").read_bytes()
