"""The heart as one object: a lexicon's words, a sampler, a policy and a level of consistency; Arrow strings in and out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dptext_spark.draws import Draws, RunKey, encrypt, hash_keys, identify, is_bytes
from dptext_spark.errors import DataError, require_choice
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms.base import Ids, Sampler
from dptext_spark.text.engine import COUNTERS, Engine, Noise, Placed
from dptext_spark.text.identifiers import TYPES
from dptext_spark.text.join import DATASET, TOKEN, word_blocks
from dptext_spark.text.policy import Policy
from dptext_spark.text.provider import Provider, check_providers
from dptext_spark.text.words import WordTable

ENGINE_VERSION = "1"
# One identifier of each type, so that the loops behind them are there before the first is met.
WARM = "a x@y.zz www.y.zz +1 555 123 4567, DE89370400440532013000 4111111111111111 10.0.0.1 ::1 1234567, @x 1.2.1999"
UNDRAWN = -1  # in the place of a word that was not drawn yet
CONSISTENCY = ("token", "record", "dataset")
Consistency = Literal["token", "record", "dataset"]
UNITS = {
    "token": "one occurrence of a word",
    "record": "all occurrences of a word in a record",
    "dataset": "all occurrences of a word in the dataset",
}
UNIT_SENTENCES = {
    "token": "The unit is one occurrence of a word that the policy draws.",
    "record": "The unit is all occurrences of a drawn word in a record, given the released pattern of which positions of "
    "the record hold equal words; changing only some of them changes that pattern, which is not protected.",
    "dataset": "The unit is all occurrences of a drawn word in the dataset, given the released pattern of which positions "
    "hold equal words: a substitution cipher, open to frequency analysis at any ε.",
}
COMPUTATIONAL = "The draws are pseudo-random: it holds against whoever lacks the run key."


@dataclass(frozen=True, eq=False)
class Counters:
    """What happened to each row of a batch.

    Attributes:
        rows: int32[n, len(COUNTERS)].
    """

    rows: npt.NDArray[np.int32]

    def column(self, name: str) -> npt.NDArray[np.int32]:
        """Return one counter, int32[n]."""
        return self.rows[:, COUNTERS.index(name)]

    def totals(self) -> dict[str, int]:
        """Return the sums by name, with the number of rows."""
        sums = self.rows.sum(axis=0, dtype=np.int64)
        return {
            "rows": len(self.rows),
            **{name: int(value) for name, value in zip(COUNTERS, sums, strict=True)},
        }

    def __add__(self, other: Counters) -> Counters:
        """Join the rows of two batches."""
        return Counters(np.concatenate([self.rows, other.rows]))


@dataclass(frozen=True, eq=False)
class Privatizer:
    """Replaces the words of texts.

    Attributes:
        lexicon: the words (a :class:`Lexicon`, or its vocabulary where vectors are no longer needed).
        sampler: a compiled mechanism over the same words.
        policy: which words are drawn, kept, masked.
        consistency: `token` draws every occurrence anew; `record` one draw per record and word; `dataset` one per word.
        fingerprint: of the arrays, the policy and the level; of the artifact where this was opened from one.
        table: the look-up table, built where it is not given.
        providers: who finds identifiers beside the policy's own patterns; their names are bound to the draws.
    """

    lexicon: Lexicon | Vocabulary
    sampler: Sampler
    policy: Policy = field(default_factory=Policy)
    consistency: Consistency = "token"
    fingerprint: str = ""
    table: WordTable | None = None
    providers: tuple[Provider, ...] = ()
    _draws: dict[bytes, Ids] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the level; build the look-up table and the fingerprint."""
        require_choice("consistency", self.consistency, CONSISTENCY)
        check_providers(self.providers, TYPES)
        if self.table is None:
            object.__setattr__(self, "table", WordTable.build(self.vocabulary, self.policy.stop_list()))
        if not self.fingerprint:
            names = tuple(provider.name for provider in self.providers)
            made = fingerprint_of(self.arrays(), self.policy, self.consistency, names)
            object.__setattr__(self, "fingerprint", made)

    def __getstate__(self) -> dict[str, Any]:
        """Travel without what was drawn so far: no table of substitutions is shipped."""
        return self.__dict__ | {"_draws": {}}

    @property
    def vocabulary(self) -> Vocabulary:
        """The words by id."""
        return self.lexicon.vocabulary if isinstance(self.lexicon, Lexicon) else self.lexicon

    @cached_property
    def engine(self) -> Engine:
        """The text engine."""
        assert self.table is not None
        return Engine(self.table, self.policy, self.providers)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything that sampling needs, by file name."""
        assert self.table is not None
        named = {f"sampler.{name}": array for name, array in self.sampler.arrays().items()}
        return named | {f"words.{name}": array for name, array in self.table.arrays().items()}

    def guarantee(self) -> Guarantee:
        """Return what holds for one drawn word under this policy and level."""
        base = self.sampler.guarantee
        return replace(
            base,
            unit=UNITS[self.consistency],
            sentence=f"{base.sentence} {UNIT_SENTENCES[self.consistency]} {COMPUTATIONAL}",
        )

    def privatize(
        self,
        texts: pa.Array,
        *,
        column: str,
        row_ids: pa.Array,
        record_ids: pa.Array | None = None,
        key: RunKey,
        run_id: str = "",
    ) -> tuple[pa.Array, Counters]:
        """Replace the words of a batch.

        Args:
            texts: string, large_string or binary [n]; NULLs stay NULL.
            column: the column's name; at token level it is part of what each draw is for.
            row_ids: integer, string or binary [n], unique in the run.
            record_ids: the same types [n]; the scope of record consistency. None: the row.
            key: the run key.
            run_id: at token level part of what the draws are for.

        Returns:
            (texts [n], counters). A row with invalid UTF-8 is counted as `invalid` and comes back empty.

        Raises:
            DataError: NULL identities, lengths that differ, or a type that is no text.
        """
        rows, counts, _ = self.placing(
            texts, column=column, row_ids=row_ids, record_ids=record_ids, key=key, run_id=run_id
        )
        return rows, counts

    def placing(
        self,
        texts: pa.Array,
        *,
        column: str,
        row_ids: pa.Array,
        record_ids: pa.Array | None = None,
        key: RunKey,
        run_id: str = "",
    ) -> tuple[pa.Array, Counters, Placed | None]:
        """Do the same, and say where the identifiers went (None where there are none): what an audit needs."""
        identities = row_ids if record_ids is None or self.consistency == "token" else record_ids
        if not is_bytes(texts.type):
            raise DataError(f"{column}: a column of type {texts.type}; valid: a text column.")
        if len(identities) != len(texts):
            raise DataError(f"{column}: {len(texts)} texts with {len(identities)} identities.")
        rows, counts, placed = self.engine.placing(texts, self._noise(identities, column, key, run_id))
        return rows, Counters(counts), placed

    def _one_draw_each(self, ids: Ids, subkey: bytes) -> Ids:
        """Return int32[n], the draws of int32[n] words at dataset level: one a word, made when it first occurs."""
        made = self._draws.setdefault(subkey, np.full(len(self.vocabulary), UNDRAWN, np.int32))
        new = np.unique(ids[made[ids] == UNDRAWN])
        if len(new):
            made[new] = self.sampler.sample(new, Draws(subkey, word_blocks(new)))
        return made[ids]

    def warm_up(self) -> None:
        """Compile the loops, or load them from the cache, so that the workers of this machine find them there."""
        ids = pa.array([0], pa.int64())
        self.privatize(pa.array([WARM]), column="", row_ids=ids, record_ids=ids, key=RunKey.insecure(0))

    def _context(self, column: str, run_id: str) -> tuple[str, ...]:
        """Return what a subkey is bound to (MECHANISMS §13)."""
        shared = ("draws", self.fingerprint, ENGINE_VERSION, self.consistency)
        return (*shared, run_id, column) if self.consistency == "token" else shared

    def _noise(self, identities: pa.Array, column: str, key: RunKey, run_id: str) -> Noise:
        context = self._context(column, run_id)
        level = CONSISTENCY.index(self.consistency)
        identity = np.zeros((1, 2), np.uint64)
        if level != DATASET:
            identity = identify(identities, key, "row" if level == TOKEN else "record")
        words, others, fakes = (key.derive(*context, use) for use in ("words", "others", "identifiers"))
        secret = key.derive(*context, "content", length=16)
        lane_keys: dict[int, bytes] = {}

        def sample(ids: Ids, blocks: npt.NDArray[np.uint64]) -> Ids:
            # At token and record level a table law gains nothing from grouping: equal blocks draw equal words.
            if level == DATASET:
                return self._one_draw_each(ids, words)
            return self.sampler.sample(ids, Draws(words, blocks, lane_keys))

        return Noise(
            level,
            identity,
            hash_keys(secret),
            sample,
            lambda blocks: encrypt(others, blocks),
            lambda blocks: encrypt(fakes, blocks),
        )


def fingerprint_of(
    arrays: Mapping[str, npt.NDArray[Any]], policy: Policy, consistency: str, providers: tuple[str, ...] = ()
) -> str:
    """Return the sha256 over the policy, the level, providers, and the names, types, shapes and bytes of arrays, hex."""
    chosen = asdict(policy)
    if not policy.identifiers:  # where none are looked for, draws are those of a policy that knows of none
        del chosen["identifiers"]
    digest = hashlib.sha256(json.dumps([chosen, consistency, *providers], sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
