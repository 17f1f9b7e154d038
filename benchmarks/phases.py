"""The time of each phase of the engine, taken inside the engine's own run: nothing is measured on a copy of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

# Phase -> the functions that make it up, as (module, attribute). Where one calls another, the outer one has the time.
PHASES: dict[str, tuple[tuple[str, str], ...]] = {
    "copy and pad the batch": (("dptext_spark.text.engine", "padded"),),
    "find identifiers": (
        ("dptext_spark.text.identifiers.finder", "candidates"),
        ("dptext_spark.text.identifiers.finder", "skeletons"),
        ("dptext_spark.text.identifiers.finder", "match"),
    ),
    "identities": (("dptext_spark.model.privatizer", "identify"),),
    "cut into words": (
        ("dptext_spark.text.engine", "cut_words"),
        ("dptext_spark.text.engine", "cut_whitespace"),
    ),
    "look words up": (("dptext_spark.text.engine", "look_up"),),
    "assign blocks": (("dptext_spark.text.engine", "assign_blocks"),),
    "AES draws": (("dptext_spark.randomness.draws", "encrypt"), ("dptext_spark.model.privatizer", "encrypt")),
    "sample": (("dptext_spark.mechanisms.samplers.table", "draw_all"),),
    "rebuild": (
        ("dptext_spark.text.engine", "rebuild"),
        ("dptext_spark.text.engine", "_text_array"),
    ),
}
REST = "between the phases"


@contextmanager
def timed_phases() -> Iterator[Callable[[], dict[str, float]]]:
    """Time every phase while the context lasts.

    Yields:
        A function that returns the seconds of each phase since it was called last.

    Raises:
        AttributeError: the engine has no function of that name any more; correct `PHASES`.
    """
    spent = dict.fromkeys(PHASES, 0.0)
    depth = 0

    def timed(phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.perf_counter() - began
                depth -= 1
                if depth == 0:
                    spent[phase] += took

        return run

    def taken() -> dict[str, float]:
        found = dict(spent)
        spent.update(dict.fromkeys(PHASES, 0.0))
        return found

    with ExitStack() as stack:
        for phase, functions in PHASES.items():
            for module, attribute in functions:
                original = getattr(__import__(module, fromlist=[attribute]), attribute)
                stack.enter_context(patch(f"{module}.{attribute}", timed(phase, original)))
        yield taken
