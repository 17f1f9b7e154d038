"""What binds a run id to one release: its row of `runs`, and a seal of it in the commit, for that table may be lost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dptext_spark.errors import RunError

if TYPE_CHECKING:
    from dptext_spark.spark.setup import Setup

# A run that finishes an unfinished one must agree with it in these.
SETTINGS = ("config", "artifact", "input", "input_version", "identity", "output")
OF_THE_KEY = ("key_commitment", "key_kind")
SEAL = "dptext_bound"  # in the commit of a run


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the commit says of the row that bound its run: as it is where that is short, else a digest."""
    digests = {name: hashlib.sha256(str(record[name]).encode()).hexdigest()[:32] for name in SETTINGS}
    return {**{name: record[name] for name in (*OF_THE_KEY, "second_release")}, **digests}


def bound(
    setup: Setup, record: dict[str, Any], earlier: dict[str, Any] | None, commit: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Bind a run to what its run id was begun with.

    Args:
        setup: the run.
        record: its row of `runs`.
        earlier: the row that stands there; None where there is none.
        commit: of the same run id, where it committed. Then the run is only accounted for: that draws nothing and needs no key.

    Returns:
        The row. Of a run that committed it names the key of its commit.

    Raises:
        RunError: the run id was begun with other settings, or that is not known; or it was begun with another key, did not
            commit, and no second release is accepted.
    """
    before, now = earlier, record
    if earlier is None:
        if commit is None:
            return {**record, "second_release": False}
        before, now = _sealed_in(commit, setup.run_id), seal(record)
    assert before is not None
    differ = [name for name in SETTINGS if before[name] != now[name]]
    same_key = before["key_commitment"] == now["key_commitment"]
    if differ:
        also = ", ".join([*([] if same_key or commit else ["key_commitment"]), *differ])
        raise RunError(
            f"run.id: {setup.run_id!r} was begun with another {also}; use a new run id, or the same settings."
        )
    second = bool(before["second_release"])
    if commit is not None:
        return {**record, "second_release": second, **{name: before[name] for name in OF_THE_KEY}}
    if not same_key and setup.config.run.second_release != "accept":
        raise RunError(
            f"run.id: {setup.run_id!r} was begun with another key and did not finish; files that it left may hold "
            "its draws. Run it with the same key (key.file), or accept a second release of the same records by "
            "run.second_release=accept."
        )
    return {**record, "second_release": second or not same_key}


def _sealed_in(commit: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    found = json.loads(commit["userMetadata"]).get(SEAL)
    if found is None:
        raise RunError(
            f"run.id: {run_id!r} committed, its row in `runs` is lost, and its commit does not say what it was begun with; "
            "it cannot be accounted for. Use a new run id."
        )
    return dict(found)
