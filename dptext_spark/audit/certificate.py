"""The certificate: the true worst-case loss of the law that is sampled, beside the loss that is claimed (MECHANISMS §14).

It confirms, refutes, or says that it could not refute; it never rounds in the user's favour.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dptext_spark.figures import digits_up, exact
from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.losses import Loss, Progress, worst_loss
from dptext_spark.privatizer import Privatizer

Verdict = Literal["confirmed", "refuted", "not refuted"]


@dataclass(frozen=True)
class Certificate:
    """What was found of a guarantee.

    Attributes:
        verdict: `confirmed` (the loss of every pair is known to be within the claim), `refuted` (a pair exceeds it), or
            `not refuted`.
        guarantee: the claim.
        loss: what was found; None where there is no search for this kind of law.
        seconds: wall time.
    """

    verdict: Verdict
    guarantee: Guarantee
    loss: Loss | None
    seconds: float

    @property
    def sentence(self) -> str:
        """The finding in plain words."""
        claimed, loss = self.guarantee, self.loss
        if loss is None:
            return f"{self.verdict.capitalize()}: by the argument that stands in the guarantee itself; no law was searched."
        per = f" for each unit of distance ({claimed.metric})" if claimed.kind == "metric_dp" else ""
        sure = f" at a confidence of {loss.confidence:.6f}" if loss.confidence else ""
        if self.verdict == "confirmed":
            found = f"no pair of words loses more than {digits_up(loss.value, 6)}{per}, and {exact(claimed.epsilon)} is claimed"
            found += (
                f" (the rounding of the law adds {digits_up(loss.additive, 2)} at most)"
                if loss.additive
                else ""
            )
        elif loss.attained > claimed.epsilon and claimed.kind != "approx_dp":
            found = f"a pair of words loses at least {exact(loss.attained)}{per}, and {exact(claimed.epsilon)} is claimed{sure}"
        elif claimed.kind == "approx_dp" and loss.delta is not None and loss.delta > claimed.delta:
            found = (
                f"at ε = {exact(claimed.epsilon)} a pair needs a δ of {exact(loss.delta)}, and {exact(claimed.delta)} is "
                f"claimed{sure}"
            )
        elif self.verdict == "refuted":
            found = "by the exact argument that stands in the guarantee itself"
        else:
            found = f"no pair was found to exceed the claim{sure}"
        return (
            f"{self.verdict.capitalize()}: {found} ({loss.pairs:,} of {loss.total:,} pairs; {loss.method})."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the certificate, JSON-able."""
        return {
            "verdict": self.verdict,
            "claimed": asdict(self.guarantee),
            "loss": None if self.loss is None else self.loss.as_dict(),
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


def verdict(guarantee: Guarantee, loss: Loss | None) -> Verdict:
    """Compare what was found with the claim."""
    if guarantee.status == "refuted":
        return "refuted"
    if loss is None:
        return "not refuted"
    if guarantee.kind == "approx_dp":
        return "refuted" if loss.delta is not None and loss.delta > guarantee.delta else "not refuted"
    if loss.attained > guarantee.epsilon:
        return "refuted"
    return "confirmed" if loss.pairs >= loss.total and loss.value <= guarantee.epsilon else "not refuted"
