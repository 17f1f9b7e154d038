"""The checkout does not grow by accident: no count rises above the figure that tools/house.json has for it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tools import house

SOURCE = '''"""A module."""

import os
from pathlib import (
    Path,
)


def named(given: str) -> str:
    """A function."""
    found = f"{given} {Path(given)!r:>{10}}"  # a comment
    return "".join(one for one in found) + os.sep
'''


def test_no_count_rises() -> None:
    if subprocess.run(["git", "rev-parse"], cwd=house.CHECKOUT, capture_output=True, check=False).returncode:
        pytest.skip("git does not track this checkout")
    limits = json.loads(house.COUNTS.read_text(encoding="utf-8"))
    today = house.counts()
    assert today.keys() == limits.keys()
    assert {name: count for name, count in today.items() if count > limits[name]} == {}


def test_lines_imports_and_names_are_counted() -> None:
    assert house.lines_of(SOURCE) == 12
    assert house.import_lines_of(SOURCE) == 4
    assert house.empty_names_of(SOURCE) == 2  # `found`, and `one` of the loop; a parameter is not counted


def test_an_f_string_is_one_token_and_a_docstring_none() -> None:
    assert house.tokens_of('"""Text."""\n') == 0
    assert house.tokens_of('name = "text"  # why\n') == 3
    assert house.tokens_of("name = f\"a {b + f'{c}'} d\" + e\n") == 5
    assert house.tokens_of(SOURCE) == 37


def test_file_names_that_repeat_are_counted_once() -> None:
    names = ["a/names.py", "b/names.py", "c/names.py", "a/__init__.py", "b/__init__.py", "a/draws.py"]
    assert house.repeated_names([Path(name) for name in names]) == 1
