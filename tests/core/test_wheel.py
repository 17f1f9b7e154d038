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
    own = [file.relative_to(package) for file in package.rglob("*") if "__pycache__" not in file.parts]
    beside = [*(CHECKOUT / "conf").rglob("*"), *(CHECKOUT / "jobs").glob("*.py")]
    wanted = [*own, *(file.relative_to(CHECKOUT) for file in beside if file.is_file())]
    names = {f"dptext_spark/{file}" for file in wanted if not (package / file).is_dir()}
    assert len(names) > 200
    assert names - held == set()
    assert page == (package / "report" / "page.html").read_bytes()
    assert not [name for name in held if name.startswith(("tests/", "benchmarks/"))]


def test_it_carries_its_bill_of_materials(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if ".dist-info/sboms/" in name)
        carried = archive.read(name)
    assert carried == (CHECKOUT / "requirements" / "sbom.cdx.json").read_bytes()
