"""The certificate: the true worst-case loss of the law that is sampled, beside the loss that is claimed (MECHANISMS §14).

It confirms, refutes, or says that it could not refute; it never rounds in the user's favour.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dptext_spark.figures import digits_up, exact
from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.loss import Loss, Progress, worst_loss
from dptext_spark.privatizer import Privatizer

Verdict = Literal["confirmed", "refuted", "not refuted"]


@dataclass(frozen=True)
class Certificate:
    """What was found of a guarantee.

    Attributes:
        verdict: `confirmed` (the loss of every pair is known to be within the claim), `refuted` (a pair exceeds it), or
            `not refuted`.
        guarantee: the claim.
        loss: what was found.
        seconds: wall time.
    """

    verdict: Verdict
    guarantee: Guarantee
    loss: Loss
    seconds: float

    @property
    def sentence(self) -> str:
        """The finding in plain words."""
        claimed, loss = self.guarantee, self.loss
        per = f" per unit of {claimed.metric}" if claimed.kind == "metric_dp" else ""
        pairs = f"{loss.pairs:,} of {loss.total:,} pairs"
        if self.verdict == "confirmed":
            found = f"no pair of words loses more than {digits_up(loss.value, 6)}{per}, within the claimed {exact(claimed.epsilon)}"
        elif self.verdict == "refuted":
            found = f"a pair of words loses at least {exact(loss.attained)}{per}, more than the claimed {exact(claimed.epsilon)}"
        else:
            found = (
                f"no pair was found to lose more than the claimed {exact(claimed.epsilon)}{per}; "
                f"the worst that was found loses at least {exact(loss.attained)}"
            )
        return f"{self.verdict.capitalize()}: {found} ({pairs}; {loss.method})."

    def as_dict(self) -> dict[str, Any]:
        """Return the certificate, JSON-able."""
        return {
            "verdict": self.verdict,
            "claimed": asdict(self.guarantee),
            "loss": self.loss.as_dict(),
            "seconds": round(self.seconds, 3),
            "sentence": self.sentence,
        }


def certify(privatizer: Privatizer, progress: Progress | None = None) -> Certificate:
    """Certify the guarantee of a privatizer's draws.

    All words of the lexicon count as drawn; which of them the policy draws can only take pairs away.

    Args:
        privatizer: the model.
        progress: is told how many words are done, of how many.
    """
    began = time.perf_counter()
    guarantee = privatizer.sampler.guarantee
    loss = worst_loss(privatizer.sampler, len(privatizer.vocabulary), progress)
    return Certificate(verdict(guarantee, loss), guarantee, loss, time.perf_counter() - began)


def verdict(guarantee: Guarantee, loss: Loss) -> Verdict:
    """Compare what was found with the claim."""
    if loss.attained > guarantee.epsilon or guarantee.status == "refuted":
        return "refuted"
    return "confirmed" if loss.pairs >= loss.total and loss.value <= guarantee.epsilon else "not refuted"
