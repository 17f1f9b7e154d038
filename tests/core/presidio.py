"""Presidio with a model of spaCy, where both are installed, by the class of the guide."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, blocks

NAMED = "en_core_web_sm"  # by the guide


def installed_model() -> str:
    """Return an installed English model of spaCy; a test that needs one is skipped without."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("presidio_analyzer", reason="the extra [presidio] is not installed")
        util = pytest.importorskip("spacy.util", reason="Presidio came without spaCy")
        models = sorted(one for one in util.get_installed_models() if one.startswith("en_core_web_"))
    if not models:
        pytest.skip("no model en_core_web_* of spaCy is installed")
    return str(models[0])


def people(folder: Path, module: str, model: str) -> str:
    """Write the class of the guide into a module, with a model that is installed; return its import path."""
    (block,) = [
        one for one in blocks(DOCS / "guide" / "identifiers.md", "py") if "class People(Presidio)" in one
    ]
    assert f'"{NAMED}"' in block
    (folder / f"{module}.py").write_text(block.replace(f'"{NAMED}"', f'"{model}"'))
    return f"{module}:People"
