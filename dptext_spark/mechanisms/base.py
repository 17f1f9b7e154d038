"""The two objects of every mechanism: what the user writes (small, frozen) and what the workers hold (arrays).

A sampler has a summary: public figures on its law, kept in the model and shown by reports.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F32, F64, I64, U64, Ids, ReadOnlyArrays
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.parameters import documented, parameters_of
from dptext_spark.randomness import Draws
from dptext_spark.runtime.display import Counted, brief, settings_line, table
from dptext_spark.runtime.validation import Json, Record, problems_of


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
    """Figures of the outputs that a Bayes remap replaces.

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
        """Number of words that can be drawn: for SanText+ the sensitive ones, as every drawn word becomes a sensitive word."""
        return self.outputs if self.remap is None else self.remap.drawable


TOTAL = 1 << 63
# In the place of the word before a draw: none that is known; the output of the draw before. Its compiled loops read them.
NO_WORD, PREVIOUS = -1, -2
DECIDES = "it confirms the claim or refutes it"
HALF_SPACES = "by draws on half-spaces between distant words: a lower bound on its δ at a stated confidence"
REFUTES = "it can refute the claim and never confirms it: `not refuted` is the best verdict"


class Law(NamedTuple):
    """The exact output distribution of a word.

    Attributes:
        ids: int32[m], the outputs that are possible, ascending.
        weight: uint64[m], integers that sum to 2^63; P(u) = weight / 2^63 exactly as sampled.
        probability: float64[m], the same as floats.
    """

    ids: Ids
    weight: U64
    probability: F64

    @classmethod
    def of(cls, ids: Ids, weight: U64) -> Law:
        """Take weights that sum to 2^63."""
        return cls(ids, weight, weight.astype(np.float64) / TOTAL)


class Laws(NamedTuple):
    """The exact output distributions of some words, one behind the other.

    Attributes:
        starts: int64[n + 1], where the outputs of each word begin.
        ids: int32[m], the outputs that are possible, ascending within a word.
        weight: uint64[m], integers that sum to 2^63 for each word.
    """

    starts: I64
    ids: Ids
    weight: U64

    @property
    def owners(self) -> I64:
        """The place of the word that each output is of, int64[m]."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def only(self) -> Law:
        """The law, where it is one."""
        return Law.of(self.ids, self.weight)

    def dense(self, words: int) -> F64:
        """Return P(u|w) of all V words u under each word: float64[n, V]."""
        every = np.zeros((len(self.starts) - 1, words))
        every[self.owners, self.ids] = self.weight.astype(np.float64) / TOTAL
        return every


class Inputs(NamedTuple):
    """The words that can give some outputs in context, one behind the other.

    Attributes:
        starts: int64[n + 1], where the words of each output begin.
        words: int32[m], ascending for each output.
        probability: float64[m], P(output | word, the word before).
    """

    starts: I64
    words: Ids
    probability: F64


class LawColumns(Protocol):
    """P(u|w) output by output, for laws over a whole lexicon that are too large to be held all at once."""

    def __call__(self, outputs: Ids) -> F32:
        """Return P(u|w) of some outputs u over all words w: float32[n, V]."""

    def probability(self, words: Ids, outputs: Ids) -> F64:
        """Return P(outputs[i] | words[i]) of int32[n] each, as the formula says: float64[n]."""


class Sampler(ReadOnlyArrays, ABC):
    """A compiled mechanism: arrays that cannot be written, no text, no files.

    A sampler draws, and names what else it can do. The defaults here are those of a sampler that names nothing.

    Audits, certificates and reports ask for a capability, never for the class of a sampler. So they also hold for new mechanisms.

    Attributes:
        guarantee: what holds for one draw.
        summary: public figures of the compiled law.
        ARRAYS: the fields that must be stored to sample elsewhere.
        summary_type: the class of its summary.
        cost: what drawing one token takes, as a phrase.
        certified_by: how the loss of what is released is found.
        has_short_laws: each law is a short row that is stored: all of them are read at once.
        compiles_quickly: in well under a second at another ε.
        draws_quickly: without a law, but so that attacks can afford many draws of every word.
        searches: a draw is a search over the lexicon.
        reads_context: a draw also depends on the word released before it: see :meth:`sample_after`, :meth:`law_after` and
            :meth:`inputs_after`; laws without a context are averages.
        law_is: what a law without a context is, as a phrase; empty where no draw has one.
    """

    guarantee: Guarantee
    summary: Summary
    ARRAYS: ClassVar[tuple[str, ...]] = ()
    summary_type: ClassVar[type[Summary]] = Summary
    cost: ClassVar[str] = "not stated"
    certified_by: ClassVar[str] = "not searched for"
    has_short_laws: ClassVar[bool] = False
    compiles_quickly: ClassVar[bool] = False
    draws_quickly: ClassVar[bool] = False
    searches: ClassVar[bool] = False
    reads_context: ClassVar[bool] = False
    law_is: ClassVar[str] = ""

    @abstractmethod
    def sample(self, ids: Ids, draws: Draws) -> Ids:
        """Draw one output for each input: int32[n] in, int32[n] out; draw i reads only number i of `draws`."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that sampling elsewhere needs, by name."""
        return {name: getattr(self, name) for name in self.ARRAYS}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, npt.NDArray[Any]], guarantee: Guarantee, summary: Summary
    ) -> Sampler:
        """Build the sampler again from :meth:`arrays` (memory-mapped or not), with a summary of `summary_type`."""
        assert isinstance(summary, cls.summary_type)
        build: Any = cls
        sampler: Sampler = build(
            **{name: arrays[name] for name in cls.ARRAYS}, guarantee=guarantee, summary=summary
        )
        return sampler

    def sample_after(self, ids: Ids, before: Ids, draws: Draws) -> Ids:
        """Draw one output for each input, in order, where draws depend on the word before: int32[n].

        Args:
            ids: int32[n].
            before: int32[n], the word released before each: a number of the word table, `NO_WORD`, or `PREVIOUS`, the output of
                the draw before it in this array.
            draws: draw i reads only number i.
        """
        return self.sample(ids, draws)

    def law_after(self, word_id: int, before: int) -> Law:
        """Return the exact law of a word after another (a number of the word table, or `NO_WORD`), where draws depend on it.

        Its weights sum to less than 2^64: P(u) = weight / their sum, exactly as sampled.

        Raises:
            ValueError: they do not, or there is no closed form.
        """
        law = self.law(word_id)
        if law is None:
            raise ValueError("there is no closed form")
        return law

    def inputs_after(self, outputs: Ids, before: Ids) -> Inputs | None:
        """Return every word that can give int32[n] outputs after int32[n] words; None where draws have no context."""
        return None

    def law(self, word_id: int) -> Law | None:
        """Return the exact law of a word, or None where there is no closed form."""
        return None

    def laws(self, words: Ids) -> Laws | None:
        """Return the laws of int32[n] words, or None where there is no closed form."""
        if self.law(int(words[0]) if len(words) else 0) is None:
            return None
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            every = [law for law in threads.map(self.law, words.tolist()) if law is not None]
        starts = np.cumsum([0, *(len(law.ids) for law in every)], dtype=np.int64)
        ids = np.concatenate([np.empty(0, np.int32), *(law.ids for law in every)])
        return Laws(starts, ids, np.concatenate([np.empty(0, np.uint64), *(law.weight for law in every)]))

    def law_bytes(self) -> int | None:
        """Return about how many bytes a law takes while it is made, or None where there is no closed form."""
        law = self.law(0)
        return None if law is None else 32 * len(law.ids)

    def law_columns(self) -> LawColumns | None:
        """Return the reader of laws output by output if it is quicker than reading all laws; else None."""
        return None

    def unchanged(self, words: Ids) -> tuple[F64, F64] | None:
        """Return P(w|w) of int32[n] words, with bounds of the logarithm's error; None if that takes the whole law."""
        return None

    @property
    def before(self) -> Sampler | None:
        """The sampler of the law that is drawn, where another one is released: its outputs are replaced. None where it is not."""
        return None

    @property
    def remap(self) -> Ids | None:
        """The word that is released for each output, int32[V]; None if outputs are released as they are drawn."""
        return None

    def noisy_vectors(self) -> Any:
        """Return the sampler itself if it adds noise of known density to vectors that attacks may see; else None."""
        return None

    def worst_loss(self, words: int, progress: Counted | None = None, sample: int | None = None) -> Any:
        """Return the :class:`~dptext_spark.mechanisms.privacy_loss.loss.Loss` of a law that this package does not know.

        None leaves it to :func:`dptext_spark.mechanisms.privacy_loss.worst_loss`.
        """
        return None

    def groups(self) -> Ids | None:
        """Return the group of each word, int32[V]: the guarantee compares words within a group. None without groups."""
        return None

    def record_loss(self, words: int, progress: Counted | None = None) -> Any:
        """Return the :class:`~dptext_spark.mechanisms.privacy_loss.RecordLoss` of a law that this package does not know.

        None leaves it to :func:`dptext_spark.mechanisms.privacy_loss.record_loss`.
        """
        return None


def check_context(consistency: str, levels: int = 1) -> None:
    """Refuse draws that depend on the word before, unless each is for a single occurrence by the same law.

    Raises:
        SettingsError: another level of consistency than token, or several levels of importance.
    """
    if consistency != "token":
        raise SettingsError(
            f"consistency: {consistency!r} is not valid with mechanism.fluent, because each occurrence depends on the word "
            "before it. Choose token."
        )
    if levels > 1:
        raise SettingsError(
            f"importance.levels: {levels} levels are not valid with mechanism.fluent, because fluent draws share one law. "
            "Choose importance.percent, or no importance."
        )


@dataclass(frozen=True)
class Mechanism(ABC):
    """The user's parameters: a frozen dataclass whose fields are made by :mod:`dptext_spark.mechanisms.parameters`.

    Each value is checked by its declaration when the object is made; rules between parameters are added by the mechanism.

    Attributes:
        epsilon: what every mechanism has; each declares what its own is for.
    """

    epsilon: float

    name: ClassVar[str]
    paper: ClassVar[str]
    protects: ClassVar[str]
    sampler: ClassVar[type[Sampler]]
    other_samplers: ClassVar[tuple[type[Sampler], ...]] = ()  # that some of its settings compile to
    # Where it is searched in another way than the rest of its sampler's.
    certified_by: ClassVar[str | None] = None
    # The order of magnitude of its cost; None where no record of a benchmark has one.
    measured: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        """Explain the parameters in the docstring, as `dptext mechanisms` does, and keep the short `repr`."""
        super().__init_subclass__()
        cls.__doc__ = documented(cls)
        # Else `dataclass` gives each subclass one with whole lists of words.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Mechanism.__repr__  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        """Check every parameter.

        Raises:
            SettingsError: values are not valid; a line for each.
        """
        if problems := [*problems_of(self, "mechanism")]:
            raise SettingsError("\n".join(problems))

    def __repr__(self) -> str:
        """Return ε and the parameters that are not as by default; of a list of words, its length."""
        return settings_line(self, always=("epsilon",))

    def _repr_html_(self) -> str:
        """Return paper, guarantee and parameters for a notebook; how words come out needs a lexicon, and so a model."""
        rows = [("paper", self.paper), ("protects", self.protects)]
        for name, parameter in parameters_of(self).items():
            rows.append((f"{name} = {brief(getattr(self, name))}", parameter.meaning))
        return table(f"Mechanism {self.name}", rows)

    def as_dict(self) -> dict[str, Json]:
        """Return the name and the parameters, JSON-able; those of `unused` only where they differ."""
        unused = self.unused()
        parameters = {
            name: value for name, value in asdict(self).items() if name not in unused or value != unused[name]
        }
        listed = {name: list(value) for name, value in parameters.items() if isinstance(value, tuple)}
        return {"name": self.name, **parameters, **listed}

    @classmethod
    def unused(cls) -> dict[str, Json]:
        """Return the parameters that are written only where they differ from their defaults, with these."""
        return {
            name: getattr(cls, name) for name, parameter in parameters_of(cls).items() if parameter.sparse
        }

    def embeddings(self) -> range:
        """Return for how many lexicons of the same words it can be compiled; if for several, `compile` takes them all."""
        return range(1, 2)

    def require_lexicons(self, count: int) -> None:
        """Raise :class:`SettingsError` unless the mechanism compiles from this number of lexicons."""
        allowed = self.embeddings()
        if count not in allowed:
            preset = getattr(self, "preset", None)
            raise SettingsError(
                f"lexicon.more: {count - 1} sources are not valid for mechanism {self.name}"
                f"{f' with preset {preset}' if preset else ''}. Choose "
                f"{f'{allowed[0] - 1} to ' if len(allowed) > 1 else ''}{allowed[-1] - 1}."
            )

    @abstractmethod
    def compile(self, lexicon: Lexicon) -> Any:
        """Return the :class:`Sampler` for a lexicon.

        Raises:
            SettingsError: a parameter does not fit the lexicon.
        """

    def over_epsilons(self, *lexicons: Lexicon) -> Callable[[float], Any]:
        """Return a function that compiles the mechanism at another ε, as `replace(self, epsilon=...).compile(...)` does.

        Where what does not depend on ε takes long (output sets, lists), it is done once.

        Raises:
            SettingsError: a parameter does not fit the lexicon; from what is returned, an ε that is out of range.
        """
        return lambda epsilon: replace(self, epsilon=epsilon).compile(*lexicons)

    @property
    def reads_context(self) -> bool:
        """Check whether draws also depend on the words released before them."""
        return False

    def without_context(self) -> Mechanism:
        """Return the same mechanism with draws that depend on no other word."""
        return self

    def by_distance(self, words: int) -> tuple[float, float] | None:
        """Return (ε, γ) if the law is ∝ exp(-ε·min(d, γ)/2) over all V words, d Euclidean; else None."""
        return None
