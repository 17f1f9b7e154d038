"""What every test shares: real data that lies beside the checkout, and hypothesis without chance."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir

CHECKOUT = Path(__file__).resolve().parent.parent

# Fixed examples and no database: a test passes or fails the same way everywhere, and leaves nothing behind.
set_hypothesis_home_dir(Path(tempfile.gettempdir()) / f"hypothesis-{os.getuid()}")
settings.register_profile(
    "fixed",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# For a longer search by hand: DPTEXT_HYPOTHESIS=search.
fixed = settings.get_profile("fixed")
settings.register_profile("search", parent=fixed, derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("DPTEXT_HYPOTHESIS", "fixed"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with SST-2, SimLex-999 and the GloVe excerpt: $DPTEXT_SHARED_DATA, else ../shared/data."""
    named = os.environ.get("DPTEXT_SHARED_DATA")
    folder = Path(named) if named else CHECKOUT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the real data sets are not here: {folder} is no folder; DPTEXT_SHARED_DATA names one")
    return folder
