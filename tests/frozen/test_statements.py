"""The statements of twelve plans are as they were: who changes one reads it as text, and says why in the commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frozen import statements


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small lexicon and a key."""
    folder = tmp_path_factory.mktemp("statements")
    statements.write_inputs(folder)
    return folder


def test_each_file_is_of_a_scenario() -> None:
    assert {file.stem for file in statements.FOLDER.iterdir()} == statements.SCENARIOS.keys()


@pytest.mark.long
@pytest.mark.parametrize("name", statements.SCENARIOS)
def test_a_statement_is_as_it_was(name: str, inputs: Path) -> None:
    assert statements.statement(name, inputs) == (statements.FOLDER / f"{name}.md").read_text(
        encoding="utf-8"
    )
