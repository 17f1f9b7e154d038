"""The files that people expect beside a project agree with it, and the wheel holds what the package reads."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
import yaml

from dptext_spark._version import __version__
from dptext_spark.lexicon.vector_formats import READERS
from dptext_spark.mechanisms.base import Sampler
from tests.conftest import CHECKOUT
from tests.wheels import build_wheel


def text(name: str) -> str:
    return (CHECKOUT / name).read_text(encoding="utf-8")


def test_the_citation_is_of_this_version() -> None:
    cited = yaml.safe_load(text("CITATION.cff"))
    assert str(cited["version"]) == __version__
    assert f'license = "{cited["license"]}"' in text("pyproject.toml")
    assert {"cff-version", "message", "title", "authors"} <= set(cited)


def test_the_workflow_is_ci_run() -> None:
    job = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]["run"]
    assert job["steps"][-1]["run"] == "bash .ci/run"
    assert (CHECKOUT / ".ci" / "run").is_file()
    for version in job["strategy"]["matrix"]["python"]:
        assert f"Programming Language :: Python :: {version}" in text("pyproject.toml")


def test_what_makes_packaged_data_is_run_by_make() -> None:
    named = set(re.findall(r"-m tools\.(\w+)", text("Makefile")))
    assert named == {"lexicon", "names", "months", "characters", "tickets"}
    assert all((CHECKOUT / "tools" / f"{name}.py").is_file() for name in named)


def test_the_hooks_are_the_steps_of_make_lint() -> None:
    (local,) = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", text("Makefile"), flags=re.MULTILINE)
    assert lint is not None
    steps = lint.group(1)
    for hook in local["hooks"]:
        program, *words = hook["entry"].removeprefix(".venv/bin/").split()
        assert program in ("python", "lint-imports")
        assert " ".join([program, *words[:3]]).removesuffix(" --force-exclude") in steps.replace(
            "$(VENV)/bin/", ""
        )


def test_what_the_pages_of_development_name_is_there() -> None:
    said = text("docs/development/mechanism.md") + text("docs/development/reader.md")
    for name in ("cost", "certified_by", "laws", "law_columns", "worst_loss"):
        assert f"`{name}`" in said
        assert hasattr(Sampler, name)
    assert "READERS" in said
    assert READERS


def test_what_docstrings_cite_of_the_concepts_is_there() -> None:
    page = text("docs/concepts/mechanisms.md")
    headings = set(re.findall(r"^## (.+)$", page, flags=re.MULTILINE))
    cited: set[str] = set()
    for folder in ("dptext_spark", "tests", "benchmarks"):
        for file in (CHECKOUT / folder).rglob("*.py"):
            said = " ".join(file.read_text(encoding="utf-8").split())
            assert not re.search(r"MECHANISMS " + "§", said), file
            cited.update(re.findall(r"concepts/mechanisms, ([A-Z][\w δ]*?)(?:[);:.,\]]|$)", said))
    assert len(cited) > 5
    assert cited <= headings


@pytest.mark.parametrize("page", ["README.md", "docs/getting-started.md", "docs/guide/report.md"])
def test_what_a_page_installs_is_all_that_its_commands_need(page: str) -> None:
    """`run` needs [spark]; `audit`, `report` and the report of the demo need [audit]."""
    installs = re.findall(r"^pip install '\.\[(.*?)\]'", text(page), flags=re.MULTILINE)
    assert installs == ["spark,audit"]


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
