"""The commits of a Delta table, and what runs of dptext write into them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

SEAL = "dptext_bound"  # in the commit of a run: what binds it to its run id
ATTEMPT = "dptext_attempt"  # in the commit of a run: which process made it
CREATED = "dptext_created"  # a property of a table that was made empty for a run to write into: that run


@dataclass(frozen=True)
class Commit:
    """A commit of a Delta table, as its history tells of it.

    Attributes:
        version: that it made.
        operation: such as WRITE or RESTORE; `parameters` are its own.
        metadata: what a run of ours said in it, JSON; None in commits of others.
        metrics: such as `numOutputRows`, as text.
    """

    version: int
    operation: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    metadata: str | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def said(self) -> Mapping[str, Any]:
        """What a run of ours said in it; nothing in commits of others."""
        try:
            found = json.loads(self.metadata or "")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) and "dptext_run" in found else {}

    @property
    def rows(self) -> int | None:
        """How many it wrote; None where it does not say."""
        counted = self.metrics.get("numOutputRows")
        return None if counted is None else int(counted)


def our_commits(commits: Iterable[Commit]) -> dict[str, Commit]:
    """Return the commits that runs of this package made, by run id."""
    return {str(commit.said["dptext_run"]): commit for commit in commits if commit.said}


def only_created(commits: Iterable[Commit]) -> bool:
    """Whether all that happened to a table is that a run made it, empty."""
    return all(f'"{CREATED}"' in (commit.parameters.get("properties") or "") for commit in commits)
