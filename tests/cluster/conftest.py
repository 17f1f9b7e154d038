"""One standalone cluster for all tests of this folder that one process runs, and the wheel that is submitted to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A master and two workers, which end with the test run."""
    pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
    from tests.cluster.standalone import Cluster, MissingError, installed_wheel, require_machine

    folder = tmp_path_factory.mktemp("cluster")
    try:
        require_machine()
        installed = installed_wheel(folder / "installed")
    except MissingError as lacking:
        pytest.skip(str(lacking))
    with Cluster(folder / "cluster", installed) as started:
        yield started


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")
