"""Count the size of the checkout: lines, tokens, modules, names, settings and options.

`python -m tools.house` prints the counts. `python -m tools.house --lower` writes them to tools/house.json, which a test reads:
no count may rise above its figure there. A count that must rise is changed in that file by hand, in the commit that says why.
"""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePath

CHECKOUT = Path(__file__).resolve().parent.parent
COUNTS = Path(__file__).with_suffix(".json")
PACKAGE, TESTS, BENCHMARKS = "dptext_spark", "tests", "benchmarks"

# Variable names that do not say what a value is.
EMPTY_NAMES = frozenset({"one", "found", "said", "made", "seen", "held", "wanted", "there", "given", "kept"})
COUNTED_TOKENS = frozenset({tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING})
# Python 3.12 and later split an f-string into tokens of its own; before, it is one string.
F_STRING_STARTS = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
F_STRING_ENDS = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")}


def tracked(folder: str) -> list[Path]:
    """List the Python files below a folder that git tracks and that are still there."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--", folder], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    paths = [CHECKOUT / name for name in listing.stdout.split("\0") if name.endswith(".py")]
    return [path for path in paths if path.is_file()]


def lines_of(source: str) -> int:
    """Count the lines of a source."""
    return len(source.splitlines())


def _docstrings(source: str) -> set[tuple[int, int]]:
    """Locate where each docstring begins: (line, column)."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(ast.parse(source)) if isinstance(node, documented) and node.body]
    first = [body[0] for body in bodies]
    return {
        (statement.lineno, statement.col_offset)
        for statement in first
        if isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    }


def tokens_of(source: str) -> int:
    """Count names, operators, numbers and strings; an f-string is one, docstrings and comments are none."""
    docstrings, depth, count = _docstrings(source), 0, 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in F_STRING_STARTS:
            count += depth == 0
            depth += 1
        elif token.type in F_STRING_ENDS:
            depth -= 1
        elif depth == 0 and token.type in COUNTED_TOKENS:
            count += not (token.type == tokenize.STRING and token.start in docstrings)
    return count


def import_lines_of(source: str) -> int:
    """Count the lines that import statements take."""
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def empty_names_of(source: str) -> int:
    """Count the places where a variable gets a name that does not say what it is."""
    stored = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name))
    return sum(node.id in EMPTY_NAMES and isinstance(node.ctx, ast.Store) for node in stored)


def repeated_names(paths: list[Path]) -> int:
    """Count the file names that occur more than once; `__init__.py` is left out."""
    occurrences = Counter(path.name for path in paths if path.name != "__init__.py")
    return sum(count > 1 for count in occurrences.values())


def _leaves(settings: object) -> int:
    if isinstance(settings, dict) and settings:
        return sum(_leaves(value) for value in settings.values())
    return 1


def settings_count() -> int:
    """Count the settings of conf/reference.yaml."""
    import yaml

    return _leaves(yaml.safe_load((CHECKOUT / "conf" / "reference.yaml").read_text(encoding="utf-8")))


def options_count() -> int:
    """Count the options of all commands; `--help` is left out."""
    import typer

    from dptext_spark.cli.app import app

    def options(command: object) -> Iterator[str]:
        for parameter in getattr(command, "params", ()):
            if parameter.param_type_name == "option" and parameter.name != "help":
                yield parameter.name
        for subcommand in getattr(command, "commands", {}).values():
            yield from options(subcommand)

    return len(list(options(typer.main.get_command(app))))


def counts() -> dict[str, float]:
    """Count the checkout: each count with its name, in the order of the table."""
    package = tracked(PACKAGE)
    sources = [path.read_text(encoding="utf-8") for path in package]
    line_count = sum(map(lines_of, sources))
    return {
        "lines of the package": line_count,
        "tokens of the package": sum(map(tokens_of, sources)),
        "modules of the package": len(package),
        "file names of the package that repeat": repeated_names(package),
        "import lines of the package, per cent": round(
            100 * sum(map(import_lines_of, sources)) / line_count, 2
        ),
        "variables with an empty name": sum(map(empty_names_of, sources)),
        "lines of tests": sum(lines_of(path.read_text(encoding="utf-8")) for path in tracked(TESTS)),
        "lines of benchmarks": sum(
            lines_of(path.read_text(encoding="utf-8")) for path in tracked(BENCHMARKS)
        ),
        "settings": settings_count(),
        "command line options": options_count(),
    }


def main(arguments: list[str]) -> None:
    """Print each count beside its limit; with `--lower`, make today's counts the limits."""
    today, limits = counts(), json.loads(COUNTS.read_text(encoding="utf-8")) if COUNTS.exists() else {}
    lines = (
        f"{name:40} {count:>10,}   at most {limits.get(name, count):>10,}\n" for name, count in today.items()
    )
    sys.stdout.writelines(lines)
    if arguments == ["--lower"]:
        raised = [name for name, count in today.items() if count > limits.get(name, count)]
        if raised:
            sys.exit(f"these rose: {', '.join(raised)}; change {PurePath(COUNTS).name} by hand, and say why")
        COUNTS.write_text(json.dumps(today, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
