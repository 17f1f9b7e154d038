"""The facts of a run that never was, over sixty words."""

from __future__ import annotations

import pytest

from dptext_spark.report.facts import ReportFacts, gathered
from tests.core.report.accounts import row, small_model


@pytest.fixture(scope="session")
def facts() -> ReportFacts:
    model = small_model(words=60)
    return gathered(row(model), model=model)
