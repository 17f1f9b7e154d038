"""What a compiled mechanism says of its law: public figures, kept in the model and shown by reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dptext_spark.runtime.validation import Record


@dataclass(frozen=True)
class Ends(Record):
    """The least and the greatest of some numbers."""

    min: float
    max: float


@dataclass(frozen=True)
class Quantiles(Ends):
    """The ends of some numbers, their middle and mean."""

    sparse: ClassVar[bool] = True

    p50: float
    mean: float | None = None

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Quantiles:
        """Describe some numbers."""
        low, middle, high = (float(quantile) for quantile in np.quantile(values, [0.0, 0.5, 1.0]))
        return cls(low, high, middle, float(values.mean()))


@dataclass(frozen=True, kw_only=True)
class RemapSummary(Record):
    """What a Bayes remap replaces.

    Attributes:
        prior: by which the replacements were chosen.
        outputs_before: how many words can be drawn, before the remap.
        replaced: how many of these are released as another word.
        outputs: how many words can come out.
        drawable: how many words other words can be drawn as: of SanText+ the sensitive ones.
        telling: SanText+: how many words that are not sensitive can come of themselves alone; None where all words are.
    """

    sparse: ClassVar[bool] = True

    prior: str
    outputs_before: int
    replaced: int
    outputs: int
    drawable: int | None = None
    telling: int | None = None


@dataclass(frozen=True, kw_only=True)
class Summary(Record):
    """The figures that the disclosure reads; each is None where a law has none. Samplers add their own.

    Attributes:
        words: V, of the lexicon.
        outputs: how many words can come out.
        internal_epsilon: the ε that the law is compiled with, where tight ε raised it.
        alone_share: share of the words that share their output set with no other.
        set_size: outputs of a word.
        inputs_per_output: words that can have produced an output.
        one_input_share: share of the outputs that one word alone can have produced.
        ruled_out_bits: log2(V / words that can have produced an output), a mean over draws of equally likely words.
        told_bits: how many bits a draw tells of its word in all, likewise; None where draws depend on the word before.
        rounding: the greatest error of a log-probability, where the law is sampled up to one.
        remap: of a law whose outputs are replaced; the other figures are those of what is released.
    """

    sparse: ClassVar[bool] = True

    words: int | None = None
    outputs: int | None = None
    internal_epsilon: float | None = None
    alone_share: float | None = None
    set_size: Quantiles | None = None
    inputs_per_output: Quantiles | None = None
    one_input_share: float | None = None
    ruled_out_bits: float | None = None
    told_bits: float | None = None
    rounding: float | None = None
    remap: RemapSummary | None = None

    @property
    def sensitive(self) -> int | None:
        """How many words can be drawn: of SanText+ the sensitive ones (of which every word that is drawn becomes one)."""
        return self.outputs if self.remap is None else self.remap.drawable
