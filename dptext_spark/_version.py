"""The version of the package, as pyproject.toml has it."""

from __future__ import annotations

__version__ = "0.1.0"
FIRST_ENGINE = "1"  # the version of the engine of records that do not say which engine made them
