"""The order of the rooms: imports point down, pyspark has one door, and names say what a module is for."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import grimp
import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGE = "dptext_spark"

# The floors of the import contract in pyproject.toml, from the ground up. import-linter holds it; here are what it cannot see:
# module names in strings, the package's root, cycles between modules, and what is installed.
SETTINGS = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
CONTRACTS = SETTINGS["importlinter"]["contracts"]
FLOORS = [[room.strip() for room in floor.split("|")] for floor in reversed(CONTRACTS[0]["layers"])]
LAYERS = {room: height for height, floor in enumerate(FLOORS) for room in floor}
SPARK_LAYER = LAYERS["spark"]
DEMO_LAYER = LAYERS["demo"]
JOBS_LAYER = max(LAYERS.values()) + 1

ENGINE = {"delta", "py4j", "pyspark"}
NAMES_THAT_SAY_NOTHING = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
JOB_LINES = 30


@dataclass(frozen=True)
class Import:
    """One module that a file imports, wherever in the file it does so."""

    file: Path
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(CHECKOUT)}:{self.line} imports {self.module}"


def files() -> list[Path]:
    return sorted([*(CHECKOUT / PACKAGE).rglob("*.py"), *(CHECKOUT / "jobs").rglob("*.py")])


def layer_of(file: Path) -> int:
    top, *inside = file.relative_to(CHECKOUT).parts
    if top == "jobs":
        return JOBS_LAYER
    return LAYERS[inside[0].removesuffix(".py")] if inside != ["__init__.py"] else -1


def exists(module: str) -> bool:
    place = CHECKOUT.joinpath(*module.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def imports(file: Path, tree: ast.AST) -> Iterator[Import]:
    """Every import, in functions and under TYPE_CHECKING too, and each module of ours that a string names."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (Import(file, node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                for alias in names:
                    inner = f"{module}.{alias.name}"
                    ours = module.split(".")[0] == PACKAGE and exists(inner)
                    yield Import(file, node.lineno, inner if ours else module)
            case ast.ImportFrom():
                yield Import(file, node.lineno, "." * node.level + (node.module or ""))
            case ast.Constant(value=str(text)) if re.fullmatch(rf"{PACKAGE}(\.\w+)+", text) and exists(text):
                yield Import(file, node.lineno, text)


def parse(file: Path) -> list[Import]:
    return list(imports(file, ast.parse(file.read_text(encoding="utf-8"), str(file))))


@cache
def all_imports() -> list[Import]:
    return [found for file in files() for found in parse(file)]


def test_there_is_something_to_check() -> None:
    assert len(files()) > 10
    assert any(found.module.startswith("pyspark") for found in all_imports())


def test_imports_point_down() -> None:
    root = CHECKOUT / PACKAGE / "__init__.py"
    ours = [one for one in all_imports() if one.module.startswith(f"{PACKAGE}.") and one.file != root]
    assert [str(one) for one in ours if LAYERS[one.module.split(".")[1]] > layer_of(one.file)] == []


def test_the_package_root_is_not_imported_from_inside() -> None:
    inside = [found for found in all_imports() if layer_of(found.file) < JOBS_LAYER]
    assert [str(found) for found in inside if found.module == PACKAGE] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph(PACKAGE)
    by = graph.find_modules_directly_imported_by
    imported = {module: by(module) - {module} for module in graph.modules}
    assert len(imported) > 100
    tuple(TopologicalSorter(imported).static_order())  # a circle is an error that names its modules


def test_imports_are_absolute() -> None:
    assert [str(found) for found in all_imports() if found.module.startswith(".")] == []


def test_names_say_what_a_module_is_for() -> None:
    named = [file.relative_to(CHECKOUT) for file in files()]
    assert [place for place in named if NAMES_THAT_SAY_NOTHING & {*place.parts[:-1], place.stem}] == []


def test_jobs_are_short() -> None:
    jobs = [file for file in files() if layer_of(file) == JOBS_LAYER]
    assert [file.name for file in jobs if len(file.read_text().splitlines()) > JOB_LINES] == []


def test_what_is_imported_at_once_is_installed_with_the_package() -> None:
    extra = re.compile(r"extra == ['\"](\w+)['\"]")
    declared: dict[str, set[str]] = {}
    for requirement in requires("dptext-spark") or ():
        of = extra.search(requirement)
        name = re.match(r"[\w.-]+", requirement)
        declared.setdefault(of.group(1) if of else "", set()).add(name.group().lower().replace("_", "-"))
    assert "numpy" in declared[""]
    assert "pyspark" in declared["spark"]
    declared[""] |= {"llvmlite", "pydantic-core"}  # of numba and pydantic, which pin them
    declared["spark"] |= {"py4j"}  # of pyspark
    distributions = packages_distributions()
    missing = []
    for file in files():
        of_spark = layer_of(file) in (SPARK_LAYER, DEMO_LAYER, JOBS_LAYER)
        allowed = declared[""] | (declared["spark"] if of_spark else set())
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            names = node.names if isinstance(node, ast.Import) else []
            modules = [name.name for name in names]
            modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            missing += [
                f"{file.relative_to(CHECKOUT)} imports {top}"
                for top in {module.split(".")[0] for module in modules} - sys.stdlib_module_names - {PACKAGE}
                if not allowed & {name.lower().replace("_", "-") for name in distributions.get(top, ())}
            ]
    assert missing == []


@pytest.mark.parametrize("statement", ["import dptext_spark", "from dptext_spark import *"])
def test_the_core_imports_without_spark(statement: str) -> None:
    program = f"import sys; sys.modules.update(dict.fromkeys({sorted(ENGINE)!r})); {statement}"
    done = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_spark_says_what_is_missing() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None; from dptext_spark.errors import SettingsError\n"
        "try:\n    from dptext_spark.spark import privatize\n"
        "except SettingsError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True)
    assert "pip install 'dptext-spark[spark]'" in done.stdout, done.stderr


@cache
def defined(file: Path) -> set[str]:
    """Return the names that a module defines or imports, wherever that stands in it, and those that it makes on first use."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(name.asname or name.name).partition(".")[0] for name in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def test_what_is_imported_only_where_it_is_used_is_there() -> None:
    """An import within a function fails when somebody calls it: of benchmarks and clusters that may be weeks later."""
    folders = ("benchmarks", "docs", "jobs", "tests", PACKAGE)
    sources = [file for folder in folders for file in sorted((CHECKOUT / folder).rglob("*.py"))]
    imported = [
        (file, node, name.name)
        for file in sources
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in folders
        for name in node.names
    ]
    assert len(imported) > 1_000
    lost = []
    for file, node, name in imported:
        place = CHECKOUT.joinpath(*str(node.module).split("."))
        module = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        submodule = (place / f"{name}.py").is_file() or (place / name).is_dir()
        if not submodule and not (module.is_file() and name in defined(module)):
            lost.append(f"{file.relative_to(CHECKOUT)}:{node.lineno}: {name} of {node.module}")
    assert lost == []
