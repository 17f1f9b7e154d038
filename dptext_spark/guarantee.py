"""What is promised about one word, as a value that prints as a sentence (MECHANISMS §14)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["epsilon_dp", "epsilon_dp_within_group", "metric_dp", "approx_dp"]
Status = Literal["proved", "verified", "claimed", "refuted"]


@dataclass(frozen=True)
class Guarantee:
    """The guarantee of one draw.

    Attributes:
        kind: what is bounded: any two words (`epsilon_dp`), words that share an output set
            (`epsilon_dp_within_group`), words by their distance (`metric_dp`), or up to a probability (`approx_dp`).
        epsilon: the bound on |ln P(u|w) - ln P(u|w')| (for `metric_dp`: per unit of distance).
        delta: the additive probability of `approx_dp`; 0 otherwise.
        metric: the distance of `metric_dp`; None otherwise.
        unit: what is protected.
        status: how well the bound is known to hold for the law that is really sampled.
        sentence: the bound in plain words.
    """

    kind: Kind
    epsilon: float
    delta: float = 0.0
    metric: str | None = None
    unit: str = "word"
    status: Status = "proved"
    sentence: str = ""

    def __str__(self) -> str:
        """Return the sentence with its status."""
        return f"{self.sentence} [{self.status}]"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-able dictionary."""
        return asdict(self)

    def compose(self, draws: int) -> float | None:
        """Return the bound for `draws` independent draws of one record, by basic composition.

        Args:
            draws: number of draws (token level: drawn words; record level: distinct drawn words).

        Returns:
            epsilon x draws, or None for `metric_dp`, where the sum depends on the distances between the two
            records and no such product may be printed (MECHANISMS §12).
        """
        if self.kind == "metric_dp":
            return None
        return self.epsilon * draws if math.isfinite(self.epsilon) else math.inf
