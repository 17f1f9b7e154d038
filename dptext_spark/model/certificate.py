"""Certificates: the true worst-case loss of the sampled law, compared with the claimed loss.

A certificate confirms, refutes, or states that it could not refute; it never rounds in the user's favour.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from dptext_spark.guarantee import Guarantee
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.privacy_loss import Loss, vector_loss, worst_loss
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.rounding import digits_up, exact, rounded_down
from dptext_spark.runtime.display import Counted, counted, line, table
from dptext_spark.runtime.validation import Json, Record, Unbounded

CHEAP = 50_000  # words: all their pairs are examined within seconds
Verdict = Literal["confirmed", "not refuted", "no bound", "refuted"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)  # from the best to the worst
NO_BOUND: Verdict = "no bound"


@dataclass(frozen=True)
class LossFigure(Loss, Record):
    """The loss of a single release, with the verdict on that release alone. `verdict`: as of a certificate."""

    value: Unbounded
    attained: Unbounded
    others: Unbounded | None = None
    verdict: Verdict = "not refuted"


@dataclass(frozen=True)
class Certificate:
    """Verdict on a guarantee.

    Attributes:
        verdict: `confirmed` (the loss of every pair is known to be within the claim), `not refuted`, `no bound` (the claim
            compares no two words), or `refuted` (a pair exceeds it).
        guarantee: the claim.
        loss: result for the released word; None where there is no search for this kind of law.
        sentence: the finding in plain words. Where there are several laws, of levels of importance or of a budget, it is that of
            all of them, and the other fields are those of the worst.
        vector: result for the noisy vector. A claim may rest on it, though only the word next to it is released. None where it
            was not examined.
        seconds: wall time; None of a certificate that was kept, so that equal models are equal files.
        before: result for the law before a remap, with the same claim; None where outputs are released as drawn.

    Examples:
        >>> found = dp.certify(model, sample=200)
        >>> found.as_dict()["loss"]["attained"] <= 2.0
        True
    """

    verdict: Verdict
    guarantee: Guarantee
    loss: LossFigure | None
    sentence: str
    vector: LossFigure | None = None
    seconds: float | None = None
    before: LossFigure | None = None

    def __repr__(self) -> str:
        """Return verdict and claim, and the largest loss where it is confirmed and one number bounds it."""
        claimed, loss_bound = self.guarantee, ""
        claim = f"ε = {exact(claimed.epsilon)}" + (f", δ = {exact(claimed.delta)}" if claimed.delta else "")
        loss = self.loss if self.verdict == "confirmed" and claimed.kind != "approx_dp" else None
        if loss is not None and not loss.additive:
            loss_bound = f"loss at most {digits_up(loss.value, 6)}"
        return line("Certificate", self.verdict, claimed.kind, f"claimed {claim}", loss_bound)

    def _repr_html_(self) -> str:
        """Return the certificate as HTML for a notebook."""
        rows = [("verdict", self.verdict), ("finding", self.sentence), ("claimed", str(self.guarantee))]
        return table("Certificate", rows)

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> Certificate:
        """Read a certificate from a result of :meth:`as_dict`: of an artifact, of a row of `runs`, or of --json."""
        loss, vector, before = (
            LossFigure.from_dict(written[name], name) if written.get(name) else None
            for name in ("loss", "vector", "before")
        )
        claimed = Guarantee.from_dict(written["claimed"], "claimed")
        return cls(
            written["verdict"], claimed, loss, written["sentence"], vector, written.get("seconds"), before
        )

    def as_dict(self) -> dict[str, Json]:
        """Return the certificate, JSON-able."""
        return {
            "verdict": self.verdict,
            "claimed": self.guarantee.as_dict(),
            "loss": None if self.loss is None else self.loss.as_dict(),
            "vector": None if self.vector is None else self.vector.as_dict(),
            **({} if self.before is None else {"before": self.before.as_dict()}),
            **({} if self.seconds is None else {"seconds": round(self.seconds, 3)}),
            "sentence": self.sentence,
        }


def _sentence(found: Verdict, claimed: Guarantee, loss: Loss | None, vector: Loss | None) -> str:
    """Write the finding in plain words."""
    if loss is None:
        return f"{found.capitalize()}: by the argument in the guarantee itself. No law was searched."
    if vector is not None:
        return f"{found.capitalize()}. {_of_vector(claimed, vector)} {_of_word(claimed, loss)}"
    looked_at = f"{loss.pairs:,} of {loss.total:,} pairs; {loss.method}"
    among = f" among {loss.among}" if loss.among and found == "not refuted" else ""
    return f"{found.capitalize()}{among}: {_finding(found, claimed, loss)} ({looked_at}). {loss.outside}".rstrip()


def _finding(found: Verdict, claimed: Guarantee, loss: Loss) -> str:
    per = f" for each unit of distance ({claimed.metric})" if claimed.kind == "metric_dp" else ""
    sure = f" at a confidence of {loss.confidence:.6f}" if loss.confidence else ""
    if found == NO_BOUND:
        return (
            f"there are no two {claimed.compared} to compare, so ε = {exact(claimed.epsilon)} bounds nothing"
        )
    if found == "confirmed":
        rounded = loss.additive and f" (the rounding of the law adds {digits_up(loss.additive, 2)} at most)"
        return (
            f"no pair of {claimed.compared} loses more than {digits_up(loss.value, 6)}{per}, and {exact(claimed.epsilon)} is "
            f"claimed{rounded or ''}"
        )
    if loss.attained > claimed.epsilon and claimed.kind != "approx_dp":
        return (
            f"a pair of {claimed.compared} loses at least {exact(loss.attained)}{per}, and {exact(claimed.epsilon)} is "
            f"claimed{sure}"
        )
    if claimed.kind == "approx_dp" and loss.delta is not None and loss.delta > claimed.delta:
        return (
            f"at ε = {exact(claimed.epsilon)} a pair needs a δ of {exact(loss.delta)}, and {exact(claimed.delta)} is "
            f"claimed{sure}"
        )
    if found == "refuted":
        return "by the exact argument in the guarantee itself"
    return f"no pair was found to exceed the claim{sure}"


def _of_vector(claimed: Guarantee, loss: Loss) -> str:
    """Write the exact δ of the noisy vector."""
    assert loss.delta is not None
    assert loss.delta_most is not None
    assert loss.delta_opposite is not None
    return (
        f"Release of the noisy vector, {_verdict(claimed, loss)}: its true δ at ε = {exact(claimed.epsilon)} is "
        f"{digits_up(loss.delta, 6)} for the worst pair of this lexicon ({loss.pairs:,} of {loss.total:,} pairs; "
        f"{loss.method}), {digits_up(loss.delta_opposite, 6)} for two opposite vectors and at most "
        f"{digits_up(loss.delta_most, 6)} for any, and {exact(claimed.delta)} is claimed."
    )


def _of_word(claimed: Guarantee, loss: Loss) -> str:
    """Write the lower bound on the δ of the released word."""
    sure = f"at a confidence of {loss.confidence:.6f}" if loss.confidence else ""
    evidence = f"its true δ is at least {rounded_down(loss.delta or 0.0, 6)} {sure}, and {exact(claimed.delta)} is claimed"
    if _verdict(claimed, loss) != "refuted":
        evidence = "no event was found that passes the claim"
    return f"Release of the word, {_verdict(claimed, loss)}: {evidence} ({loss.pairs:,} of {loss.total:,} pairs; {loss.method})."


def _of_drawn(claimed: Guarantee, before: Loss | None) -> str:
    """Write the loss of the law that is drawn, where another one is released."""
    if before is None:
        return ""
    per = " for each unit of distance" if claimed.kind == "metric_dp" else ""
    return f" Before the remap, the drawn and calibrated law loses at most {digits_up(before.value, 6)}{per}."


def certify(model: Privatizer, *, sample: int | None = None, progress: Counted | None = None) -> Certificate:
    """Compute the true worst-case loss of the law that a model samples, and compare it with the guarantee.

    All words of the lexicon count as drawn; the choice of the policy or importance can only take pairs away.

    Args:
        model: the compiled model.
        sample: number of words for a search that grows with their square, taken at equal steps through the lexicon; None
            for all.
        progress: progress callback, called with the finished and the total amount. None prints the step on stderr in a notebook
            or terminal.

    Examples:
        >>> dp.certify(model).verdict
        'confirmed'
    """
    tell = progress or counted("certifying")
    certificates = [_certified(sampler, len(model.vocabulary), tell, sample) for sampler in model.samplers]
    if len(certificates) == 1:
        return certificates[0]
    worst = max(certificates, key=lambda certificate: VERDICTS.index(certificate.verdict))
    if model.budget is None:
        text = " ".join(
            f"Level {number}: {certificate.sentence}"
            for number, certificate in enumerate(certificates, start=1)
        )
    else:
        numbers = Counter(certificate.verdict for certificate in certificates)
        listed = ", ".join(f"{numbers[grade]} {grade}" for grade in VERDICTS if numbers[grade])
        text = f"Of the {len(certificates)} laws that the budget chooses from: {listed}. The worst, or largest: {worst.sentence}"
    return replace(
        worst, seconds=sum(certificate.seconds or 0.0 for certificate in certificates), sentence=text
    )


def _certified(sampler: Sampler, words: int, progress: Counted | None, sample: int | None) -> Certificate:
    """Certify one law."""
    began = time.perf_counter()
    claimed, drawn = sampler.guarantee, sampler.before
    before = None if drawn is None else worst_loss(drawn, words, progress, sample)
    loss = worst_loss(sampler, words, progress, sample, before=before)
    vector = vector_loss(sampler, progress, sample)
    decided = verdict(claimed, loss, vector)
    if before is not None and verdict(claimed, before) == "refuted":
        decided = "refuted"
    figures = (
        None if law_loss is None else LossFigure(**vars(law_loss), verdict=_verdict(claimed, law_loss))
        for law_loss in (loss, vector, before)
    )
    sentence = _sentence(decided, claimed, loss, vector) + _of_drawn(claimed, before)
    return Certificate(
        decided, claimed, next(figures), sentence, next(figures), time.perf_counter() - began, next(figures)
    )


def is_cheap(privatizer: Privatizer) -> bool:
    """Check whether a certificate is made whenever a model is: for laws that are known exactly, up to `CHEAP` words.

    On 33,000 words that takes seconds. Noise mechanisms are searched by draws: that takes longer and is left to `dptext certify`.
    """
    noise = any(sampler.searches for sampler in privatizer.samplers)
    return len(privatizer.vocabulary) <= CHEAP and not noise


def verdict(guarantee: Guarantee, loss: Loss | None, vector: Loss | None = None) -> Verdict:
    """Compare the results with the claim; a claim that is refuted for either release is refuted."""
    if guarantee.status == "refuted" or (vector is not None and _verdict(guarantee, vector) == "refuted"):
        return "refuted"
    return "not refuted" if loss is None else _verdict(guarantee, loss)


def _verdict(guarantee: Guarantee, loss: Loss) -> Verdict:
    if guarantee.kind == "approx_dp":
        shown = (loss.delta, loss.delta_opposite)
        return "refuted" if any(x is not None and x > guarantee.delta for x in shown) else "not refuted"
    if loss.attained > guarantee.epsilon:
        return "refuted"
    if loss.total == 0 and loss.others is None:
        return NO_BOUND
    within = loss.value <= guarantee.epsilon and (loss.others is None or loss.others <= guarantee.epsilon)
    return "confirmed" if within and (loss.closed or loss.pairs >= loss.total) else "not refuted"
