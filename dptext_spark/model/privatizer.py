"""Applies a compiled mechanism to Arrow string arrays: a lexicon, a sampler, a policy and a level of consistency.

Its fingerprint is one digest of everything that its draws depend on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import I64, U8, U64, Ids
from dptext_spark.encoder.name_classifier import Classifier, check_classifier
from dptext_spark.errors import DataError, SettingsError, require_choice
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.budget import Budget, BudgetSelector
from dptext_spark.importance.levels import Units
from dptext_spark.importance.selector import Selector
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import Prior
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms.base import Sampler, check_context
from dptext_spark.randomness import Draws, RunKey, encrypt, hash_keys, identify, is_bytes
from dptext_spark.rounding import exact
from dptext_spark.runtime.display import line, table
from dptext_spark.runtime.validation import Json
from dptext_spark.text.engine import COUNTERS, Counters, Engine, Noise, OutputSpans
from dptext_spark.text.identifiers.provider import (
    ImportedProvider,
    Provider,
    ProviderRecord,
    check_imported,
    check_providers,
    import_providers,
)
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.public_names import KINDS, LISTED_KINDS
from dptext_spark.text.names.search import LIST_TYPES, PSEUDONYM
from dptext_spark.text.policy import TYPES, Policy
from dptext_spark.text.render import DATASET, TOKEN, word_blocks
from dptext_spark.text.replacements import KeyedNames
from dptext_spark.text.selection import Texts, TokenSelection
from dptext_spark.text.tokens import list_words
from dptext_spark.text.word_table import WordTable

ENGINE_VERSION = "2"  # goes up where the same key, model and text come out as other words
# One identifier of each type and a name, so that the loops behind them are there before the first is met.
WARM = (
    "a x@y.zz www.y.zz +1 555 123 4567, DE89370400440532013000 4111111111111111 10.0.0.1 ::1 1234567, @x 1.2.1999, "
    "Dr. A. Lovelace"
)
SHOWN = "Please send the parcel to my sister in London."  # ours, and so public: a notebook shows a draw of it
UNDRAWN = -1  # in the place of a word that was not drawn yet
CONSISTENCY = ("token", "record", "dataset")
Consistency = Literal["token", "record", "dataset"]
UNITS = {
    "token": "one occurrence of a word",
    "record": "all occurrences of a word in a record",
    "dataset": "all occurrences of a word in the dataset",
}
IN_ONE_TEXT = "all occurrences of a word in one text"  # at record level, where words are chosen in one text
UNIT_SENTENCES = {
    "token": "The unit is one occurrence of a word that the policy draws.",
    "record": "The unit is all occurrences of a drawn word in a record. The pattern of equal words in a record is released. A "
    "change of only some occurrences changes this pattern, and is not protected.",
    "dataset": "The unit is all occurrences of a drawn word in the dataset. The pattern of equal words is released: this is a "
    "substitution cipher, open to frequency analysis at any ε.",
}
COMPUTATIONAL = "The draws are pseudo-random: the guarantee holds against anyone without the run key."


@dataclass(frozen=True, eq=False)
class Privatizer:
    """Replaces the words of texts.

    Attributes:
        lexicon: the words (a :class:`Lexicon`, or its vocabulary where vectors are no longer needed).
        sampler: a compiled mechanism over the same words.
        policy: which words are drawn, kept, masked.
        consistency: `token` draws every occurrence anew; `record` one draw per record and word; `dataset` one per word.
        fingerprint: of the arrays, the policy, the consistency and how importance chooses words.
        table: the look-up table, built where it is not given.
        selector: chooses which of the words that the policy draws are drawn, and at which level; None for all of them. The
            sampler is that of the first level. That of a budget draws all, by a law that depends on their number.
        providers: finders of identifiers in addition to the policy's own patterns; the draws depend on their names.
        classifier: that looks for the policy's names, where it names one; its bytes are part of the model.
        public: how frequent words and pairs are in public; None for what the lexicon says. It is no part of the fingerprint:
            where draws depend on it, the sampler's arrays hold the needed part.
        imported: the providers that the policy names by import path; path, name and version of each are part of the model.

    Examples:
        >>> import pyarrow as pa
        >>> texts, counters = model.privatize(
        ...     pa.array(["Please send the parcel to Oslo.", None]),
        ...     column="body",
        ...     row_ids=pa.array([1, 2]),
        ...     key=dp.RunKey.generate(),
        ... )
        >>> len(texts), texts.null_count
        (2, 1)
        >>> model.guarantee().status
        'proved'
    """

    lexicon: Lexicon | Vocabulary
    sampler: Sampler
    policy: Policy = field(default_factory=Policy)
    consistency: Consistency = "token"
    fingerprint: str = ""
    table: WordTable | None = None
    selector: Selector | BudgetSelector | None = None
    providers: tuple[Provider, ...] = ()
    public: Prior | None = None
    classifier: Classifier | None = None
    imported: tuple[ImportedProvider, ...] = ()
    _draws: dict[bytes, Ids] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the level; build the look-up table and the fingerprint.

        Raises:
            SettingsError: an unknown level, or one that does not agree with the selection or the sampler; levels of importance
                whose guarantees are of different kinds; fluent draws after the words of another word table.
        """
        require_choice("consistency", self.consistency, CONSISTENCY)
        if self.selector is not None:
            self.selector.check(self.consistency)
            self.selector.guarantee(self.sampler.guarantee)
        if any(sampler.reads_context for sampler in self.samplers):
            check_context(self.consistency, len(self.samplers))
        check_providers(self.providers, _reserved_types(self.policy))
        check_imported(self.policy.providers, self.imported)
        self.policy.names.check_version()
        check_classifier(self.policy.names, self.classifier)
        if isinstance(self.lexicon, Lexicon):
            self.lexicon.require_cut_by(self.policy.tokenizer)
        if self.table is None:
            object.__setattr__(self, "table", WordTable.build(self.vocabulary, self.policy.stop_list()))
        if self.sampler.reads_context and isinstance(self.lexicon, Lexicon):
            _check_contexts(self.lexicon, self.table)
        prior = (
            self.lexicon.prior if self.public is None and isinstance(self.lexicon, Lexicon) else self.public
        )
        if prior is not None and prior.others:
            assert self.table is not None
            prior = prior.before(self.table.beyond())
        object.__setattr__(self, "public", prior)
        if not self.fingerprint:
            bound = None if self.selector is None else self.selector.bound()
            names = tuple(provider.name for provider in self.providers)
            records = tuple(provider.record for provider in self.imported)
            fingerprint = fingerprint_of(self.arrays(), self.policy, self.consistency, bound, names, records)
            object.__setattr__(self, "fingerprint", fingerprint)

    def __repr__(self) -> str:
        """Return level, guarantee and number of words, and what the fingerprint begins with."""
        claimed = self.guarantee()
        words, law = f"{len(self.vocabulary):,} words", f"{claimed.kind}, ε = {exact(claimed.epsilon)}"
        levels = f"{len(self.samplers)} laws" if len(self.samplers) > 1 else ""
        return line(
            "Privatizer", words, law, levels, self.consistency, f"fingerprint {self.fingerprint[:12]}…"
        )

    def _repr_html_(self) -> str:
        """Return settings, guarantee and one draw of `SHOWN` for a notebook.

        The draw is under a fresh key that nobody keeps, and without lists of names. There is none if importance chooses
        words by a run's counts or by a column.
        """
        claimed = self.guarantee()
        rows = [
            ("lexicon", repr(self.lexicon)),
            ("law", f"{claimed.kind}, ε = {exact(claimed.epsilon)}"),
            ("level", self.consistency),
            ("policy", repr(self.policy)),
            ("guarantee", str(claimed)),
            ("fingerprint", self.fingerprint),
        ]
        after = self._drawn_once(SHOWN)
        if after is None:
            return table(
                "Privatizer", rows, note="No example: the drawn words depend on a run's texts or weights."
            )
        note = "One draw of a public sentence, under a fresh key that is discarded."
        return table("Privatizer", rows, pair=(SHOWN, after), note=note)

    def _drawn_once(self, text: str) -> str | None:
        """Draw a public text under a fresh key; None where importance cannot choose in it. Nothing of the draw is kept."""
        if self.selector is not None and (self.selector.reads_weights or not self.chooses):
            return None
        model = copy(self)
        model.__dict__["_draws"] = {}
        model.__dict__.pop("engine", None)  # it may know lists of names, and these must stay hidden
        texts, _ = model.privatize(
            pa.array([text]), column="text", row_ids=pa.array([0]), key=RunKey.generate()
        )
        return str(texts[0].as_py())

    def __getstate__(self) -> object:
        """Pickle without earlier draws: no table of substitutions is shipped."""
        return self.__dict__ | {"_draws": {}}

    @property
    def vocabulary(self) -> Vocabulary:
        """The words by id."""
        return self.lexicon.vocabulary if isinstance(self.lexicon, Lexicon) else self.lexicon

    @property
    def prior(self) -> Prior:
        """Public frequencies of words and pairs, as every figure of this model assumes them."""
        return Prior.by_rank(len(self.vocabulary)) if self.public is None else self.public

    @cached_property
    def engine(self) -> Engine:
        """The text engine."""
        assert self.table is not None
        searches = () if self.classifier is None else (self.classifier,)
        return Engine(
            self.table, self.policy, (*self.imported, *self.providers), self.sampler.remap, searches
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays for sampling, by file name."""
        assert self.table is not None
        named = {f"sampler.{name}": array for name, array in self.sampler.arrays().items()}
        if self.selector is not None:
            named |= self.selector.arrays()
        if self.classifier is not None:
            named |= {f"names.{name}": array for name, array in self.classifier.arrays().items()}
        return named | {f"words.{name}": array for name, array in self.table.arrays().items()}

    def guarantee(self, *, of_rows: bool = False) -> Guarantee:
        """Return the guarantee of one drawn word under this policy and level.

        Args:
            of_rows: whether :meth:`choose` is given all texts of a row, as a job and the lazy function do. Otherwise importance
                chooses words within a text, and the words of several texts have no common ε.
        """
        base, chosen = self.sampler.guarantee, ""
        unit, unit_sentence = UNITS[self.consistency], UNIT_SENTENCES[self.consistency]
        if self.selector is not None:
            chosen = f" {self.selector.sentence('record' if of_rows else 'text')}"
            base = self.selector.guarantee(base)
            if self.consistency == "record" and not of_rows:
                unit, unit_sentence = IN_ONE_TEXT, UNIT_SENTENCES["record"].replace("record", "text")
        return replace(base, unit=unit, sentence=f"{base.sentence}{chosen} {unit_sentence} {COMPUTATIONAL}")

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        """The laws that are sampled: one, or one for each level of importance."""
        return (self.sampler,) if self.selector is None else (self.sampler, *self.selector.further)

    @cached_property
    def units(self) -> Units:
        """Count of a record's ε: a drawn word is one unit, except with levels of importance that differ in ε."""
        base = self.sampler.guarantee
        return Units((1,), base) if self.selector is None else self.selector.units(base)

    def privatize(
        self,
        texts: pa.Array,
        *,
        column: str,
        row_ids: pa.Array,
        record_ids: pa.Array | None = None,
        key: RunKey,
        run_id: str = "",
        weights: pa.Array | None = None,
        chosen: TokenSelection | None = None,
    ) -> tuple[pa.Array, Counters]:
        """Replace the words of a batch.

        Args:
            texts: string, large_string or binary [n]; NULLs stay NULL.
            column: the column's name; an input of token-level draws.
            row_ids: integer, string or binary [n], unique in the run.
            record_ids: the same types [n]; the scope of record consistency. None: the row. Where importance chooses the words of
                a record, this is the row whose texts were chosen together.
            key: the run key.
            run_id: an input of token-level draws.
            weights: list<float> [n], the importance of each word, where a selection takes them from the user.
            chosen: which words are drawn, where :meth:`choose` settled that before; without it, the words of each text are chosen
                in that text alone.

        Returns:
            (texts [n], counters). A row with invalid UTF-8 is counted as `invalid` and comes back empty.

        Raises:
            DataError: NULL identities, lengths that differ, or a type that is no text; weights that are missing, or not one for
                each word; records of several texts whose words were not chosen together.
        """
        rows, counts, _ = self.privatize_with_spans(
            texts, column=column, row_ids=row_ids, record_ids=record_ids, key=key, run_id=run_id,
            weights=weights, chosen=chosen,
        )  # fmt: skip
        return rows, counts

    def privatize_with_spans(
        self,
        texts: pa.Array,
        *,
        column: str,
        row_ids: pa.Array,
        record_ids: pa.Array | None = None,
        key: RunKey,
        run_id: str = "",
        weights: pa.Array | None = None,
        chosen: TokenSelection | None = None,
    ) -> tuple[pa.Array, Counters, OutputSpans | None]:
        """Do the same, and return the places of identifiers for an audit (None without any)."""
        identities = row_ids if record_ids is None or self.consistency == "token" else record_ids
        if not is_bytes(texts.type):
            raise DataError(f"{column}: a column of type {texts.type} is not valid. Choose a text column.")
        if len(identities) != len(texts):
            raise DataError(f"{column}: {len(texts)} texts do not fit {len(identities)} identities.")
        if self.chooses_in_records and record_ids is not None:
            _check_records(column, row_ids, record_ids, chosen)
        if chosen is None:
            selections = self.choose([Texts(texts, None, weights)])
            chosen = None if selections is None else selections[0]
        noise = self.noise(identities, column, key, run_id)
        rows, counts, placed = self.engine.privatize_with_spans(texts, noise, chosen)
        if chosen is not None:
            return rows, Counters(counts, chosen.units), placed
        drawn = COUNTERS.index("distinct" if self.consistency == "record" else "drawn")
        return rows, Counters(counts, counts[:, drawn].astype(np.int64)), placed

    def with_names(self, names: NameMatcher) -> Privatizer:
        """Return the model with lists of names: entries are masked, have pseudonyms, or stay. The fingerprint lacks them."""
        privatizer = copy(self)
        privatizer.__dict__["engine"] = self.engine.with_providers((*self.engine.providers, names))
        return privatizer

    def of_rows(self, rows: I64) -> Privatizer:
        """Return the model for texts of these rows, int64[texts], with the rows' own lists; by default text i is of row i."""
        privatizer = copy(self)
        privatizer.__dict__["engine"] = self.engine.of_rows(rows)
        return privatizer

    def choose(self, columns: Sequence[Texts]) -> tuple[TokenSelection, ...] | None:
        """Choose the words of a batch that are drawn; None: all that the policy draws.

        Args:
            columns: all texts of the rows: words are chosen among all texts that are given together.

        Returns:
            The input `chosen` of :meth:`privatize` for each column.

        Raises:
            DataError: weights that are missing, not one for each word, or given without need.
        """
        if self.selector is None:
            if any(column.weights is not None for column in columns):
                raise DataError("weights: not valid, because all words are drawn. Remove them.")
            return None
        return self.selector.choose(self.engine, columns, self.consistency, self.units)

    def _one_draw_each(self, ids: Ids, subkey: bytes) -> Ids:
        """Return int32[n], the draws of int32[n] words at dataset level: one a word, made when it first occurs."""
        draws = self._draws.setdefault(subkey, np.full(len(self.vocabulary), UNDRAWN, np.int32))
        new = np.unique(ids[draws[ids] == UNDRAWN])
        if len(new):
            draws[new] = self.sampler.sample(new, Draws(subkey, word_blocks(new)))
        return draws[ids]

    def warm_up(self) -> None:
        """Compile the loops, or load them from the cache, so that the workers of this machine find them there."""
        texts, ids, key, weights = pa.array([WARM]), pa.array([0], pa.int64()), RunKey.insecure(0), None
        if isinstance(self.selector, Selector) and self.selector.reads_weights:
            words = list_words(self.engine, texts, marks=self.selector.selection.rank_punctuation).codes
            weights = pa.array([[1.0] * len(words)])
        self.privatize(texts, column="", row_ids=ids, record_ids=ids, key=key, weights=weights)

    @property
    def budget(self) -> Budget | None:
        """Bound of each record; None without one."""
        return self.selector.budget if isinstance(self.selector, BudgetSelector) else None

    @property
    def chooses_in_records(self) -> bool:
        """True if all texts of a record must be chosen in together, so that a record is a row."""
        if self.selector is None:
            return False
        return self.consistency == "record" or self.selector.whole_records

    @property
    def chooses(self) -> bool:
        """True if it can choose the drawn words. If the choice depends on a run's own counts, only after these."""
        return self.selector is None or self.selector.is_complete

    def _context(self, column: str, run_id: str) -> tuple[str, ...]:
        """Return the context of a subkey (concepts/mechanisms, Draws)."""
        shared = ("draws", self.fingerprint, ENGINE_VERSION, self.consistency)
        return (*shared, run_id, column) if self.consistency == "token" else shared

    def _pseudonyms(self, key: RunKey, column: str, run_id: str) -> KeyedNames | None:
        """Return the source of pseudonyms: the same in every run with this key, these lists and this level."""
        names, finder = self.policy.names, self.engine.finder
        listed = finder is not None and LISTED_KINDS[0] in finder.names
        if not names.wanted(PSEUDONYM) and not listed:
            return None
        place = (run_id, column) if self.consistency == "token" else ()
        context = ("pseudonyms", names.version, self.consistency, *place)
        subkey = key.derive(*context, "draws")
        return KeyedNames(
            hash_keys(key.derive(*context, "content", length=16)), lambda blocks: encrypt(subkey, blocks)
        )

    def noise(self, identities: pa.Array, column: str, key: RunKey, run_id: str) -> Noise:
        """Return the source of a batch's draws: see :meth:`privatize`."""
        context = self._context(column, run_id)
        level = CONSISTENCY.index(self.consistency)
        identity = np.zeros((1, 2), np.uint64)
        if level != DATASET:
            identity = identify(identities, key, "row" if level == TOKEN else "record")
        words, others, fakes = (key.derive(*context, use) for use in ("words", "others", "identifiers"))
        secret = key.derive(*context, "content", length=16)
        lane_keys: dict[int, bytes] = {}

        def sample(ids: Ids, blocks: U64) -> Ids:
            # At token and record level a table law gains nothing from grouping: equal blocks draw equal words.
            if level == DATASET:
                return self._one_draw_each(ids, words)
            return self.sampler.sample(ids, Draws(words, blocks, lane_keys))

        noise = Noise(
            level,
            identity,
            hash_keys(secret),
            sample,
            lambda blocks: encrypt(others, blocks),
            lambda blocks: encrypt(fakes, blocks),
            names=self._pseudonyms(key, column, run_id),
        )
        if self.sampler.reads_context:

            def in_context(ids: Ids, before: Ids, blocks: U64) -> Ids:
                return self.sampler.sample_after(ids, before, Draws(words, blocks, lane_keys))

            return noise._replace(in_context=in_context)
        if self.selector is None or not self.selector.further:
            return noise
        samplers = self.samplers
        # One number never serves two mechanisms: each level has a subkey of its own.
        subkeys = [words, *(key.derive(*context, "words", f"level {n}") for n in range(1, len(samplers)))]

        def at_levels(ids: Ids, blocks: U64, levels: U8) -> Ids:
            drawn = np.empty(len(ids), np.int32)
            for number, (sampler, subkey) in enumerate(zip(samplers, subkeys, strict=True)):
                here = np.flatnonzero(levels == number)
                if len(here):
                    drawn[here] = sampler.sample(ids[here], Draws(subkey, blocks[here]))
            return drawn

        return noise._replace(at_levels=at_levels)


def providers_of(policy: Policy, *, tried: bool = False) -> tuple[ImportedProvider, ...]:
    """Import the providers that a policy names.

    Args:
        policy: which a user wrote.
        tried: whether each is asked about texts of our own, so that what fails at once fails before anything is read.

    Raises:
        SettingsError: one cannot be imported, is none, fails, or has types that are taken.
    """
    return import_providers(policy.providers, (*LIST_TYPES, *_reserved_types(policy)), tried=tried)


def _reserved_types(policy: Policy) -> tuple[str, ...]:
    """Return the types that no provider may find."""
    return (*TYPES, *(KINDS if policy.names else ()))


def _check_contexts(lexicon: Lexicon, table: WordTable | None) -> None:
    """Refuse a sampler whose contexts are not the words of the table: it was compiled for another stop-word list.

    Raises:
        SettingsError: such a sampler.
    """
    assert table is not None
    if lexicon.prior.others != table.beyond():
        raise SettingsError(
            "policy.stop_word_list: the lexicon's prior has its pairs in the order of another list. The fluent sampler was "
            "compiled from it. Choose a model that `compile` made of this mechanism, lexicon and policy."
        )


def _check_records(
    column: str, row_ids: pa.Array, record_ids: pa.Array, chosen: TokenSelection | None
) -> None:
    """Refuse records whose words were not chosen in all their texts together: a word's occurrences would have no common ε.

    Raises:
        DataError: such records.
    """
    if chosen is None:
        wrong = not record_ids.equals(row_ids)
    else:
        rows = np.arange(len(record_ids)) if chosen.rows is None else chosen.rows
        distinct, first, again = np.unique(rows, return_index=True, return_inverse=True)
        of_rows = record_ids.take(pa.array(first))
        several = len(distinct) != int(pc.count_distinct(of_rows, mode="all").as_py())
        wrong = (
            len(rows) != len(record_ids) or several or not record_ids.equals(of_rows.take(pa.array(again)))
        )
    if wrong:
        raise DataError(
            f"{column}: the record_ids are not those of the rows. With importance at record level, or a budget, the texts "
            "of one row are a record. Use no record_ids, or the row_ids. With `chosen`, repeat the id of a row for each of "
            "its texts."
        )


def fingerprint_of(
    arrays: Mapping[str, npt.NDArray[Any]],
    policy: Policy,
    consistency: str,
    selector: Mapping[str, Json] | None = None,
    providers: tuple[str, ...] = (),
    imported: tuple[ProviderRecord, ...] = (),
) -> str:
    """Return the sha256 over the policy, the level, the arrays with their names, types and shapes, and who chooses and finds."""
    known = policy.as_dict()
    # Where none are looked for, draws are those of a policy that knows of none.
    if not policy.identifiers:
        del known["identifiers"]
    if not policy.names:
        known.pop("names", None)
    elif policy.names.classifies:  # what it is made of is among the arrays, wherever it was read
        known["names"] = {
            name: setting for name, setting in policy.names.as_dict().items() if name != "model"
        }
    if imported:
        known["providers"] = [record.as_dict() for record in imported]
    bound = [known, consistency, *([] if selector is None else [selector]), *providers]
    digest = hashlib.sha256(json.dumps(bound, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def public_example(privatizer: Privatizer) -> tuple[str, str] | None:
    """Return a public sentence and its draw under a fresh key that is thrown away; None if none can be made."""
    after = privatizer._drawn_once(SHOWN)
    return None if after is None else (SHOWN, after)
