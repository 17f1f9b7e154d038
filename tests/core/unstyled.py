"""The package's own defaults by name, for files of settings whose tests are not about a style."""

from __future__ import annotations

from typing import Any

UNSTYLED: dict[str, Any] = {
    "consistency": "token",
    "mechanism": {"name": "custext"},
    "policy": {"names": "none", "identifiers": {"date": "keep"}},
}
