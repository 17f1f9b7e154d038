"""What a model is known by: everything that its draws depend on, as one digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.text.policy import Policy


def fingerprint_of(
    arrays: Mapping[str, npt.NDArray[Any]],
    policy: Policy,
    consistency: str,
    selector: Mapping[str, Any] | None = None,
    providers: tuple[str, ...] = (),
) -> str:
    """Return the sha256 over the policy, the level, the arrays with their names, types and shapes, and who chooses and finds."""
    known = asdict(policy)
    if not policy.identifiers:  # where none are looked for, draws are those of a policy that knows of none
        del known["identifiers"]
    bound = [known, consistency, *([] if selector is None else [selector]), *providers]
    digest = hashlib.sha256(json.dumps(bound, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
