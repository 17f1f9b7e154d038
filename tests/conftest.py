"""What every test shares: real data that lies beside the checkout, and hypothesis without chance."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir

CHECKOUT = Path(__file__).resolve().parent.parent

# Java processes of some minutes: checking the classes of a release, and the second compiler, cost more than they ever win back.
# With one compiler Java keeps 48 MB of code: Spark makes more within ten runs, and then the same is compiled again and again.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -XX:TieredStopAtLevel=1 -XX:MetaspaceSize=256m "
    "-XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -XX:NewSize=300m",
)

# Fixed examples and no database: a test passes or fails the same way everywhere, and leaves nothing behind.
set_hypothesis_home_dir(Path(tempfile.gettempdir()) / f"hypothesis-{os.getuid()}")
slow = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fixed", derandomize=True, database=None, print_blob=True, **slow)
# For a longer search by hand: DPTEXT_HYPOTHESIS=search.
fixed = settings.get_profile("fixed")
settings.register_profile("search", parent=fixed, derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("DPTEXT_HYPOTHESIS", "fixed"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take minutes begin first, so that no process is left with one of them at the end.

    Before them comes the file that compiles most loops. What begins beside it needs none, so that no loop is compiled twice.
    """
    items.sort(key=lambda item: ("core" in item.path.parts, *_begins(item)))


COMPILES, NEEDS_NO_LOOP = "frozen/test_behaviour.py", ("test_layers.py", "docs", "spark/tables")


def _begins(item: pytest.Item) -> tuple[int, ...]:
    name = item.path.relative_to(CHECKOUT / "tests").as_posix()
    return (0,) if name == COMPILES else (1,) if name.startswith(NEEDS_NO_LOOP) else (2,)


def shared_folder() -> Path:
    """Return where the real data sets should be: $DPTEXT_SHARED_DATA, else ../shared/data."""
    named = os.environ.get("DPTEXT_SHARED_DATA")
    return Path(named) if named else CHECKOUT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with SST-2, SimLex-999 and the GloVe excerpt; a test that takes it is skipped where it is not here."""
    folder = shared_folder()
    if not folder.is_dir():
        pytest.skip(f"the real data sets are not here: {folder} is no folder; DPTEXT_SHARED_DATA names one")
    return folder


def of_this_run(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder that the processes of a test run share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def on_another_processor(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Give a function that calls `package.module.function` elsewhere and returns what it returns, as text.

    Elsewhere is a process without vector instructions and fused multiply-add, on one thread, with nothing cached but the loops
    that another test compiled for the same processor.
    """
    from numpy._core._multiarray_umath import __cpu_dispatch__

    environment = os.environ | {
        "PYTHONPATH": str(CHECKOUT),
        "DPTEXT_CACHE": str(of_this_run(tmp_path_factory) / "another-processor"),
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_ENABLE_AVX": "0",
        "NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
        "FAISS_OPT_LEVEL": "generic",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OPENBLAS_CORETYPE": "Prescott",
        "PYTHONHASHSEED": "5",
    }
    environment.pop("NUMBA_CACHE_DIR", None)

    def call(function: str) -> str:
        module = function.rpartition(".")[0]
        code = f"import sys; sys.path.insert(0, '.'); import {module}; print({function}())"
        child = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env=environment, cwd=CHECKOUT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert child.returncode == 0, child.stderr
        return child.stdout.strip()

    return call
