"""Names that only this project used are gone from its modules, classes, functions and arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "dptext_spark"

MODULES = {
    "account", "asked", "backward", "binding", "chain", "checkup", "chosen", "compared_texts", "draws_loss", "encoder_use",
    "ending", "exits", "groups", "guessed", "join", "kernels", "line", "losses", "measured_points", "pooled", "ranks", "segment",
    "settle", "setup", "spending", "spent", "statements", "steps", "strips", "table_use", "unaided", "usefulness", "walks",
    "weighed", "whole",
}  # fmt: skip
CLASSES = {
    "Asked", "Calibrated", "Chance", "Chosen", "CountsDisagree", "Finding", "Given", "Job", "KeptPoints", "LineSampler",
    "NotAccounted", "Setup", "Spread", "Tem", "WholeSampler", "WrongWeights",
}  # fmt: skip
FUNCTIONS = {
    "admitted", "carried_out", "choosing", "digits_toward", "in_units", "placing", "silenced", "spread", "together", "told",
    "unnoted", "validated", "weighed", "_pay", "_retried",
}  # fmt: skip
ARGUMENTS = {"cure", "fate", "likeness", "setup", "unaided"}


def defined() -> Iterator[tuple[str, str, str]]:
    """Yield (kind, name, where) of everything that has a name of its own."""
    for file in PACKAGE.rglob("*.py"):
        yield "module", file.stem, str(file)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            where = f"{file}:{getattr(node, 'lineno', 0)}"
            match node:
                case ast.ClassDef(name=name):
                    yield "class", name, where
                case ast.FunctionDef(name=name, args=args):
                    yield "function", name, where
                    for one in (*args.posonlyargs, *args.args, *args.kwonlyargs):
                        yield "argument", one.arg, where
                case ast.AnnAssign(target=ast.Name(id=name)):
                    yield "argument", name, where


def test_the_fields_words_are_used() -> None:
    left = {"module": MODULES, "class": CLASSES, "function": FUNCTIONS, "argument": ARGUMENTS}
    found = list(defined())
    assert len(found) > 5_000
    assert [(name, where) for kind, name, where in found if name in left[kind]] == []
    assert [(name, where) for _, name, where in found if "likeness" in name.lower()] == []
